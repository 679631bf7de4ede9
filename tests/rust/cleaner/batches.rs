//! What remains of a batch: the behaviours of Kafka's `MemoryRecordsTest` on `filterTo`, by their names
//! there.

use cordwood::record::BatchHeader;
use cordwood::types::{IsolationLevel, TimestampType};

use super::case::{ALL, Case, NOW, RETENTION_MS};
use crate::support::batches::{BatchV2, Built, COMMIT, Codec, MessageSet, Rec, crc32};

/// The smallest batch: its header.
const HEADER_BYTES: u32 = 61;

fn rec(timestamp: i64, key: Option<&str>, value: &str) -> Rec {
    let record = Rec::at(timestamp).value(value);
    if let Some(key) = key { record.key(key) } else { record }
}

/// Compacts a log with these batches and one after them.
fn compacted(batches: &[BatchV2]) -> Case {
    let mut case = Case::in_data_directory(|_| ());
    for batch in batches {
        case.put(batch);
    }
    case.keys(&[99]);
    case.roll();
    case.compact();
    case
}

/// Offset, timestamp, key and value of each record but the last.
fn records(case: &Case) -> Vec<(i64, i64, String, String)> {
    let text = |bytes: Option<Vec<u8>>| String::from_utf8(bytes.unwrap_or_default()).unwrap();
    let mut seen = case.seen(IsolationLevel::ReadUncommitted);
    seen.retain(|record| !record.is_control);
    seen.pop();
    seen.into_iter()
        .map(|record| (record.offset, record.timestamp, text(record.key), text(record.value)))
        .collect()
}

fn expected(records: &[(i64, i64, &str, &str)]) -> Vec<(i64, i64, String, String)> {
    let owned = |(offset, timestamp, key, value): &(i64, i64, &str, &str)| {
        (*offset, *timestamp, (*key).to_owned(), (*value).to_owned())
    };
    records.iter().map(owned).collect()
}

/// `testFilterTo`.
#[test]
fn removed_records_leave_gaps_inside_their_batches_and_batches_without_records_are_removed() {
    for codec in Codec::ALL {
        let of = |base: i64, records: Vec<Rec>| BatchV2::new(base).codec(codec).records(records);
        let case = compacted(&[
            of(0, vec![rec(10, None, "a")]),
            of(1, vec![rec(11, Some("1"), "b"), rec(12, None, "c")]),
            of(3, vec![rec(13, None, "d"), rec(20, Some("4"), "e"), rec(15, Some("5"), "f")]),
            of(6, vec![rec(16, Some("6"), "g")]),
        ]);
        let headers = &case.headers()[..3];
        let found: Vec<_> = headers
            .iter()
            .map(|header| (header.base_offset, header.last_offset, header.max_timestamp))
            .collect();
        assert_eq!(found, [(1, 2, 11), (3, 5, 20), (6, 6, 16)], "{codec:?}");
        let before =
            BatchHeader::parse(&of(6, vec![rec(16, Some("6"), "g")]).build().bytes, 1 << 20).unwrap();
        for header in headers {
            assert_eq!(header.codec().unwrap(), before.codec().unwrap());
            assert_eq!((header.magic, header.timestamp_type()), (2, TimestampType::CreateTime));
        }
        let kept = [(1, 11, "1", "b"), (4, 20, "4", "e"), (5, 15, "5", "f"), (6, 16, "6", "g")];
        assert_eq!(records(&case), expected(&kept), "{codec:?}");
    }
}

/// `testFilterToAlreadyCompactedLog`, `testFilterToPreservesPartitionLeaderEpoch`.
#[test]
fn a_batch_with_gaps_keeps_its_first_and_last_offset_and_its_leader_epoch() {
    for codec in Codec::ALL {
        let sparse = BatchV2::new(0).codec(codec).leader_epoch(67).records([
            rec(10, None, "a").delta(5),
            rec(11, Some("1"), "b").delta(8),
            rec(12, None, "c").delta(10),
        ]);
        let mut case = Case::in_data_directory(|_| ());
        case.put(&sparse);
        case.put(&case.batch().leader_epoch(68).record(rec(13, Some("99"), "d")));
        case.roll();
        case.compact();
        let header = case.headers()[0];
        assert_eq!((header.base_offset, header.last_offset, header.leader_epoch), (0, 10, 67), "{codec:?}");
        assert_eq!(header.count, Some(1));
        assert_eq!(records(&case), expected(&[(8, 11, "1", "b")]), "{codec:?}");
    }
}

/// `testFilterToPreservesProducerInfo`.
#[test]
fn a_batch_keeps_its_producer_and_the_sequences_of_its_records() {
    for codec in Codec::ALL {
        let plain = [rec(10, None, "a"), rec(11, Some("1"), "b"), rec(12, None, "c")];
        let idempotent = [rec(13, None, "d"), rec(14, Some("4"), "e"), rec(15, Some("5"), "f")];
        let transactional = [rec(16, Some("6"), "g"), rec(17, Some("7"), "h"), rec(18, None, "i")];
        let case = compacted(&[
            BatchV2::new(0).codec(codec).records(plain),
            BatchV2::new(3).codec(codec).producer(23, 5, 10).records(idempotent),
            BatchV2::new(6).codec(codec).transaction(99_384, 234, 15).records(transactional),
            BatchV2::marker(9, COMMIT, 99_384, 234, 18),
        ]);
        let found: Vec<_> = case.headers()[..3]
            .iter()
            .map(|header| {
                (
                    (header.base_offset, header.last_offset, header.count),
                    (header.producer_id, header.producer_epoch),
                    (header.base_sequence, header.last_sequence(), header.is_transactional()),
                )
            })
            .collect();
        let expected_headers = [
            ((0, 2, Some(1)), (-1, -1), (-1, -1, false)),
            ((3, 5, Some(2)), (23, 5), (10, 12, false)),
            ((6, 8, Some(2)), (99_384, 234), (15, 17, true)),
        ];
        assert_eq!(found, expected_headers, "{codec:?}");
        // a sequence follows from the offset in the batch
        let kept =
            [(1, 11, "1", "b"), (4, 14, "4", "e"), (5, 15, "5", "f"), (6, 16, "6", "g"), (7, 17, "7", "h")];
        assert_eq!(records(&case), expected(&kept), "{codec:?}");
    }
}

/// `testFilterToEmptyBatchRetention`, `testEmptyBatchRetention`, `testEmptyBatchDeletion`.
#[test]
fn a_batch_without_records_is_a_header_and_stays_as_it_is_until_it_is_removed() {
    for codec in Codec::ALL {
        for is_transactional in [true, false] {
            let mut case = Case::in_data_directory(|_| ());
            case.keys(&[97, 98, 99]);
            let records = [rec(11, Some("2"), "b"), rec(12, Some("3"), "c")];
            let batch = BatchV2::new(3).codec(codec).leader_epoch(293).records(records);
            let batch = BatchV2 { is_transactional, ..batch.producer(23, 5, 10) };
            case.put(&batch);
            if is_transactional {
                case.put(&BatchV2::marker(5, COMMIT, 23, 5, NOW).leader_epoch(293));
            }
            let replacing = [rec(13, Some("2"), "d"), rec(14, Some("3"), "e")];
            case.put(&case.batch().leader_epoch(293).records(replacing));
            case.roll();
            let path = case.path().join("00000000000000000000.log");
            let mut contents = Vec::new();
            for _ in 0..2 {
                case.compact_from(0, NOW, ALL);
                let empty = case.headers()[1];
                assert_eq!((empty.size, empty.count), (HEADER_BYTES, Some(0)));
                assert_eq!((empty.base_offset, empty.last_offset, empty.leader_epoch), (3, 4, 293));
                assert_eq!((empty.producer_id, empty.producer_epoch), (23, 5));
                assert_eq!((empty.base_sequence, empty.last_sequence()), (10, 11));
                assert_eq!((empty.max_timestamp, empty.timestamp_type()), (12, TimestampType::CreateTime));
                assert_eq!(empty.is_transactional(), is_transactional);
                contents.push(std::fs::read(&path).unwrap());
            }
            assert_eq!(contents[0], contents[1]);
            // the producer's next batch has its last sequence
            let next = case.batch().leader_epoch(293).producer(23, 5, 12).record(rec(15, Some("96"), "f"));
            case.put(&next);
            case.roll();
            case.compact();
            assert!(!case.base_offsets().contains(&3));
        }
    }
}

/// `testBaseTimestampToDeleteHorizonConversion`.
#[test]
fn a_delete_horizon_in_place_of_the_base_timestamp_changes_no_timestamp_of_a_record() {
    for codec in Codec::ALL {
        let tombstone = Rec::at(10).key("1");
        let records = [rec(5, Some("0"), "0"), tombstone, rec(15, Some("2"), "2")];
        let case = compacted(&[BatchV2::new(0).codec(codec).records(records)]);
        let header = case.headers()[0];
        assert_eq!(header.delete_horizon(), Some(NOW + RETENTION_MS), "{codec:?}");
        assert_eq!((header.base_timestamp, header.max_timestamp), (Some(NOW + RETENTION_MS), 15));
        let kept = [(0, 5, "0", "0"), (1, 10, "1", ""), (2, 15, "2", "2")];
        assert_eq!(self::records(&case), expected(&kept), "{codec:?}");
    }
}

/// A wrapper of magic 1 around messages of magic 0, as an old cleaner wrote them (KAFKA-4298). The value of
/// each record is its offset.
fn wrapper_of_magic_0(first: i64, keys: &[i64]) -> Built {
    let value = |number: usize| (first + number as i64).to_string();
    let records =
        keys.iter().enumerate().map(|(number, key)| rec(-1, Some(&key.to_string()), &value(number)));
    let inner = MessageSet::v0(0).records(records).build();
    let wrapper = MessageSet::v1(first).codec(Codec::Gzip).record(rec(-1, Some("x"), "y")).build().remove(0);
    let plain: Vec<u8> = inner.into_iter().flat_map(|message| message.bytes).collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gzip, &plain).unwrap();
    let compressed = gzip.finish().unwrap();
    // magic, attributes, timestamp and the missing key are those of any wrapper
    let mut checked = wrapper.bytes[16..30].to_vec();
    checked.extend((compressed.len() as i32).to_be_bytes());
    checked.extend(compressed);
    let last_offset = first + keys.len() as i64 - 1;
    let mut bytes = last_offset.to_be_bytes().to_vec();
    bytes.extend((checked.len() as i32 + 4).to_be_bytes());
    bytes.extend(crc32(&checked).to_be_bytes());
    bytes.extend(checked);
    Built { bytes, last_offset, ..wrapper }
}

/// `testCleanCorruptMessageSet`, `testClientHandlingOfCorruptMessageSet`.
#[test]
fn a_wrapper_of_magic_1_around_messages_of_magic_0_is_read_and_cleaned() {
    let batches = vec![wrapper_of_magic_0(25, &[0, 1, 0, 1]), wrapper_of_magic_0(50, &[3, 4])];
    let assert_values = |case: &Case, offsets: &[i64]| {
        let seen = case.seen(IsolationLevel::ReadUncommitted);
        assert_eq!(seen.iter().map(|record| record.offset).collect::<Vec<_>>(), offsets);
        for record in seen {
            assert_eq!(record.value.unwrap(), record.offset.to_string().into_bytes());
        }
    };
    let mut case = Case::with_segments(&[(0, batches)]);
    assert_values(&case, &[25, 26, 27, 28, 50, 51]);
    case.roll();
    case.compact();
    assert_values(&case, &[27, 28, 50, 51]);
    assert!(case.headers().iter().all(|header| header.magic == 2));
}
