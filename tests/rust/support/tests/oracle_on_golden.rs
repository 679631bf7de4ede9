//! The naive reader, which is the oracle for the crate, has the same results as Kafka's own classes on every
//! intact partition of the corpus.

use crate::support::golden::{self, Partition, lines_of_type, number};
use crate::support::naive::{self, Log};

fn read(partition: &Partition) -> Log {
    naive::read(&partition.dir).unwrap_or_else(|irregular| panic!("{}: {irregular}", partition.case))
}

fn log_start_offset(partition: &Partition, log: &Log) -> i64 {
    partition.log_start_offset.unwrap_or_else(|| log.segments[0].base_offset)
}

#[test]
fn every_batch_and_record_equals_that_of_kafka() {
    let (mut cases, mut partitions, mut data_records) = (Vec::new(), 0, 0);
    for partition in golden::intact() {
        let log = read(&partition);
        let expected = golden::expected_batches(&partition.expected);
        for (ours, kafkas) in log.batches.iter().zip(&expected) {
            assert_eq!(ours, kafkas, "{} {}", partition.case, partition.name);
        }
        assert_eq!(log.batches.len(), expected.len(), "{} {}", partition.case, partition.name);
        let records = log.records().count() as u64;
        let control_records = log.records().filter(|record| record.control.is_some()).count() as u64;
        assert_eq!(log.batches.len() as u64, partition.batches, "{}", partition.case);
        assert_eq!(records, partition.records, "{}", partition.case);
        assert_eq!(control_records, partition.control_records, "{}", partition.case);
        cases.push(partition.case);
        partitions += 1;
        data_records += records - control_records;
    }
    cases.dedup();
    assert_eq!((cases.len(), partitions, data_records), (47, 52, 31_191));
}

#[test]
fn only_the_preallocated_log_ends_in_zeros() {
    for partition in golden::intact() {
        let zeros: u64 = read(&partition).segments.iter().map(|segment| segment.zero_tail).sum();
        let expected = if partition.case == "14-killed-preallocated-log" { 60_619 } else { 0 };
        assert_eq!(zeros, expected, "{}", partition.case);
    }
}

#[test]
fn the_first_record_at_or_after_a_time_is_the_one_that_kafka_finds() {
    let (mut answers, mut found, mut gave_up) = (0, 0, 0);
    for partition in golden::intact() {
        let log = read(&partition);
        let start = log_start_offset(&partition, &log);
        for answer in lines_of_type(&partition.expected.join("times.jsonl.gz"), "offset-for-time") {
            let target = number(&answer["target"]);
            if target < 0 {
                continue; // special targets: latest, earliest, largest timestamp
            }
            answers += 1;
            let ours = log.offset_for_time(start, target).map(|record| (record.timestamp, record.offset));
            if answer["found"] == true {
                found += 1;
                let kafkas = (number(&answer["timestamp"]), number(&answer["offset"]));
                assert_eq!(ours, Some(kafkas), "{} {target}", partition.case);
            } else if ours.is_some() {
                // Kafka stops at the first segment whose largest timestamp it takes from the file's
                // modification time: a segment without a time index, or one that compaction
                // emptied
                assert!(["17-upgraded", "16-data-dir"].contains(&&*partition.case), "{answer}");
                gave_up += 1;
            }
        }
    }
    assert_eq!((answers, found, gave_up), (35_404, 34_468, 835));
}

#[test]
fn the_batch_of_an_offset_is_the_one_that_kafka_finds() {
    let mut answers = 0;
    for partition in golden::intact() {
        let log = read(&partition);
        let first = log.segments[0].base_offset;
        for answer in lines_of_type(&partition.expected.join("lookups.jsonl.gz"), "position") {
            answers += 1;
            let target = number(&answer["target"]);
            // `batchLastOffset` is Kafka 4.3.1's `LogOffsetPosition.offset`: the batch's base offset
            let kafkas =
                ["segment", "position", "size", "batchLastOffset"].map(|field| answer[field].as_i64());
            let ours = log
                .locate(target)
                .filter(|_| target >= first)
                .map(|batch| [batch.segment, batch.position as i64, batch.size as i64, batch.base_offset]);
            assert_eq!(ours.map(|ours| ours.map(Some)).unwrap_or_default(), kafkas, "{answer}");
        }
    }
    assert_eq!(answers, 13_157);
}

#[test]
fn the_offsets_under_each_isolation_level_are_those_of_kafkas_consumers() {
    let mut consumers = [0, 0];
    for partition in golden::intact() {
        let log = read(&partition);
        for answer in lines_of_type(&partition.expected.join("client.jsonl"), "consumer") {
            let ranges = answer["offsets"].as_array().unwrap();
            let theirs: Vec<i64> = ranges.iter().flat_map(|r| number(&r[0])..=number(&r[1])).collect();
            let all = number(&answer["beginningOffset"])..i64::MAX;
            let committed = answer["isolation"] == "read_committed";
            let ours: Vec<i64> = if committed {
                assert_eq!(log.transactions().last_stable_offset, number(&answer["endOffset"]));
                log.scan_committed(all, None, false).map(|record| record.offset).collect()
            } else {
                assert_eq!(log.end_offset(), number(&answer["endOffset"]));
                log.scan(all, None, false).map(|record| record.offset).collect()
            };
            assert_eq!(ours, theirs, "{} {answer}", partition.case);
            consumers[usize::from(committed)] += 1;
        }
    }
    assert_eq!(consumers, [30, 6]);
}

#[test]
fn the_end_and_the_last_stable_offset_are_those_of_a_log_opened_by_kafka() {
    let mut opened = 0;
    for partition in golden::intact() {
        let log = read(&partition);
        for answer in lines_of_type(&partition.expected.join("open.jsonl.gz"), "open") {
            if answer["ok"] == true {
                let kafkas = (number(&answer["logEndOffset"]), number(&answer["lastStableOffset"]));
                let ours = (log.end_offset(), log.transactions().last_stable_offset);
                assert_eq!(ours, kafkas, "{}", partition.case);
                opened += 1;
            } else {
                assert_eq!(partition.case, "14-killed-preallocated-log", "{answer}");
            }
        }
    }
    assert_eq!(opened, 155);
}

#[test]
fn aborted_transactions_are_those_of_the_transaction_indexes() {
    let mut aborted = 0;
    for partition in golden::intact() {
        let kafkas: Vec<_> = lines_of_type(&partition.expected.join("state.jsonl"), "aborted")
            .iter()
            .map(|line| ["producerId", "firstOffset", "lastOffset"].map(|field| number(&line[field])))
            .map(|[producer_id, first, last]| (producer_id, first, last))
            .collect();
        let ours = read(&partition).transactions().aborted_ranges;
        if partition.case == "12-compacted-empty" {
            // the data was removed; the marker and its index entry still exist
            assert_eq!((ours.len(), kafkas.len()), (0, 1));
            continue;
        }
        assert_eq!(ours, kafkas, "{}", partition.case);
        aborted += ours.len();
    }
    assert_eq!(aborted, 104);
}
