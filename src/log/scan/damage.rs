//! How a scan handles damage: an error, or a damaged range.

use std::sync::Arc;

use super::damaged_range::rest_of;
use super::{DamagedRange, OnDamage, Scan};
use crate::error::{Malformed, Result};
use crate::segment::{Batch, Damage, DamagedSpan, SCAN_READ, Segment};

impl Scan {
    /// The last damaged range, if the scan reports them.
    pub(super) fn reported(&self) -> Option<DamagedRange> {
        self.damaged_ranges.last().filter(|_| self.filter.options.on_damage == OnDamage::Report).cloned()
    }

    /// Skips damage that the walk found: returns an error, or adds a damaged range, and returns it if the
    /// scan reports them.
    ///
    /// Damage outside the scan's range is ignored. Damage between two consecutive offsets covers no offset.
    /// It is reported by the scan whose range ends there, so that of two adjacent scans exactly one
    /// reports it.
    pub(super) fn skip_damage(&mut self, damage: &Damage) -> Result<Option<DamagedRange>> {
        let (start, end) = (self.filter.start, self.filter.end);
        if damage.offset > end {
            self.cursor.walk = None;
            return Ok(None);
        }
        let (Some(segment), Some(walk)) = (self.cursor.segment.as_ref(), &mut self.cursor.walk) else {
            return Ok(None);
        };
        let mut span = segment.resume(walk, damage)?;
        let end_offset = span.end_offset.unwrap_or(segment.upper());
        self.cursor.next_offset = None;
        // no range ends at the start of the log, so a scan that begins there reports the damage
        let begins_log = self.log.segments().first().is_some_and(|first| start <= first.base_offset());
        if end_offset < start || end_offset == start && !begins_log {
            return Ok(None);
        }
        if damage.offset == end && end_offset > end {
            self.cursor.walk = None;
            return Ok(None);
        }
        // as in `skip_batch`
        if let Some(newer) = span.unsupported() {
            return Err(segment.corrupt(&newer));
        }
        if !damage.malformed.is_damage() || self.filter.raises() {
            return Err(segment.corrupt(&span.describe(damage)));
        }
        if let Some(uncommitted) = &mut self.uncommitted {
            uncommitted.assume_aborted();
        }
        let end_offset = if segment.is_last() { end_offset.min(segment.end_offset()?) } else { end_offset };
        let start_offset = span.start_offset.max(start);
        (span.start_offset, span.end_offset) = (start_offset, Some(end_offset));
        self.damaged_ranges.push(DamagedRange::new(segment, span, &damage.malformed));
        Ok(self.reported())
    }

    /// Skips a batch whose records cannot be decompressed.
    pub(super) fn skip_batch(&mut self, batch: &Batch, malformed: Malformed) -> Result<()> {
        let (Some(segment), Some(walk)) = (&self.cursor.segment, &mut self.cursor.walk) else {
            return Ok(());
        };
        let from = batch.header.base_offset;
        let malformed = batch.header.damage_or(malformed, walk.bytes(batch)?);
        // a later version or a higher limit may be able to read it: this is not damage, and skipping it would
        // lose records silently
        if !malformed.is_damage() || self.filter.raises() {
            return Err(malformed.at(segment.path(), batch.position, Some(from)));
        }
        self.damaged_ranges.push(DamagedRange::new(segment, rest_of(batch, from), &malformed));
        Ok(())
    }

    /// Skips a batch whose transaction has no known outcome, because damage may have destroyed its marker.
    pub(super) fn skip_undecided(&mut self, batch: &Batch) -> Result<()> {
        if self.filter.raises()
            && let Some(transactions) = &self.filter.transactions
        {
            transactions.ensure_decided()?;
        }
        let Some(segment) = &self.cursor.segment else { return Ok(()) };
        let undecided = Malformed::new("the marker of its transaction", "damage where it may have been");
        let span = rest_of(batch, batch.header.base_offset);
        self.damaged_ranges.push(DamagedRange::new(segment, span, &undecided));
        Ok(())
    }

    /// Fails at the end of the log if valid batches may follow it.
    fn ensure_certain_end(&self) -> Result<()> {
        // what follows a given end is not asked for
        let is_whole = self.filter.options.ranges.end_offset.is_none_or(|given| given > self.filter.end);
        let last = self.log.segments().last().filter(|last| last.known_end() == Some(self.filter.end));
        last.filter(|_| is_whole).map_or(Ok(()), |last| last.refuse_uncertain_end())
    }

    /// After the last batch of the log: a torn batch is a damaged range too, returned once; the zeros of a
    /// preallocated file are not, nor is an append in progress.
    pub(super) fn damaged_tail(&mut self) -> Result<Option<DamagedRange>> {
        self.finished = true;
        if self.filter.raises() {
            return self.ensure_certain_end().map(|()| None);
        }
        // a range that ends at the base offset of the last segment does not include its tail
        let includes = |end: i64| self.filter.options.ranges.end_offset.is_none_or(|given| given > end);
        let Some(last) = self.log.segments().last().filter(|last| includes(last.base_offset())).cloned()
        else {
            return Ok(None);
        };
        let tail = last.tail()?;
        let Some(cut) = tail.cut.as_ref().filter(|_| self.filter.end == tail.end_offset) else {
            return Ok(None);
        };
        let end_position = last.file_size()?;
        let is_zero = last.log_file(SCAN_READ)?.is_zero(cut.position, end_position)?;
        if is_zero || tail.is_certain() && last.is_being_written()? {
            return Ok(None);
        }
        let span = DamagedSpan::known(cut.position, end_position, tail.end_offset, None);
        self.damaged_ranges.push(DamagedRange::new(&last, span, &cut.malformed));
        Ok(self.reported())
    }
}

/// The rest of the current batch, from an offset at which a record breaks the format: an error, or a damaged
/// range.
#[cold]
pub(super) fn damaged_rest(
    segment: Option<&Arc<Segment>>,
    batch: Option<&Batch>,
    from: i64,
    raises: bool,
    malformed: &Malformed,
) -> Result<Option<DamagedRange>> {
    let (Some(segment), Some(batch)) = (segment, batch) else { return Ok(None) };
    if raises {
        return Err(malformed.clone().at(segment.path(), batch.position, Some(from)));
    }
    Ok(Some(DamagedRange::new(segment, rest_of(batch, from), malformed)))
}
