//! Batches above `max_batch_bytes`: a warning of `verify`, or an error where more than their records was not
//! checked, and nothing that `repair` changes.

use std::path::{Path, PathBuf};

use cordwood::inspect::repair::{RepairOptions, RepairPolicy, plan_repair};
use cordwood::inspect::verify::{Rule, Severity, VerifyOptions};
use cordwood::types::Io;

use super::{deep, verified};
use crate::support::batches::{BatchV2, Codec, MessageSet, Rec};

use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::reading::{IOS, folder};

fn record(offset: i64, size: usize) -> Rec {
    Rec::at(1000 + offset).value(vec![b'x'; size])
}

fn records(offset: i64, size: usize) -> [Rec; 2] {
    [offset, offset + 1].map(|offset| record(offset, size))
}

/// Offsets 0 and 1, then 2 and 3 in a large batch, then 4 and 5.
fn partition(parent: &Path, magic: u8, codec: Codec) -> PathBuf {
    let batch = |offset, size| match magic {
        2 => BatchV2::new(offset).leader_epoch(-1).codec(codec).records(records(offset, size)).build(),
        _ => MessageSet::v1(offset).codec(codec).records(records(offset, size)).build().remove(0),
    };
    let built = [batch(0, 100), batch(2, 20_000), batch(4, 100)];
    PartitionBuilder::new(Indexing::every(1))
        .segment(0, built)
        .write(parent, &format!("m{magic}-{codec:?}-0"))
}

fn limited(io: Io) -> VerifyOptions {
    VerifyOptions { max_batch_bytes: 10_000, ..deep(io) }
}

#[test]
fn a_batch_above_the_limit_is_a_warning_and_every_other_batch_is_checked() {
    let folder = folder();
    for codec in [Codec::None, Codec::Gzip, Codec::SnappyXerial, Codec::Lz4, Codec::Zstd] {
        let path = partition(folder.path(), 2, codec);
        for io in IOS {
            assert_eq!(verified(&path, &deep(io)).findings, [], "{codec:?}");
            let found = verified(&path, &limited(io));
            let rules: Vec<_> =
                found.findings.iter().map(|finding| (finding.rule, finding.severity)).collect();
            assert_eq!(rules, [(Rule::BatchTooLarge, Severity::Warning)], "{codec:?}: {:?}", found.findings);
            let finding = &found.findings[0];
            assert_eq!((finding.start_offset, finding.end_offset), (Some(2), Some(4)), "{codec:?}");
            assert!(finding.expected.contains("10000"), "{}", finding.expected);
            assert!(found.is_intact() && found.batches_checked == 3, "{codec:?}");
        }
    }
}

#[test]
fn damage_after_a_batch_of_one_record_above_the_limit_is_found() {
    let folder = folder();
    let batch = |offset, size| BatchV2::new(offset).leader_epoch(-1).records([record(offset, size)]).build();
    let mut damaged = batch(2, 10);
    *damaged.bytes.last_mut().unwrap() ^= 1;
    let path = PartitionBuilder::new(Indexing::every(1))
        .segment(0, [batch(0, 10), batch(1, 20_000), damaged, batch(3, 10)])
        .write(folder.path(), "one-0");
    for io in IOS {
        for is_deep in [false, true] {
            let found = verified(&path, &VerifyOptions { is_deep, ..limited(io) });
            let rules: Vec<_> = found.findings.iter().map(|finding| finding.rule).collect();
            let large = is_deep.then_some(Rule::BatchTooLarge);
            let expected: Vec<_> = large.into_iter().chain([Rule::DamagedBatch]).collect();
            assert_eq!(rules, expected);
            assert!(!found.is_intact() && found.batches_checked == 3);
        }
    }
}

#[test]
fn a_segment_that_is_not_checked_because_of_a_wrapper_above_the_limit_is_not_intact() {
    let folder = folder();
    for codec in [Codec::Gzip, Codec::SnappyXerial, Codec::Lz4] {
        let path = partition(folder.path(), 1, codec);
        for io in IOS {
            assert_eq!(verified(&path, &deep(io)).findings, [], "{codec:?}");
            let found = verified(&path, &limited(io));
            let rules: Vec<_> =
                found.findings.iter().map(|finding| (finding.rule, finding.severity)).collect();
            assert_eq!(rules, [(Rule::BatchTooLarge, Severity::Error)], "{codec:?}: {:?}", found.findings);
            assert!(!found.is_intact() && found.segments_checked == 0, "{codec:?}");
        }
    }
}

#[test]
fn a_repair_leaves_a_batch_above_the_default_limit() {
    let folder = folder();
    // 200 MB of one letter
    let large = BatchV2::new(2).leader_epoch(-1).codec(Codec::Gzip).records(records(2, 100_000_000)).build();
    let small = BatchV2::new(0).leader_epoch(-1).records(records(0, 10)).build();
    let path =
        PartitionBuilder::new(Indexing::every(1)).segment(0, [small, large]).write(folder.path(), "zeros-0");
    let found = verified(&path, &deep(Io::Pread));
    let rules: Vec<_> = found.findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, [Rule::BatchTooLarge]);
    let raised = VerifyOptions { max_batch_bytes: 1 << 28, ..deep(Io::Pread) };
    assert_eq!(verified(&path, &raised).findings, []);
    for policy in RepairPolicy::ALL {
        let plan = plan_repair(&path, &RepairOptions { policy, ..RepairOptions::default() }).unwrap();
        assert_eq!((plan.lost_ranges.len(), plan.kept_batches), (0, 2), "{:?}", plan.actions);
    }
}
