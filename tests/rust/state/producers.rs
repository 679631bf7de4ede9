//! Producer states and snapshots, compared with those of Kafka's own classes and brokers.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use cordwood::record::control::{ControlType, EndMarker};
use cordwood::record::{Attributes, BatchHeader, crc};
use cordwood::state::producers::{EndedTransaction, ProducerEntry, ProducerSnapshot, ProducerStates};
use serde_json::{Value, json};

use crate::support::golden::{self, sorted_snapshot};

const VECTORS: &str = include_str!("../../vectors/producer_states.txt");
const EXPIRATION_MS: i64 = 1000;
const TRANSACTIONAL: i16 = 1 << 4;
const CONTROL: i16 = 1 << 5;

/// A history of producers, made from a seed as in `tests/vectors/ProducerVectors.java`.
struct History {
    random: u64,
    known: Vec<i64>,
    states: ProducerStates,
    /// All snapshots and ended transactions.
    seen: Vec<u8>,
}

impl History {
    fn of(seed: u64) -> Self {
        let random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self { random, known: Vec::new(), states: ProducerStates::default(), seen: Vec::new() }
    }

    fn below(&mut self, n: i64) -> i64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 33) as i64 % n
    }

    fn key(&mut self, shape: i64) -> i64 {
        const MAX: i64 = i32::MAX as i64;
        match shape {
            0 => 1000 * (self.below(3) + 1) + self.below(400),
            1 => self.below(MAX) << 31 | self.below(MAX),
            2 => self.below(400) << 20,
            3 => (self.below(300) << 32 | self.below(4)) << 10,
            4 => self.below(60) << (6 + self.below(12)),
            _ => self.below(40) * 0x1_0001_0001,
        }
    }

    fn run(&mut self, seed: u64) {
        let shape = self.below(6);
        let steps = if seed.is_multiple_of(100) { 6000 } else { 20 + self.below(500) };
        let (mut offset, mut now) = (0, 0);
        for _ in 0..steps {
            now += self.below(30);
            match self.below(40) {
                0 => {
                    if self.below(4) == 0 {
                        self.states.remove_expired(now, EXPIRATION_MS);
                    }
                }
                1 => {
                    if self.below(10) == 0 {
                        let snapshot = self.snapshot();
                        self.states = ProducerStates::from_snapshot(&snapshot);
                    }
                }
                2..=7 => {
                    let producer = self.producer(shape);
                    self.marker(producer, offset, now);
                    offset += 1;
                }
                _ => {
                    let delta = self.below(5);
                    let producer = self.producer(shape);
                    self.batch(producer, offset, delta, now);
                    offset += delta + 1;
                }
            }
        }
        self.snapshot();
    }

    fn snapshot(&mut self) -> ProducerSnapshot {
        let bytes = self.states.encode();
        let snapshot = ProducerSnapshot::decode(&bytes).unwrap();
        assert_eq!(snapshot.encode(), bytes);
        self.seen.extend(bytes);
        snapshot
    }

    fn producer(&mut self, shape: i64) -> i64 {
        if !self.known.is_empty() && self.below(3) == 0 {
            let number = self.below(self.known.len() as i64);
            return self.known[number as usize];
        }
        let key = self.key(shape);
        self.known.push(key);
        key
    }

    fn epoch(&mut self, producer: i64) -> i16 {
        let epoch = self.states.get(producer).map_or(0, |entry| entry.producer_epoch);
        match self.below(16) {
            0 => epoch + 1,
            1 => (epoch - 1).max(0),
            _ => epoch.max(0),
        }
    }

    fn batch(&mut self, producer: i64, offset: i64, delta: i64, timestamp: i64) {
        let epoch = self.epoch(producer);
        let is_open = self.states.get(producer).is_some_and(|entry| entry.open_transaction.is_some());
        let is_transactional = self.below(4) == 0 || is_open;
        let base = if self.below(8) == 0 { i64::from(i32::MAX) - self.below(6) } else { self.below(1000) };
        let attributes = if is_transactional { TRANSACTIONAL } else { 0 };
        let header = BatchHeader {
            producer_id: producer,
            producer_epoch: epoch,
            base_sequence: base as i32,
            last_offset: offset + delta,
            max_timestamp: timestamp,
            ..header(offset, attributes)
        };
        assert_eq!(self.states.append(&header, None).unwrap(), None);
    }

    fn marker(&mut self, producer: i64, offset: i64, timestamp: i64) {
        let producer_epoch = self.epoch(producer);
        let control_type = if self.below(2) == 0 { ControlType::Abort } else { ControlType::Commit };
        let marker = EndMarker { control_type, coordinator_epoch: self.below(3) as i32, timestamp };
        let header =
            BatchHeader { producer_id: producer, producer_epoch, ..header(offset, TRANSACTIONAL | CONTROL) };
        if let Some(ended) = self.states.append(&header, Some(&marker)).unwrap() {
            let EndedTransaction { producer_id, first_offset, last_offset, is_aborted, last_stable_offset } =
                ended;
            for number in [producer_id, first_offset, last_offset, i64::from(is_aborted), last_stable_offset]
            {
                self.seen.extend(number.to_be_bytes());
            }
        }
    }
}

fn header(offset: i64, attributes: i16) -> BatchHeader {
    BatchHeader {
        magic: 2,
        size: 100,
        base_offset: offset,
        last_offset: offset,
        leader_epoch: 0,
        crc: 0,
        attributes: Attributes(attributes),
        base_timestamp: Some(0),
        max_timestamp: 0,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        count: Some(1),
    }
}

/// The same with the id and the sequence of a producer.
fn data(offset: i64, producer_id: i64, attributes: i16) -> BatchHeader {
    BatchHeader { producer_id, producer_epoch: 0, base_sequence: 0, ..header(offset, attributes) }
}

#[test]
fn histories_have_the_snapshots_and_transactions_of_kafka() {
    assert_eq!(VECTORS.lines().count(), 1500);
    for line in VECTORS.lines() {
        let seed = line.split(' ').next().unwrap().parse().unwrap();
        let mut history = History::of(seed);
        history.run(seed);
        let checksum = crc::crc32c(&history.seen);
        assert_eq!(format!("{seed} {} {checksum:x}", history.states.len()), line);
    }
}

/// The snapshots of all golden cases, each with its lines of `state.jsonl`.
fn golden_snapshots() -> Vec<(PathBuf, Vec<Value>)> {
    let mut found = Vec::new();
    for partition in golden::intact() {
        let mut producers: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for line in golden::lines(&partition.expected.join("state.jsonl")) {
            match line["type"].as_str().unwrap() {
                "snapshot" => drop(producers.entry(line["file"].as_str().unwrap().to_owned()).or_default()),
                "producer" => producers.get_mut(line["file"].as_str().unwrap()).unwrap().push(line),
                _ => {}
            }
        }
        found.extend(producers.into_iter().map(|(file, lines)| (partition.dir.join(file), lines)));
    }
    found
}

fn fields(entry: &ProducerEntry) -> Value {
    let batches: Vec<_> = entry
        .batches()
        .map(|batch| {
            json!({
                "firstSequence": batch.first_sequence(), "lastSequence": batch.last_sequence,
                "firstOffset": batch.first_offset(), "lastOffset": batch.last_offset, "timestamp": batch.timestamp,
            })
        })
        .collect();
    json!({
        "producerId": entry.producer_id, "producerEpoch": entry.producer_epoch,
        "coordinatorEpoch": entry.coordinator_epoch, "lastTimestamp": entry.last_timestamp,
        "currentTxnFirstOffset": entry.open_transaction, "batches": batches,
    })
}

#[test]
fn snapshots_of_brokers_are_decoded_as_kafka_does_and_encoded_to_the_same_bytes() {
    let snapshots = golden_snapshots();
    assert!(snapshots.len() > 100, "{}", snapshots.len());
    let mut producers = 0;
    for (path, lines) in snapshots {
        let bytes = fs::read(&path).unwrap();
        let snapshot = ProducerSnapshot::decode(&bytes).unwrap();
        assert_eq!(snapshot.encode(), bytes, "{}", path.display());
        let encoded = ProducerStates::from_snapshot(&snapshot).encode();
        assert_eq!(sorted_snapshot(&encoded), sorted_snapshot(&bytes), "{}", path.display());
        let mut entries: Vec<_> = snapshot.entries.iter().collect();
        entries.sort_by_key(|entry| entry.producer_id);
        assert_eq!(entries.len(), lines.len());
        for (entry, line) in entries.into_iter().zip(lines) {
            let mut expected = line.clone();
            for field in ["type", "file"] {
                expected.as_object_mut().unwrap().remove(field);
            }
            assert_eq!(fields(entry), expected, "{}", path.display());
            producers += 1;
        }
    }
    assert!(producers > 50, "{producers}");
}

/// Ten producers, some with open transactions and one with a marker only.
fn ten_producers() -> ProducerStates {
    let mut states = ProducerStates::default();
    for producer in 0..9 {
        let attributes = if producer % 3 == 0 { TRANSACTIONAL } else { 0 };
        states.append(&data(producer, 4000 + producer, attributes), None).unwrap();
    }
    let marker = EndMarker { control_type: ControlType::Commit, coordinator_epoch: 7, timestamp: 1000 };
    states.append(&data(9, 4009, TRANSACTIONAL | CONTROL), Some(&marker)).unwrap();
    states
}

#[test]
fn every_flipped_bit_and_every_other_size_of_a_snapshot_is_noticed() {
    let bytes = ten_producers().encode();
    assert_eq!(bytes.len(), 10 + 46 * 10);
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let (position, malformed) = ProducerSnapshot::decode(&flipped).unwrap_err();
        let is_version = bit < 16;
        assert_eq!((position, !malformed.is_damage()), (if is_version { 0 } else { 2 }, is_version), "{bit}");
    }
    for size in 0..bytes.len() {
        assert!(ProducerSnapshot::decode(&bytes[..size]).is_err(), "{size}");
    }
    assert!(ProducerSnapshot::decode(&[&bytes[..], &[0]].concat()).is_err());
}

/// The bytes with the checksum of their contents.
fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = crc::crc32c(&bytes[6..]);
    bytes[2..6].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

#[test]
fn a_wrong_count_and_a_producer_that_occurs_twice_are_damage_whatever_the_checksum() {
    let bytes = ten_producers().encode();
    for count in [0_i32, 9, 11, -1, i32::MAX, i32::MIN] {
        let mut wrong = bytes.clone();
        wrong[6..10].copy_from_slice(&count.to_be_bytes());
        let (position, malformed) = ProducerSnapshot::decode(&resealed(wrong)).unwrap_err();
        assert_eq!((position, malformed.found), (6, format!("{count} entries")));
    }
    let mut twice = bytes.clone();
    let first: Vec<_> = twice[10..18].to_vec();
    twice[10 + 46..18 + 46].copy_from_slice(&first);
    let (position, _) = ProducerSnapshot::decode(&resealed(twice)).unwrap_err();
    assert_eq!(position, 10 + 46);
    assert!(ProducerSnapshot::decode(&resealed([&bytes[..], &[0; 46]].concat())).is_err());
}

#[test]
fn sequences_wrap_as_in_kafka() {
    // `DefaultRecordBatch.incrementSequence` and `decrementSequence`, by hand; the last case is a quirk of
    // Kafka's
    let max = i32::MAX;
    for (base, delta, last) in [(0, 4, 4), (max, 1, 0), (max - 10, 20, 9), (max, 0, max), (-1, 3, -1)] {
        let header =
            BatchHeader { base_sequence: base, last_offset: 100 + i64::from(delta), ..data(100, 1, 0) };
        let mut states = ProducerStates::default();
        states.append(&header, None).unwrap();
        let batch = *states.get(1).unwrap().last_batch().unwrap();
        assert_eq!((batch.last_sequence, batch.offset_delta, batch.first_offset()), (last, delta, 100));
        assert_eq!(batch.first_sequence(), if base == -1 { max - 3 } else { base });
    }
    let header = BatchHeader { base_sequence: -5, last_offset: 107, ..data(100, 1, 0) };
    assert_eq!(header.last_sequence(), 2);
}

#[test]
fn the_empty_snapshot_is_that_of_kafka() {
    let bytes = [0, 1, 0x48, 0x67, 0x4b, 0xc7, 0, 0, 0, 0];
    assert_eq!(ProducerStates::default().encode(), bytes);
    assert_eq!(ProducerSnapshot::decode(&bytes).unwrap(), ProducerSnapshot::default());
}

#[test]
fn records_outside_an_open_transaction_contradict_it_and_change_nothing() {
    let mut states = ProducerStates::default();
    states.append(&data(5, 1, TRANSACTIONAL), None).unwrap();
    let before = states.encode();
    let malformed = states.append(&data(6, 1, 0), None).unwrap_err();
    assert!(malformed.expected.contains("transaction from offset 5"), "{malformed:?}");
    assert_eq!(states.encode(), before);
    assert_eq!(states.first_open_offset(), Some(5));
}

#[test]
fn a_control_batch_without_a_marker_makes_a_producer_known_and_changes_no_other() {
    let mut states = ProducerStates::default();
    states.append(&data(0, 1, TRANSACTIONAL), None).unwrap();
    let known = states.get(1).cloned();
    for producer in [1, 2] {
        assert_eq!(states.append(&data(3, producer, TRANSACTIONAL | CONTROL), None).unwrap(), None);
    }
    assert_eq!(states.get(1), known.as_ref());
    assert_eq!(states.get(2), Some(&ProducerEntry::new(2)));
}

#[test]
fn an_open_transaction_keeps_its_producer_from_expiring() {
    let mut states = ProducerStates::default();
    states.append(&data(0, 1, TRANSACTIONAL), None).unwrap();
    states.append(&data(1, 2, 0), None).unwrap();
    states.append(&BatchHeader { max_timestamp: 1, ..data(2, 3, 0) }, None).unwrap();
    states.remove_expired(1000, EXPIRATION_MS);
    assert_eq!(states.iter().map(|entry| entry.producer_id).collect::<Vec<_>>(), [1, 3]);
    states.remove_expired(i64::MAX, EXPIRATION_MS);
    assert_eq!(states.iter().map(|entry| entry.producer_id).collect::<Vec<_>>(), [1]);
}

#[test]
fn a_snapshot_has_the_producers_by_ascending_id_in_whatever_order_they_came() {
    // negative ids are of no producer
    let ids = [7, 1 << 40, 0, i64::MAX, 3, 1_000_000_000_000_016, 16];
    let mut states = ProducerStates::default();
    for (offset, id) in ids.into_iter().enumerate() {
        states.append(&data(offset as i64, id, 0), None).unwrap();
    }
    let bytes = states.encode();
    let (entries, _) = bytes[10..].as_chunks::<46>();
    let found: Vec<_> =
        entries.iter().map(|entry| i64::from_be_bytes(entry[..8].try_into().unwrap())).collect();
    assert_eq!(found, [0, 3, 7, 16, 1 << 40, 1_000_000_000_000_016, i64::MAX]);
    // a file in another order is read as the same states
    let mut reversed = bytes.clone();
    for (to, from) in reversed[10..].chunks_mut(46).zip(entries.iter().rev()) {
        to.copy_from_slice(from);
    }
    let snapshot = ProducerSnapshot::decode(&resealed(reversed)).unwrap();
    assert_eq!(snapshot.entries[0].producer_id, i64::MAX);
    assert_eq!(ProducerStates::from_snapshot(&snapshot).encode(), bytes);
}

/// `ProducerStateManagerTest.updateProducerTransactionState`, `testReadWriteSnapshot`.
#[test]
fn a_marker_ends_a_transaction_and_changes_no_batch_of_its_producer() {
    let mut states = ProducerStates::default();
    states.append(&data(9, 1, 0), None).unwrap();
    for (sequence, first, last) in [(1, 16, 20), (6, 26, 30)] {
        let header =
            BatchHeader { base_sequence: sequence, last_offset: last, ..data(first, 1, TRANSACTIONAL) };
        assert_eq!(states.append(&header, None).unwrap(), None);
        assert_eq!(states.get(1).unwrap().open_transaction, Some(16));
    }
    let batches = |states: &ProducerStates| -> Vec<_> {
        let entry = states.get(1).unwrap();
        let fields = entry.batches().map(|batch| {
            (batch.first_sequence(), batch.last_sequence, batch.first_offset(), batch.last_offset)
        });
        fields.collect()
    };
    let before = batches(&states);
    assert_eq!(before, [(0, 0, 9, 9), (1, 5, 16, 20), (6, 10, 26, 30)]);
    let marker = EndMarker { control_type: ControlType::Commit, coordinator_epoch: 15, timestamp: 123_456 };
    let ended = states.append(&data(40, 1, TRANSACTIONAL | CONTROL), Some(&marker)).unwrap().unwrap();
    assert_eq!(
        (ended.producer_id, ended.first_offset, ended.last_offset, ended.is_aborted),
        (1, 16, 40, false)
    );
    assert_eq!(batches(&states), before);
    let entry = states.get(1).unwrap();
    assert_eq!((entry.open_transaction, entry.coordinator_epoch, entry.last_timestamp), (None, 15, 123_456));
    // a snapshot has the last batch only
    let snapshot = ProducerSnapshot::decode(&states.encode()).unwrap();
    let read = ProducerStates::from_snapshot(&snapshot);
    assert_eq!(batches(&read), before[2..]);
    let fields =
        |entry: &ProducerEntry| (entry.open_transaction, entry.coordinator_epoch, entry.last_timestamp);
    assert_eq!(fields(read.get(1).unwrap()), fields(entry));
}
