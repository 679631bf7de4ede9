//! Logs with transactions: what a repair makes of transaction indexes and snapshots, compared with the
//! remaining batches.

use cordwood::inspect::rebuild::{FileState, RebuildOptions, rebuild};
use cordwood::inspect::repair::repair_in;
use cordwood::state::producers::ProducerSnapshot;

use super::crashes::{PATH, crash_everywhere};
use super::*;
use crate::support::batches::{BatchV2, Rec};
use crate::support::golden::{self, Partition};
use crate::support::naive::{self, Batch, Control};
use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::step;

const CASES: [&str; 3] = ["10-idempotent", "11-transactions", "14-killed-transactions"];

fn case(name: &str) -> Partition {
    golden::intact().into_iter().find(|partition| partition.case == name).unwrap()
}

/// What a batch is for the transactions of its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Role {
    Aborted,
    AbortMarker,
    CommitMarker,
    Other,
}

fn roles(log: &naive::Log) -> Vec<(Role, Batch)> {
    let aborted = log.transactions().aborted;
    let role = |batch: &Batch| match batch.records[0].control {
        Some(Control::Abort { .. }) => Role::AbortMarker,
        Some(Control::Commit { .. }) => Role::CommitMarker,
        _ if aborted.contains(&batch.base_offset) => Role::Aborted,
        _ => Role::Other,
    };
    log.batches.iter().map(|batch| (role(batch), batch.clone())).collect()
}

/// The batches that are damaged, one at a time: the first, the middle one and the last of each role.
fn samples(log: &naive::Log) -> Vec<(Role, Batch)> {
    let all = roles(log);
    let mut samples = Vec::new();
    for role in [Role::Aborted, Role::AbortMarker, Role::CommitMarker, Role::Other] {
        let of_role: Vec<_> = all.iter().filter(|(found, _)| *found == role).collect();
        let Some(last) = of_role.len().checked_sub(1) else { continue };
        samples.extend([0, last / 2, last].map(|number| of_role[number].clone()));
    }
    samples
}

fn log_name(batch: &Batch) -> String {
    format!("{:020}.log", batch.segment)
}

/// Changes all bits of a byte of the last record: the checksum does not match, and no marker is corrected.
fn damage(files: &mut Files, batch: &Batch) {
    let end = (batch.position + batch.size) as usize;
    files.get_mut(&log_name(batch)).unwrap()[end - 2] ^= 0xff;
}

fn number(name: &str) -> i64 {
    SegmentFileName::parse(name).unwrap().base_offset
}

/// The transactions in the index files: producer, first and last offset.
fn indexed(files: &Files) -> Vec<(i64, i64, i64)> {
    let indexes = files.iter().filter(|(name, _)| name.ends_with(".txnindex"));
    let field = |entry: &[u8], at: usize| i64::from_be_bytes(entry[at..at + 8].try_into().unwrap());
    let of_index = |bytes: &[u8]| -> Vec<_> {
        assert_eq!(bytes.len() % 34, 0);
        bytes.chunks(34).map(|entry| (field(entry, 2), field(entry, 10), field(entry, 18))).collect()
    };
    let mut found: Vec<_> = indexes.flat_map(|(_, bytes)| of_index(bytes)).collect();
    found.sort_by_key(|(_, _, last)| *last);
    found
}

/// The files of producers and the answers of a reader are those of the remaining batches. `intact`: the files
/// of the log before it was damaged, at `damage`.
fn assert_follows(dir: &Path, intact: &Files, damage: i64, place: &str) {
    let remaining = naive::read(dir).unwrap_or_else(|irregular| panic!("{place}: {irregular:?}"));
    let log = Log::open(dir, LogOptions::default()).unwrap();
    let committed = reading::committed(&log, OnDamage::Raise).whole();
    let expected: Vec<_> = remaining.scan_committed(0..i64::MAX, None, false).collect();
    assert!(committed.records().eq(expected), "{place}: committed records");

    let files = reading::files(dir);
    let mut aborted = remaining.transactions().aborted_ranges;
    aborted.sort_by_key(|(_, _, last)| *last);
    assert_eq!(indexed(&files), aborted, "{place}");

    let end = log.log_end_offset().unwrap();
    let report = rebuild(dir, &RebuildOptions::default()).unwrap();
    for file in report.files {
        let name = file.file.file_name().unwrap().to_str().unwrap();
        if !(name.ends_with(".txnindex") || name.ends_with(".snapshot")) {
            continue;
        }
        let is_before = name.ends_with(".snapshot") && number(name) <= damage;
        // a snapshot that the damage does not affect is the one that the broker wrote, or none
        let is_left = is_before && files.get(name) == intact.get(name);
        assert!(file.state == FileState::Unchanged || is_left, "{place}: {file}");
    }
    let above = files.keys().find(|name| name.ends_with(".snapshot") && number(name) > end);
    assert_eq!(above, None, "{place}: a snapshot above the end, offset {end}");
}

#[test]
fn producer_files_of_a_repaired_log_are_those_of_its_remaining_batches() {
    let mut rebuilt: HashMap<(Role, &str), usize> = HashMap::new();
    for name in CASES {
        let partition = case(name);
        let intact = reading::files(&partition.dir);
        for (role, batch) in samples(&naive::read_until_damage(&partition.dir).0) {
            for policy in [RepairPolicy::Salvage, RepairPolicy::Kafka] {
                let place = format!("{name}, {role:?} at offset {}, {}", batch.base_offset, policy.code());
                let mut files = intact.clone();
                damage(&mut files, &batch);
                let folder = reading::folder();
                let dir = reading::write(folder.path(), &partition.name, &files);
                let plan = repaired(&dir, &options(policy, interval(partition.manifest))).unwrap();
                assert_eq!(plan.lost_ranges[0].start_offset, batch.base_offset, "{place}");
                assert_follows(&dir, &intact, batch.base_offset, &place);
                let is_producers = |path: &Path| path.extension().is_some_and(|kind| kind == "txnindex");
                let indexes = plan
                    .actions
                    .iter()
                    .filter(|action| action.kind == RepairActionKind::Rebuild && is_producers(&action.file));
                *rebuilt.entry((role, policy.code())).or_default() += indexes.count();
            }
        }
    }
    for role in [Role::Aborted, Role::AbortMarker] {
        assert!(rebuilt[&(role, "salvage")] >= 2, "{rebuilt:?}");
    }
}

#[test]
fn one_wrong_bit_of_a_marker_is_corrected_and_its_transaction_keeps_its_outcome() {
    let partition = case("11-transactions");
    let intact = reading::files(&partition.dir);
    let markers = samples(&naive::read(&partition.dir).unwrap());
    let is_marker = |role: &Role| matches!(role, Role::AbortMarker | Role::CommitMarker);
    let mut corrected = 0;
    for (role, batch) in markers.iter().filter(|(role, _)| is_marker(role)) {
        // from the checksum on
        for bit in (17 * 8..batch.size as usize * 8).step_by(step(11)) {
            let place = format!("{role:?} at offset {}, bit {bit}", batch.base_offset);
            let mut files = intact.clone();
            let name = log_name(batch);
            files.get_mut(&name).unwrap()[batch.position as usize + bit / 8] ^= 0x80 >> (bit % 8);
            let folder = reading::folder();
            let dir = reading::write(folder.path(), &partition.name, &files);
            let plan = repaired(&dir, &options(RepairPolicy::Salvage, 1024)).unwrap();
            assert_eq!(plan.lost_ranges, [], "{place}");
            assert_eq!(plan.actions[0].kind, RepairActionKind::CorrectMarker, "{place}");
            assert_eq!(reading::files(&dir)[&name], intact[&name], "{place}");
            assert_follows(&dir, &intact, batch.base_offset, &place);
            corrected += 1;
        }
    }
    assert!(corrected >= 6 * 488 / 11, "{corrected} markers");
}

#[test]
fn two_wrong_bits_of_a_marker_are_not_corrected() {
    let partition = case("11-transactions");
    let intact = reading::files(&partition.dir);
    for (role, batch) in samples(&naive::read(&partition.dir).unwrap()) {
        if !matches!(role, Role::AbortMarker | Role::CommitMarker) {
            continue;
        }
        let mut files = intact.clone();
        let start = batch.position as usize;
        for (at, bit) in [(25, 1), (70, 4)] {
            files.get_mut(&log_name(&batch)).unwrap()[start + at] ^= 1 << bit;
        }
        let folder = reading::folder();
        let dir = reading::write(folder.path(), &partition.name, &files);
        let plan = repaired(&dir, &options(RepairPolicy::Salvage, 1024)).unwrap();
        assert_eq!(plan.lost_ranges[0].start_offset, batch.base_offset);
        assert!(
            plan.lost_ranges[0].reason.contains("marker of a transaction"),
            "{}",
            plan.lost_ranges[0].reason
        );
    }
}

/// Batches of three segments are damaged: one of an aborted transaction, an ABORT marker and a COMMIT marker.
fn with_three_damaged_batches() -> (Files, Files) {
    let partition = case("11-transactions");
    let intact = reading::files(&partition.dir);
    let mut files = intact.clone();
    let all = roles(&naive::read(&partition.dir).unwrap());
    for (role, segment) in [(Role::Aborted, 12), (Role::AbortMarker, 389), (Role::CommitMarker, 751)] {
        let batch = all.iter().find(|(found, batch)| (*found, batch.segment) == (role, segment)).unwrap();
        damage(&mut files, &batch.1);
    }
    (intact, files)
}

#[test]
fn a_repair_of_transactions_that_crashes_anywhere_is_completed_by_the_next() {
    let (_, before) = with_three_damaged_batches();
    for policy in [RepairPolicy::Salvage, RepairPolicy::Kafka] {
        let options = options(policy, 1024);
        let images = crash_everywhere(&before, &options, None, |image, place| {
            // whatever is in place, a committed reader fails or gets the batches of the log
            let log = Log::open_in(image.disk().directory(PATH), LogOptions::default()).unwrap();
            let read = reading::committed(&log, OnDamage::Skip);
            assert!(read.error.is_none(), "{place}: {:?}", read.error);
        });
        assert!(images > 60, "{images} images");
    }
    let folder = reading::folder();
    let (intact, _) = with_three_damaged_batches();
    let dir = reading::write(folder.path(), "payments-0", &before);
    repaired(&dir, &options(RepairPolicy::Salvage, 1024)).unwrap();
    assert_follows(&dir, &intact, 12, "three damaged batches");
}

/// The actions of a repair of the case `11-transactions` with a changed file, by kind and file name.
fn actions(change: impl FnOnce(&mut Files)) -> (Vec<(RepairActionKind, String)>, Files, Files) {
    let partition = case("11-transactions");
    let intact = reading::files(&partition.dir);
    let mut files = intact.clone();
    change(&mut files);
    let folder = reading::folder();
    let dir = reading::write(folder.path(), &partition.name, &files);
    let plan = repaired(&dir, &options(RepairPolicy::TornTail, 1024)).unwrap();
    assert!(plan.lost_ranges.is_empty());
    let actions = plan
        .actions
        .iter()
        .map(|action| (action.kind, action.file.file_name().unwrap().to_str().unwrap().to_owned()));
    (actions.collect(), reading::files(&dir), intact)
}

const INDEX: &str = "00000000000000000389.txnindex";
const SNAPSHOT: &str = "00000000000000000745.snapshot";

#[test]
fn a_transaction_index_that_contradicts_the_markers_is_rebuilt() {
    type Change = fn(&mut Vec<u8>);
    let changes: [(&str, Change); 5] = [
        ("an entry without a marker", |bytes| bytes[2 * 34 + 25] ^= 1),
        ("an entry of another producer", |bytes| bytes[3 * 34 + 9] ^= 1),
        ("an aborted transaction without an entry", |bytes| bytes.truncate(5 * 34)),
        ("an incomplete entry", |bytes| bytes.extend([0; 20])),
        ("an unknown version", |bytes| bytes[1] = 7),
    ];
    for (place, change) in changes {
        let (found, files, intact) = actions(|files| change(files.get_mut(INDEX).unwrap()));
        assert_eq!(found, [(RepairActionKind::Rebuild, INDEX.to_owned())], "{place}");
        assert_eq!(indexed(&files), indexed(&intact), "{place}");
    }
    let (found, files, intact) = actions(|files| drop(files.remove(INDEX)));
    assert_eq!(found, [(RepairActionKind::Rebuild, INDEX.to_owned())]);
    assert_eq!(indexed(&files), indexed(&intact));
}

#[test]
fn a_damaged_snapshot_is_rebuilt_and_one_without_idle_producers_is_left() {
    let (found, files, intact) = actions(|files| files.get_mut(SNAPSHOT).unwrap()[30] ^= 1);
    assert_eq!(found, [(RepairActionKind::Rebuild, SNAPSHOT.to_owned())]);
    let entries = |files: &Files| ProducerSnapshot::decode(&files[SNAPSHOT]).unwrap().entries;
    assert_eq!(entries(&files), entries(&intact));

    let (found, ..) = actions(|files| {
        let mut snapshot = ProducerSnapshot::decode(&files[SNAPSHOT]).unwrap();
        let before = snapshot.entries.len();
        snapshot.entries.retain(|entry| entry.open_transaction.is_some());
        assert!(snapshot.entries.len() < before);
        files.insert(SNAPSHOT.to_owned(), snapshot.encode());
    });
    assert_eq!(found, []);

    let (found, ..) = actions(|files| drop(files.remove(SNAPSHOT)));
    assert_eq!(found, []);
}

#[test]
fn old_bytes_of_producer_files_are_kept() {
    let (_, before) = with_three_damaged_batches();
    let disk = crashes::disk(&before);
    repair_in(&disk.directory(PATH), &options(RepairPolicy::Salvage, 1024)).unwrap();
    let after = crashes::files_of(&disk.shown());
    let kept: Vec<_> = after.iter().filter(|(name, _)| name.starts_with("quarantine/")).collect();
    let mut changed = 0;
    for (name, bytes) in &before {
        if after.get(name) != Some(bytes) && !name.ends_with(".log") {
            changed += 1;
            let is_kept =
                |(copy, kept): &&(&String, &Vec<u8>)| copy.contains(name.as_str()) && *kept == bytes;
            assert!(kept.iter().any(|copy| is_kept(&copy)), "{name}");
        }
    }
    assert!(changed >= 4, "{changed} files");
}

/// Such a log is not loaded by a broker, with or without the snapshots.
#[test]
fn snapshots_after_a_contradiction_between_batches_are_removed_if_the_log_changes() {
    let batch = |base_offset: i64, is_transactional: bool| {
        let mut batch = BatchV2::new(base_offset);
        (batch.producer_id, batch.producer_epoch, batch.base_sequence) = (5, 0, base_offset as i32);
        batch.is_transactional = is_transactional;
        batch.records = vec![Rec::at(1000 + base_offset).value([b'v'; 40])];
        batch.build()
    };
    let batches = [batch(0, false), batch(1, true), batch(2, false), batch(3, false)];
    let damaged = batches[0].bytes.len() - 5;
    let folder = reading::folder();
    let dir = PartitionBuilder::new(Indexing::default()).segment(0, batches).write(folder.path(), "orders-0");
    let snapshot = dir.join("00000000000000000003.snapshot");
    std::fs::write(&snapshot, ProducerSnapshot::default().encode()).unwrap();
    repaired(&dir, &options(RepairPolicy::Salvage, 4096)).unwrap();
    assert!(snapshot.exists(), "the log was not changed");

    let path = dir.join("00000000000000000000.log");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[damaged] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let plan = repaired(&dir, &options(RepairPolicy::Salvage, 4096)).unwrap();
    assert!(!snapshot.exists(), "{:#?}", plan.actions);
    assert_eq!(plan.kept_batches, 3);
}
