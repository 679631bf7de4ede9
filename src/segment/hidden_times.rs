//! Segments whose batches may have records above the largest timestamps of their headers, so that indexes by
//! time do not show them.

use super::{LOOKUP_READ, SCAN_READ, Segment};
use crate::error::Result;
use crate::record::{BatchHeader, V2_HEADER};

impl Segment {
    /// Whether the first batch is readable and has format v0 or v1, or there is none. Only before the first
    /// segment without one may batches hide times: the brokers that wrote them did not know v2.
    pub(crate) fn begins_before_v2(&self) -> Result<bool> {
        if let Some(found) = self.begins_before_v2.get() {
            return Ok(*found);
        }
        let found = self.file_size()? == 0
            || self.walk(-1, LOOKUP_READ)?.header_at(0)?.is_ok_and(|header| header.magic < 2);
        Ok(*self.begins_before_v2.get_or_init(|| found))
    }

    /// Whether a batch hides times ([`BatchHeader::hides_times`]). *Cost*: once, reads all headers of a
    /// segment that begins before v2.
    pub(crate) fn hides_times(&self) -> Result<bool> {
        if let Some(found) = self.hides_times.get() {
            return Ok(*found);
        }
        let found = self.begins_before_v2()? && self.has_batch_that_hides_times()?;
        Ok(*self.hides_times.get_or_init(|| found))
    }

    /// True also if damage hides the batches after it.
    fn has_batch_that_hides_times(&self) -> Result<bool> {
        let (mut log, end) = (self.log_file(SCAN_READ)?, self.size()?);
        let mut position = 0;
        while position < end {
            let available = end - position;
            let wanted = usize::try_from(available).unwrap_or(V2_HEADER).min(V2_HEADER);
            match BatchHeader::parse_unproven(log.read(position, wanted)?, available) {
                Ok(header) if header.magic == 2 => return Ok(false),
                Ok(header) if !header.hides_times() => position += u64::from(header.size),
                _ => return Ok(true),
            }
        }
        Ok(false)
    }
}
