//! Validation of raw batches: the results equal those of Kafka for the same bytes
//! (`tests/vectors/batch_validation.json`), except for the differences that the vectors list.

use std::fs;

use cordwood::Error;
use cordwood::record::{
    Analyzed, BatchBuilder, BatchHeader, BatchOptions, Codec, MAX_BATCH_BYTES, NewRecord, Origin, Validation,
    analyze, stamp_log_append_time,
};
use cordwood::types::TimestampType;
use proptest::prelude::*;
use serde_json::Value;

use crate::support::batches::{self, BatchV2, Rec, crc32c};
use crate::support::golden::{number, text};
use crate::support::{fixed_seed, naive};

const NOW: i64 = 1_700_000_000_000;

/// The rules of a leader under Kafka's default settings.
fn leader() -> Validation {
    Validation {
        origin: Origin::Leader,
        max_batch_bytes: MAX_BATCH_BYTES,
        max_message_bytes: 1_048_588,
        timestamp_type: TimestampType::CreateTime,
        before_max_ms: i64::MAX,
        after_max_ms: 3_600_000,
        now: NOW,
        is_compacted: false,
        codec: None,
    }
}

fn follower(log_end_offset: i64, leader_epoch: i32) -> Validation {
    Validation { origin: Origin::Follower { log_end_offset, leader_epoch }, ..leader() }
}

fn options(base_offset: i64, leader_epoch: i32) -> BatchOptions {
    BatchOptions {
        base_offset,
        leader_epoch,
        codec: Codec::None,
        level: None,
        timestamp_type: TimestampType::CreateTime,
        log_append_time: -1,
    }
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// The rules of a topic's settings.
fn rules(vectors: &Value, case: &Value) -> Validation {
    let mut rules = match case["role"].as_str().unwrap() {
        "leader" => leader(),
        _ => follower(number(&vectors["log_end_offset"]), number(&vectors["leader_epoch"]) as i32),
    };
    rules.now = number(&vectors["now"]);
    for (key, value) in case["config"].as_object().unwrap() {
        let value = value.as_str().unwrap();
        match key.as_str() {
            "max.message.bytes" => rules.max_message_bytes = value.parse().unwrap(),
            "message.timestamp.before.max.ms" => rules.before_max_ms = value.parse().unwrap(),
            "message.timestamp.type" => {
                assert_eq!(value, "LogAppendTime");
                rules.timestamp_type = TimestampType::LogAppendTime;
            }
            "cleanup.policy" => rules.is_compacted = value.contains("compact"),
            "compression.type" => {
                rules.codec = match value {
                    "producer" => None,
                    "uncompressed" => Some(Codec::None),
                    "gzip" => Some(Codec::Gzip),
                    "snappy" => Some(Codec::Snappy),
                    "lz4" => Some(Codec::Lz4),
                    "zstd" => Some(Codec::Zstd),
                    other => panic!("{other}"),
                }
            }
            other => panic!("{other}"),
        }
    }
    rules
}

/// The bytes that a writer stores for these batches, and the largest timestamp.
fn stored(raw: &[u8], rules: &Validation, epoch: i32) -> Result<(Vec<u8>, i64), Error> {
    let (mut out, mut builder, mut largest) = (Vec::new(), BatchBuilder::new(), -1);
    let mut next = 100;
    for analyzed in analyze(raw, rules)? {
        let mut batch = raw[analyzed.range.clone()].to_vec();
        largest = largest.max(analyzed.max_timestamp);
        if rules.origin != Origin::Leader {
            assert!(!analyzed.must_rebuild());
            out.extend(batch);
            continue;
        }
        let header = if analyzed.must_rebuild() {
            let start = out.len();
            let header = analyzed.rebuild(&batch, &mut builder, &options(next, epoch), &mut out)?;
            assert_eq!(header.size as usize, out.len() - start);
            if header.size > rules.max_message_bytes {
                return Err(Error::config("max.message.bytes", "less", "more"));
            }
            header
        } else {
            let header = analyzed.stamp(&mut batch, next, epoch)?;
            out.extend(batch);
            header
        };
        assert_eq!((header.base_offset, header.leader_epoch), (next, epoch));
        assert_eq!(
            BatchHeader::parse(&out[out.len() - header.size as usize..], header.size.into()),
            Ok(header)
        );
        assert_eq!((header.max_timestamp, header.codec()), (analyzed.max_timestamp, Ok(analyzed.codec)));
        next = header.last_offset + 1;
    }
    Ok((out, largest))
}

#[test]
fn batches_are_accepted_and_stored_as_by_kafka() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors/batch_validation.json");
    let vectors: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let (mut same, mut refused, mut rebuilt, mut differing) = (0, 0, 0, 0);
    for case in vectors["cases"].as_array().unwrap() {
        let name = format!("{} {}", text(&case["role"]), text(&case["name"]));
        let raw = unhex(case["raw"].as_str().unwrap());
        let rules = rules(&vectors, case);
        let ours = stored(&raw, &rules, 5);
        let kafka = case["kafka"]["bytes"].as_str().map(unhex);
        if case.get("differs").is_some() {
            assert_ne!(ours.is_ok(), kafka.is_some(), "{name}: no difference ({ours:?})");
            differing += 1;
            continue;
        }
        let Some(kafka) = kafka else {
            assert!(ours.is_err(), "{name}: accepted, but Kafka returned {}", case["kafka"]["error"]);
            refused += 1;
            continue;
        };
        let (bytes, largest) = ours.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(largest, number(&case["kafka"]["max_timestamp"]), "{name}");
        if bytes == kafka {
            same += 1;
            continue;
        }
        // recompressed bytes differ between libraries; the records and their header fields must not
        let [ours, mut theirs] = [&bytes, &kafka].map(|bytes| naive::read_batch(bytes).unwrap());
        assert!(rules.codec.is_some_and(|codec| codec != Codec::None), "{name}: other bytes");
        (theirs.size, theirs.crc) = (ours.size, ours.crc);
        assert_eq!(ours, theirs, "{name}");
        rebuilt += 1;
    }
    println!("{same} {refused} {rebuilt} {differing}");
    assert!(same >= 60 && refused >= 60 && rebuilt >= 5 && differing >= 25);
}

#[test]
fn every_flipped_bit_under_the_checksum_is_refused() {
    let record = |at: i64| Rec::at(NOW + at).key("key").value("value").header("h", Some(b"x"));
    for codec in [batches::Codec::None, batches::Codec::Lz4] {
        let batch = BatchV2::new(0).codec(codec).records([record(0), record(5)]).build().bytes;
        assert!(analyze(&batch, &leader()).is_ok());
        for bit in 8 * 8..8 * batch.len() {
            let is_epoch = (12..16).contains(&(bit / 8));
            let mut flipped = batch.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(analyze(&flipped, &leader()).is_ok(), is_epoch, "bit {bit}");
        }
    }
}

#[test]
fn every_prefix_of_a_batch_is_refused() {
    let batch = BatchV2::new(0).record(Rec::at(NOW).value("value")).build().bytes;
    for rules in [leader(), follower(0, 0)] {
        for length in 1..batch.len() {
            let error = analyze(&batch[..length], &rules).unwrap_err().to_string();
            assert!(error.contains("in batch 0 at position 0"), "{error}");
            let after_a_whole_batch = [&batch[..], &batch[..length]].concat();
            assert!(analyze(&after_a_whole_batch, &rules).is_err());
        }
    }
}

#[test]
fn an_error_names_the_batch_the_record_and_what_is_wrong() {
    let good = BatchV2::new(0).record(Rec::at(NOW).key("k").value("v")).build().bytes;
    let old = BatchV2::new(0).records([Rec::at(NOW).key("k"), Rec::at(NOW - 6)]).build().bytes;
    let raw = [good.clone(), old].concat();
    let message = |rules| analyze(&raw, &rules).unwrap_err().to_string();
    assert_eq!(
        message(Validation { before_max_ms: 5, after_max_ms: 7, ..leader() }),
        "timestamp: expected a time no more than 5 ms before 1700000000000 (message.timestamp.before.max.ms) and no more than \
         7 ms after it (message.timestamp.after.max.ms), found 1699999999994 in record 1 in batch 1 at position 70"
    );
    assert_eq!(
        message(Validation { is_compacted: true, ..leader() }),
        "key: expected a key, as the log is compacted, found null in record 1 in batch 1 at position 70"
    );
    assert_eq!(
        message(Validation { max_message_bytes: 70, ..leader() }),
        "max.message.bytes: expected a batch of at most 70 bytes, found 76 bytes in batch 1 at position 70"
    );
    let message = |wrong: BatchV2| {
        let wrong = wrong.record(Rec::at(NOW)).build().bytes;
        analyze(&[good.clone(), wrong].concat(), &leader()).unwrap_err().to_string()
    };
    assert_eq!(
        message(BatchV2::new(0).producer(7, 0, -1)),
        "raw: expected a sequence, 0 or above, in a batch with a producer id, found -1 in batch 1 at position 70"
    );
    assert_eq!(
        message(BatchV2::new(0).transaction(-1, -1, -1)),
        "raw: expected a producer id in a transactional batch, found -1 in batch 1 at position 70"
    );
}

#[test]
fn a_single_record_is_validated_like_a_record_in_a_batch() {
    let record = |timestamp| NewRecord { timestamp, value: Some(b"v"), ..NewRecord::default() };
    let rules = Validation { before_max_ms: 10, after_max_ms: 20, ..leader() };
    for timestamp in [NOW - 10, NOW, NOW + 20, -1] {
        assert!(rules.check(&record(timestamp)).is_ok(), "{timestamp}");
    }
    for timestamp in [NOW - 11, NOW + 21, 0, i64::MAX] {
        assert!(rules.check(&record(timestamp)).is_err(), "{timestamp}");
    }
    let append_time = Validation { timestamp_type: TimestampType::LogAppendTime, ..rules };
    assert!(append_time.check(&record(0)).is_ok());
    let compacted = Validation { is_compacted: true, ..rules };
    assert!(compacted.check(&record(NOW)).is_err());
    assert!(compacted.check(&NewRecord { key: Some(b""), ..record(NOW) }).is_ok());
}

#[test]
fn a_batch_stamped_with_append_time_has_it_for_every_record() {
    let records = [Rec::at(NOW - 5).value("a"), Rec::at(NOW - 9).value("b")];
    let created = BatchV2::new(3).records(records.clone());
    let mut bytes = created.build().bytes;
    stamp_log_append_time(&mut bytes, NOW + 1);
    assert_eq!(bytes, created.log_append_time(NOW + 1).build().bytes);
}

#[test]
fn offsets_beyond_the_largest_are_refused() {
    let mut bytes = BatchV2::new(0).records([Rec::at(NOW), Rec::at(NOW)]).build().bytes;
    let [analyzed]: [Analyzed; 1] = analyze(&bytes, &leader()).unwrap().try_into().unwrap();
    let before = bytes.clone();
    for base_offset in [-1, i64::MAX - 1, i64::MAX] {
        assert!(analyzed.stamp(&mut bytes, base_offset, 0).is_err());
        assert_eq!(bytes, before);
    }
    assert_eq!(analyzed.stamp(&mut bytes, i64::MAX - 2, 0).unwrap().last_offset, i64::MAX - 1);
}

proptest! {
    #![proptest_config(fixed_seed(3000))]

    /// The checksum is recomputed, so that only the other rules can detect a wrong byte.
    #[test]
    fn a_forged_batch_is_refused_or_can_be_read(
        values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..6), 1..4),
        changes in prop::collection::vec((21usize..400, any::<u8>()), 1..4),
        is_leader: bool,
    ) {
        let records = values.iter().map(|value| Rec::at(NOW).key("k").value(value).header("h", None));
        let mut bytes = BatchV2::new(100).records(records).build().bytes;
        for (position, byte) in changes {
            let position = 21 + position % (bytes.len() - 21);
            bytes[position] = byte;
        }
        let crc = crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        let rules = if is_leader { leader() } else { follower(100, 0) };
        if let Ok((bytes, largest)) = stored(&bytes, &rules, 0) {
            // the naive reader is stricter than the format: it refuses some batches that Kafka accepts
            match naive::read_batch(&bytes) {
                Ok(batch) => {
                    prop_assert_eq!(batch.base_offset, 100);
                    prop_assert_eq!(batch.max_timestamp, largest);
                    if is_leader {
                        prop_assert_eq!(batch.last_offset, 99 + batch.records.len() as i64);
                    }
                }
                Err(what) => {
                    let is_control = bytes[22] & 0x20 != 0;
                    let tolerated = ["length -", "record attributes", "largest timestamp", "beyond the largest"];
                    // a follower keeps records out of place
                    let is_out_of_place = !is_leader && what.starts_with("offset ");
                    prop_assert!(is_control || is_out_of_place || tolerated.iter().any(|text| what.contains(text)), "{}", what);
                }
            }
        }
    }
}
