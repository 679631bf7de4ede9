//! In a log with several damaged batches a scan loses no intact batch, and a scan that begins at any offset
//! returns what a scan of the whole log returns from there.

use std::sync::OnceLock;

use cordwood::log::{OnDamage, Ranges, ScanOptions};
use proptest::prelude::*;

use crate::support::batches::{BatchV2, Built, Rec};
use crate::support::fixed_seed;
use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::reading::{both, folder, scan};

const COUNT: i64 = 24;
const BATCH: i64 = 10;

fn whole_batches() -> Vec<Built> {
    static BATCHES: OnceLock<Vec<Built>> = OnceLock::new();
    let batch = |n: i64| {
        // keys that look like base offsets
        let record = |offset: i64| Rec::at(offset).key(offset.to_be_bytes()).value([0; 300]);
        BatchV2::new(BATCH * n).records((BATCH * n..BATCH * (n + 1)).map(record)).build()
    };
    BATCHES.get_or_init(|| (0..COUNT).map(batch).collect()).clone()
}

/// Damages batches, each given with a byte and a bit, and compares scans from every batch.
fn compare(damage: &[(usize, usize, u8)]) {
    let folder = folder();
    let mut batches = whole_batches();
    for (batch, byte, bit) in damage {
        batches[*batch].bytes[*byte] ^= 1 << bit;
    }
    let dir = PartitionBuilder::rolled(Indexing::every(4096), 40_000, batches).write(folder.path(), "t-0");
    for log in both(&dir) {
        let from = |start_offset| {
            let ranges = Ranges { start_offset: Some(start_offset), ..Ranges::default() };
            let options = ScanOptions { on_damage: OnDamage::Skip, ranges, ..ScanOptions::default() };
            scan(&log, options).whole().offsets()
        };
        let whole = from(0);
        let is_intact = |offset: &i64| damage.iter().all(|(batch, ..)| *batch as i64 != offset / BATCH);
        let intact: Vec<i64> = (0..COUNT * BATCH).filter(is_intact).collect();
        let lost: Vec<_> = intact.iter().filter(|offset| !whole.contains(offset)).collect();
        assert!(lost.is_empty(), "lost {lost:?}");
        for start in (0..log.log_end_offset().unwrap()).step_by(5) {
            let expected: Vec<i64> = whole.iter().copied().filter(|offset| *offset >= start).collect();
            assert_eq!(from(start), expected, "from {start}");
        }
    }
}

#[test]
fn a_wrong_length_before_another_damaged_batch_hides_no_batch() {
    compare(&[(6, 8, 0), (7, 17, 0)]);
}

#[test]
fn a_wrong_last_offset_before_a_damaged_batch_hides_no_batch() {
    for n in 1..23 {
        // the delta of the last offset, then the length
        compare(&[(n, 25, 0), (n + 1, 10, 2)]);
    }
}

/// Not in the base offset and the leader epoch, which no checksum covers: they are compared with those of the
/// batches before, and a scan that begins there has none.
fn damage() -> impl Strategy<Value = Vec<(usize, usize, u8)>> {
    let byte = prop_oneof![8..12usize, 16..61usize, 100..3000usize];
    proptest::collection::vec((0..24usize, byte, 0..8u8), 1..12)
}

proptest! {
    #![proptest_config(fixed_seed(60))]

    #[test]
    fn no_intact_batch_is_lost_wherever_a_scan_begins(damage in damage()) {
        compare(&damage);
    }
}
