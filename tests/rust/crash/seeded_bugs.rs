//! Bugs seeded in the writer, one at a time. One of the rigs must detect each bug, and must report nothing without it.

use cordwood::fs::mem::{FaultKind, MemoryDisk};
use cordwood::fs::seeded_bugs::{SeededBug, seed};
use cordwood::writer::FlushMode;
use cordwood::{Log, LogOptions};

use crate::compactions::compactions;
use crate::explore::{Bounds, explore, setups};
use crate::faults::{SCRIPTS, sweep};
use crate::found;
use crate::histories::{self, failed_markers};
use crate::judge::{Judge, Tally};
use crate::model::Expected;
use crate::script::{Before, Client, Op, Setup};
use crate::tails::cut;

/// Runs a rig without and with a bug. A bug is seeded in this thread only.
fn is_caught(bug: SeededBug, rig: impl Fn() -> Tally) {
    seed(None);
    rig().assert_none();
    seed(Some(bug));
    let tally = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&rig));
    seed(None);
    // an assertion in the writer may have detected the bug
    let Ok(tally) = tally else { return };
    assert!(tally.violations() > 0, "{bug:?} was not noticed: {}", tally.counts());
    println!("{bug:?}: {}\n    {}", tally.counts(), tally.examples.values().next().unwrap());
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
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_ack_before_fsync_is_caught() {
    is_caught(SeededBug::AckBeforeFsync, short_sequences);
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_no_directory_sync_on_create_is_caught() {
    is_caught(SeededBug::NoDirectorySyncOnCreate, short_sequences);
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_no_directory_sync_on_rename_is_caught() {
    is_caught(SeededBug::NoDirectorySyncOnRename, short_sequences);
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_no_directory_sync_on_delete_is_caught() {
    is_caught(SeededBug::NoDirectorySyncOnDelete, short_sequences);
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_swapped_delete_order_is_caught() {
    is_caught(SeededBug::SwappedDeleteOrder, short_sequences);
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_new_segment_before_old_flush_is_caught() {
    is_caught(SeededBug::NewSegmentBeforeOldFlush, short_sequences);
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_recovery_point_before_fsync_is_caught() {
    is_caught(SeededBug::RecoveryPointBeforeFsync, short_sequences);
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_no_truncate_after_short_write_is_caught() {
    is_caught(SeededBug::NoTruncateAfterShortWrite, failed_operations);
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_fsync_retried_after_error_is_caught() {
    is_caught(SeededBug::FsyncRetriedAfterError, failed_operations);
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_length_trusted_past_end_is_caught() {
    is_caught(SeededBug::LengthTrustedPastEnd, || cut(150, 7));
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_index_entries_not_written_is_caught() {
    is_caught(SeededBug::IndexEntriesNotWritten, short_sequences);
}

/// If a checkpoint is lost, deleted records do not reappear; if that cannot be ensured, the log is not opened.
#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_empty_checkpoint_is_zero_is_caught() {
    is_caught(SeededBug::EmptyCheckpointIsZero, || {
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
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_clean_marker_by_existence_is_caught() {
    is_caught(SeededBug::CleanMarkerByExistence, || {
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
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_segments_replaced_one_by_one_is_caught() {
    is_caught(SeededBug::SegmentsReplacedOneByOne, || {
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
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_snapshot_before_log_sync_is_caught() {
    is_caught(SeededBug::SnapshotBeforeLogSync, || short_sequences_after(Before::Nothing));
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_no_snapshot_at_roll_is_caught() {
    is_caught(SeededBug::NoSnapshotAtRoll, || short_sequences_after(Before::Closed));
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_stray_snapshots_kept_is_caught() {
    is_caught(SeededBug::StraySnapshotsKept, || short_sequences_after(Before::Closed));
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_sequence_left_out_is_caught() {
    is_caught(SeededBug::SequenceLeftOut, histories);
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_four_batches_remembered_is_caught() {
    is_caught(SeededBug::FourBatchesRemembered, histories);
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_truncated_producers_kept_is_caught() {
    is_caught(SeededBug::TruncatedProducersKept, histories);
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_aborted_transactions_not_taken_back_is_caught() {
    is_caught(SeededBug::AbortedTransactionsNotTakenBack, failed_markers);
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_transaction_index_not_synced_is_caught() {
    is_caught(SeededBug::TransactionIndexNotSynced, || short_sequences_after(Before::Closed));
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_producer_ids_not_synced_is_caught() {
    is_caught(SeededBug::ProducerIdsNotSynced, || short_sequences_after(Before::Nothing));
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_commit_acknowledged_before_sync_is_caught() {
    is_caught(SeededBug::CommitAcknowledgedBeforeSync, || short_sequences_after(Before::Nothing));
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_open_transaction_left_is_caught() {
    is_caught(SeededBug::OpenTransactionLeft, || short_sequences_after(Before::Nothing));
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_aborted_records_count_is_caught() {
    is_caught(SeededBug::AbortedRecordsCount, compactions);
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_replaced_before_commit_is_caught() {
    is_caught(SeededBug::ReplacedBeforeCommit, compactions);
}

#[test]
#[ignore = "together they take a minute; `make guarantees` runs them"]
fn seeded_first_record_kept_is_caught() {
    is_caught(SeededBug::FirstRecordKept, compactions);
}

#[test]
fn every_seeded_bug_has_a_test() {
    let names = include_str!("seeded_bugs.rs");
    for bug in SeededBug::ALL {
        assert!(names.contains(&format!("is_caught(SeededBug::{bug:?},")), "{bug:?} has no test");
    }
}
