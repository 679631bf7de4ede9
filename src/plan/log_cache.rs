//! The logs that a process has open: a worker runs many tasks, and opens each log once.

use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use super::directory::absolute;
use crate::error::Result;
use crate::fs::forks;
use crate::log::{Log, LogOptions};
use crate::record::MAX_BATCH_BYTES;
use crate::types::Io;

/// Logs by their paths, for the lifetime of a process.
///
/// *Concurrency*: `Send + Sync`. A forked child has an empty cache.
#[derive(Debug)]
pub struct LogCache {
    options: LogOptions,
    of_process: ArcSwap<OfProcess>,
    opened: AtomicU64,
}

/// The logs of one process: a child must not wait for a lock that a thread of its parent held.
#[derive(Debug)]
struct OfProcess {
    forks: Option<u32>,
    /// The one that was used last is at the end.
    logs: Mutex<VecDeque<Arc<Cached>>>,
}

#[derive(Debug)]
struct Cached {
    path: PathBuf,
    access: LogAccess,
    /// Locked while the log is opened or refreshed: that of another path does not wait for it.
    log: Mutex<Option<(Log, Identity)>>,
}

/// How a query opens its logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogAccess {
    /// Which files are mapped.
    pub io: Io,
    /// The largest batch that is read, bytes. See [`LogOptions::max_batch_bytes`].
    pub max_batch_bytes: usize,
}

impl LogAccess {
    /// With the default limit.
    pub fn of(io: Io) -> Self {
        Self { io, max_batch_bytes: MAX_BATCH_BYTES }
    }
}

/// The device and inode of a directory. No other directory has the same while it is open.
type Identity = (u64, u64);

impl LogCache {
    /// The maximum number of logs; each may keep 64 MiB of tables for look-ups.
    const MAX_LOGS: usize = 64;
    /// Of each log, so that all of them together stay below the usual limit of 1,024 open files.
    const MAX_OPEN_FILES: usize = 12;

    /// An empty cache. Logs are opened with these options, except for `max_open_files` and what [`LogAccess`]
    /// decides.
    pub fn new(options: LogOptions) -> Self {
        let options = LogOptions { max_open_files: Self::MAX_OPEN_FILES, ..options };
        Self { options, of_process: ArcSwap::from_pointee(OfProcess::new()), opened: AtomicU64::new(0) }
    }

    /// The current log of a partition directory; one per path and access is open. With `refresh` it is the
    /// log as it is now; without, a log that is open is returned as it is, for further calls within the
    /// same plan or task.
    ///
    /// *Cost*: of a refresh, about 20 ms with 5,000 segments.
    ///
    /// # Errors
    /// As [`Log::open`] and [`Log::refresh`].
    pub fn open(&self, path: &Path, access: LogAccess, refresh: bool) -> Result<Log> {
        let cached = self.cached(absolute(path), access);
        let mut place = cached.log.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((log, _)) = &*place
            && !refresh
        {
            return Ok(log.clone());
        }
        let before = place.take();
        // read before the directory is opened: a directory that replaces it later has another inode
        let now = identity(&cached.path);
        let log = match before {
            Some((log, identity)) if now == Some(identity) => log.refresh()?,
            _ => {
                self.opened.fetch_add(1, Ordering::Relaxed);
                let LogAccess { io, max_batch_bytes } = access;
                Log::open(&cached.path, LogOptions { io, max_batch_bytes, ..self.options.clone() })?
            }
        };
        *place = now.map(|now| (log.clone(), now));
        Ok(log)
    }

    /// Drops all logs, which closes the files that nothing else uses.
    pub fn clear(&self) {
        self.of_process().logs.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The place of a log, which is the one used last from now on.
    fn cached(&self, path: PathBuf, access: LogAccess) -> Arc<Cached> {
        let of_process = self.of_process();
        let mut logs = of_process.logs.lock().unwrap_or_else(PoisonError::into_inner);
        let place = logs.iter().position(|cached| cached.access == access && cached.path == path);
        let found = place.and_then(|place| logs.remove(place));
        let cached = found.unwrap_or_else(|| Arc::new(Cached { path, access, log: Mutex::default() }));
        logs.push_back(Arc::clone(&cached));
        if logs.len() > Self::MAX_LOGS {
            logs.pop_front();
        }
        cached
    }

    /// The number of logs that were opened so far, and not taken from the cache.
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    fn of_process(&self) -> Arc<OfProcess> {
        let of_process = self.of_process.load_full();
        if of_process.forks == forks().ok() {
            return of_process;
        }
        let new = Arc::new(OfProcess::new());
        // the logs of the parent are never dropped: their locks may be held by threads that do not exist here
        std::mem::forget(self.of_process.swap(Arc::clone(&new)));
        new
    }
}

impl OfProcess {
    fn new() -> Self {
        Self { forks: forks().ok(), logs: Mutex::default() }
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let found = path.metadata().ok()?;
    Some((found.dev(), found.ino()))
}
