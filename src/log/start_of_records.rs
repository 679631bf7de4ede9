//! Where a range begins that has all records at or above an offset.

use std::ops::Range;

use super::{Log, OnDamage, Ranges, RecordOffsetRange, RecordOffsets, Scan, ScanOptions, ScanStep};
use crate::error::{Error, Result};

/// The bytes of batches before a place that are looked through: the batches of old clients overlap by a few
/// records.
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
    /// That is `least`, unless batches before it have records above their last offsets, which ranges have at
    /// these last offsets ([`Ranges`]). Nothing but the records shows that, so the batches before are
    /// read: 64 KiB before `least`, and before each batch with such a record that is found. A record that
    /// is farther above its batch than that is not in the range.
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
        let (mut start, mut bytes) = (part.start, 0);
        loop {
            let ranges =
                Ranges { start_offset: Some(start), end_offset: Some(part.end), ..Ranges::default() };
            let options = ScanOptions {
                ranges,
                record_offsets: RecordOffsetRange { start: least, ..RecordOffsetRange::default() },
                on_damage: OnDamage::Skip,
                ..ScanOptions::default()
            };
            let mut scan = self.scan(options)?;
            let found = first_place(&mut scan);
            bytes += scan.stats().bytes_read;
            match found {
                Ok(place) => return Ok(Found { place, bytes }),
                Err(error @ (Error::BatchTooLarge { .. } | Error::UnsupportedFormat { .. })) => {
                    // nobody knows the records of a batch that cannot be read and of those after it: the
                    // range has all of them
                    let Some(end) = end_of_refused(&scan, &error) else {
                        return Ok(Found { place: Some(part.start), bytes });
                    };
                    start = end.min(part.end);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// The place of the first record of a scan, as ranges have it; `None` if there is none.
fn first_place(scan: &mut Scan) -> Result<Option<i64>> {
    while let Some(step) = scan.next_step()? {
        let ScanStep::Batch(batch) = step else { continue };
        if let Some(record) = scan.next_record()? {
            return Ok(Some(RecordOffsets::new(record.offset, &batch.header).in_ranges()));
        }
    }
    Ok(None)
}

/// The end of a compressed batch that is too large to be read: its records are below the range, or the range
/// has the batch anyway. A broker stores no compressed batch with a record above its last offset, but checks
/// no other.
fn end_of_refused(scan: &Scan, error: &Error) -> Option<i64> {
    let Error::BatchTooLarge { place, .. } = error else { return None };
    let batch = scan.current_batch().filter(|batch| batch.position == place.position)?;
    let header = &batch.header;
    let is_known = header.magic == 2 && place.offset == Some(header.base_offset);
    (is_known && header.attributes.is_compressed()).then_some(header.last_offset + 1)
}
