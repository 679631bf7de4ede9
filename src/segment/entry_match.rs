//! Whether an index entry agrees with a batch. All that compares the two asks here: look-ups, the search
//! after damage, `verify`, `repair` and `copy`. They differ in which answers they accept.

use crate::record::BatchHeader;
use crate::types::TimestampOffset;

/// The offset of an entry of an offset index, compared with a batch at or after the entry's position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OffsetMatch {
    /// The last offset of the batch, which Kafka 4 stores.
    Last,
    /// The base offset of the batch, which old versions of Kafka stored (0.8 to 0.11).
    First,
    /// Another offset of the batch.
    Inside,
    /// An offset above the batch. The entry of an append of several batches has the position of the first and
    /// the last offset of the last one: a later batch decides.
    Above,
    /// An offset below the batch.
    Below,
}

impl OffsetMatch {
    #[inline]
    pub(crate) fn of(offset: i64, header: &BatchHeader) -> Self {
        if offset == header.last_offset {
            Self::Last
        } else if offset == header.base_offset {
            Self::First
        } else if offset > header.last_offset {
            Self::Above
        } else if offset < header.base_offset {
            Self::Below
        } else {
            Self::Inside
        }
    }

    /// Whether it is what a version of Kafka stores for a batch at the entry's position.
    #[inline]
    pub(crate) fn is_stored(self) -> bool {
        matches!(self, Self::Last | Self::First)
    }

    /// Whether it is an offset of the batch.
    pub(crate) fn is_in_batch(self) -> bool {
        matches!(self, Self::Last | Self::First | Self::Inside)
    }
}

/// Whether an entry of a time index has the largest timestamp of a batch, and an offset of it.
#[inline]
pub(crate) fn is_time_of(entry: TimestampOffset, header: &BatchHeader) -> bool {
    entry.timestamp == header.max_timestamp
        && (header.base_offset..=header.last_offset).contains(&entry.offset)
}

/// Whether an entry of a time index may follow another one: timestamps increase, offsets do not decrease.
pub(crate) fn time_entry_follows(entry: TimestampOffset, previous: TimestampOffset) -> bool {
    previous.timestamp < entry.timestamp && previous.offset <= entry.offset
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::V2_HEADER;

    /// The header of a batch of magic 2 with these offsets.
    fn header(base_offset: i64, last_offset_delta: i32, max_timestamp: i64) -> BatchHeader {
        let mut bytes = [0; V2_HEADER];
        bytes[..8].copy_from_slice(&base_offset.to_be_bytes());
        bytes[16] = 2;
        bytes[23..27].copy_from_slice(&last_offset_delta.to_be_bytes());
        bytes[35..43].copy_from_slice(&max_timestamp.to_be_bytes());
        BatchHeader::unchecked(&bytes, 61).unwrap()
    }

    #[test]
    fn the_offset_of_an_entry_is_compared_with_both_ends_of_the_batch() {
        let found = [9, 10, 11, 14, 15].map(|offset| OffsetMatch::of(offset, &header(10, 4, 0)));
        let expected = [
            OffsetMatch::Below,
            OffsetMatch::First,
            OffsetMatch::Inside,
            OffsetMatch::Last,
            OffsetMatch::Above,
        ];
        assert_eq!(found, expected);
        assert_eq!(found.map(OffsetMatch::is_stored), [false, true, false, true, false]);
        assert_eq!(found.map(OffsetMatch::is_in_batch), [false, true, true, true, false]);
        // a batch of one offset
        assert_eq!(OffsetMatch::of(10, &header(10, 0, 0)), OffsetMatch::Last);
    }

    #[test]
    fn a_time_entry_is_of_the_batch_with_its_timestamp_and_offset() {
        let is_of = |timestamp, offset| is_time_of(TimestampOffset { timestamp, offset }, &header(10, 4, 5));
        assert!(is_of(5, 10) && is_of(5, 14));
        assert!(!is_of(4, 12) && !is_of(5, 9) && !is_of(5, 15));
    }
}
