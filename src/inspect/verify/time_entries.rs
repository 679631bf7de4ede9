//! The entries of a time index, compared with the largest timestamps of the batches in the order of the log.

use std::path::Path;
use std::sync::Arc;

use super::finding::Finding;
use super::rule::Rule;
use super::wrong_entries::WrongEntries;
use crate::error::Result;
use crate::index::TimeIndex;
use crate::record::BatchHeader;
use crate::segment::{DamagedSpan, time_entry_follows};
use crate::types::TimestampOffset;

/// The comparison, at its present slot. As in the offset index, an entry out of order is wrong at once.
#[derive(Debug)]
pub(super) struct TimeEntries {
    index: Arc<TimeIndex>,
    slot: u64,
    end: u64,
    /// The entry before, if it was in order.
    previous: TimestampOffset,
    /// The largest timestamp so far, and the offsets of the first batch that has it.
    largest: i64,
    reached: (i64, i64),
    /// Whether damage may have hidden a larger one.
    is_uncertain: bool,
    /// Whether entries after the end belong to batches that were appended after the log was opened.
    has_grown: bool,
    wrong: WrongEntries,
    /// Wrong entries whose timestamp no batch has had so far: slots and timestamps.
    unplaced: Vec<(u64, i64)>,
}

impl TimeEntries {
    pub(super) fn new(index: Arc<TimeIndex>, partition: &Path, has_grown: bool) -> Self {
        let wrong = WrongEntries::new(Rule::TimeIndexEntryWrong, partition, index.path(), index.entry_size());
        let previous = TimestampOffset { timestamp: i64::MIN, offset: index.base_offset() };
        let end = index.entries();
        Self {
            index,
            slot: 0,
            end,
            previous,
            largest: -1,
            reached: (-1, -1),
            is_uncertain: false,
            has_grown,
            wrong,
            unplaced: Vec::new(),
        }
    }

    /// The number of wrong entries for which the batch with their timestamp is looked for.
    const MAX_UNPLACED: usize = 16;

    /// Compares the entries up to the end of the next batch.
    pub(super) fn add(&mut self, header: &BatchHeader) -> Result<()> {
        if header.max_timestamp > self.largest {
            (self.largest, self.reached) = (header.max_timestamp, (header.base_offset, header.last_offset));
            let wrong = &mut self.wrong;
            self.unplaced.retain(|(slot, timestamp)| {
                if *timestamp == header.max_timestamp {
                    let (first, last) = (header.base_offset, header.last_offset);
                    wrong.explain(
                        *slot,
                        format!("timestamp {timestamp} is first reached by the batch with the offsets {first} to {last}"),
                    );
                }
                *timestamp > header.max_timestamp
            });
        }
        while let Some(entry) = self.next_in_order()? {
            if entry.offset > header.last_offset {
                break;
            }
            let slot = self.accept(entry);
            let (first, last) = self.reached;
            if entry.timestamp == self.largest && (first..=last).contains(&entry.offset) {
                continue;
            }
            let is_of_batch = entry.timestamp == header.max_timestamp && entry.offset >= header.base_offset;
            if self.is_uncertain && (is_of_batch || entry.timestamp >= self.largest) {
                self.largest = self.largest.max(entry.timestamp);
                continue;
            }
            let expected = format!(
                "the largest timestamp of the batches up to offset {}, which is {}, at the first batch that has it (offsets {first} \
                 to {last})",
                entry.offset, self.largest
            );
            self.wrong.add(slot, entry.offset, expected, found(entry));
            if entry.timestamp > self.largest && self.unplaced.len() < Self::MAX_UNPLACED {
                self.unplaced.push((slot, entry.timestamp));
            }
        }
        Ok(())
    }

    /// Passes over damage: entries that refer to it cannot be compared.
    pub(super) fn skip(&mut self, span: &DamagedSpan) -> Result<()> {
        self.is_uncertain = true;
        let end = span.end_offset.unwrap_or(i64::MAX);
        while let Some(entry) = self.next_in_order()? {
            if entry.offset >= end {
                break;
            }
            self.accept(entry);
            self.largest = self.largest.max(entry.timestamp);
        }
        Ok(())
    }

    /// The findings, after the last batch. `is_sealed`: whether the index must have an entry for the largest
    /// timestamp.
    pub(super) fn finish(
        mut self,
        end_offset: i64,
        is_sealed: bool,
        partition: &Path,
    ) -> Result<Vec<Finding>> {
        let entries = self.end;
        while let Some(entry) = self.next_in_order()? {
            let slot = self.accept(entry);
            if !self.has_grown {
                let expected = format!("an offset below {end_offset}, the end of the segment");
                self.wrong.add(slot, entry.offset, expected, found(entry));
            }
        }
        let last = self.previous.timestamp;
        let mut findings = self.wrong.into_findings();
        if is_sealed && entries > 0 && findings.is_empty() && !self.is_uncertain && last < self.largest {
            let expected = format!("a last entry with the segment's largest timestamp, {}", self.largest);
            let found = format!("timestamp {last}");
            let finding =
                Finding::new(Rule::TimeIndexIncomplete, partition, self.index.path(), expected, found);
            findings.push(finding.offsets(self.reached.0, Some(self.reached.1 + 1)));
        }
        Ok(findings)
    }

    fn accept(&mut self, entry: TimestampOffset) -> u64 {
        self.previous = entry;
        self.slot += 1;
        self.slot - 1
    }

    /// The next entry that is in order. Those before it that are not are wrong.
    fn next_in_order(&mut self) -> Result<Option<TimestampOffset>> {
        while self.slot < self.end {
            let entry = self.index.entry(self.slot)?;
            if time_entry_follows(entry, self.previous) && entry.timestamp >= 0 && !self.is_too_high(entry)? {
                return Ok(Some(entry));
            }
            let expected = "entries in order: timestamps increase, offsets do not decrease".to_owned();
            self.wrong.add(self.slot, entry.offset, expected, found(entry));
            self.slot += 1;
        }
        Ok(None)
    }

    /// Whether the entry does not precede the next one, although that follows the one before.
    fn is_too_high(&self, entry: TimestampOffset) -> Result<bool> {
        if self.slot + 1 >= self.end {
            return Ok(false);
        }
        let next = self.index.entry(self.slot + 1)?;
        Ok(!time_entry_follows(next, entry) && time_entry_follows(next, self.previous))
    }
}

fn found(entry: TimestampOffset) -> String {
    format!("timestamp {} at offset {}", entry.timestamp, entry.offset)
}
