//! The naive reader reads back what the builder writes, and refuses malformed bytes.

use proptest::prelude::*;

use crate::support::batches::{ABORT, BatchV2, Built, COMMIT, Codec, LEADER_CHANGE, MessageSet, Rec};
use crate::support::fixed_seed;
use crate::support::naive::{self, Control, TimestampType};
use crate::support::partition::{EntryOffset, Indexing, PartitionBuilder};

const LEGACY_CODECS: [Codec; 5] =
    [Codec::None, Codec::Gzip, Codec::SnappyXerial, Codec::SnappyRaw, Codec::Lz4];

fn records() -> Vec<Rec> {
    vec![
        Rec::at(1000).key("k").value("v"),
        Rec::at(990).value(vec![b'x'; 100_000]).delta(3),
        Rec::at(1010).key("").value("").delta(4),
        Rec::at(1005).key([0xff, 0xfe]),
    ]
}

fn offsets(batch: &naive::Batch) -> Vec<i64> {
    batch.records.iter().map(|record| record.offset).collect()
}

fn timestamps(batch: &naive::Batch) -> Vec<i64> {
    batch.records.iter().map(|record| record.timestamp).collect()
}

fn assert_same_payloads(batch: &naive::Batch, records: &[Rec]) {
    let read: Vec<_> = batch.records.iter().map(|r| (&r.key, &r.value, &r.headers)).collect();
    let written: Vec<_> = records.iter().map(|r| (&r.key, &r.value, &r.headers)).collect();
    assert_eq!(read, written);
}

#[test]
fn v2_batches_of_every_codec_are_read_back() {
    for codec in Codec::ALL {
        let mut records = records();
        records[0] = records[0].clone().header("h", Some(b"1")).header("h", None).header([0xff], Some(b""));
        let built = BatchV2::new(50).codec(codec).producer(7, 2, i32::MAX).records(records.clone()).build();
        let read = naive::read_batch(&built.bytes).unwrap();
        assert_same_payloads(&read, &records);
        assert_eq!(offsets(&read), [50, 53, 54, 55]);
        assert_eq!(timestamps(&read), [1000, 990, 1010, 1005]);
        assert_eq!((read.last_offset, read.max_timestamp), (built.last_offset, built.max_timestamp));
        assert_eq!(read.records[1].sequence, 2, "sequences wrap to 0");
    }
}

#[test]
fn a_v2_batch_with_a_delete_horizon_keeps_the_timestamps_of_its_records() {
    let built = BatchV2::new(0).delete_horizon(1_073_741_823).records(records()).build();
    let read = naive::read_batch(&built.bytes).unwrap();
    assert_eq!(read.delete_horizon, Some(1_073_741_823));
    assert_eq!(timestamps(&read), [1000, 990, 1010, 1005]);
}

#[test]
fn log_append_time_is_the_time_of_every_record() {
    let batches = LEGACY_CODECS
        .iter()
        .map(|&codec| MessageSet::v1(9).codec(codec).log_append_time(7000).records(records()).build())
        .chain([vec![BatchV2::new(9).log_append_time(7000).records(records()).build()]]);
    for built in batches.flatten() {
        let read = naive::read_batch(&built.bytes).unwrap();
        assert_eq!(read.timestamp_type, TimestampType::LogAppendTime);
        assert!(timestamps(&read).iter().all(|&timestamp| timestamp == 7000));
        assert_eq!(built.max_timestamp, 7000);
    }
}

#[test]
fn message_sets_of_every_codec_are_read_back() {
    for codec in LEGACY_CODECS {
        for set in [MessageSet::v0(50), MessageSet::v1(50)] {
            let built = set.clone().codec(codec).records(records()).build();
            let read: Vec<_> = built.iter().map(|built| naive::read_batch(&built.bytes).unwrap()).collect();
            assert_eq!(read.len(), if codec == Codec::None { 4 } else { 1 });
            assert_eq!(read.iter().flat_map(offsets).collect::<Vec<_>>(), [50, 53, 54, 55]);
            let times: Vec<_> = read.iter().flat_map(timestamps).collect();
            assert_eq!(times, if set.magic == 0 { [-1; 4] } else { [1000, 990, 1010, 1005] });
            for (built, read) in built.iter().zip(&read) {
                assert_eq!((built.base_offset, built.last_offset), (read.base_offset, read.last_offset));
                assert_eq!(built.max_timestamp, read.max_timestamp);
            }
            let keys: Vec<_> = read.iter().flat_map(|b| &b.records).map(|r| r.key.clone()).collect();
            assert_eq!(keys, records().into_iter().map(|record| record.key).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_v1_wrapper_at_offset_0_starts_at_0() {
    let set = MessageSet::v1(0).codec(Codec::Gzip).records([Rec::at(1), Rec::at(2), Rec::at(3)]);
    let read = |set: &MessageSet| naive::read_batch(&set.build()[0].bytes);
    assert_eq!(offsets(&read(&set.clone().wrapper_offset(0)).unwrap()), [0, 1, 2]);
    assert!(read(&set.wrapper_offset(1)).is_err(), "an offset below that of the last inner message");
}

#[test]
fn types_of_control_records_are_distinguished() {
    let kinds: Vec<_> = [
        BatchV2::marker(0, COMMIT, 1, 0, 5),
        BatchV2::marker(0, ABORT, 1, 0, 5),
        BatchV2::new(0).control(LEADER_CHANGE, 5, b"opaque"),
    ]
    .iter()
    .map(|batch| naive::read_batch(&batch.build().bytes).unwrap().records[0].control.clone().unwrap())
    .collect();
    let coordinator_epoch = 0;
    assert_eq!(
        kinds,
        [
            Control::Commit { coordinator_epoch },
            Control::Abort { coordinator_epoch },
            Control::Other { kind: 2 }
        ]
    );
}

/// Batches of every kind, one after another.
fn one_of_each() -> Vec<Built> {
    let small = || [Rec::at(1000).key("k").value("v"), Rec::at(1001).value("w").header("h", None)];
    let mut batches = MessageSet::v0(0).records(small()).build();
    let next = |batches: &[Built]| batches.last().unwrap().next_offset();
    for codec in &LEGACY_CODECS[1..] {
        batches.extend(MessageSet::v0(next(&batches)).codec(*codec).records(small()).build());
        batches.extend(MessageSet::v1(next(&batches)).codec(*codec).records(small()).build());
    }
    for codec in Codec::ALL {
        batches.push(BatchV2::new(next(&batches)).codec(codec).records(small()).build());
    }
    batches.push(BatchV2::empty(next(&batches), 4, 900).build());
    batches.push(BatchV2::new(next(&batches)).transaction(1, 0, 0).records(small()).build());
    batches.push(BatchV2::marker(next(&batches), ABORT, 1, 0, 1100).build());
    batches
}

#[test]
fn a_flipped_bit_is_an_error_unless_no_checksum_covers_it() {
    for built in one_of_each() {
        let whole = naive::read_batch(&built.bytes).unwrap();
        for bit in 0..built.bytes.len() * 8 {
            let mut bytes = built.bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(flipped) = naive::read_batch(&bytes) {
                let unprotected = match (whole.magic, bit / 8) {
                    (_, 0..8) => "offset",
                    (2, 12..16) => "leader epoch",
                    (magic, byte) => panic!("bit {bit} (byte {byte}) of magic {magic} is not noticed"),
                };
                assert_ne!(flipped, whole, "{unprotected}");
            }
        }
        for length in 0..built.bytes.len() {
            assert!(naive::read_batch(&built.bytes[..length]).is_err(), "{length} bytes");
        }
    }
}

#[test]
fn a_log_out_of_order_is_an_error() {
    let batch = |offset, epoch| BatchV2::new(offset).leader_epoch(epoch).records([Rec::at(1)]).build();
    let read = |segments: &[(i64, Vec<Built>)]| {
        let parent = tempfile::tempdir().unwrap();
        let segments = segments.to_vec();
        let dir = PartitionBuilder { segments, indexing: Indexing::default() }.write(parent.path(), "t-0");
        naive::read(&dir)
            .map(|log| log.batches.len())
            .map_err(|irregular| (irregular.segment, irregular.position))
    };
    let size = batch(0, 0).bytes.len() as u64;
    assert_eq!(read(&[(0, vec![batch(0, 0), batch(7, 3)]), (8, vec![batch(8, 3)])]), Ok(3));
    assert_eq!(read(&[(0, vec![batch(4, 0), batch(4, 0)])]), Err((0, size)), "the same offset again");
    assert_eq!(read(&[(0, vec![batch(4, 3), batch(5, 2)])]), Err((0, size)), "a lower epoch");
    assert_eq!(read(&[(5, vec![batch(4, 0)])]), Err((5, 0)), "an offset below the segment's");
    assert_eq!(
        read(&[(0, vec![batch(9, 0)]), (8, vec![batch(10, 0)])]),
        Err((8, 0)),
        "segments that overlap"
    );
}

#[test]
fn a_transaction_index_lists_the_aborted_transactions() {
    let parent = tempfile::tempdir().unwrap();
    let dir = PartitionBuilder::rolled(Indexing::default(), 400, one_of_each()).write(parent.path(), "t-0");
    let log = naive::read(&dir).unwrap();
    let aborted = log.transactions().aborted_ranges;
    let [(1, first, last)] = aborted[..] else { panic!("{aborted:?}") };
    let entries: Vec<u8> = log
        .segments
        .iter()
        .filter_map(|segment| std::fs::read(dir.join(format!("{:020}.txnindex", segment.base_offset))).ok())
        .flatten()
        .collect();
    assert_eq!(entries, crate::support::partition::txn_entry(1, first, last, last + 1));
}

prop_compose! {
    fn record()(
        timestamp in -1i64..2000,
        key in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..4)),
        value in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..20)),
        headers in proptest::collection::vec(
            (proptest::collection::vec(any::<u8>(), 0..3), proptest::option::of(proptest::collection::vec(any::<u8>(), 0..3))), 0..3),
        gap in prop_oneof![9 => Just(1i32), 1 => 2i32..70_000],
    ) -> (Rec, i32) {
        (Rec { timestamp, key, value, headers, offset_delta: None }, gap)
    }
}

proptest! {
    #![proptest_config(fixed_seed(256))]

    #[test]
    fn a_random_log_is_read_back(
        batches in proptest::collection::vec(
            (proptest::collection::vec(record(), 1..6), 0usize..6, 0u8..3, 0i64..50), 1..12),
        segment_bytes in 100usize..2000,
        interval_bytes in 0usize..500,
        base in any::<bool>(),
    ) {
        let (mut built, mut written, mut next) = (Vec::new(), Vec::new(), 0i64);
        for (records, codec, magic, gap) in batches {
            next += gap;
            let mut delta = -1;
            let records: Vec<Rec> = records.into_iter().map(|(mut record, gap)| {
                delta += gap;
                if magic < 2 {
                    record.headers.clear();
                }
                record.delta(delta)
            }).collect();
            for record in &records {
                let offset = next + i64::from(record.offset_delta.unwrap());
                let timestamp = if magic == 0 { -1 } else { record.timestamp };
                written.push((offset, timestamp, record.key.clone(), record.value.clone(), record.headers.clone()));
            }
            if magic == 2 {
                built.push(BatchV2::new(next).codec(Codec::ALL[codec]).records(records).build());
            } else {
                let set = if magic == 0 { MessageSet::v0(next) } else { MessageSet::v1(next) };
                // not affected by the rule for wrappers at offset 0: here such a wrapper has only one record,
                // at 0
                built.extend(set.codec(LEGACY_CODECS[codec % 5]).records(records).build());
            }
            next = built.last().unwrap().next_offset();
        }
        let entry_offset = if base { EntryOffset::Base } else { EntryOffset::Last };
        let indexing = Indexing { interval_bytes, entry_offset, ..Indexing::default() };
        let parent = tempfile::tempdir().unwrap();
        let dir = PartitionBuilder::rolled(indexing, segment_bytes, built).write(parent.path(), "t-0");
        let log = naive::read(&dir).unwrap();
        let read: Vec<_> = log.records().map(|record| {
            (record.offset, record.timestamp, record.key.clone(), record.value.clone(), record.headers.clone())
        }).collect();
        prop_assert_eq!(read, written);
        prop_assert_eq!(log.end_offset(), next);
    }
}
