//! What planning and reading use: the open logs of the process, and the warnings so far.

use std::sync::Arc;

use super::directory::PartitionDirectory;
use super::error::{PlanError, Result};
use super::log_cache::{LogAccess, LogCache};
use super::options::SourceOptions;
use super::warning::Warning;
use crate::log::Log;

/// The open logs of a process, and the warnings that the calls with this context have found.
#[derive(Debug)]
pub struct Context {
    /// The open logs.
    pub logs: Arc<LogCache>,
    /// In the order in which they were found.
    pub warnings: Vec<Warning>,
}

impl Context {
    /// A context without warnings.
    pub fn new(logs: Arc<LogCache>) -> Self {
        Self { logs, warnings: Vec::new() }
    }

    /// The log of a partition: the current one, or without `refresh` the one that is open.
    pub(crate) fn open(
        &self,
        directory: &PartitionDirectory,
        options: &SourceOptions,
        refresh: bool,
    ) -> Result<Log> {
        let max_batch_bytes = usize::try_from(options.max_log_batch_bytes).unwrap_or(usize::MAX);
        let access = LogAccess { io: options.io, max_batch_bytes };
        let opened = self.logs.open(&directory.path, access, refresh);
        opened.map_err(|error| PlanError::of(error).in_log(directory))
    }
}
