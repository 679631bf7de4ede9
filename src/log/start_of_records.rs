//! Where a range begins that has all records at or above an offset.

use std::ops::Range;

use super::{Log, OnDamage, Ranges, RecordOffsetRange, RecordOffsets, ScanOptions, ScanStep};
use crate::error::{Error, Result};

/// The bytes of batches before a place that are looked through: the batches of old clients overlap by a few records.
const LOOK_BACK: u64 = 64 << 10;

/// What a part of a log has.
struct Found {
    /// The offset of its first record at or above the wanted one, as ranges have it; `None` if it has none.
    place: Option<i64>,
    /// The bytes of its batches.
    bytes: u64,
}

impl Log {
    /// The start of a range that has the records of `within` with offsets at or above `least`.
    ///
    /// That is `least`, unless batches before it have records above their last offsets, which ranges have at these last offsets
    /// ([`Ranges`]). Nothing but the records shows that, so the batches before are read: 64 KiB before `least`, and before each batch
    /// with such a record that is found. A record that is farther above its batch than that is not in the range.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::LogChanged`], [`Error::Interrupted`].
    pub(crate) fn start_of_records(&self, least: i64, within: Range<i64>) -> Result<i64> {
        let mut start = least.clamp(within.start, within.end);
        let lowest = within.start.max(self.log_start_offset());
        let (mut high, mut looked_through) = (start, 0);
        while high > lowest && looked_through < LOOK_BACK {
            let low = self.part_before(high, LOOK_BACK).max(lowest);
            let found = self.first_at_or_above(least, low..high)?;
            match found.place {
                Some(place) => (start, looked_through) = (place, 0),
                None => looked_through = looked_through.saturating_add(found.bytes),
            }
            high = low;
        }
        Ok(start)
    }

    fn first_at_or_above(&self, least: i64, part: Range<i64>) -> Result<Found> {
        let ranges =
            Ranges { start_offset: Some(part.start), end_offset: Some(part.end), ..Ranges::default() };
        let options = ScanOptions {
            ranges,
            record_offsets: RecordOffsetRange { start: least, ..RecordOffsetRange::default() },
            on_damage: OnDamage::Skip,
            ..ScanOptions::default()
        };
        let mut scan = self.scan(options)?;
        loop {
            let batch = match scan.next_step() {
                Ok(Some(ScanStep::Batch(batch))) => batch,
                Ok(Some(ScanStep::DamagedRange(_))) => continue,
                Ok(None) => break,
                // nobody knows the records of a batch that cannot be read and of those after it: the range has all of them
                Err(Error::BatchTooLarge { .. } | Error::UnsupportedFormat { .. }) => {
                    return Ok(Found { place: Some(part.start), bytes: scan.stats().bytes_read });
                }
                Err(error) => return Err(error),
            };
            if let Some(record) = scan.next_record()? {
                let place = RecordOffsets::new(record.offset, &batch.header).in_ranges();
                return Ok(Found { place: Some(place), bytes: scan.stats().bytes_read });
            }
        }
        Ok(Found { place: None, bytes: scan.stats().bytes_read })
    }
}
