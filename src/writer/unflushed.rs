//! Appends whose flush is awaited apart from them: an event loop appends, and a thread waits for the disk.

use std::sync::Arc;

use super::acknowledgement::FlushWait;
use super::{Appended, Appender, Shared};
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::record::NewRecord;

/// An append that is in the log, and perhaps not durable yet.
#[derive(Debug, Clone)]
pub struct Unflushed {
    shared: Arc<Shared>,
    appended: Appended,
    /// The number of truncations when the records were appended.
    truncations: u64,
    /// `None` if the flush mode does not make this append wait.
    wait: Option<FlushWait>,
}

impl Appender {
    /// [`Appender::append_many`] without its wait for the disk: [`Unflushed::wait`] is the rest of it.
    ///
    /// ```
    /// # use cordwood::record::NewRecord;
    /// # use cordwood::writer::{LogWriter, WriterOptions};
    /// # fn main() -> cordwood::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let mut writer = LogWriter::open(folder.path().join("orders-0"), &WriterOptions::default())?;
    /// let record = NewRecord { timestamp: 0, key: None, value: Some(b"v"), headers: &[] };
    /// let first = writer.appender().append_many_unflushed(&[record.clone()])?;
    /// let second = writer.appender().append_many_unflushed(&[record])?;
    /// assert!(first.must_wait() && !first.appended()?.durable);
    /// second.wait()?;
    /// assert!(first.order() < second.order() && !first.must_wait() && first.appended()?.durable);
    /// # writer.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Appender::append_many`] before its flush.
    pub fn append_many_unflushed(&self, records: &[NewRecord<'_>]) -> Result<Unflushed> {
        let (appended, truncations) = {
            let mut partition = self.shared.enter()?;
            (partition.append_records(records, None)?, partition.truncations)
        };
        Ok(Unflushed::acknowledged_by_mode(Arc::clone(&self.shared), appended, truncations))
    }
}

impl Unflushed {
    /// An append that waits as the flush mode requires. `truncations`: their number when the records were
    /// appended.
    pub(super) fn acknowledged_by_mode(shared: Arc<Shared>, appended: Appended, truncations: u64) -> Self {
        let wait = if appended.is_empty() { None } else { shared.flush_due(appended.last_offset + 1) };
        Self { shared, appended, truncations, wait }
    }

    /// An append that does not wait in any flush mode.
    pub(super) fn acknowledged(shared: Arc<Shared>, appended: Appended, truncations: u64) -> Self {
        Self { shared, appended, truncations, wait: None }
    }

    /// Whether the flush mode acknowledges the append only after a flush that has not happened yet.
    pub fn must_wait(&self) -> bool {
        self.wait.is_some() && self.shared.commit.durable() <= self.appended.last_offset
    }

    /// A number that the appends of a writer share, and no append of another writer has while they exist.
    #[cfg(feature = "binding")]
    #[doc(hidden)]
    pub fn writer(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }

    /// The order in which appends of a writer are acknowledged: after [`Unflushed::wait`] of one of them has
    /// returned, it returns at once for each that is not above it.
    pub fn order(&self) -> (u64, i64) {
        (self.truncations, self.appended.last_offset)
    }

    /// Returns when the flush mode acknowledges the append. Appends of all threads share the flushes.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Poisoned`]: the records may be in the log when it is opened
    /// again. [`Error::Forked`] in a forked child.
    pub fn wait(&self) -> Result<()> {
        self.shared.check_process()?;
        let Some(wait) = self.wait else { return Ok(()) };
        self.shared.wait_durable(self.appended.last_offset + 1, self.truncations, wait)
    }

    /// What was appended, and whether it is durable now. Does not wait. If the records were truncated
    /// meanwhile, it is not known whether `durable` is about them or about those in their place.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if the append had to wait. [`Error::Forked`] in a
    /// forked child.
    pub fn appended(&self) -> Result<Appended> {
        self.shared.check_process()?;
        if self.wait.is_some() {
            self.shared.commit.check()?;
        }
        let durable = self.appended.is_empty() || self.shared.commit.durable() > self.appended.last_offset;
        Ok(Appended { durable, ..self.appended })
    }
}
