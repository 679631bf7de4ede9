//! Filters of offsets beside batches above `maxLogBatchBytes`: an error only where such a batch can have a
//! record that is asked for.

use serde_json::json;

use crate::support::batches::{BatchV2, Codec, Rec};
use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::planning::{COLUMNS, OFFSET, asked, cache, run_json};
use crate::support::reading::folder;

fn batch(base: i64, codec: Codec, size: usize, deltas: [i32; 3]) -> BatchV2 {
    let records = deltas.map(|delta| Rec::at(1000).value(vec![b'x'; size]).delta(delta));
    BatchV2::new(base).codec(codec).records(records)
}

/// Offsets 0 to 2 in a small batch, 3 to 5 in a large one, 6 to 8 in a small one, of which the filter asks
/// for some; the first offset that is returned, `None` for an error.
fn first_of(large: &BatchV2, operator: &str, value: i64) -> Option<i64> {
    let folder = folder();
    let small = |base| batch(base, Codec::None, 10, [0, 1, 2]).build();
    let dir = PartitionBuilder::new(Indexing::every(4096))
        .segment(0, [small(0), large.build(), small(6)])
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
fn a_compressed_batch_below_the_offset_of_a_filter_may_be_too_large() {
    let large = batch(3, Codec::Zstd, 20_000, [0, 1, 2]);
    for (operator, value, first) in
        [(">=", 6, Some(6)), (">", 5, Some(6)), ("=", 7, Some(7)), (">=", 8, Some(8)), ("<", 3, Some(0))]
    {
        assert_eq!(first_of(&large, operator, value), first, "{operator} {value}");
    }
    for (operator, value) in [(">=", 5), (">", 4), ("=", 3), ("<", 4)] {
        assert_eq!(first_of(&large, operator, value), None, "{operator} {value}");
    }
}

/// A broker stores them as clients wrote them: with one offset for three records, or with a record above the
/// last offset.
#[test]
fn a_too_large_batch_that_is_not_compressed_may_have_records_above_its_last_offset() {
    let one_offset = batch(3, Codec::None, 20_000, [0, 1, 2]).last_offset_delta(0);
    assert_eq!(first_of(&one_offset, ">=", 6), None);
    let above = batch(3, Codec::None, 20_000, [0, 1, 9]).last_offset_delta(2);
    assert_eq!(first_of(&above, ">=", 6), None);
}
