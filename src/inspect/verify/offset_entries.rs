//! The entries of an offset index, compared with the batches in the order of the log.

use std::path::Path;
use std::sync::Arc;

use super::finding::Finding;
use super::rule::Rule;
use super::wrong_entries::WrongEntries;
use crate::error::Result;
use crate::index::OffsetIndex;
use crate::segment::{Batch, DamagedSpan, OffsetMatch};
use crate::types::OffsetPosition;

/// The comparison, at its present slot.
///
/// A slot is compared with the batch at its position. An entry out of order is wrong at once; otherwise one
/// that is too high would make all the entries after it wrong.
#[derive(Debug)]
pub(super) struct OffsetEntries {
    index: Arc<OffsetIndex>,
    slot: u64,
    end: u64,
    /// The entry before, if it was in order.
    previous: Option<OffsetPosition>,
    /// The entry of an append of several batches, until the batch with its offset.
    pending: Option<(u64, OffsetPosition)>,
    /// The bytes of the segment.
    bytes: u64,
    /// Whether entries after the end belong to batches that were appended after the log was opened.
    has_grown: bool,
    /// The largest distance between two entries, bytes.
    largest_distance: u64,
    wrong: WrongEntries,
    /// Those of batches that repeat offsets.
    repeated: WrongEntries,
}

impl OffsetEntries {
    pub(super) fn new(index: Arc<OffsetIndex>, partition: &Path, bytes: u64, has_grown: bool) -> Self {
        let entries = |rule| WrongEntries::new(rule, partition, index.path(), index.entry_size());
        let (wrong, repeated) = (entries(Rule::IndexEntryWrong), entries(Rule::IndexEntryRepeated));
        let end = index.entries();
        Self {
            index,
            slot: 0,
            end,
            previous: None,
            pending: None,
            bytes,
            has_grown,
            largest_distance: 0,
            wrong,
            repeated,
        }
    }

    /// Compares the entries up to the end of the next batch.
    pub(super) fn add(&mut self, batch: &Batch) -> Result<()> {
        let header = &batch.header;
        if let Some((slot, entry)) = self.pending {
            match OffsetMatch::of(entry.offset, header) {
                OffsetMatch::Above => {}
                OffsetMatch::Last => self.pending = None,
                _ => {
                    self.pending = None;
                    self.mismatch(slot, entry, batch);
                }
            }
        }
        while let Some((entry, position)) = self.next_in_order()? {
            if position > batch.position {
                break;
            }
            let slot = self.accept(entry, position);
            if position < batch.position {
                let found = format!("position {position} inside a batch, offset {}", entry.offset);
                self.wrong.add(slot, entry.offset, "the position of a batch".to_owned(), found);
                continue;
            }
            match OffsetMatch::of(entry.offset, header) {
                OffsetMatch::Last | OffsetMatch::First => {}
                OffsetMatch::Above => self.pending = Some((slot, entry)),
                OffsetMatch::Inside | OffsetMatch::Below => self.mismatch(slot, entry, batch),
            }
        }
        Ok(())
    }

    /// Passes over damage: entries that refer to it cannot be compared.
    pub(super) fn skip(&mut self, span: &DamagedSpan) -> Result<()> {
        self.pending = None;
        while let Some((entry, position)) = self.next_in_order()? {
            if position >= span.end_position {
                break;
            }
            self.accept(entry, position);
        }
        Ok(())
    }

    /// Compares the entries up to the end of a batch that repeats offsets. Kafka adds an entry for it, too,
    /// and a look-up that uses the entry finds this batch instead of the first one.
    pub(super) fn add_repeated(&mut self, batch: &Batch) -> Result<()> {
        let pending = self.pending.take();
        if let Some((entry, position)) = self.next_in_order()?
            && position == batch.position
            && OffsetMatch::of(entry.offset, &batch.header).is_stored()
        {
            let slot = self.accept(entry, position);
            let expected = "the position of the first batch with the offset".to_owned();
            let found =
                format!("position {position}, offset {}, of a batch that repeats offsets", entry.offset);
            self.repeated.add(slot, entry.offset, expected, found);
        }
        self.add(batch)?;
        self.pending = self.pending.or(pending);
        Ok(())
    }

    /// The findings, after the last batch, and the largest distance of two entries in bytes; `None` if there
    /// are fewer than two.
    pub(super) fn finish(mut self, end_offset: i64) -> Result<(Vec<Finding>, Option<u64>)> {
        if let Some((slot, entry)) = self.pending.take() {
            self.beyond_end(slot, entry, end_offset);
        }
        while let Some((entry, position)) = self.next_in_order()? {
            let slot = self.accept(entry, position);
            self.beyond_end(slot, entry, end_offset);
        }
        let distance = Some(self.largest_distance).filter(|distance| *distance > 0);
        let mut findings = self.wrong.into_findings();
        findings.extend(self.repeated.into_findings());
        Ok((findings, distance))
    }

    fn accept(&mut self, entry: OffsetPosition, position: u64) -> u64 {
        let before = self.previous.and_then(|previous| u64::try_from(previous.position).ok()).unwrap_or(0);
        self.largest_distance = self.largest_distance.max(position.saturating_sub(before));
        self.previous = Some(entry);
        self.slot += 1;
        self.slot - 1
    }

    fn mismatch(&mut self, slot: u64, entry: OffsetPosition, batch: &Batch) {
        let expected = format!("the first or the last offset of the batch at position {}", entry.position);
        let (base_offset, last_offset) = (batch.header.base_offset, batch.header.last_offset);
        let found = format!("offset {}, and offsets {base_offset} to {last_offset} in the log", entry.offset);
        self.wrong.add(slot, entry.offset, expected, found);
    }

    fn beyond_end(&mut self, slot: u64, entry: OffsetPosition, end_offset: i64) {
        if !self.has_grown {
            let expected = format!(
                "a position below {} and an offset below {end_offset}, the end of the segment",
                self.bytes
            );
            let found = format!("position {}, offset {}", entry.position, entry.offset);
            self.wrong.add(slot, entry.offset, expected, found);
        }
    }

    /// The next entry that is in order and within the segment, and its position. Those before it that are not
    /// are wrong.
    fn next_in_order(&mut self) -> Result<Option<(OffsetPosition, u64)>> {
        while self.slot < self.end {
            let entry = self.index.entry(self.slot)?;
            let position = u64::try_from(entry.position).ok().filter(|position| *position < self.bytes);
            if let Some(position) = position
                && self.previous.is_none_or(|previous| is_in_order(previous, entry))
                && !self.is_too_high(entry)?
            {
                return Ok(Some((entry, position)));
            }
            if position.is_none() && self.has_grown && entry.position >= 0 {
                self.slot = self.end;
                return Ok(None);
            }
            let expected = match self.previous {
                Some(previous) => format!(
                    "an offset above {} and a position above {}, those of the entry before, below the end of the segment at {}",
                    previous.offset, previous.position, self.bytes
                ),
                None => {
                    format!("a position below the end of the segment at {}, and entries in order", self.bytes)
                }
            };
            let found = format!("offset {}, position {}", entry.offset, entry.position);
            self.wrong.add(self.slot, entry.offset, expected, found);
            self.slot += 1;
        }
        Ok(None)
    }

    /// Whether the entry does not precede the next one, although that follows the one before.
    fn is_too_high(&self, entry: OffsetPosition) -> Result<bool> {
        if self.slot + 1 >= self.end {
            return Ok(false);
        }
        let next = self.index.entry(self.slot + 1)?;
        let is_next_in_order = match self.previous {
            Some(previous) => is_in_order(previous, next),
            None => next.position >= 0 && next.offset >= self.index.base_offset(),
        };
        Ok(!is_in_order(entry, next) && is_next_in_order)
    }
}

fn is_in_order(previous: OffsetPosition, entry: OffsetPosition) -> bool {
    previous.offset < entry.offset && previous.position < entry.position
}
