//! For every intact partition of the corpus, the crate returns the same results as Kafka's own classes.

use std::collections::BTreeMap;

use cordwood::index::Method;
use cordwood::log::{OnDamage, ScanOptions};
use cordwood::types::IsolationLevel;
use cordwood::{Error, Log, LogOptions};
use serde_json::Value;

use crate::support::golden::{self, Partition, lines, lines_of_type, number};
use crate::support::naive;
use crate::support::reading::{
    IOS, all, both, committed, locate, located, open, scan, time, timed, without_records,
};

/// The log from its first record: the checkpoint in the parent directory would hide some.
fn from_first_record(partition: &Partition) -> [Log; 2] {
    let first = naive::read(&partition.dir).unwrap().segments[0].base_offset;
    IOS.map(|io| {
        let options = LogOptions { io, log_start_offset: Some(first), ..LogOptions::default() };
        Log::open(&partition.dir, options).unwrap()
    })
}

/// The log with the log start offset of the data directory's checkpoint, which is not stored next to every
/// partition of the corpus.
fn as_checkpointed(partition: &Partition) -> [Log; 2] {
    IOS.map(|io| {
        let options =
            LogOptions { io, log_start_offset: partition.log_start_offset, ..LogOptions::default() };
        Log::open(&partition.dir, options).unwrap()
    })
}

#[test]
fn batches_and_records_equal_those_that_kafka_reads() {
    let (mut partitions, mut data_records) = (0, 0);
    for partition in golden::intact() {
        let expected = golden::expected_batches(&partition.expected);
        for log in from_first_record(&partition) {
            let read = all(&log, OnDamage::Raise).whole();
            // a batch without records is skipped by a scan for records
            let with_records: Vec<_> = expected.iter().filter(|batch| !batch.records.is_empty()).collect();
            for (ours, kafkas) in read.batches.iter().zip(&with_records) {
                assert_eq!(&ours, kafkas, "{} {}", partition.case, partition.name);
            }
            assert_eq!(read.batches.len(), with_records.len(), "{} {}", partition.case, partition.name);
            assert_eq!(read.stats.records, partition.records);
            assert_eq!(read.gaps, []);

            let headers = scan(&log, ScanOptions { batches_only: true, ..ScanOptions::default() }).whole();
            let kafkas: Vec<_> = expected.iter().map(without_records).collect();
            assert_eq!(headers.batches, kafkas, "{} {}", partition.case, partition.name);
            assert_eq!((headers.stats.batches, headers.stats.batches_decompressed), (partition.batches, 0));

            let data = scan(&log, ScanOptions::default()).whole();
            assert_eq!(data.stats.records, partition.records - partition.control_records);
            data_records += data.stats.records;
        }
        partitions += 1;
    }
    assert_eq!((partitions, data_records), (52, 2 * 31_191));
}

#[test]
fn index_entries_equal_those_that_kafka_reads() {
    let mut entries = [0, 0];
    for partition in golden::intact() {
        let mut expected: [BTreeMap<i64, Vec<(i64, i64)>>; 2] = Default::default();
        for line in lines(&partition.expected.join("index.jsonl.gz")) {
            let (kind, fields) = match line["type"].as_str().unwrap() {
                "offset-index" | "offset-entry" => (0, ["offset", "position"]),
                "time-index" | "time-entry" => (1, ["timestamp", "offset"]),
                other => panic!("{other}"),
            };
            let of_segment = expected[kind].entry(number(&line["segment"])).or_default();
            if line.get("slot").is_some() {
                assert_eq!(line["slot"].as_u64().unwrap(), of_segment.len() as u64);
                of_segment.push((number(&line[fields[0]]), number(&line[fields[1]])));
            }
        }
        // the broker was killed: the zeros of a preallocated file follow the entries
        if partition.case.starts_with("14-") {
            for (kind, of_segments) in expected.iter_mut().enumerate() {
                for (base, of_segment) in of_segments {
                    let zero = if kind == 0 { (*base, 0) } else { (0, *base) };
                    while of_segment.last() == Some(&zero) {
                        of_segment.pop();
                    }
                }
            }
        }
        for log in both(&partition.dir) {
            for segment in log.segments().iter() {
                let base = segment.base_offset();
                let offsets = segment.offset_index().unwrap().map(|index| {
                    let entries = index.iter().map(|entry| entry.unwrap());
                    entries.map(|entry| (entry.offset, i64::from(entry.position))).collect::<Vec<_>>()
                });
                let times = segment.time_index().unwrap().map(|index| {
                    let entries = index.iter().map(|entry| entry.unwrap());
                    entries.map(|entry| (entry.timestamp, entry.offset)).collect::<Vec<_>>()
                });
                for (kind, ours) in [offsets, times].into_iter().enumerate() {
                    let context = format!("{} {} {base}", partition.case, partition.name);
                    assert_eq!(ours, expected[kind].get(&base).cloned(), "{context}");
                    entries[kind] += ours.unwrap_or_default().len();
                }
            }
        }
    }
    assert_eq!(entries, [2 * 1858, 2 * 1691]);
}

#[test]
fn every_index_lookup_equals_kafkas() {
    let mut answers = 0;
    for partition in golden::intact() {
        if partition.case.starts_with("14-") {
            continue; // Kafka's results include the zeros
        }
        let [mapped, read] = both(&partition.dir);
        for line in lines(&partition.expected.join("lookups.jsonl.gz")) {
            let kind = line["type"].as_str().unwrap();
            let (target, logs) = (number(&line["target"]), [&mapped, &read]);
            for (log, method) in logs.into_iter().flat_map(|log| [(log, Method::Binary), (log, Method::Warm)])
            {
                let segment = || log.segments().floor(number(&line["segment"])).unwrap();
                let ours = match kind {
                    "lookup" => {
                        let index = segment().offset_index().unwrap().unwrap();
                        let found = index.lookup(target, method).unwrap();
                        [("offset", found.offset), ("position", i64::from(found.position))]
                    }
                    "timelookup" => {
                        let index = segment().time_index().unwrap().unwrap();
                        let found = index.lookup(target, method).unwrap();
                        [("timestamp", found.timestamp), ("offset", found.offset)]
                    }
                    _ => continue,
                };
                for (field, ours) in ours {
                    assert_eq!(ours, number(&line[field]), "{} {line}", partition.case);
                }
                answers += 1;
            }
        }
    }
    assert_eq!(answers, 4 * 11_930);
}

#[test]
fn the_batch_of_an_offset_equals_the_one_kafka_finds() {
    let mut answers = 0;
    for partition in golden::intact() {
        let naive = naive::read(&partition.dir).unwrap();
        for log in from_first_record(&partition) {
            let mut targets = Vec::new();
            for answer in lines_of_type(&partition.expected.join("lookups.jsonl.gz"), "position") {
                answers += 1;
                let target = number(&answer["target"]);
                targets.push(target);
                let kafkas =
                    ["segment", "batchLastOffset", "position", "size"].map(|field| answer[field].as_i64());
                // `batchLastOffset` is Kafka 4.3.1's `LogOffsetPosition.offset`: the batch's base offset
                let kafkas = kafkas[0].map(|segment| {
                    (segment, kafkas[1].unwrap(), kafkas[2].unwrap() as u64, kafkas[3].unwrap() as u64)
                });
                match locate(&log, target) {
                    Ok(ours) => assert_eq!(ours, kafkas, "{} {answer}", partition.case),
                    Err(Error::OffsetOutOfRange { .. }) => {
                        assert!(!(log.log_start_offset()..log.log_end_offset().unwrap()).contains(&target));
                        assert_eq!(kafkas, None, "{} {answer}", partition.case);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            let many = log.locate_many(&targets).unwrap();
            for (target, ours) in targets.iter().zip(many) {
                assert_eq!(ours, log.locate(*target).ok().flatten());
            }
            for offset in log.log_start_offset()..log.log_end_offset().unwrap() {
                if offset - log.log_start_offset() > 3000 {
                    break;
                }
                assert_eq!(
                    locate(&log, offset).unwrap(),
                    located(naive.locate(offset)),
                    "{}",
                    partition.case
                );
            }
        }
    }
    assert_eq!(answers, 2 * 13_157);
}

#[test]
fn the_first_record_at_or_after_a_time_equals_the_one_kafka_finds() {
    let (mut answers, mut found, mut kafka_found_none) = (0, 0, 0);
    for partition in golden::intact() {
        let naive = naive::read(&partition.dir).unwrap();
        let times = lines_of_type(&partition.expected.join("times.jsonl.gz"), "offset-for-time");
        for log in as_checkpointed(&partition) {
            let start = log.log_start_offset();
            assert_eq!(start, partition.log_start_offset.unwrap_or(naive.segments[0].base_offset));
            let mut targets = Vec::new();
            for answer in &times {
                let target = number(&answer["target"]);
                if target < 0 {
                    assert!(matches!(log.offset_for_time(target), Err(Error::Config { .. })));
                    continue; // special values: the latest, the earliest, the largest
                }
                targets.push(target);
                answers += 1;
                let ours = time(&log, target).unwrap();
                if answer["found"] == true {
                    found += 1;
                    let kafkas = (number(&answer["timestamp"]), number(&answer["offset"]));
                    assert_eq!(ours, Some(kafkas), "{} {target}", partition.case);
                } else {
                    kafka_found_none += u32::from(ours.is_some());
                }
                assert_eq!(ours, timed(naive.offset_for_time(start, target)), "{} {target}", partition.case);
            }
            let many = log.offsets_for_times(&targets).unwrap();
            assert_eq!(many, targets.iter().map(|t| log.offset_for_time(*t).unwrap()).collect::<Vec<_>>());
        }
    }
    assert_eq!((answers, found, kafka_found_none), (2 * 35_404, 2 * 34_468, 2 * 835));
}

#[test]
fn aborted_transactions_are_those_of_the_transaction_indexes() {
    let mut aborted = 0;
    for partition in golden::intact() {
        let fields = ["producerId", "firstOffset", "lastOffset", "lastStableOffset"];
        let kafkas: Vec<_> = lines_of_type(&partition.expected.join("state.jsonl"), "aborted")
            .iter()
            .map(|line| fields.map(|field| number(&line[field])))
            .collect();
        for log in both(&partition.dir) {
            let mut ours = Vec::new();
            for segment in log.segments().iter() {
                let Some(index) = segment.transaction_index().unwrap() else { continue };
                index.sanity_check().unwrap();
                for entry in index.iter().map(|entry| entry.unwrap()) {
                    let stable = entry.last_stable_offset;
                    ours.push([entry.producer_id, entry.first_offset, entry.last_offset, stable]);
                }
            }
            assert_eq!(ours, kafkas, "{}", partition.case);
            aborted += ours.len();
        }
    }
    assert_eq!(aborted, 2 * 105);
}

#[test]
fn the_offsets_at_each_isolation_level_are_those_that_consumers_received() {
    let mut consumers = [0, 0];
    for partition in golden::intact() {
        for answer in lines_of_type(&partition.expected.join("client.jsonl"), "consumer") {
            let ranges = answer["offsets"].as_array().unwrap();
            let theirs: Vec<i64> = ranges.iter().flat_map(|r| number(&r[0])..=number(&r[1])).collect();
            let is_committed = answer["isolation"] == "read_committed";
            for log in as_checkpointed(&partition) {
                let end = number(&answer["endOffset"]);
                let read = if is_committed {
                    assert_eq!(log.last_stable_offset().unwrap(), end);
                    committed(&log, OnDamage::Raise)
                } else {
                    assert_eq!(log.log_end_offset().unwrap(), end);
                    scan(&log, ScanOptions::default())
                };
                assert_eq!(read.whole().offsets(), theirs, "{} {}", partition.case, answer["isolation"]);
                consumers[usize::from(is_committed)] += 1;
            }
        }
    }
    assert_eq!(consumers, [2 * 30, 2 * 6]);
}

#[test]
fn committed_records_are_those_with_a_commit_marker() {
    for partition in golden::intact() {
        let naive = naive::read(&partition.dir).unwrap();
        for log in as_checkpointed(&partition) {
            let offsets = log.log_start_offset()..i64::MAX;
            let isolation_level = IsolationLevel::ReadCommitted;
            for include_control in [false, true] {
                let options = ScanOptions { isolation_level, include_control, ..ScanOptions::default() };
                let ours = scan(&log, options).whole();
                let expected = naive.scan_committed(offsets.clone(), None, include_control);
                assert!(ours.records().eq(expected), "{} {include_control}", partition.case);
            }
            assert_eq!(log.last_stable_offset().unwrap(), naive.transactions().last_stable_offset);
        }
    }
}

#[test]
fn the_ends_are_those_of_a_log_opened_by_kafka() {
    let mut opened = 0;
    for partition in golden::intact() {
        for answer in lines_of_type(&partition.expected.join("open.jsonl.gz"), "open") {
            if answer["ok"] != true {
                assert_eq!(partition.case, "14-killed-preallocated-log", "{answer}");
                continue;
            }
            for log in as_checkpointed(&partition) {
                let ours = [
                    log.log_start_offset(),
                    log.log_end_offset().unwrap(),
                    log.last_stable_offset().unwrap(),
                ];
                let kafkas = ["logStartOffset", "logEndOffset", "lastStableOffset"]
                    .map(|field| number(&answer[field]));
                assert_eq!(ours, kafkas, "{} {}", partition.case, partition.name);
                if answer["clean"] == true && !partition.case.starts_with("14-") {
                    assert_segments(&log, answer["segments"].as_array().unwrap());
                }
                opened += 1;
            }
        }
    }
    assert_eq!(opened, 2 * 155);
}

/// Compares base offset, size, and the largest timestamp if a record has one (else Kafka's is the time of the
/// file).
fn assert_segments(log: &Log, kafkas: &[Value]) {
    assert_eq!(log.segments().len(), kafkas.len());
    for (ours, kafkas) in log.segments().iter().zip(kafkas) {
        assert_eq!(ours.base_offset(), number(&kafkas["base"]));
        assert_eq!(ours.size().unwrap(), kafkas["size"].as_u64().unwrap());
        let is_upgraded = ours.time_index().unwrap().is_none_or(|index| index.entries() == 0);
        if !is_upgraded {
            let largest = ours.largest_timestamp().unwrap();
            assert_eq!(largest, number(&kafkas["largestTimestamp"]), "{}", ours.path().display());
        }
    }
}

#[test]
fn the_only_warnings_are_hidden_records_and_a_tail_of_zeros() {
    let mut found = Vec::new();
    for partition in golden::intact() {
        for log in both(&partition.dir) {
            let times: Vec<i64> = (0..50).map(|i| 1_700_000_000_000 + i * 700).collect();
            log.offsets_for_times(&times).unwrap();
            let offsets: Vec<i64> =
                (log.log_start_offset()..log.log_end_offset().unwrap()).step_by(7).take(2000).collect();
            log.locate_many(&offsets).unwrap();
            all(&log, OnDamage::Raise).whole();
            log.last_stable_offset().unwrap();
            for segment in log.segments().iter() {
                segment.largest_timestamp().unwrap();
            }
            for warning in log.warnings() {
                found.push((partition.case.clone(), partition.name.clone(), warning));
            }
        }
    }
    let cases: Vec<_> = found.iter().step_by(2).map(|(case, name, _)| (&**case, &**name)).collect();
    let hidden = [("13-delete-records", "trimmed-0"), ("16-data-dir", "cities-1")];
    // the data ends at the zeros, and a tail that is not data causes a warning
    let zeros = ("14-killed-preallocated-log", "crashed-prealloc-0");
    assert_eq!(cases, [hidden[0], zeros, hidden[1]], "{found:#?}");
    assert_eq!(found.len(), 2 * 3);
}

#[test]
fn the_zeros_of_a_preallocated_log_are_the_end_of_the_data() {
    let partitions = golden::intact();
    let partition = partitions.iter().find(|p| p.case == "14-killed-preallocated-log").unwrap();
    let naive = naive::read(&partition.dir).unwrap();
    let zeros = naive.segments.last().unwrap().zero_tail;
    for io in IOS {
        let log = open(&partition.dir, io);
        assert_eq!(log.log_end_offset().unwrap(), naive.end_offset());
        for on_damage in [OnDamage::Raise, OnDamage::Skip, OnDamage::Report] {
            let read = all(&log, on_damage).whole();
            assert!(read.records().eq(naive.records()));
            assert!(read.gaps.is_empty() && read.steps.is_empty(), "zeros are not a damaged range");
        }
        let [warning] = &log.warnings()[..] else { panic!("{:?}", log.warnings()) };
        assert!(warning.contains(&zeros.to_string()), "{warning}");
    }
}

#[test]
fn the_checkpoint_of_a_data_directory_hides_records_below_its_offset() {
    let partitions = golden::intact();
    let partition = partitions.iter().find(|p| p.case == "16-data-dir" && p.name == "cities-1").unwrap();
    let naive = naive::read(&partition.dir).unwrap();
    let start = partition.log_start_offset.unwrap();
    // the case's folder is the data directory itself
    assert!(partition.dir.parent().unwrap().join("log-start-offset-checkpoint").is_file());
    for log in both(&partition.dir) {
        assert_eq!((log.log_start_offset(), start), (31, 31));
        assert_eq!((log.topic(), log.partition()), (Some("cities"), Some(1)));
        assert!(all(&log, OnDamage::Raise).whole().records().eq(naive.scan(31..i64::MAX, None, true)));
        assert!(matches!(
            log.locate(30),
            Err(Error::OffsetOutOfRange { offset: 30, log_start_offset: 31, .. })
        ));
        assert_eq!(time(&log, 0).unwrap(), timed(naive.offset_for_time(31, 0)));
        let warnings = log.warnings();
        let has_hidden = naive.segments[0].base_offset < 31;
        assert_eq!(warnings.len(), usize::from(has_hidden), "{warnings:?}");
    }
}
