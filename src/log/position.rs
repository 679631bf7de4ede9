//! Positions: the offsets up to which consumers have processed a log.

use std::time::{SystemTime, UNIX_EPOCH};

use super::Log;
use crate::error::Result;
use crate::state::positions::{self, CommittedOffset, LastCommit};

/// The position of a consumer in a log, by its name: the offset of the next record that it will process. It
/// is in a small file inside the partition directory, `.cordwood.positions/<name>`, which Kafka ignores.
///
/// *Concurrency*: any number of processes may read, and those of the user that committed first may commit. Of
/// several commits the last one counts.
#[derive(Debug, Clone)]
pub struct Position {
    log: Log,
    name: String,
    last_commit: LastCommit,
}

impl Log {
    /// The position with a name, of 1 to 249 characters of `a-z A-Z 0-9 . _ -`, as Kafka's topics. Reads and
    /// writes nothing.
    ///
    /// ```
    /// use cordwood::{Log, LogOptions};
    ///
    /// # fn main() -> cordwood::Result<()> {
    /// let log = Log::open("tests/golden/01-plain/orders-0", LogOptions::default())?;
    /// let position = log.position("billing")?;
    /// assert_eq!(position.committed()?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for another name.
    pub fn position(&self, name: impl Into<String>) -> Result<Position> {
        let name = name.into();
        positions::check_name("name", &name)?;
        Ok(Position::new(self.clone(), name))
    }

    /// The positions under which something is committed now, sorted by name.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub fn positions(&self) -> Result<Vec<Position>> {
        let names = positions::names(&self.inner.open_files.directory)?;
        Ok(names.into_iter().map(|name| Position::new(self.clone(), name)).collect())
    }
}

impl Position {
    fn new(log: Log, name: String) -> Self {
        Self { log, name, last_commit: LastCommit::default() }
    }

    /// The position for the next commit after those of another object.
    #[cfg(feature = "binding")]
    #[doc(hidden)]
    #[must_use]
    pub fn after(self, last_commit: &LastCommit) -> Self {
        Self { last_commit: last_commit.clone(), ..self }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is committed now; `None` before the first commit. Writes nothing.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the file is damaged or of another format;
    /// [`Error::Io`](crate::Error::Io).
    pub fn committed(&self) -> Result<Option<CommittedOffset>> {
        CommittedOffset::read(&self.log.inner.open_files.directory, &self.name)
    }

    /// Commits an offset, durably and atomically: a reader, now or after a crash, finds the offset committed
    /// before or this one, and after the return this one.
    ///
    /// The offset must be in the log as it is now: from the log start offset to the log end offset, which is
    /// allowed. It may be lower than the one that was committed before.
    ///
    /// *Cost*: one write of 1 KiB and one sync of the disk, and a refresh of the log. The first commit under
    /// a name creates its file, with two syncs; so has one after a commit through another object. Only
    /// the first one needs space on the disk.
    ///
    /// # Errors
    /// [`Error::OffsetOutOfRange`](crate::Error::OffsetOutOfRange); [`Error::Locked`](crate::Error::Locked)
    /// if another commit takes longer than 10 seconds; [`Error::Io`](crate::Error::Io); those of
    /// [`Log::refresh`].
    pub fn commit(&self, offset: i64) -> Result<()> {
        let log = self.log.refresh()?;
        if offset < log.log_start_offset() || offset > log.log_end_offset()? {
            return Err(log.out_of_range(offset));
        }
        CommittedOffset { offset, timestamp: now() }.write(
            &log.inner.open_files.directory,
            &self.name,
            &self.last_commit,
        )
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
