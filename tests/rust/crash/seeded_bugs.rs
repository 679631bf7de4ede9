//! Bugs seeded in the writer, one at a time. One of the rigs must detect each bug, and must report nothing
//! without it.
//!
//! The bugs are the patches of `tests/seeded`. `tests/seeded_bugs.py` applies them to a copy of the tree,
//! where these tests run.

use std::collections::BTreeSet;

use cordwood::fs::mem::{FaultKind, MemoryDisk};
use cordwood::writer::FlushMode;
use cordwood::{Log, LogOptions};

use crate::compactions::compactions;
use crate::explore::{Bounds, explore, setups};
use crate::faults::{SCRIPTS, sweep};
use crate::found;
use crate::histories::{self, failed_markers};
use crate::judge::{Judge, Tally};
use crate::model::Expected;
use crate::positions::lost_commits;
use crate::script::{Before, Client, Op, Setup};
use crate::tails::cut;

/// Switches a bug on in this thread, instead of the previous one; `None`: no bug.
fn seed(bug: Option<&'static str>) {
    panic!("no bug {bug:?} here: `make seeded-bugs` runs this test in a copy of the tree that has it");
}

/// Runs a rig without and with a bug. A bug is seeded in this thread only.
fn is_caught(bug: &'static str, rig: impl Fn() -> Tally) {
    seed(None);
    rig().assert_none();
    seed(Some(bug));
    let tally = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&rig));
    seed(None);
    // an assertion in the writer may have detected the bug
    let Ok(tally) = tally else { return };
    assert!(tally.violations() > 0, "{bug} was not noticed: {}", tally.counts());
    println!("{bug}: {}\n    {}", tally.counts(), tally.examples.values().next().unwrap());
}

fn short_sequences() -> Tally {
    explore(&setups(), Bounds { length: 2, random: 2, one_of: 1 }, 1).0
}

/// Those on one log.
fn short_sequences_after(before: Before) -> Tally {
    let is_one =
        |setup: &Setup| setup.before == before && [FlushMode::Always, FlushMode::None].contains(&setup.flush);
    let setups: Vec<_> = setups().into_iter().filter(is_one).collect();
    explore(&setups, Bounds { length: 2, random: 2, one_of: 1 }, 1).0
}

fn histories() -> Tally {
    histories::run(0..8, 200)
}

fn failed_operations() -> Tally {
    sweep(&SCRIPTS[..3], &[FaultKind::InputOutput, FaultKind::NoSpace]).0
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_ack_before_fsync_is_caught() {
    is_caught("ack_before_fsync", short_sequences);
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_no_directory_sync_on_create_is_caught() {
    is_caught("no_directory_sync_on_create", short_sequences);
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_no_directory_sync_on_rename_is_caught() {
    is_caught("no_directory_sync_on_rename", short_sequences);
    is_caught("no_directory_sync_on_rename", lost_commits);
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_no_directory_sync_on_delete_is_caught() {
    is_caught("no_directory_sync_on_delete", short_sequences);
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_swapped_delete_order_is_caught() {
    is_caught("swapped_delete_order", short_sequences);
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_new_segment_before_old_flush_is_caught() {
    is_caught("new_segment_before_old_flush", short_sequences);
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_recovery_point_before_fsync_is_caught() {
    is_caught("recovery_point_before_fsync", short_sequences);
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_no_truncate_after_short_write_is_caught() {
    is_caught("no_truncate_after_short_write", failed_operations);
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_fsync_retried_after_error_is_caught() {
    is_caught("fsync_retried_after_error", failed_operations);
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_length_trusted_past_end_is_caught() {
    is_caught("length_trusted_past_end", || cut(150, 7));
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_index_entries_not_written_is_caught() {
    is_caught("index_entries_not_written", short_sequences);
}

/// If a checkpoint is lost, deleted records do not reappear; if that cannot be ensured, the log is not
/// opened.
#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_empty_checkpoint_is_zero_is_caught() {
    is_caught("empty_checkpoint_is_zero", || {
        let setup = Setup { flush: FlushMode::Always, sector: 16, before: Before::Killed };
        let mut client = Client::of(setup);
        client.apply(Op::Reopen, &mut |_| ());
        client.delete_before(2);
        client.writer = None;
        assert_eq!(client.model.start, 2);
        let mut judge = Judge::new(setup.options());
        let disk = client.disk.shown().disk();
        disk.put(".cordwood.checkpoint", b"");
        if let Ok(opened) = judge.recover(disk)
            && opened.bounds.0 < 2
        {
            judge.tally.note("invented", &|| "an empty checkpoint".to_owned(), "deleted records reappeared");
        }
        judge.tally
    });
}

/// A clean marker of an earlier close, in a log that was appended to and then torn.
#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_clean_marker_by_existence_is_caught() {
    is_caught("clean_marker_by_existence", || {
        let setup = Setup { flush: FlushMode::Always, sector: 16, before: Before::Closed };
        let mut client = Client::of(setup);
        let files = client.disk.shown().files();
        let marker = files.iter().find(|(name, _)| name == ".cordwood.clean").expect("the log was closed");
        client.apply(Op::Reopen, &mut |_| ());
        client.append(2);
        client.writer = None;
        let mut judge = Judge::new(setup.options());
        for lost in 1..40 {
            let disk = client.disk.shown().disk();
            let files = disk.shown().files();
            let (base, bytes) = *found::segments(&files).last().unwrap();
            // the last append was not acknowledged
            disk.put(&format!("{base:020}.log"), &bytes[..bytes.len() - lost]);
            disk.take(".cordwood.durable");
            for contents in [&marker.1[..], b""] {
                let disk = disk.fork();
                disk.put(".cordwood.clean", contents);
                let mut model = client.model.clone();
                model.durable -= 2;
                let place = || format!("an old marker, {lost} bytes lost");
                judge.judge_disk(disk, &[Expected::after(&model)], false, &place);
            }
        }
        judge.tally
    });
}

/// A reader that is refreshed after segments were replaced sees all of the new ones.
#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_segments_replaced_one_by_one_is_caught() {
    is_caught("segments_replaced_one_by_one", || {
        let setup = Setup { flush: FlushMode::Always, sector: 16, before: Before::Killed };
        let mut client = Client::new(MemoryDisk::new(16), setup.options());
        client.apply(Op::Reopen, &mut |_| ());
        let mut judge = Judge::new(setup.options());
        let mut log = None::<Log>;
        for op in [Op::Append, Op::Roll, Op::Append, Op::Roll, Op::Truncate, Op::Append, Op::Roll, Op::Append]
        {
            client.apply(op, &mut |_| ());
            let later = match &log {
                Some(log) => log.refresh().unwrap(),
                None => Log::open_in(client.disk.directory("/orders-0"), LogOptions::default()).unwrap(),
            };
            let files = client.disk.shown().files();
            let actual: Vec<_> = found::segments(&files).iter().map(|(base, _)| *base).collect();
            let seen: Vec<_> = later.segments().iter().map(|segment| segment.base_offset()).collect();
            if actual != seen {
                let what = format!("segments {actual:?}, a reader sees {seen:?}");
                judge.tally.note("misread", &|| format!("after {op:?}"), &what);
            }
            // the same reader is refreshed several times before it is replaced
            if log.is_none() || op == Op::Append {
                log = Some(later);
            }
        }
        judge.tally
    });
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_snapshot_before_log_sync_is_caught() {
    is_caught("snapshot_before_log_sync", || short_sequences_after(Before::Nothing));
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_no_snapshot_at_roll_is_caught() {
    is_caught("no_snapshot_at_roll", || short_sequences_after(Before::Closed));
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_stray_snapshots_kept_is_caught() {
    is_caught("stray_snapshots_kept", || short_sequences_after(Before::Closed));
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_sequence_left_out_is_caught() {
    is_caught("sequence_left_out", histories);
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_four_batches_remembered_is_caught() {
    is_caught("four_batches_remembered", histories);
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_truncated_producers_kept_is_caught() {
    is_caught("truncated_producers_kept", histories);
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_aborted_transactions_not_taken_back_is_caught() {
    is_caught("aborted_transactions_not_taken_back", failed_markers);
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_transaction_index_not_synced_is_caught() {
    is_caught("transaction_index_not_synced", || short_sequences_after(Before::Closed));
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_producer_ids_not_synced_is_caught() {
    is_caught("producer_ids_not_synced", || short_sequences_after(Before::Nothing));
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_commit_acknowledged_before_sync_is_caught() {
    is_caught("commit_acknowledged_before_sync", || short_sequences_after(Before::Nothing));
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_open_transaction_left_is_caught() {
    is_caught("open_transaction_left", || short_sequences_after(Before::Nothing));
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_aborted_records_count_is_caught() {
    is_caught("aborted_records_count", compactions);
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_replaced_before_commit_is_caught() {
    is_caught("replaced_before_commit", compactions);
}

#[test]
#[ignore = "the bug is in a copy of the tree; `make seeded-bugs` runs it"]
fn seeded_first_record_kept_is_caught() {
    is_caught("first_record_kept", compactions);
}

#[test]
fn every_seeded_bug_has_a_test() {
    let (tests, folder) = (include_str!("seeded_bugs.rs"), concat!(env!("CARGO_MANIFEST_DIR"), "/../seeded"));
    let tested: BTreeSet<_> =
        tests.split("is_caught(\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let files =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: Vec<_> = files.collect();
    let bugs: BTreeSet<_> = files
        .iter()
        .filter_map(|file| file.strip_suffix(".patch"))
        .filter(|name| *name != "switch")
        .collect();
    assert_eq!(tested, bugs);
}
