//! Indexes that refer beyond the end of their `.log`. When a sealed segment is cut at a batch boundary, only
//! its indexes show it: the `.log` alone looks whole.

use std::sync::atomic::Ordering;

use super::Segment;

impl Segment {
    /// Warns if an index of this sealed segment refers to a position or an offset at or above the end of the
    /// `.log`, whose batches end before `end_offset`. Checks only once.
    pub(crate) fn check_indexes(&self, end_offset: i64) {
        if self.is_last() || self.are_indexes_checked.swap(true, Ordering::Relaxed) {
            return;
        }
        let Some(size) = self.or_warn(self.file_size().map(Some)) else { return };
        let is_beyond = |position: i32| i64::from(position) >= i64::try_from(size).unwrap_or(i64::MAX);
        if let Some(index) = self.or_warn(self.offset_index())
            && index.entries() > 0
        {
            let last = index.last_entry();
            if last.offset >= end_offset || is_beyond(last.position) {
                let entry = format!("offset {}, position {}", last.offset, last.position);
                self.warn_of_reference_beyond_end(&index.path().display(), &entry, size, end_offset);
            }
        }
        if let Some(index) = self.or_warn(self.time_index())
            && index.entries() > 0
        {
            let last = index.last_entry();
            if last.offset >= end_offset {
                let entry = format!("timestamp {}, offset {}", last.timestamp, last.offset);
                self.warn_of_reference_beyond_end(&index.path().display(), &entry, size, end_offset);
            }
        }
        if let Some(index) = self.or_warn(self.transaction_index())
            // an index that cannot be read is ignored
            && let Ok(Some(last)) = index.last_entry()
            && last.last_offset >= end_offset
        {
            let entry = format!("an aborted transaction up to offset {}", last.last_offset);
            self.warn_of_reference_beyond_end(&index.path().display(), &entry, size, end_offset);
        }
    }

    fn warn_of_reference_beyond_end(
        &self,
        index: &dyn std::fmt::Display,
        entry: &str,
        size: u64,
        end_offset: i64,
    ) {
        self.warn(&format!(
            "{index}: the last entry ({entry}) is beyond the end of {}, which has {size} bytes and ends at offset \
             {end_offset}: the log was cut, or the index is damaged",
            self.path().display()
        ));
    }
}
