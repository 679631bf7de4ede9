//! The builder's indexes equal those that a broker of 4.3.1 wrote for the same batches.

use std::fs;

use crate::support::batches::{ABORT, Built, COMMIT};
use crate::support::golden::{self, Partition};
use crate::support::naive::{self, Control, Log};
use crate::support::partition::{Indexing, file_name, segment_files};

/// The batches of a segment as if the builder had built them.
fn built(partition: &Partition, log: &Log, segment: i64) -> Vec<Built> {
    let bytes = fs::read(partition.dir.join(file_name(segment, "log"))).unwrap();
    log.batches
        .iter()
        .filter(|batch| batch.segment == segment)
        .map(|batch| Built {
            bytes: bytes[batch.position as usize..][..batch.size as usize].to_vec(),
            base_offset: batch.base_offset,
            last_offset: batch.last_offset,
            max_timestamp: batch.max_timestamp,
            producer_id: batch.producer_id,
            is_transactional: batch.transactional,
            control: batch.records.first().and_then(|record| record.control.as_ref()).map(|control| {
                match control {
                    Control::Abort { .. } => ABORT,
                    Control::Commit { .. } => COMMIT,
                    Control::Other { kind } => *kind,
                }
            }),
        })
        .collect()
}

fn index_interval_bytes(partition: &Partition) -> usize {
    let settings = &partition.manifest["settings"];
    let topic = partition.name.rsplit_once('-').unwrap().0;
    let setting = settings.get(topic).unwrap_or(settings).get("index.interval.bytes");
    setting.map_or(4096, |bytes| bytes.as_str().unwrap().parse().unwrap())
}

#[test]
fn indexes_are_built_as_by_kafka() {
    let (mut same, mut different) = (0, Vec::new());
    for partition in golden::intact() {
        if partition.manifest["kafka"] != "4.3.1" {
            continue; // older versions index by append, not by batch
        }
        let log = naive::read(&partition.dir).unwrap();
        for (i, segment) in log.segments.iter().enumerate() {
            let mut indexing = Indexing::every(index_interval_bytes(&partition));
            let file = |extension| {
                fs::read(partition.dir.join(file_name(segment.base_offset, extension))).unwrap_or_default()
            };
            let (index, time_index) = (file("index"), file("timeindex"));
            if partition.case.starts_with("14-") && i + 1 == log.segments.len() {
                indexing.preallocated_bytes = Some(index.len());
            }
            let batches = built(&partition, &log, segment.base_offset);
            let files = segment_files(segment.base_offset, &batches, indexing);
            if files.index == index && files.time_index == time_index {
                same += 1;
            } else {
                different.push((partition.case.clone(), segment.base_offset));
            }
        }
    }
    // a restart of the broker resets the count of bytes
    assert_eq!(different, [("19-leader-epochs".to_owned(), 172)]);
    assert_eq!(same, 359);
}
