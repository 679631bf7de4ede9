//! The last records of a range, found from its end.

use super::{Log, OnDamage, RecordFilter, RecordOffsets, Scan, ScanOptions, ScanStep};
use crate::error::Result;
use crate::segment::Segment;

/// The bytes of the first part that is read, from the end of the range.
const FIRST_PART: u64 = 64 << 10;
/// Each part is twice as large as the one after it, up to this many bytes.
const MAX_PART: u64 = 64 << 20;

impl Log {
    /// A scan that begins at the last `count` records that a scan with `options` and `filter` returns; a scan
    /// with `options` if there are fewer.
    ///
    /// *Cost*: reads parts of the range, the last one first, until they contain enough records: 64 KiB, and
    /// then each twice as large as the one before, up to 64 MiB. A segment without an offset index is one
    /// part. The last part is read twice.
    ///
    /// # Errors
    /// As [`Log::scan`] and [`Scan::next_step`]. Damaged ranges before the scan begins are skipped.
    pub fn last_records(
        &self,
        count: usize,
        options: ScanOptions,
        filter: Option<&RecordFilter>,
    ) -> Result<Scan> {
        let (first, end) = self.resolve(&options.ranges)?;
        let start = self.first_of_time(&options, end)?.map_or(first, |offset| offset.max(first));
        let counting = ScanOptions { on_damage: OnDamage::Skip, ..options };
        let (mut high, mut needed, mut bytes) = (end, count as u64, FIRST_PART);
        while needed > 0 && high > start {
            let low = self.part_before(high, bytes).max(start);
            let part = counting.with_offsets(low, high);
            let found = self.count(part, filter, u64::MAX)?.0;
            if found >= needed {
                if let Some(first) = self.count(part, filter, found - needed)?.1 {
                    return self.scan_from(first, end, options);
                }
                (high, needed) = (low, 0);
            } else {
                (high, needed, bytes) = (low, needed - found, (bytes * 2).min(MAX_PART));
            }
        }
        // a range that was given as it is reports damage before its first record
        self.scan(if needed > 0 { options } else { options.with_offsets(high, end.max(high)) })
    }

    /// A scan that begins with a record, up to an offset.
    pub(super) fn scan_from(&self, first: RecordOffsets, end: i64, options: ScanOptions) -> Result<Scan> {
        let start = first.in_ranges();
        let mut left_out = 0;
        // records of one batch that count as at its last offset
        if first.is_above_batch() {
            let counting = ScanOptions { on_damage: OnDamage::Skip, ..options };
            let mut scan = self.scan(counting.with_offsets(start, start + 1))?;
            while scan.next_step()?.is_some() {
                while scan.next_record()?.is_some_and(|record| record.offset < first.offset) {
                    left_out += 1;
                }
            }
        }
        let mut scan = self.scan(options.with_offsets(start, end.max(start)))?;
        scan.leave_out(left_out);
        Ok(scan)
    }

    /// The first offset at or after the start time of the options; `None` if they have no start time, or
    /// damage hides it.
    fn first_of_time(&self, options: &ScanOptions, end: i64) -> Result<Option<i64>> {
        let Some(start_time) = options.ranges.start_time else { return Ok(None) };
        for segment in self.segments().iter() {
            if !segment.begins_before_v2()? {
                break;
            }
            // a look-up by time passes over them
            if segment.hides_times()? {
                return Ok(None);
            }
        }
        match self.offset_for_time(start_time) {
            Ok(found) => Ok(Some(found.map_or(end, |found| found.offset))),
            Err(error) if error.is_damage() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The number of records of a scan, up to `skip`, and the offsets of the record after those.
    fn count(
        &self,
        options: ScanOptions,
        filter: Option<&RecordFilter>,
        skip: u64,
    ) -> Result<(u64, Option<RecordOffsets>)> {
        let mut scan = self.scan(options)?;
        let mut count = 0;
        while let Some(step) = scan.next_step()? {
            let ScanStep::Batch(batch) = step else { continue };
            while let Some(record) = scan.next_accepted(filter)? {
                if count == skip {
                    return Ok((count, Some(RecordOffsets::new(record.offset, &batch.header))));
                }
                count += 1;
            }
        }
        Ok((count, None))
    }

    /// An offset about `bytes` of the log before `high`, in the same segment: an entry of its offset index,
    /// or its base offset. It need not be that of a batch, so a wrong entry of the index does not matter.
    pub(super) fn part_before(&self, high: i64, bytes: u64) -> i64 {
        let Some(segment) = self.segments().floor(high - 1) else { return i64::MIN };
        let low = entry_before(segment, high, bytes).unwrap_or(segment.base_offset());
        low.clamp(segment.base_offset().min(high - 1), high - 1)
    }
}

/// The offset of the last index entry that is at least `bytes` before the entry of `high`; `None` if there is
/// none.
fn entry_before(segment: &Segment, high: i64, bytes: u64) -> Option<i64> {
    let index = segment.offset_index().ok().flatten()?;
    let size = segment.size().ok()?;
    let end = if high >= segment.end_offset().ok()? {
        size
    } else {
        u64::try_from(index.lookup(high, crate::index::Method::default()).ok()?.position).ok()?
    };
    let limit = end.checked_sub(bytes)?;
    let (mut low, mut count) = (0, index.entries());
    while low < count {
        let middle = low + (count - low) / 2;
        let position = index.entry(middle).ok()?.position;
        if u64::try_from(position).is_ok_and(|position| position <= limit) {
            low = middle + 1;
        } else {
            count = middle;
        }
    }
    Some(index.entry(low.checked_sub(1)?).ok()?.offset)
}
