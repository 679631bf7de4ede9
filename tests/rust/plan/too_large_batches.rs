//! Filters of offsets beside batches above `maxLogBatchBytes`: an error only where such a batch can have a
//! record that is asked for.

use serde_json::json;

use crate::support::batches::{BatchV2, Built, Codec, Rec};
use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::planning::{COLUMNS, OFFSET, asked, cache, run_json};
use crate::support::reading::folder;

fn batch(base: i64, codec: Codec, size: usize, last_offset_delta: i32) -> Built {
    let records = (0..3).map(|delta| Rec::at(1000).value(vec![b'x'; size]).delta(delta));
    BatchV2::new(base).codec(codec).records(records).last_offset_delta(last_offset_delta).build()
}

/// Offsets 0 to 2 in a small batch, 3 to 5 in a large one, 6 to 8 in a small one, of which the filter asks
/// for some; the first offset that is returned, `None` for an error.
fn first_of(codec: Codec, last_offset_delta: i32, operator: &str, value: i64) -> Option<i64> {
    let folder = folder();
    let large = batch(3, codec, 20_000, last_offset_delta);
    let dir = PartitionBuilder::new(Indexing::every(4096))
        .segment(0, [batch(0, Codec::None, 10, 2), large, batch(6, Codec::None, 10, 2)])
        .write(folder.path(), "orders-0");
    let mut asked =
        asked(&dir, &[("columns", COLUMNS), ("cleanupPolicy", "compact"), ("maxLogBatchBytes", "10000")]);
    asked["filters"] = json!([{ "column": "offset", "op": operator, "value": value }]);
    let found = run_json(&cache(), &asked);
    if let Some(error) = found.error {
        assert!(error.to_string().contains("CORDWOOD_BATCH_TOO_LARGE"), "{error}");
        return None;
    }
    let offsets: Vec<i64> = found.rows().iter().map(|row| row[OFFSET].int()).collect();
    offsets.first().copied()
}

#[test]
fn a_batch_below_the_offset_of_a_filter_may_be_too_large() {
    for codec in [Codec::None, Codec::Zstd] {
        for (operator, value, first) in
            [(">=", 6, Some(6)), (">", 5, Some(6)), ("=", 7, Some(7)), (">=", 8, Some(8)), ("<", 3, Some(0))]
        {
            assert_eq!(first_of(codec, 2, operator, value), first, "{codec:?} {operator} {value}");
        }
        for (operator, value) in [(">=", 5), (">", 4), ("=", 3), ("<", 4)] {
            assert_eq!(first_of(codec, 2, operator, value), None, "{codec:?} {operator} {value}");
        }
    }
}

/// As an old client wrote it, with one offset for three records, which may be above its last offset.
#[test]
fn a_too_large_batch_with_fewer_offsets_than_records_may_have_those_that_are_asked_for() {
    assert_eq!(first_of(Codec::None, 0, ">=", 6), None);
}
