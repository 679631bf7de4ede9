//! The difference of two replicas, compared with a naive search in the records that Kafka reads.

use std::path::Path;

use cordwood::inspect::diff::{DiffOptions, Difference, DifferenceCause, DifferentField};

use crate::support::batches::{BatchV2, Codec, Rec};
use crate::support::golden::{self, Partition};
use crate::support::naive::Record;
use crate::support::partition::{Indexing, PartitionBuilder};

fn diff(a: &Path, b: &Path) -> Difference {
    Difference::between(a, b, &DiffOptions::default()).unwrap()
}

fn partition(case: &str) -> Partition {
    golden::intact().into_iter().find(|partition| partition.case == case).unwrap()
}

fn damaged(case: &str) -> golden::Damaged {
    golden::damaged().into_iter().find(|damaged| damaged.case == format!("damaged/{case}")).unwrap()
}

/// Every record, of whatever batch.
fn records(partition: &Partition) -> Vec<Record> {
    golden::expected_batches(&partition.expected).into_iter().flat_map(|batch| batch.records).collect()
}

/// The first offset in a range with different records.
fn naive(one: &[Record], other: &[Record], range: std::ops::Range<i64>) -> Option<i64> {
    let inside = |records: &[Record]| -> Vec<Record> {
        records.iter().filter(|record| range.contains(&record.offset)).cloned().collect()
    };
    let (one, other) = (inside(one), inside(other));
    let same = one.iter().zip(&other).take_while(|(one, other)| is_same(one, other)).count();
    let offsets = [&one, &other].map(|records| records.get(same).map(|record| record.offset));
    offsets.iter().flatten().min().copied()
}

fn is_same(one: &Record, other: &Record) -> bool {
    let fields =
        |record: &Record| (record.offset, record.timestamp, record.key.clone(), record.value.clone());
    fields(one) == fields(other) && one.headers == other.headers
}

#[test]
fn a_replica_is_the_same_as_itself_and_no_batch_is_decoded() {
    for partition in golden::intact() {
        let found = diff(&partition.dir, &partition.dir);
        assert!(found.is_same(), "{}: {found:?}", partition.case);
        assert_eq!((found.same_records, found.other_form), (0, None), "{}", partition.case);
    }
}

#[test]
fn a_follower_has_the_records_of_its_leader() {
    let (leader, follower) = (partition("21-replica-leader"), partition("21-replica-follower"));
    let found = diff(&leader.dir, &follower.dir);
    assert!(found.is_same());
    assert_eq!(found.replicas[0].truncated_to, Some(found.replicas[0].log_end_offset));
    assert!(found.same_batches > 0);
}

#[test]
fn the_first_difference_is_the_one_that_a_naive_search_finds() {
    let partitions: Vec<_> = golden::intact().into_iter().filter(|one| one.records < 1200).collect();
    let records: Vec<_> = partitions.iter().map(records).collect();
    let (mut compared, mut different) = (0, 0);
    for (number, (one, one_records)) in partitions.iter().zip(&records).enumerate() {
        for (other, other_records) in partitions.iter().zip(&records).skip(number + 1).take(8) {
            // partitions without an offset in common
            let Ok(found) = Difference::between(&one.dir, &other.dir, &DiffOptions::default()) else {
                continue;
            };
            let [a, b] = &found.replicas;
            let range = a.log_start_offset.max(b.log_start_offset)..a.log_end_offset.min(b.log_end_offset);
            let expected = naive(one_records, other_records, range);
            let names = format!("{} {}", one.case, other.case);
            assert_eq!(found.first.as_ref().map(|first| first.offset), expected, "{names}");
            compared += 1;
            different += usize::from(expected.is_some());
        }
    }
    assert!(compared > 150 && different > 100, "{compared} {different}");
}

#[test]
fn records_that_one_replica_lacks_at_its_end_are_no_difference() {
    let (intact, torn) = (partition("01-small"), damaged("torn-last-byte"));
    let found = diff(&intact.dir, &torn.dir);
    assert!(found.is_same());
    assert_eq!((found.start_offset, found.end_offset), (0, 369));
    assert_eq!([found.replicas[0].log_end_offset, found.replicas[1].log_end_offset], [370, 369]);
    assert!(!found.replicas[1].warnings.is_empty());
}

#[test]
fn a_removed_batch_is_a_missing_record_that_epochs_do_not_explain() {
    let (intact, removed) = (partition("01-small"), damaged("batch-removed"));
    let found = diff(&intact.dir, &removed.dir);
    let first = found.first.unwrap();
    assert_eq!((first.field, first.cause), (DifferentField::Record, DifferenceCause::Unknown));
    let place = first.places[0].as_ref().unwrap();
    assert!(place.batch_base_offset <= first.offset && first.places[1].is_none());
}

#[test]
fn the_checksum_tells_which_replica_is_damaged() {
    let (intact, flipped) = (partition("01-small"), damaged("flip-record-first-segment"));
    for is_first in [true, false] {
        let found = if is_first { diff(&flipped.dir, &intact.dir) } else { diff(&intact.dir, &flipped.dir) };
        let first = found.first.unwrap();
        assert_eq!((first.offset, first.cause), (14, DifferenceCause::Damage));
        assert_eq!(first.damage.each_ref().map(Option::is_some), [is_first, !is_first]);
    }
}

#[test]
fn a_range_limits_the_comparison() {
    let (intact, flipped) = (partition("01-small"), damaged("flip-record-first-segment"));
    let options = DiffOptions { end_offset: Some(14), ..DiffOptions::default() };
    assert!(Difference::between(&intact.dir, &flipped.dir, &options).unwrap().is_same());
    let options = DiffOptions { start_offset: Some(96), ..DiffOptions::default() };
    assert!(Difference::between(&intact.dir, &flipped.dir, &options).unwrap().is_same());
    let options = DiffOptions { start_offset: Some(5000), ..DiffOptions::default() };
    assert_eq!(Difference::between(&intact.dir, &flipped.dir, &options).unwrap_err().code(), "config");
}

/// A copy of a log whose batches from an offset on have another leader epoch and other values.
fn diverged(from: &Partition, to: &Path, offset: i64) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(&from.dir).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        if path.extension().is_some_and(|extension| extension == "log") {
            let mut position = 0;
            while position < bytes.len() {
                let base = i64::from_be_bytes(bytes[position..position + 8].try_into().unwrap());
                let length = i32::from_be_bytes(bytes[position + 8..position + 12].try_into().unwrap());
                let end = position + 12 + length as usize;
                if base >= offset {
                    bytes[position + 12..position + 16].copy_from_slice(&7_i32.to_be_bytes());
                }
                position = end;
            }
        }
        std::fs::write(to.join(path.file_name().unwrap()), bytes).unwrap();
    }
}

#[test]
fn another_leader_epoch_of_the_same_records_is_another_form() {
    let intact = partition("01-small");
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("tickets-0");
    diverged(&intact, &copy, 189);
    let found = diff(&intact.dir, &copy);
    assert!(found.is_same());
    let form = found.other_form.unwrap();
    assert!(form.offset >= 189 && form.leader_epoch && !form.codec && !form.batches && !form.producer);
    assert!(!form.header && !form.bytes);
}

#[test]
fn epochs_explain_a_difference_where_a_follower_would_truncate() {
    let (one, other) = (partition("01-small"), partition("01-plain"));
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("tickets-0");
    diverged(&one, &copy, i64::MAX);
    // the copy has an epoch of its own from offset 0 on, and other records
    std::fs::write(copy.join("leader-epoch-checkpoint"), "0\n1\n1 0\n").unwrap();
    let found = diff(&copy, &other.dir);
    let first = found.first.unwrap();
    assert_eq!((first.offset, first.cause), (0, DifferenceCause::Epochs));
    // the leader of epoch 0 knows no later epoch; the leader of epoch 1 has no offset of epoch 0
    assert_eq!([found.replicas[0].truncated_to, found.replicas[1].truncated_to], [None, Some(0)]);
}

#[test]
fn replicas_without_a_common_offset_are_an_error_unless_both_are_empty_at_the_same_offset() {
    let (full, empty) = (partition("01-small"), partition("15-empty"));
    let between = |a: &Path, b: &Path, options: &DiffOptions| Difference::between(a, b, options);
    for (a, b) in [(&full.dir, &empty.dir), (&empty.dir, &full.dir)] {
        let error = between(a, b, &DiffOptions::default()).unwrap_err();
        assert!(matches!(&error, cordwood::Error::Config { argument, .. } if argument == "b"), "{error}");
    }
    assert!(diff(&empty.dir, &empty.dir).is_same());
    let folder = tempfile::tempdir().unwrap();
    let [low, high] = ["low", "high"].map(|name| folder.path().join(name));
    for (to, name) in [(&low, "00000000000000000000"), (&high, "00000000000000000096")] {
        std::fs::create_dir(to).unwrap();
        std::fs::copy(full.dir.join(format!("{name}.log")), to.join(format!("{name}.log"))).unwrap();
    }
    // the one ends where the other begins
    let error = between(&low, &high, &DiffOptions::default()).unwrap_err();
    assert!(matches!(&error, cordwood::Error::Config { argument, .. } if argument == "b"), "{error}");
    // nothing is compared in an empty range
    for (start_offset, end_offset, argument) in
        [(Some(370), None, "start_offset"), (Some(5), Some(5), "start_offset"), (None, Some(0), "end_offset")]
    {
        let options = DiffOptions { start_offset, end_offset, ..DiffOptions::default() };
        match between(&full.dir, &full.dir, &options) {
            Err(cordwood::Error::Config { argument: found, .. }) => assert_eq!(found, argument),
            other => panic!("{start_offset:?} {end_offset:?}: {other:?}"),
        }
    }
}

/// Three batches of two records, and then what is given.
fn written(parent: &Path, name: &str, last: impl Fn(BatchV2) -> BatchV2) -> std::path::PathBuf {
    let records = || (0..2).map(|number| Rec::at(1000 + number).key("k").value("value ".repeat(20)));
    let batch = |base_offset| BatchV2::new(base_offset).records(records());
    let batches = [batch(0), batch(2), batch(4), last(batch(6))];
    let builder = PartitionBuilder::new(Indexing::every(1 << 20));
    builder.segment(0, batches.map(|batch| batch.build())).write(parent, name)
}

type Change = fn(BatchV2) -> BatchV2;

#[test]
fn every_field_of_a_header_that_differs_is_another_form() {
    let folder = tempfile::tempdir().unwrap();
    let plain = written(folder.path(), "plain-0", |batch| batch);
    let changes: [(&str, Change); 6] = [
        ("epoch", |batch| batch.leader_epoch(3)),
        ("codec", |batch| batch.codec(Codec::Gzip)),
        ("producer", |batch| batch.producer(7, 0, -1)),
        ("sequence", |batch| batch.producer(-1, -1, 5)),
        ("horizon", |batch| batch.delete_horizon(500)),
        ("timestamp", |batch| batch.max_timestamp(5000)),
    ];
    for (name, change) in changes {
        let other = written(folder.path(), &format!("{name}-0"), change);
        let found = diff(&plain, &other);
        assert!(found.is_same(), "{name}");
        assert_eq!((found.same_batches, found.same_records), (3, 2), "{name}");
        let form = found.other_form.unwrap_or_else(|| panic!("{name}"));
        assert_eq!(form.offset, 6, "{name}");
        let flags = [form.batches, form.codec, form.leader_epoch, form.producer, form.header, form.bytes];
        let number = ["batches", "codec", "epoch", "producer", "header", "bytes"];
        let expected = number.map(|flag| flag == name || flag == "header" && !number.contains(&name));
        assert_eq!(flags, expected, "{name}");
        assert_eq!(diff(&other, &plain).other_form, Some(form), "{name}");
    }
}

#[test]
fn the_same_records_in_other_compressed_bytes_are_another_form() {
    let folder = tempfile::tempdir().unwrap();
    let fast = written(folder.path(), "fast-0", |batch| batch.codec(Codec::Gzip));
    let stored = folder.path().join("stored-0");
    std::fs::create_dir(&stored).unwrap();
    let log = "00000000000000000000.log";
    let mut bytes = std::fs::read(fast.join(log)).unwrap();
    // a comment in the header of gzip: the flag, and a text that ends with a zero
    let batch = (0..bytes.len()).rfind(|at| bytes[*at..].starts_with(&[0, 0, 0, 0, 0, 0, 0, 6])).unwrap();
    let gzip = batch + 61;
    assert_eq!(bytes[gzip..gzip + 4], [0x1f, 0x8b, 8, 0]);
    bytes[gzip + 3] = 1 << 4;
    bytes.splice(gzip + 10..gzip + 10, *b"other\0");
    let length = i32::from_be_bytes(bytes[batch + 8..batch + 12].try_into().unwrap()) + 6;
    bytes[batch + 8..batch + 12].copy_from_slice(&length.to_be_bytes());
    let crc = crate::support::batches::crc32c(&bytes[batch + 21..]);
    bytes[batch + 17..batch + 21].copy_from_slice(&crc.to_be_bytes());
    std::fs::write(stored.join(log), bytes).unwrap();
    let found = diff(&fast, &stored);
    assert!(found.is_same(), "{found:?}");
    let form = found.other_form.unwrap();
    assert_eq!(form.offset, 6);
    assert!(form.bytes && !form.header && !form.codec);
}

/// A reader returns no control record.
#[test]
fn a_control_record_and_a_record_of_data_are_a_difference() {
    let folder = tempfile::tempdir().unwrap();
    let record = || Rec::at(1000).key([0, 0, 0, 1]).value([0; 6]);
    let data = written(folder.path(), "data-0", |batch| BatchV2::new(batch.base_offset).record(record()));
    let control = written(folder.path(), "control-0", |batch| {
        BatchV2 { is_control: true, ..BatchV2::new(batch.base_offset) }.record(record())
    });
    for (a, b) in [(&data, &control), (&control, &data)] {
        let first = diff(a, b).first.unwrap();
        assert_eq!((first.offset, first.field), (6, DifferentField::Control));
        assert_eq!(first.cause, DifferenceCause::Unknown);
        assert!(first.places.iter().all(Option::is_some));
    }
}
