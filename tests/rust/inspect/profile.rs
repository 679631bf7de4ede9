//! The profile of a log, compared with the records that Kafka reads.

use std::collections::{BTreeMap, HashSet};

use cordwood::inspect::profile::{Profile, Profiler};
use cordwood::log::{Log, LogOptions};

use crate::support::golden;

fn profile_of(dir: &std::path::Path) -> Profile {
    let log = Log::open(dir, LogOptions::default()).unwrap();
    let mut profiler = Profiler::new(&log).unwrap();
    let mut before = 0;
    while let Some(read) = profiler.advance(20_000).unwrap() {
        assert!(read > before, "each step reads something");
        before = read;
    }
    profiler.finish().unwrap()
}

/// Offset, timestamp, key and value.
type Record = (i64, i64, Option<Vec<u8>>, Option<Vec<u8>>);

/// The data batches and records above the log start offset that Kafka reads from a partition.
struct Expected {
    batches: u64,
    records: Vec<Record>,
}

fn expected(partition: &golden::Partition, start: i64, end: i64) -> Expected {
    let (mut batches, mut records) = (0, Vec::new());
    for batch in golden::expected_batches(&partition.expected) {
        let inside = batch.records.iter().filter(|record| (start..end).contains(&record.offset));
        let is_read = batch.last_offset >= start && batch.base_offset < end && !batch.records.is_empty();
        batches += u64::from(is_read);
        if !batch.control {
            records.extend(
                inside.map(|record| {
                    (record.offset, record.timestamp, record.key.clone(), record.value.clone())
                }),
            );
        }
    }
    Expected { batches, records }
}

#[test]
fn sums_equal_those_over_the_records_that_kafka_reads() {
    for partition in golden::intact() {
        let profile = profile_of(&partition.dir);
        let expected = expected(&partition, profile.log_start_offset, profile.log_end_offset);
        let name = &partition.case;
        let records = &expected.records;
        assert_eq!(profile.records, records.len() as u64, "{name}");
        assert_eq!(profile.batches, expected.batches, "{name}");
        let length = |part: &Option<Vec<u8>>| part.as_ref().map_or(0, Vec::len) as u64;
        assert_eq!(profile.key_bytes, records.iter().map(|record| length(&record.2)).sum::<u64>(), "{name}");
        assert_eq!(
            profile.value_bytes,
            records.iter().map(|record| length(&record.3)).sum::<u64>(),
            "{name}"
        );
        assert_eq!(profile.null_keys, records.iter().filter(|record| record.2.is_none()).count() as u64);
        assert_eq!(profile.tombstones, records.iter().filter(|record| record.3.is_none()).count() as u64);
        let keys: HashSet<_> = records.iter().filter_map(|record| record.2.as_ref()).collect();
        let estimate = profile.distinct_keys;
        assert!(
            (estimate.lower..=estimate.upper).contains(&(keys.len() as u64)),
            "{name}: {} keys, estimated {estimate:?}",
            keys.len()
        );
        let times: Vec<_> = records.iter().map(|record| record.1).filter(|time| *time >= 0).collect();
        assert_eq!(
            profile.time_range,
            times.iter().min().copied().zip(times.iter().max().copied()),
            "{name}"
        );
        let mut latest = i64::MIN;
        let mut lateness = Vec::new();
        for time in times {
            latest = latest.max(time);
            lateness.push(latest - time);
        }
        assert_eq!(profile.max_lateness, lateness.iter().max().copied().unwrap_or(0), "{name}");
        assert_eq!(profile.late_records, lateness.iter().filter(|late| **late > 0).count() as u64, "{name}");
    }
}

#[test]
fn bins_and_segments_contain_every_record_once() {
    for partition in golden::intact() {
        let profile = profile_of(&partition.dir);
        let expected = expected(&partition, profile.log_start_offset, profile.log_end_offset);
        let mut by_time: BTreeMap<i64, u64> = BTreeMap::new();
        let width = profile.time_bins.width();
        for (_, time, ..) in expected.records.iter().filter(|record| record.1 >= 0) {
            *by_time.entry(time.div_euclid(width) * width).or_default() += 1;
        }
        let bins = profile.time_bins.bins().into_iter().map(|bin| (bin.start, bin.records)).collect();
        assert_eq!(by_time, bins, "{}", partition.case);
        let by_offset: Vec<_> = profile.offset_bins.bins.iter().map(|bin| bin.records).collect();
        let mut naive = vec![0; by_offset.len()];
        for (offset, ..) in &expected.records {
            naive[((offset - profile.log_start_offset) / profile.offset_bins.width) as usize] += 1;
        }
        assert_eq!(by_offset, naive, "{}", partition.case);
        let in_segments: u64 = profile.segments.iter().map(|segment| segment.records).sum();
        assert_eq!(in_segments, profile.records, "{}", partition.case);
        let bytes: u64 = profile.segments.iter().map(|segment| segment.bytes).sum();
        assert_eq!(
            (bytes, profile.codecs.iter().map(|codec| codec.stored_bytes).sum()),
            (profile.bytes, bytes)
        );
    }
}

#[test]
fn compression_makes_batches_smaller_by_what_the_same_log_without_it_has() {
    let plain = profile_of(&golden::root().join("01-plain/orders-0"));
    assert_eq!(plain.codecs.len(), 1);
    assert_eq!(plain.codecs[0].uncompressed_bytes, plain.bytes);
    for name in ["02-gzip/sensor.readings-gzip-0", "05-zstd/sensor.readings-zstd-0"] {
        let profile = profile_of(&golden::root().join(name));
        let data: Vec<_> = profile.codecs.iter().filter(|codec| codec.codec.name() != "none").collect();
        assert_eq!(data.len(), 1, "{name}");
        assert!(data[0].uncompressed_bytes > data[0].stored_bytes, "{name}");
        // each record has at least its key, its value and 7 bytes
        assert!(
            data[0].uncompressed_bytes > profile.key_bytes + profile.value_bytes + 7 * profile.records,
            "{name}"
        );
    }
}

#[test]
fn transactions_are_counted_by_their_markers() {
    let profile = profile_of(&golden::root().join("11-transactions/payments-0"));
    let transactions = &profile.transactions;
    let listed = transactions.aborted_transactions.len() as u64;
    assert!(transactions.committed > 0 && transactions.aborted > 0);
    assert_eq!(listed, transactions.aborted);
    for aborted in &transactions.aborted_transactions {
        assert!(aborted.first_offset < aborted.last_offset && aborted.records > 0);
    }
}

#[test]
fn what_is_damaged_is_listed_and_the_rest_is_counted() {
    for case in golden::damaged() {
        // some cases have no log that can be opened
        let Ok(log) = Log::open(&case.dir, LogOptions::default()) else { continue };
        let Ok(profiler) = Profiler::new(&log) else { continue };
        let profile = profiler.finish().unwrap();
        if case.case.contains("flip-record") {
            assert_eq!(profile.damaged_ranges.len(), 1, "{}", case.case);
            let intact = profile_of(&case.from.dir);
            assert!(profile.records < intact.records && profile.records > 0, "{}", case.case);
            assert_eq!(profile.gaps.count, intact.gaps.count + 1, "{}", case.case);
        }
    }
}
