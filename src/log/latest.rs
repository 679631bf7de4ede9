//! The last record of a key, or of each key, without compaction.

#[cfg(feature = "arrow")]
use super::RecordFilter;
#[cfg(feature = "arrow")]
use super::offset_map::OffsetMap;
use super::{Log, Ranges, ScanOptions, ScanStep};
use crate::error::Result;
use crate::types::IsolationLevel;

impl Log {
    /// The offset of the last record with a key; `None` if there is none, or if it is a tombstone (a record without a value), which
    /// deletes the key. `isolation_level`: whether the records of aborted and open transactions count.
    ///
    /// *Cost*: reads the segments from the last one back to the one with the record: the whole log if there is none. The memory of one
    /// batch.
    ///
    /// # Errors
    /// As [`Log::scan`] and [`Scan::next_step`](super::Scan::next_step), for damage in these segments too.
    pub fn latest_offset(&self, key: &[u8], isolation_level: IsolationLevel) -> Result<Option<i64>> {
        let options = ScanOptions { isolation_level, ..ScanOptions::default() };
        let (start, end) = self.resolve(&Ranges::default())?;
        let mut upper = end;
        while upper > start {
            let base = self.segments().floor(upper - 1).map_or(start, |segment| segment.base_offset());
            let low = base.clamp(start, upper - 1);
            let mut scan = self.scan(options.with_offsets(low, upper))?;
            let mut last = None;
            while let Some(step) = scan.next_step()? {
                let ScanStep::Batch(_) = step else { continue };
                while let Some(record) = scan.next_record()? {
                    if record.key == Some(key) {
                        last = Some((record.offset, record.value.is_some()));
                    }
                }
            }
            if let Some((offset, has_value)) = last {
                return Ok(has_value.then_some(offset));
            }
            upper = low;
        }
        Ok(None)
    }

    /// A filter that accepts the last record of each key in a range, if it has a value; with `include_tombstones`, also those without.
    /// A record without a key is never accepted.
    ///
    /// *Cost*: a scan of the range. *Memory*: 27 to 54 bytes for each key, whatever its size, and half as much again while the number of
    /// keys doubles; as long as the filter exists.
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
        let mut scan = self.scan(ScanOptions { include_control: false, ..options })?;
        while let Some(step) = scan.next_step()? {
            let ScanStep::Batch(_) = step else { continue };
            while let Some(record) = scan.next_record()? {
                if let Some(key) = record.key {
                    latest.put_growing(key, record.offset)?;
                }
            }
        }
        Ok(RecordFilter::by_offset(move |offset, key, value| {
            (value.is_some() || include_tombstones) && key.is_some_and(|key| latest.get(key) == Some(offset))
        }))
    }
}
