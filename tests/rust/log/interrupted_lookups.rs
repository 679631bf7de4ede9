//! An interrupt ends a look-up wherever it occurs: no part of it takes the interrupt for damage and
//! continues.

use std::cell::Cell;

use cordwood::types::Interrupt;
use cordwood::{Error, Log, LogOptions};

use crate::support::batches::{BatchV2, Rec};
use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::reading::{IOS, folder};

/// Returns an offset.
type LookUp = dyn Fn(&Log) -> Result<i64, Error>;

thread_local! {
    /// The checks before the one that stops.
    static LEFT: Cell<u32> = const { Cell::new(u32::MAX) };
}

fn stop_after_the_last() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let left = LEFT.get();
    LEFT.set(left.wrapping_sub(1));
    if left == 0 { Err("stop".into()) } else { Ok(()) }
}

#[test]
fn each_check_of_an_interrupt_in_a_look_up_ends_it() {
    let parent = folder();
    let batch = |offset: i64| BatchV2::new(offset).record(Rec::at(offset * 10).value([b'v'; 50])).build();
    // several batches for each entry of an index
    let dir = PartitionBuilder::new(Indexing::every(400))
        .segment(0, (0..40).map(batch))
        .segment(40, (40..80).map(batch))
        .write(parent.path(), "t-0");
    let by_time = |log: &Log| log.offset_for_time(275).map(|found| found.unwrap().offset);
    let by_offset = |log: &Log| log.locate(28).map(|found| found.unwrap().batch_base_offset);
    let many = |log: &Log| log.locate_many(&[28]).map(|found| found[0].unwrap().batch_base_offset);
    let many_times = |log: &Log| log.offsets_for_times(&[275]).map(|found| found[0].unwrap().offset);
    let look_ups: [&LookUp; 4] = [&by_time, &by_offset, &many, &many_times];
    for io in IOS {
        for (look_up, min_checks) in look_ups.into_iter().zip([10, 1, 1, 10]) {
            let stopped_after = |checks: u32| {
                LEFT.set(u32::MAX);
                let options =
                    LogOptions { io, interrupt: Interrupt(stop_after_the_last), ..LogOptions::default() };
                let log = Log::open(&dir, options).unwrap();
                LEFT.set(checks);
                let found = look_up(&log);
                let checks = checks.wrapping_sub(LEFT.get());
                LEFT.set(u32::MAX);
                (found, checks, log.warnings())
            };
            let (found, checks, _) = stopped_after(u32::MAX);
            assert_eq!(found.unwrap(), 28);
            assert!(checks >= min_checks, "{io:?}: {checks}");
            for before in 0..checks {
                let (found, _, warnings) = stopped_after(before);
                assert!(
                    matches!(found, Err(Error::Interrupted(_))),
                    "{io:?} {before} of {checks}: {found:?}"
                );
                assert_eq!(warnings, [""; 0]);
            }
        }
    }
}
