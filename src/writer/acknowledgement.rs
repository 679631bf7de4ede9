//! When an append is acknowledged: the wait that the flush mode requires.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::{Appended, FlushMode, Shared};
use crate::error::Result;

/// For how long, and for how many bytes, a flush waits for more appends; `None`: it begins at once.
pub(super) type FlushWait = Option<(Duration, u64)>;

impl Shared {
    /// Returns once everything below `offset` is durable. `truncations`: the number of truncations when the
    /// log reached `offset`.
    pub(super) fn wait_durable(&self, offset: i64, truncations: u64, wait: FlushWait) -> Result<()> {
        self.commit.wait_durable(offset, truncations, wait, self.interrupt, || {
            let unsynced = self.lock_unpoisoned()?.unsynced();
            let began = Instant::now();
            unsynced.file.sync()?;
            let time = began.elapsed();
            let mut partition = self.lock_unpoisoned()?;
            partition.metrics.flushed(time);
            if !partition.is_closed {
                partition.ensure_in_place()?;
            }
            partition.note_synced(&unsynced)?;
            Ok(unsynced.log_end_offset)
        })
    }

    /// Waits as the flush mode requires before an append returns. Returns true if its records are durable.
    pub(super) fn await_flush(&self, appended: &Appended, truncations: u64) -> Result<bool> {
        let end = appended.last_offset + 1;
        if let Some(wait) = self.flush_due(end) {
            self.wait_durable(end, truncations, wait)?;
        }
        Ok(self.commit.durable() >= end)
    }

    /// How an append up to `end` waits for a flush; `None` if the flush mode acknowledges it without one.
    /// Called once an append.
    pub(super) fn flush_due(&self, end: i64) -> Option<FlushWait> {
        match self.flush {
            FlushMode::None => None,
            FlushMode::Always => Some(None),
            FlushMode::Group { ms, bytes } => Some(Some((Duration::from_millis(ms), bytes))),
            FlushMode::Interval { messages, ms } => {
                let mut last_sync = self.last_sync.lock().unwrap_or_else(PoisonError::into_inner);
                let unsynced = u64::try_from(end - self.commit.durable()).unwrap_or(0);
                let elapsed_ms = u64::try_from(last_sync.elapsed().as_millis()).unwrap_or(u64::MAX);
                let is_due =
                    messages.is_some_and(|max| unsynced >= max) || ms.is_some_and(|max| elapsed_ms >= max);
                is_due.then(|| {
                    *last_sync = Instant::now();
                    None
                })
            }
        }
    }
}
