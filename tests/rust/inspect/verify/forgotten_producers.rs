//! Snapshots of producers that were forgotten, because they were expired or the log was read from its log
//! start offset on, and have written since.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use cordwood::inspect::verify::Rule;
use cordwood::record::NewRecord;
use cordwood::types::Io;
use cordwood::writer::{LogWriter, WriterOptions};

use super::{options, verified};
use crate::support::batches::{BatchV2, Built, COMMIT, Rec};
use crate::support::partition::{Indexing, PartitionBuilder, file_name};
use crate::support::reading::folder;

const ID: i64 = 7;
const T: i64 = 1_700_000_000_000;
const DAY: i64 = 86_400_000;

fn data(offset: i64, records: usize, sequence: i32, is_transactional: bool) -> Built {
    let batch = BatchV2::new(offset).records((0..records).map(|_| Rec::at(T + offset).value("value")));
    let batch =
        if is_transactional { batch.transaction(ID, 0, sequence) } else { batch.producer(ID, 0, sequence) };
    batch.build()
}

fn marker(offset: i64, coordinator_epoch: i32) -> Built {
    let value = [&0_i16.to_be_bytes()[..], &coordinator_epoch.to_be_bytes()].concat();
    BatchV2::new(offset).transaction(ID, 0, -1).control(COMMIT, T + offset, value).build()
}

fn is_wrong(dir: &Path) -> bool {
    let found = verified(dir, &options(Io::Pread)).findings;
    found.iter().any(|finding| finding.rule == Rule::SnapshotWrong)
}

/// Removes the writer's own files, as if a broker had written the log.
fn disown(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with(".cordwood") {
            fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn a_log_that_was_recovered_after_its_producers_had_expired_is_right() {
    for is_open in [false, true] {
        let parent = folder();
        let dir = parent.path().join("orders-0");
        let at = |clock| WriterOptions { clock, ..WriterOptions::default() };
        let mut writer = LogWriter::open(&dir, &at(|| T)).unwrap();
        writer.append_batches(&data(0, 2, 0, true).bytes, true).unwrap();
        writer.append_batches(&marker(2, 3).bytes, true).unwrap();
        writer.roll().unwrap();
        writer.append_batches(&data(3, 1, 2, is_open).bytes, true).unwrap();
        writer.roll().unwrap();
        writer.append(&NewRecord::default()).unwrap();
        drop(writer);
        disown(&dir);
        assert_eq!(verified(&dir, &options(Io::Pread)).findings, []);
        LogWriter::open(&dir, &at(|| T + 10 * DAY)).unwrap().close().unwrap();
        let snapshot = fs::read(dir.join(file_name(4, "snapshot"))).unwrap();
        assert_eq!(snapshot[10 + 34..10 + 38], (-1_i32).to_be_bytes(), "it knows no marker");
        assert_eq!(verified(&dir, &options(Io::Pread)).findings, []);
    }
}

#[test]
fn a_log_whose_producers_were_read_from_inside_a_transaction_on_is_right() {
    for deleted_to in [2, 5] {
        let parent = folder();
        let dir = parent.path().join("orders-0");
        let mut writer = LogWriter::open(&dir, &WriterOptions::default()).unwrap();
        for batch in [data(0, 1, 0, true), data(1, 2, 1, true), data(3, 1, 3, true)] {
            writer.append_batches(&batch.bytes, true).unwrap();
        }
        for _ in 4..7 {
            writer.append(&NewRecord::default()).unwrap();
        }
        writer.delete_before(deleted_to).unwrap();
        // without a snapshot below it, it reads the batches from the log start offset on
        writer.truncate_to(6).unwrap();
        writer.close().unwrap();
        let snapshot = fs::read(dir.join(file_name(6, "snapshot"))).unwrap();
        let entry = snapshot.get(10..);
        if deleted_to == 2 {
            assert_eq!(entry.unwrap()[38..46], 1_i64.to_be_bytes());
        } else {
            assert_eq!(entry, Some(&[][..]));
        }
        assert_eq!(verified(&dir, &options(Io::Pread)).findings, []);
    }
}

/// The bytes of an entry but for its producer id.
type Entry = Vec<u8>;

/// What a producer has written.
#[derive(Debug, Clone)]
struct Event {
    offset: i64,
    last_offset: i64,
    /// The last sequence of records.
    sequence: Option<i32>,
    is_transactional: bool,
    coordinator_epoch: i32,
}

/// The fields of an entry that depend on what is known of a producer: last sequence, last offset, offset
/// delta; coordinator epoch; first offset of the open transaction.
fn entry(epoch: i16, batch: (i32, i64, i32), timestamp: i64, coordinator_epoch: i32, open: i64) -> Entry {
    let (sequence, offset, delta) = batch;
    [
        &epoch.to_be_bytes()[..],
        &sequence.to_be_bytes(),
        &offset.to_be_bytes(),
        &delta.to_be_bytes(),
        &timestamp.to_be_bytes(),
        &coordinator_epoch.to_be_bytes(),
        &open.to_be_bytes(),
    ]
    .concat()
}

const NO_BATCH: (i32, i64, i32) = (-1, -1, 0);

fn batch_of(event: &Event) -> Option<(i32, i64, i32)> {
    event.sequence.map(|last| (last, event.last_offset, (event.last_offset - event.offset) as i32))
}

/// The first offset of the transaction that is open after the events, and the entry that a snapshot has;
/// `None` without events.
fn known_by(events: &[Event]) -> (i64, Option<Entry>) {
    let (mut open, mut coordinator_epoch, mut batch) = (-1, -1, NO_BATCH);
    for event in events {
        match batch_of(event) {
            None => (open, coordinator_epoch) = (-1, event.coordinator_epoch),
            Some(own) => {
                batch = own;
                if event.is_transactional && open < 0 {
                    open = event.offset;
                }
            }
        }
    }
    (open, events.last().map(|last| entry(0, batch, T + last.offset, coordinator_epoch, open)))
}

/// All entries that a snapshot may have: the producer was forgotten before one of its events, when it had no
/// transaction open, or all before that are below the log start offset.
fn allowed(events: &[Event], log_start_offset: i64) -> BTreeSet<Option<Entry>> {
    let is_allowed = |first: &usize| {
        let before = &events[..*first];
        known_by(before).0 < 0 || before.iter().all(|event| event.last_offset < log_start_offset)
    };
    (0..=events.len()).filter(is_allowed).map(|first| known_by(&events[first..]).1).collect()
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A log of one producer and of records without one, in its first segment, and its end.
fn history(dice: &mut Dice) -> (Vec<Event>, Vec<Built>, i64) {
    let (mut events, mut batches, mut end, mut sequence) = (Vec::new(), Vec::new(), 0, 0);
    for number in 0..2 + dice.below(6) as i32 {
        if dice.below(3) == 0 {
            batches.push(BatchV2::new(end).record(Rec::at(T + end).value("other")).build());
            end += 1;
        }
        let is_open = known_by(&events).0 >= 0;
        let mut event = Event {
            offset: end,
            last_offset: end,
            sequence: None,
            is_transactional: is_open || dice.below(2) == 0,
            coordinator_epoch: number,
        };
        if dice.below(5) < 2 {
            batches.push(marker(end, number));
        } else {
            let records = 1 + dice.below(2) as usize;
            batches.push(data(end, records, sequence, event.is_transactional));
            sequence += records as i32;
            event.last_offset += records as i64 - 1;
            event.sequence = Some(sequence - 1);
        }
        end = event.last_offset + 1;
        events.push(event);
    }
    (events, batches, end)
}

#[test]
fn exactly_the_states_after_a_restart_are_right() {
    let mut dice = Dice(11);
    let (mut right, mut wrong) = (0, 0);
    for _ in 0..24 {
        let (events, batches, end) = history(&mut dice);
        let log_start_offset = dice.below(2) as i64 * dice.below(end as u64) as i64;
        let parent = folder();
        let dir = PartitionBuilder::new(Indexing::default())
            .segment(0, batches)
            .segment(end, [BatchV2::new(end).record(Rec::at(T + end)).build()])
            .write(parent.path(), "orders-0");
        let start = format!("0\n1\norders 0 {log_start_offset}\n");
        fs::write(parent.path().join("log-start-offset-checkpoint"), start).unwrap();
        let allowed = allowed(&events, log_start_offset);
        let batches: BTreeSet<_> = events.iter().filter_map(batch_of).chain([NO_BATCH]).collect();
        let opens = events.iter().filter(|event| event.is_transactional).map(|event| event.offset);
        let opens: BTreeSet<_> = opens.chain([-1]).collect();
        let markers = events.iter().filter(|event| event.sequence.is_none());
        let coordinators: BTreeSet<_> =
            markers.map(|event| event.coordinator_epoch).chain([-1, 99]).collect();
        let last = T + events.last().unwrap().offset;
        let mut candidates: BTreeSet<Option<Entry>> = [None].into();
        for batch in &batches {
            for open in &opens {
                for coordinator in &coordinators {
                    candidates.insert(Some(entry(0, *batch, last, *coordinator, *open)));
                }
            }
        }
        let (first, timestamp) = (*batches.last().unwrap(), last - 1);
        candidates.insert(Some(entry(1, first, last, -1, -1)));
        candidates.insert(Some(entry(0, first, timestamp, -1, -1)));
        assert!(allowed.is_subset(&candidates));
        for candidate in candidates {
            let entries: Vec<u8> =
                candidate.iter().flat_map(|entry| [&ID.to_be_bytes()[..], entry].concat()).collect();
            let checked = [&i32::from(candidate.is_some()).to_be_bytes()[..], &entries].concat();
            let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &checked) as u32;
            let bytes = [&1_i16.to_be_bytes()[..], &crc.to_be_bytes(), &checked].concat();
            fs::write(dir.join(file_name(end, "snapshot")), bytes).unwrap();
            let is_allowed = allowed.contains(&candidate);
            assert_eq!(!is_wrong(&dir), is_allowed, "{candidate:?} {events:?} {log_start_offset}");
            *(if is_allowed { &mut right } else { &mut wrong }) += 1;
        }
    }
    println!("{right} right, {wrong} wrong");
    assert!(right > 50 && wrong > 300, "{right} {wrong}");
}
