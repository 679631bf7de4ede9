//! Entries of indexes, their bytes, and a linear search.

use super::partition::{offset_entry, time_entry};
use super::random::Random;

/// The base offset of the indexes' segment.
pub const BASE: i64 = 1_000_000;

/// Key and value of each entry of an offset index: offset and position. An entry every 4,096 bytes, or more
/// often if there are so many that the last position would not be an `i32`.
pub fn offset_entries(count: usize) -> Vec<(i64, i64)> {
    let mut random = Random(1);
    let (mut offset, mut position) = (BASE, 0);
    let interval = (i64::from(i32::MAX) / count as i64 * 4 / 5).min(4096);
    let mut next = || {
        // the interval and the rest of a batch; about 40 records, sometimes many more
        offset += 1 + random.below(80) + if random.below(50) == 0 { random.below(2000) } else { 0 };
        position += interval + random.below(interval / 4);
        (offset, position)
    };
    (0..count).map(|_| next()).collect()
}

/// Key and value of each entry of a time index: timestamp and offset.
pub fn time_entries(count: usize) -> Vec<(i64, i64)> {
    let mut random = Random(2);
    let (mut timestamp, mut offset) = (1_700_000_000_000, BASE);
    let mut next = || {
        timestamp += 1 + random.below(100) + if random.below(50) == 0 { random.below(5000) } else { 0 };
        offset += 1 + random.below(80);
        (timestamp, offset)
    };
    (0..count).map(|_| next()).collect()
}

/// The file of an offset index with these entries.
pub fn offset_index_bytes(entries: &[(i64, i64)]) -> Vec<u8> {
    let entry =
        |(offset, position): &(i64, i64)| offset_entry(BASE, *offset, i32::try_from(*position).unwrap());
    entries.iter().flat_map(entry).collect()
}

/// The file of a time index with these entries.
pub fn time_index_bytes(entries: &[(i64, i64)]) -> Vec<u8> {
    entries.iter().flat_map(|(timestamp, offset)| time_entry(BASE, *timestamp, *offset)).collect()
}

/// The entry at or below each target, by a linear search; `none` below the first.
pub fn floors(entries: &[(i64, i64)], targets: &[i64], none: (i64, i64)) -> Vec<(i64, i64)> {
    let mut sorted: Vec<_> = targets.iter().copied().enumerate().collect();
    sorted.sort_by_key(|(_, target)| *target);
    let (mut rest, mut found) = (entries.iter().peekable(), none);
    let mut answers = vec![none; targets.len()];
    for (index, target) in sorted {
        while let Some(entry) = rest.next_if(|(key, _)| *key <= target) {
            found = *entry;
        }
        answers[index] = found;
    }
    answers
}
