//! Committed reads, for any history of transactions and any state of the `.txnindex`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cordwood::Error;
use cordwood::log::{DamagedRange, OnDamage, Ranges, ScanOptions};
use cordwood::types::{Io, IsolationLevel};
use proptest::prelude::*;

use crate::support::batches::{ABORT, BatchV2, Built, COMMIT, Rec};
use crate::support::naive;
use crate::support::partition::{Indexing, PartitionBuilder, file_name};
use crate::support::reading::{IOS, both, committed, folder, open, read, scan};
use crate::support::{fixed_seed, step};

#[derive(Debug, Clone, Copy)]
enum Op {
    /// Records of a producer in a transaction, and their number.
    Data(i64, usize),
    /// The number of records outside of transactions.
    Plain(usize),
    End(i64, i16),
    /// The control record that a leader writes when it is elected.
    LeaderChange,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (1i64..5, 1usize..4).prop_map(|(producer, count)| Op::Data(producer, count)),
        2 => (1usize..4).prop_map(Op::Plain),
        1 => (1i64..5).prop_map(|producer| Op::End(producer, ABORT)),
        1 => (1i64..5).prop_map(|producer| Op::End(producer, COMMIT)),
        1 => Just(Op::LeaderChange),
    ]
}

fn build(ops: &[Op]) -> Vec<Built> {
    let mut built: Vec<Built> = Vec::new();
    for op in ops {
        let base = built.last().map_or(0, Built::next_offset);
        let records = |count| (0..count).map(|n| Rec::at(1000 + base + n as i64).value([n as u8; 9]));
        built.push(match *op {
            Op::Data(producer, count) => {
                BatchV2::new(base).transaction(producer, 0, 0).records(records(count)).build()
            }
            Op::Plain(count) => BatchV2::new(base).producer(7, 0, 0).records(records(count)).build(),
            Op::End(producer, kind) => BatchV2::marker(base, kind, producer, 0, 1000 + base).build(),
            Op::LeaderChange => BatchV2::new(base).control(2, 1000 + base, [0; 6]).build(),
        });
    }
    built
}

fn of_extension(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

proptest! {
    #![proptest_config(fixed_seed(100))]

    #[test]
    fn committed_reads_are_those_that_the_markers_allow(
        ops in proptest::collection::vec(op(), 1..40),
        segment_bytes in 150usize..2000,
        txnindex in 0u8..4,
        ends in (any::<proptest::sample::Index>(), any::<proptest::sample::Index>()),
        include_control in any::<bool>(),
    ) {
        let parent = folder();
        let dir = PartitionBuilder::rolled(Indexing::every(200), segment_bytes, build(&ops)).write(parent.path(), "t-0");
        for path in of_extension(&dir, "txnindex") {
            match txnindex {
                0 => {}
                1 => std::fs::remove_file(path).unwrap(),
                2 => std::fs::write(path, [0xaa; 100]).unwrap(),
                _ => std::fs::write(path, []).unwrap(),
            }
        }
        let naive = naive::read(&dir).unwrap();
        let transactions = naive.transactions();
        let end = naive.end_offset();
        let (a, b) = (ends.0.index(end as usize + 1) as i64, ends.1.index(end as usize + 1) as i64);
        for log in both(&dir) {
            prop_assert_eq!(log.last_stable_offset().unwrap(), transactions.last_stable_offset);
            for (start, end) in [(0, end), (a.min(b), a.max(b))] {
                for on_damage in [OnDamage::Raise, OnDamage::Skip] {
                    let ranges = Ranges { start_offset: Some(start), end_offset: Some(end), ..Ranges::default() };
                    let isolation_level = IsolationLevel::ReadCommitted;
                    let options = ScanOptions { ranges, isolation_level, include_control, on_damage, ..ScanOptions::default() };
                    let whole = scan(&log, options).whole();
                    prop_assert!(whole.records().eq(naive.scan_committed(start..end, None, include_control)));
                    // the same in splits
                    let mut records = Vec::new();
                    let mut from_split = Vec::new();
                    for split in log.plan(200, &options).unwrap() {
                        let unrestricted = ScanOptions { ranges: Ranges::default(), ..options };
                        prop_assert!(split.aborted.is_some());
                        from_split.extend(read(open(&dir, Io::Pread).scan_split(&split, unrestricted)).whole().records().cloned());
                        let options = ScanOptions { ranges: split.ranges(), ..options };
                        records.extend(scan(&log, options).whole().records().cloned());
                    }
                    prop_assert!(records.iter().eq(naive.scan_committed(start..end, None, include_control)));
                    prop_assert_eq!(from_split, records);
                }
            }
            prop_assert!(log.warnings().is_empty(), "{:?}", log.warnings());
        }
    }
}

/// Aborted and committed transactions of three producers, sequential and overlapping.
fn history() -> Vec<Built> {
    use Op::{Data, End, Plain};
    build(&[
        Data(1, 2),
        Plain(1),
        Data(2, 1),
        Data(1, 1),
        End(1, ABORT),
        Data(2, 1),
        Data(1, 1),
        End(2, COMMIT),
        Plain(1),
        Data(3, 2),
        End(1, COMMIT),
        Data(3, 1),
        Data(2, 1),
        End(3, ABORT),
        Data(3, 1),
        End(3, COMMIT),
        End(2, ABORT),
        Plain(2),
        Data(2, 1),
        End(2, COMMIT),
    ])
}

#[test]
fn no_flipped_bit_makes_aborted_records_visible() {
    let (mut flips, mut errors, mut same, thirds) = (0, 0, 0, step(3));
    for segment_bytes in [100_000, 700] {
        let parent = folder();
        let builder = PartitionBuilder::rolled(Indexing::every(300), segment_bytes, history());
        let dir = builder.write(parent.path(), "t-0");
        let naive = naive::read(&dir).unwrap();
        let aborted = naive.transactions().aborted;
        let expected: BTreeSet<i64> =
            naive.scan_committed(0..i64::MAX, None, false).map(|r| r.offset).collect();
        assert!(aborted.len() > 5 && expected.len() > 8);
        for batch in &naive.batches {
            let path = dir.join(file_name(batch.segment, "log"));
            let whole = std::fs::read(&path).unwrap();
            // in several segments, every third one
            let step = if segment_bytes == 700 { step(3) } else { 1 };
            for bit in (0..batch.size as usize * 8).step_by(step) {
                let mut damaged = whole.clone();
                damaged[batch.position as usize + bit / 8] ^= 0x80 >> (bit % 8);
                std::fs::write(&path, &damaged).unwrap();
                let log = open(&dir, IOS[bit % 2]);
                for on_damage in [OnDamage::Raise, OnDamage::Skip] {
                    // the marker may be after the range
                    let ends = [None, Some(batch.base_offset), Some(batch.base_offset / 2)];
                    for end in ends.into_iter().skip(bit / 2 % thirds).step_by(thirds) {
                        let ranges = Ranges { end_offset: end, ..Ranges::default() };
                        let isolation_level = IsolationLevel::ReadCommitted;
                        let read = scan(
                            &log,
                            ScanOptions { ranges, isolation_level, on_damage, ..ScanOptions::default() },
                        );
                        let got = read.offsets();
                        let context = format!(
                            "batch {} bit {bit} {end:?} {on_damage:?} {:#?}",
                            batch.base_offset, read.gaps
                        );
                        assert!(got.iter().all(|offset| !aborted.contains(offset)), "{context}: {got:?}");
                        // the undetected flips of the last batch's offset do no harm: it is a marker
                        assert!(got.iter().all(|offset| expected.contains(offset)), "{context}: {got:?}");
                        match &read.error {
                            Some(Error::Corrupt { .. }) if on_damage == OnDamage::Raise => errors += 1,
                            Some(error) => panic!("{context}: {error}"),
                            None => same += usize::from(got.len() == expected.len()),
                        }
                        flips += 1;
                    }
                }
            }
            std::fs::write(&path, &whole).unwrap();
        }
    }
    assert!(errors > flips / 10 && same > 0, "{flips} {errors} {same}");
}

#[test]
fn damage_that_destroys_a_marker_is_an_error_unless_the_index_has_its_outcome() {
    for (n, has_index) in [true, false].into_iter().enumerate() {
        let parent = folder();
        let builder = PartitionBuilder::rolled(Indexing::every(300), 100_000, history());
        let dir = builder.write(parent.path(), &format!("t-{n}"));
        if !has_index {
            for path in of_extension(&dir, "txnindex") {
                std::fs::remove_file(path).unwrap();
            }
        }
        let naive = naive::read(&dir).unwrap();
        let expected: Vec<i64> = naive.scan_committed(0..i64::MAX, None, false).map(|r| r.offset).collect();
        let markers = naive.batches.iter().filter(|batch| batch.control);
        for marker in markers {
            let is_abort = matches!(marker.records[0].control, Some(naive::Control::Abort { .. }));
            let path = dir.join(file_name(0, "log"));
            let whole = std::fs::read(&path).unwrap();
            let mut damaged = whole.clone();
            damaged[marker.position as usize + 70] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            let is_last = marker.last_offset + 1 == naive.end_offset();
            for log in both(&dir) {
                let raised = committed(&log, OnDamage::Raise);
                assert!(is_last || matches!(raised.error, Some(Error::Corrupt { .. })), "{raised:?}");
                match log.last_stable_offset() {
                    Err(Error::Corrupt { .. }) => {}
                    // an index that contains the abort replaces the marker
                    stable => {
                        assert!(is_last || has_index && is_abort && stable.unwrap() == naive.end_offset());
                    }
                }
                let read = committed(&log, OnDamage::Skip).whole();
                let skipped = read.offsets();
                if has_index && is_abort {
                    assert_eq!(skipped, expected, "marker {}", marker.base_offset);
                }
                assert!(skipped.iter().all(|offset| expected.contains(offset)), "{skipped:?}");
                // missing records below the last one returned are reported
                let below = skipped.last().copied().unwrap_or(0);
                for lost in expected.iter().filter(|offset| **offset < below && !skipped.contains(offset)) {
                    let is_in = |gap: &DamagedRange| {
                        gap.start_offset <= *lost && gap.end_offset.is_none_or(|end| *lost < end)
                    };
                    assert!(read.gaps.iter().any(is_in), "{lost}: {:?}", read.gaps);
                }
            }
            std::fs::write(&path, &whole).unwrap();
        }
    }
}
