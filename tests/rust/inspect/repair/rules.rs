//! Rules of repair that the corpus does not show.

use cordwood::writer::{LogWriter, WriterOptions};

use super::*;
use crate::support::batches::{BatchV2, Rec};
use crate::support::golden;
use crate::support::partition::{Indexing, PartitionBuilder};

pub(super) fn batch(base_offset: i64, records: i64, epoch: i32) -> BatchV2 {
    let mut batch = BatchV2::new(base_offset);
    batch.leader_epoch = epoch;
    batch.records =
        (0..records).map(|number| Rec::at(1000 + base_offset + number).value([b'v'; 40])).collect();
    batch
}

/// A log of one segment, with some bytes changed.
pub(super) fn log(
    parent: &Path,
    batches: &[BatchV2],
    change: impl FnOnce(&mut Vec<u8>),
) -> std::path::PathBuf {
    let built = batches.iter().map(BatchV2::build);
    let dir = PartitionBuilder::new(Indexing::default()).segment(0, built).write(parent, "orders-0");
    let path = dir.join(format!("{:020}.log", 0));
    let mut bytes = std::fs::read(&path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
    dir
}

pub(super) fn offsets(dir: &Path) -> Vec<(i64, i64)> {
    batches(dir, OnDamage::Raise).iter().map(|(first, last, _)| (*first, *last)).collect()
}

#[test]
fn a_base_offset_with_room_for_several_values_is_not_guessed() {
    let folder = reading::folder();
    // 5 offsets are missing between the neighbours, and the batch has 3
    let batches = [batch(0, 2, 0), batch(3, 3, 0), batch(7, 1, 0)];
    let size = batches[0].build().bytes.len();
    let dir = log(folder.path(), &batches, |bytes| bytes[size + 1] ^= 1);
    let plan = repaired(&dir, &options(RepairPolicy::Salvage, 4096)).unwrap();
    assert_eq!(offsets(&dir), [(0, 1), (7, 7)]);
    assert_eq!((plan.lost_ranges[0].start_offset, plan.lost_ranges[0].end_offset), (2, Some(7)));
}

#[test]
fn a_whole_batch_is_kept_whatever_its_epoch_was() {
    for after in [1, 2] {
        let folder = reading::folder();
        let batches = [batch(0, 2, 1), batch(2, 3, 1), batch(5, 1, after)];
        let size = batches[0].build().bytes.len();
        let dir = log(folder.path(), &batches, |bytes| bytes[size + 15] = 0);
        repaired(&dir, &options(RepairPolicy::Salvage, 4096)).unwrap();
        assert!(offsets(&dir).contains(&(2, 4)), "epochs 1 and {after}");
    }
}

#[test]
fn two_neighbouring_batches_with_wrong_offsets_are_both_corrected() {
    let folder = reading::folder();
    let batches = [batch(0, 2, 0), batch(2, 3, 0), batch(5, 4, 0), batch(9, 1, 0)];
    let sizes: Vec<_> = batches.iter().map(|batch| batch.build().bytes.len()).collect();
    let dir = log(folder.path(), &batches, |bytes| {
        bytes[sizes[0] + 1] ^= 1;
        bytes[sizes[0] + sizes[1] + 2] ^= 1;
    });
    let plan = repaired(&dir, &options(RepairPolicy::Salvage, 4096)).unwrap();
    assert_eq!(offsets(&dir), [(0, 1), (2, 4), (5, 8), (9, 9)]);
    assert!(plan.lost_ranges.is_empty(), "{:#?}", plan.lost_ranges);
}

#[test]
fn a_batch_inside_a_damaged_value_is_not_taken_for_one_of_the_log() {
    let folder = reading::folder();
    let inner = batch(2, 1, 0).build().bytes;
    let mut outer = batch(2, 2, 0);
    outer.records[0].value = Some(inner);
    let batches = [batch(0, 2, 0), outer, batch(4, 1, 0)];
    let size = batches[0].build().bytes.len();
    let dir = log(folder.path(), &batches, |bytes| bytes[size + 20] ^= 1);
    repaired(&dir, &options(RepairPolicy::Salvage, 4096)).unwrap();
    assert_eq!(offsets(&dir), [(0, 1), (4, 4)]);
}

#[test]
fn a_writer_opens_a_salvaged_log_that_lost_synced_records() {
    let folder = reading::folder();
    let dir = log(folder.path(), &[batch(0, 2, 0), batch(2, 3, 0), batch(5, 4, 0)], |_| {});
    LogWriter::open(&dir, &WriterOptions::default()).unwrap().close().unwrap();
    let path = dir.join(format!("{:020}.log", 0));
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 10]).unwrap();
    assert!(LogWriter::open(&dir, &WriterOptions::default()).is_err());
    let refused = repaired(&dir, &options(RepairPolicy::TornTail, 4096)).unwrap_err();
    assert!(refused.to_string().contains("it was synced"), "{refused}");
    repaired(&dir, &options(RepairPolicy::Salvage, 4096)).unwrap();
    let writer = LogWriter::open(&dir, &WriterOptions::default()).unwrap();
    assert_eq!(writer.log_end_offset(), 5);
}

#[test]
fn a_partition_that_a_writer_has_open_is_not_repaired() {
    let folder = reading::folder();
    let dir = log(folder.path(), &[batch(0, 2, 0)], |_| {});
    let writer = LogWriter::open(&dir, &WriterOptions::default()).unwrap();
    for refused in [plan_repair(&dir, &RepairOptions::default()), repair(&dir, &RepairOptions::default())] {
        assert!(matches!(refused, Err(Error::Locked { .. })), "{refused:?}");
    }
    drop(writer);
}

#[test]
fn checkpoints_above_the_end_are_lowered() {
    let folder = reading::folder();
    let dir = log(folder.path(), &[batch(0, 2, 0), batch(2, 3, 0)], |_| {});
    for name in ["log-start-offset-checkpoint", "recovery-point-offset-checkpoint"] {
        std::fs::write(folder.path().join(name), "0\n2\norders 0 77\nother 3 99\n").unwrap();
    }
    std::fs::write(folder.path().join(".kafka_cleanshutdown"), "").unwrap();
    // the log was flushed up to the recovery point: records are missing
    let refused = repaired(&dir, &options(RepairPolicy::TornTail, 4096)).unwrap_err();
    assert!(refused.to_string().contains("ends at offset 77 or above"), "{refused}");
    let plan = repaired(&dir, &options(RepairPolicy::Salvage, 4096)).unwrap();
    let lowered = |kind| plan.actions.iter().filter(|action| action.kind == kind).count();
    assert_eq!(lowered(RepairActionKind::LowerCheckpoint), 2, "{:#?}", plan.actions);
    let text = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(text("log-start-offset-checkpoint"), "0\n2\nother 3 99\norders 0 0\n");
    assert_eq!(text("recovery-point-offset-checkpoint"), "0\n2\nother 3 99\norders 0 5\n");
    assert!(!folder.path().join(".kafka_cleanshutdown").exists());
}

/// Three segments of five batches with two offsets each; the log starts at an offset inside the second one.
fn with_log_start(parent: &Path, start: i64) -> std::path::PathBuf {
    let mut builder = PartitionBuilder::new(Indexing::default());
    for base in [0, 10, 20] {
        builder = builder.segment(base, (0..5).map(|number| batch(base + 2 * number, 2, 0).build()));
    }
    let dir = builder.write(parent, "orders-0");
    std::fs::write(parent.join("meta.properties"), "version=1\n").unwrap();
    std::fs::write(parent.join("log-start-offset-checkpoint"), format!("0\n1\norders 0 {start}\n")).unwrap();
    dir
}

fn damage(dir: &Path, base: i64, number: usize) {
    let path = dir.join(format!("{base:020}.log"));
    let mut bytes = std::fs::read(&path).unwrap();
    let size = bytes.len() / 5;
    bytes[number * size + 70] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn damage_below_the_log_start_does_not_cut_a_log() {
    for (base, number) in [(0, 2), (0, 4), (10, 0)] {
        let folder = reading::folder();
        let dir = with_log_start(folder.path(), 13);
        let before = offsets(&dir);
        damage(&dir, base, number);
        let plan = repaired(&dir, &options(RepairPolicy::Kafka, 4096)).unwrap();
        assert!(plan.lost_ranges.is_empty(), "{:#?}", plan.lost_ranges);
        assert!(plan.actions.iter().any(|action| action.kind == RepairActionKind::TakeOut));
        assert_eq!(offsets(&dir), before);
        assert_eq!(Log::open(&dir, LogOptions::default()).unwrap().log_start_offset(), 13);
    }
}

#[test]
fn a_log_is_not_cut_below_its_start() {
    let folder = reading::folder();
    let dir = with_log_start(folder.path(), 13);
    damage(&dir, 10, 1);
    let error = repaired(&dir, &options(RepairPolicy::Kafka, 4096)).unwrap_err();
    assert!(error.to_string().contains("log start offset"), "{error}");
    let folder = reading::folder();
    let dir = with_log_start(folder.path(), 13);
    damage(&dir, 10, 3);
    let plan = repaired(&dir, &options(RepairPolicy::Kafka, 4096)).unwrap();
    assert_eq!(plan.log_end_offset, 16);
    assert_eq!(Log::open(&dir, LogOptions::default()).unwrap().log_start_offset(), 13);
}

/// The leader epochs after a salvage of batches with these epochs, of two offsets each.
fn epochs_after(text: &str, epochs: &[i32]) -> String {
    let folder = reading::folder();
    let batches: Vec<_> =
        epochs.iter().enumerate().map(|(number, epoch)| batch(2 * number as i64, 2, *epoch)).collect();
    let dir = log(folder.path(), &batches, |_| {});
    let path = dir.join("leader-epoch-checkpoint");
    std::fs::write(&path, text).unwrap();
    repaired(&dir, &options(RepairPolicy::Salvage, 4096)).unwrap();
    std::fs::read_to_string(&path).unwrap()
}

#[test]
fn leader_epochs_agree_with_every_batch() {
    for (text, epochs, wanted) in [
        // without the epoch above the end nothing is left
        ("0\n1\n0 8\n", &[0][..], "0\n1\n0 0\n"),
        ("0\n2\n0 0\n1 8\n", &[0, 0], "0\n1\n0 0\n"),
        // the first batch of epoch 0 agrees, the last one does not
        ("0\n2\n0 0\n1 4\n", &[0, 0, 0, 0], "0\n1\n0 0\n"),
        ("0\n2\n0 0\n1 4\n", &[0, 0, 1, 1], "0\n2\n0 0\n1 4\n"),
        ("0\n2\n0 0\n1 6\n", &[0, 0, 1, 1], "0\n2\n0 0\n1 4\n"),
    ] {
        assert_eq!(epochs_after(text, epochs), wanted, "{text:?}");
    }
}

#[test]
fn files_of_others_are_reported_and_left() {
    let folder = reading::folder();
    let dir = log(folder.path(), &[batch(0, 2, 0)], |_| {});
    for name in ["notes.log", "7.log"] {
        std::fs::write(dir.join(name), "not a log").unwrap();
    }
    for policy in RepairPolicy::ALL {
        let plan = repaired(&dir, &options(policy, 4096)).unwrap();
        assert_eq!(plan.foreign_files, [dir.join("7.log"), dir.join("notes.log")], "{:#?}", plan.actions);
        assert!(dir.join("notes.log").exists() && dir.join("7.log").exists());
    }
}

#[test]
fn a_leader_epoch_that_the_next_segment_contradicts_is_corrected() {
    for count in [1, 2, 3] {
        let folder = reading::folder();
        let built = |base: i64| (0..count).map(move |number| batch(base + 2 * number, 2, 4).build());
        let builder = PartitionBuilder::new(Indexing::default());
        let dir = builder.segment(0, built(0)).segment(2 * count, built(2 * count));
        let dir = dir.segment(4 * count, built(4 * count)).write(folder.path(), "orders-0");
        let path = dir.join(format!("{:020}.log", 2 * count));
        let mut bytes = std::fs::read(&path).unwrap();
        let size = bytes.len() / count as usize;
        bytes[(count as usize - 1) * size + 12] ^= 1;
        std::fs::write(path, bytes).unwrap();
        let plan = repaired(&dir, &options(RepairPolicy::Salvage, 4096)).unwrap();
        assert!(plan.lost_ranges.is_empty(), "{:#?}", plan.lost_ranges);
        assert_eq!(offsets(&dir).len(), 3 * count as usize);
    }
}

#[test]
fn the_last_batch_is_kept_with_a_lower_leader_epoch() {
    for epoch in [0, 3] {
        let folder = reading::folder();
        let builder = PartitionBuilder::new(Indexing::default());
        let builder = builder.segment(0, (0..9).map(|offset| batch(offset, 1, 8).build()));
        let dir = builder.segment(9, [batch(9, 1, epoch).build()]).write(folder.path(), "orders-0");
        for policy in [RepairPolicy::Kafka, RepairPolicy::Salvage] {
            // another cluster may have appended it: a broker keeps it
            let plan = plan_repair(&dir, &options(policy, 4096)).unwrap();
            assert_eq!((plan.log_end_offset, plan.kept_batches), (10, 10));
            assert!(plan.lost_ranges.is_empty());
        }
    }
}

#[test]
fn a_whole_batch_with_the_missing_offsets_is_kept_with_a_possible_leader_epoch() {
    for (epochs, expected) in [([8, 8, 1, 8, 8], 8), ([2, 2, 5, 2, 2], 2), ([2, 2, 13, 4, 4], 4)] {
        let folder = reading::folder();
        let builder = PartitionBuilder::new(Indexing::default());
        let batches = (0..).zip(epochs).map(|(offset, epoch)| batch(offset, 1, epoch).build());
        let dir = builder.segment(0, batches).write(folder.path(), "orders-0");
        let plan = repaired(&dir, &options(RepairPolicy::Salvage, 4096)).unwrap();
        assert!(plan.lost_ranges.is_empty(), "{:#?}", plan.lost_ranges);
        let bytes = std::fs::read(dir.join(format!("{:020}.log", 0))).unwrap();
        let third = bytes.len() / 5 * 2;
        assert_eq!(i32::from_be_bytes(*bytes[third + 12..].first_chunk().unwrap()), expected);
    }
}

#[test]
fn a_batch_that_was_taken_for_damaged_is_not_put_back_where_the_next_segment_contradicts_it() {
    let folder = reading::folder();
    let builder = PartitionBuilder::new(Indexing::default());
    let first = (0..9).map(|offset| batch(offset, 1, 5)).chain([batch(9, 1, 70)]).map(|batch| batch.build());
    let builder = builder.segment(0, first).segment(10, (10..12).map(|offset| batch(offset, 1, 5).build()));
    let dir = builder.write(folder.path(), "orders-0");
    repaired(&dir, &options(RepairPolicy::Salvage, 4096)).unwrap();
    let read = reading::all(&Log::open(&dir, LogOptions::default()).unwrap(), OnDamage::Raise);
    assert!(read.error.is_none(), "{:?}", read.error);
    assert!(plan_repair(&dir, &options(RepairPolicy::Salvage, 4096)).unwrap().is_clean());
}

/// The copy of a partition of Kafka, the names of its `.log` files, and its `index.interval.bytes`.
fn small(parent: &Path) -> (std::path::PathBuf, Vec<String>, u32) {
    let part = golden::intact().into_iter().find(|part| part.case == "01-small").unwrap();
    let dir = parent.join("tickets-0");
    std::fs::create_dir(&dir).unwrap();
    let files = reading::files(&part.dir);
    for (name, bytes) in &files {
        std::fs::write(dir.join(name), bytes).unwrap();
    }
    (dir, files.into_keys().filter(|name| is_live_log(name)).collect(), interval(part.manifest))
}

#[test]
fn the_preallocated_indexes_of_the_last_segment_are_not_wrong() {
    let folder = reading::folder();
    let (dir, logs, _) = small(folder.path());
    let preallocate = |log: &str| {
        for (suffix, size) in [("index", 10 << 20), ("timeindex", (10 << 20) - 4)] {
            let path = dir.join(log).with_extension(suffix);
            std::fs::File::options().write(true).open(path).unwrap().set_len(size).unwrap();
        }
    };
    preallocate(logs.last().unwrap());
    let plan = plan_repair(&dir, &RepairOptions::default()).unwrap();
    assert!(plan.is_clean(), "{:#?}", plan.actions);
    // other bytes than zeros after the entries
    let index = dir.join(logs.last().unwrap()).with_extension("index");
    let intact = std::fs::read(&index).unwrap();
    let mut wrong = intact.clone();
    wrong[(10 << 20) - 1] = 1;
    std::fs::write(&index, wrong).unwrap();
    let plan = plan_repair(&dir, &RepairOptions::default()).unwrap();
    assert_eq!(plan.actions.iter().map(|action| &action.file).collect::<Vec<_>>(), [&index]);
    assert!(plan.actions[0].reason.contains("do not match the batches"), "{}", plan.actions[0].reason);
    std::fs::write(&index, intact).unwrap();
    // a broker takes the zeros behind a sealed segment's entries for entries
    preallocate(&logs[0]);
    let plan = plan_repair(&dir, &RepairOptions::default()).unwrap();
    assert_eq!(plan.actions.len(), 2);
    for action in &plan.actions {
        assert!(action.reason.contains("takes the space after them for entries"), "{}", action.reason);
    }
}

#[test]
fn indexes_are_rebuilt_with_the_interval_that_the_others_show() {
    let rebuilt = |options: &dyn Fn(u32) -> RepairOptions| {
        let folder = reading::folder();
        let (dir, logs, interval) = small(folder.path());
        assert_ne!(interval, 4096);
        let index = dir.join(&logs[1]).with_extension("index");
        std::fs::remove_file(&index).unwrap();
        repaired(&dir, &options(interval)).unwrap();
        std::fs::read(index).unwrap()
    };
    let shown = rebuilt(&|_| RepairOptions::default());
    assert_eq!(shown, rebuilt(&|interval| options(RepairPolicy::TornTail, interval)));
    assert_ne!(shown, rebuilt(&|_| options(RepairPolicy::TornTail, 4096)));
}

#[test]
fn a_flipped_epoch_of_a_batch_with_more_records_than_offsets_is_corrected() {
    let folder = reading::folder();
    let batches = [batch(0, 2, 4), batch(2, 3, 4).last_offset_delta(0), batch(5, 1, 4)];
    let size = batches[0].build().bytes.len();
    let dir = log(folder.path(), &batches, |bytes| bytes[size + 15] ^= 1 << 5);
    let plan = repaired(&dir, &options(RepairPolicy::Salvage, 4096)).unwrap();
    assert_eq!(offsets(&dir), [(0, 1), (2, 2), (5, 5)]);
    assert!(plan.lost_ranges.is_empty(), "{:#?}", plan.lost_ranges);
}
