//! The last record of a key, or of each key, without compaction.

#[cfg(feature = "arrow")]
use std::collections::HashMap;

#[cfg(feature = "arrow")]
use super::RecordFilter;
#[cfg(feature = "arrow")]
use super::offset_map::OffsetMap;
use super::{Log, Ranges, RecordOffsets, Scan, ScanOptions, ScanStep};
use crate::error::Result;
use crate::types::IsolationLevel;

impl Log {
    /// A scan that begins with the last record with a key; `None` if there is none, or if it is a tombstone
    /// (a record without a value), which deletes the key. `isolation_level`: whether the records of
    /// aborted and open transactions count.
    ///
    /// *Cost*: reads the segments from the last one back to the one with the record: the whole log if there
    /// is none. The memory of one batch.
    ///
    /// # Errors
    /// As [`Log::scan`] and [`Scan::next_step`](super::Scan::next_step), for damage in these segments too.
    pub fn latest(&self, key: &[u8], isolation_level: IsolationLevel) -> Result<Option<Scan>> {
        let options = ScanOptions { isolation_level, ..ScanOptions::default() };
        let (start, end) = self.resolve(&Ranges::default())?;
        let mut upper = end;
        while upper > start {
            let base = self.segments().floor(upper - 1).map_or(start, |segment| segment.base_offset());
            let low = base.clamp(start, upper - 1);
            let mut scan = self.scan(options.with_offsets(low, upper))?;
            let mut last = None;
            while let Some(step) = scan.next_step()? {
                let ScanStep::Batch(batch) = step else { continue };
                while let Some(record) = scan.next_record()? {
                    if record.key == Some(key) {
                        let offsets = RecordOffsets::new(record.offset, &batch.header);
                        last = Some((offsets, record.value.is_some()));
                    }
                }
            }
            if let Some((offsets, has_value)) = last {
                return if has_value { self.scan_from(offsets, end, options).map(Some) } else { Ok(None) };
            }
            upper = low;
        }
        Ok(None)
    }

    /// A filter that accepts the last record of each key in a range, if it has a value; with
    /// `include_tombstones`, also those without. A record without a key is never accepted.
    ///
    /// *Cost*: a scan of the range. *Memory*: 27 to 54 bytes for each key, whatever its size, and half as
    /// much again while the number of keys doubles; as long as the filter exists.
    ///
    /// # Errors
    /// As [`Log::scan`] and [`Scan::next_step`](super::Scan::next_step).
    #[cfg(feature = "arrow")]
    pub(crate) fn latest_filter(
        &self,
        options: ScanOptions,
        include_tombstones: bool,
    ) -> Result<RecordFilter> {
        let mut latest = OffsetMap::growing();
        // a record above the last offset of its batch can have the offset of another one
        let mut above = HashMap::<Vec<u8>, i64>::new();
        let mut scan = self.scan(ScanOptions { include_control: false, ..options })?;
        while let Some(step) = scan.next_step()? {
            let ScanStep::Batch(batch) = step else { continue };
            while let Some(record) = scan.next_record()? {
                let Some(key) = record.key else { continue };
                let offsets = RecordOffsets::new(record.offset, &batch.header);
                latest.put_growing(key, offsets.in_ranges())?;
                if offsets.is_above_batch() {
                    above.insert(key.to_vec(), offsets.offset);
                } else if !above.is_empty() {
                    above.remove(key);
                }
            }
        }
        Ok(RecordFilter::by_offsets(move |offsets, key, value| {
            let is_latest = |key: &[u8]| {
                let offset = above.get(key).copied().unwrap_or(offsets.in_ranges());
                latest.get(key) == Some(offsets.in_ranges()) && offsets.offset == offset
            };
            (value.is_some() || include_tombstones) && key.is_some_and(is_latest)
        }))
    }
}
