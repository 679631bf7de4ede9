//! Whether a scan that reads uncommitted records returned any of a transaction that was aborted, or has not
//! ended.
//!
//! The scan reads the markers anyway, so nothing is read twice: a transaction is tracked from its first
//! returned batch to its producer's next marker. Only if the range ends within transactions, the log is read
//! further, up to their markers.

use std::collections::HashMap;

use crate::error::Result;
use crate::log::Log;
use crate::record::BatchHeader;
use crate::record::control::ControlType;
use crate::segment::{Batch, SCAN_READ, Step, Walk};

/// The state of the transactions whose records a scan returned.
#[derive(Debug, Clone, Default)]
pub(crate) struct Uncommitted {
    /// The lowest returned offset of a transaction that was aborted, or whose marker damage may have
    /// destroyed.
    first: Option<i64>,
    /// The first returned offset of each producer whose next marker was not read yet.
    open: HashMap<i64, i64>,
    /// The offset after the last batch read.
    next_offset: i64,
    /// The producer of the current batch, if that is transactional.
    current: Option<i64>,
}

impl Uncommitted {
    /// Whether the marker of a transaction is still to come: then no batch may be skipped unread.
    pub(super) fn is_waiting(&self) -> bool {
        !self.open.is_empty() || self.current.is_some()
    }

    /// Whether every record returned so far belongs to a committed transaction, or to none.
    pub(crate) fn is_none(&self) -> bool {
        self.first.is_none() && self.open.is_empty()
    }

    /// Begins a batch whose records in the range are returned next.
    pub(super) fn begin_batch(&mut self, header: &BatchHeader) {
        self.current = (header.is_transactional() && !header.is_control()).then_some(header.producer_id);
    }

    /// Ends that batch; `first`: the offset of the first record returned from it.
    pub(super) fn end_batch(&mut self, first: Option<i64>) {
        if let (Some(producer_id), Some(first)) = (self.current.take(), first) {
            self.open.entry(producer_id).or_insert(first);
        }
    }

    /// Processes a batch that was read, returned or not.
    pub(super) fn observe(&mut self, batch: &Batch, walk: &mut Walk) -> Result<()> {
        let header = batch.header;
        self.next_offset = header.last_offset + 1;
        if !header.is_control() || !header.is_transactional() || !self.open.contains_key(&header.producer_id)
        {
            return Ok(());
        }
        let mut buffer = Vec::new();
        match ControlType::outcome(header, walk.bytes(batch)?, &mut buffer) {
            Ok(Some(ControlType::Commit)) => {
                self.open.remove(&header.producer_id);
            }
            Ok(Some(_)) => {
                let aborted = self.open.remove(&header.producer_id);
                self.first = self.first.into_iter().chain(aborted).min();
            }
            Ok(None) => {}
            Err(_) => self.assume_aborted(),
        }
        Ok(())
    }

    /// Counts all open transactions as aborted, because damage may have destroyed their markers: a committed
    /// reader does not see them.
    pub(super) fn assume_aborted(&mut self) {
        self.first = self.first.into_iter().chain(self.open.drain().map(|(_, offset)| offset)).min();
    }

    /// The first returned offset of a transaction that was aborted, or has not ended. *Cost*: reads the log
    /// further, up to the markers of transactions that continue after the scanned range.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged),
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub(crate) fn find(mut self, log: &Log) -> Result<Option<i64>> {
        let from = self.next_offset;
        let mut next = log.segments().floor(from).cloned();
        while let Some(segment) = next {
            let mut walk = if segment.base_offset() < from {
                segment.walk_to(from, -1, segment.log_file(SCAN_READ)?)?.0
            } else {
                segment.walk(-1, SCAN_READ)?
            };
            while self.is_open_below(self.first) {
                log.options().interrupt.check()?;
                let before = walk.before;
                let damage = match walk.step()? {
                    Step::End => break,
                    Step::Damage(damage) => damage,
                    Step::Batch(batch) if batch.header.last_offset < from => continue,
                    Step::Batch(batch) => match walk.verify(&batch)? {
                        Ok(()) => {
                            self.observe(&batch, &mut walk)?;
                            continue;
                        }
                        Err(malformed) => walk.reject(&batch, before, malformed),
                    },
                };
                self.assume_aborted();
                segment.resume(&mut walk, &damage)?;
            }
            if !self.is_open_below(self.first) {
                break;
            }
            next = log.segments().higher(segment.base_offset()).cloned();
        }
        self.assume_aborted();
        Ok(self.first)
    }

    /// Whether a transaction that has not ended begins before an offset: otherwise its outcome does not
    /// matter.
    fn is_open_below(&self, offset: Option<i64>) -> bool {
        self.open.values().any(|first| offset.is_none_or(|offset| *first < offset))
    }
}
