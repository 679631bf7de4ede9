//! Whether a scan that reads uncommitted records gave any of a transaction that was aborted, or has not ended.
//!
//! The scan meets the markers on its way, so nothing is read twice: a transaction is followed from its first batch that is
//! given to its producer's next marker. Only where a range ends within transactions is more of the log read, up to their
//! markers.

use std::collections::HashMap;

use crate::error::Result;
use crate::log::Log;
use crate::log::transactions::marker;
use crate::record::BatchHeader;
use crate::record::control::ControlType;
use crate::segment::{Batch, SCAN_READ, Step, Walk};

/// What is known of the transactions of the records that a scan gave.
#[derive(Debug, Clone, Default)]
pub(crate) struct Uncommitted {
    /// The lowest offset given of a transaction that was aborted, or whose marker damage may have swallowed.
    first: Option<i64>,
    /// The first offset given of each producer whose next marker has not been met.
    open: HashMap<i64, i64>,
    /// The offset after the last batch met.
    next_offset: i64,
    /// The producer of the transactional batch whose records may be given now.
    current: Option<i64>,
}

impl Uncommitted {
    /// Whether a marker is waited for: then no batch may be passed over unseen.
    pub(super) fn is_waiting(&self) -> bool {
        !self.open.is_empty() || self.current.is_some()
    }

    /// Whether every record given so far is of a committed transaction, or of none.
    pub(crate) fn is_none(&self) -> bool {
        self.first.is_none() && self.open.is_empty()
    }

    /// A batch whose records in the range are given next.
    pub(super) fn opens(&mut self, header: &BatchHeader) {
        self.current = (header.is_transactional() && !header.is_control()).then_some(header.producer_id);
    }

    /// No more records of that batch are given; `first`: the offset of the first that was.
    pub(super) fn closes(&mut self, first: Option<i64>) {
        if let (Some(producer_id), Some(first)) = (self.current.take(), first) {
            self.open.entry(producer_id).or_insert(first);
        }
    }

    /// A verified batch, given or not.
    pub(super) fn meets(&mut self, batch: &Batch, walk: &mut Walk) -> Result<()> {
        let header = batch.header;
        self.next_offset = header.last_offset + 1;
        if !header.is_control() || !header.is_transactional() || !self.open.contains_key(&header.producer_id)
        {
            return Ok(());
        }
        let mut buffer = Vec::new();
        match marker(header, walk.bytes(batch)?, &mut buffer) {
            Ok(Some(ControlType::Commit)) => {
                self.open.remove(&header.producer_id);
            }
            Ok(Some(_)) => {
                let aborted = self.open.remove(&header.producer_id);
                self.first = self.first.into_iter().chain(aborted).min();
            }
            Ok(None) => {}
            Err(_) => self.misses(),
        }
        Ok(())
    }

    /// Damage may have swallowed markers: a committed reader leaves out what is in doubt.
    pub(super) fn misses(&mut self) {
        self.first = self.first.into_iter().chain(self.open.drain().map(|(_, offset)| offset)).min();
    }

    /// The first offset given of a transaction that was aborted, or has not ended. *Cost*: reads on in the log, up to the
    /// markers of transactions that go beyond what was scanned.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged),
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub(crate) fn find(mut self, log: &Log) -> Result<Option<i64>> {
        let from = self.next_offset;
        let mut next = log.segments().floor(from).cloned();
        while let Some(segment) = next {
            let mut walk = if segment.base_offset() < from {
                segment.walk_to(from, -1, SCAN_READ)?.0
            } else {
                segment.walk_after(-1, SCAN_READ)?
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
                            self.meets(&batch, &mut walk)?;
                            continue;
                        }
                        Err(malformed) => walk.reject(&batch, before, malformed),
                    },
                };
                self.misses();
                segment.resume(&mut walk, &damage)?;
            }
            if !self.is_open_below(self.first) {
                break;
            }
            next = log.segments().higher(segment.base_offset()).cloned();
        }
        self.misses();
        Ok(self.first)
    }

    /// Whether a transaction that has not ended begins before an offset: else how it ends does not matter.
    fn is_open_below(&self, offset: Option<i64>) -> bool {
        self.open.values().any(|first| offset.is_none_or(|offset| *first < offset))
    }
}
