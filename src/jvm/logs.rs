//! The logs that this library has open.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use super::boundary::KEEP_WARNING;
use crate::inspect::internal_topics::is_topic_compacted;
use crate::log::LogOptions;
use crate::plan::{Context, LogCache};

static LOGS: LazyLock<Arc<LogCache>> = LazyLock::new(|| {
    Arc::new(LogCache::new(LogOptions {
        is_topic_compacted,
        on_warning: KEEP_WARNING,
        ..LogOptions::default()
    }))
});

static USERS: AtomicUsize = AtomicUsize::new(0);

/// A context of its own for a call, a reader or a stream.
pub(super) fn context() -> Context {
    Context::new(Arc::clone(&LOGS))
}

/// What needs open logs: a plan, a reader or a stream. With the last one all files are closed, because
/// retention may delete them, and a class loader that is given up does not drop this library's objects.
pub(super) struct LogUser(());

impl LogUser {
    pub(super) fn new() -> Self {
        USERS.fetch_add(1, Ordering::AcqRel);
        Self(())
    }
}

impl Drop for LogUser {
    fn drop(&mut self) {
        if USERS.fetch_sub(1, Ordering::AcqRel) == 1 {
            LOGS.clear();
        }
    }
}
