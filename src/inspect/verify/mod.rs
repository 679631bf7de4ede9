//! The verification of partitions: every rule of structure and checksums, and the agreement of the files with
//! each other.
//!
//! ```text
//!   target       paths → partitions
//!   run          partitions → segments, verified by some threads
//!     segment    the batches of one segment (segment::Walk, which decides what is damage); with them, in the same pass:
//!                  offset_entries   time_entries   transaction_entries   records
//!     partition  across segments: continuity   epochs   transactions   snapshots   stable_limits
//!                  beside them:   files   writer_files   checkpoints   topic_ids   loading
//!   broker_files what else a broker needs of a data directory
//!   directories  directories that a broker loads without serving them
//!   journal      segments that need not be verified again
//!   rule         the rules: code, severity, what Kafka does, what to do
//! ```
//!
//! Nothing that is read is trusted, and nothing is written but the journal, whose path the caller gives.
//!
//! # Depth
//!
//! The checksum of every batch is verified, and every control record is decoded. The other records are
//! decoded only with [`VerifyOptions::is_deep`]: the checksum says that a batch is what its producer wrote.
//! What a faulty producer wrote wrongly, the checksum does not find.

mod broker_files;
mod checkpoints;
mod continuity;
mod deleted_files;
mod directories;
mod epochs;
mod files;
mod finding;
mod index_files;
mod journal;
mod loading;
mod misnamed;
mod offset_entries;
mod partition;
mod quorum_state;
mod records;
mod restarts;
mod rule;
mod run;
mod segment;
mod snapshots;
mod stable_limits;
mod summary;
mod target;
mod time_entries;
mod topic_ids;
mod transaction_entries;
mod transactions;
mod work;
mod writer_files;
mod wrong_entries;

use std::path::{Path, PathBuf};

pub use finding::Finding;
pub use rule::{Rule, Severity};
pub use run::verify;
#[doc(hidden)]
pub use segment::PartCheck;
pub use work::Progress;
use writer_files::WriterFiles;

use crate::error::{Error, Result};
use crate::fs::{Directory, is_of_link};
use crate::record::MAX_BATCH_BYTES;
use crate::types::{Interrupt, Io};

/// How to verify.
#[derive(Debug, Clone)]
pub struct VerifyOptions {
    /// The number of threads that verify segments; they end before the call returns.
    pub threads: usize,
    /// Whether to decode all records.
    pub is_deep: bool,
    /// Which files are mapped.
    pub io: Io,
    /// The largest batch whose records are decoded, bytes, as stored and decompressed. A larger one is a
    /// warning; a compressed one of an old format is an error, because the rest of its segment is not
    /// checked.
    pub max_batch_bytes: usize,
    /// A file of this verification outside the partitions, which is created if it does not exist: segments
    /// that were verified whole, without a finding, are added to it, and those in it are skipped if
    /// their files are unchanged.
    pub journal: Option<PathBuf>,
    /// The present time, ms since the epoch; `None`: the system's.
    pub now: Option<i64>,
    /// Called during the verification, by the calling thread.
    pub interrupt: Interrupt,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        Self {
            threads: 1,
            is_deep: false,
            io: Io::Auto,
            max_batch_bytes: MAX_BATCH_BYTES,
            journal: None,
            now: None,
            interrupt: Interrupt::NEVER,
        }
    }
}

/// Batches with a field that no rule protects against every flipped bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct Unprotected {
    /// Batches with a leader epoch that `leader-epoch-checkpoint` does not cover: only a decrease is found.
    pub leader_epochs: u64,
    /// Batches next to missing offsets, or at the end of the log: a base offset that was moved within the
    /// gap is not found.
    pub base_offsets: u64,
}

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct Verification {
    /// The findings, by partition in the order of the paths, and by file and position.
    pub findings: Vec<Finding>,
    /// Partitions that were verified.
    pub partitions: u64,
    /// Segments that were verified now.
    pub segments_checked: u64,
    /// Segments that were skipped, because the journal says that they were verified.
    pub segments_skipped: u64,
    /// Bytes of batches that were verified now.
    pub bytes_checked: u64,
    /// Batches that were verified now.
    pub batches_checked: u64,
    /// What no rule protects.
    pub unprotected: Unprotected,
    /// Whether all records were decoded.
    pub is_deep: bool,
}

impl Verification {
    /// The number of findings of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// Whether no finding is an error.
    pub fn is_intact(&self) -> bool {
        self.count(Severity::Error) == 0
    }
}

/// Of a batch whose offsets are in its records: without them the walk through the segment ends.
const NOT_CHECKED: &str = "the segment was not checked: the offsets of the batch are in its records";

/// The findings about the small files of a writer of this library that an opening for writing makes again. No
/// segment is read.
///
/// # Errors
/// [`Error::LogNotFound`]; [`Error::Io`].
pub fn writer_files(partition: &Path) -> Result<Vec<Finding>> {
    let directory = Directory::open(partition, "give the path of a partition directory")?;
    let mut findings = WriterFiles::read(&directory)?.findings;
    findings.retain(|found| matches!(found.rule, Rule::WriterFileUnreadable | Rule::TruncationInterrupted));
    Ok(findings)
}

/// The finding for an error about a file, which does not end the verification.
///
/// # Errors
/// [`Error::Interrupted`], and errors that are about no file.
fn unreadable(partition: &Path, error: Error) -> Result<Finding> {
    let found = error.to_string();
    let is_link = is_of_link(&error);
    Ok(match error {
        Error::Io { file, .. } if is_link => linked_file(partition, file),
        Error::Corrupt { place, expected, found } | Error::UnsupportedFormat { place, expected, found } => {
            let finding = Finding::new(Rule::Unreadable, partition, place.file, expected, found);
            finding.at(place.position, place.position)
        }
        Error::BatchTooLarge { place, expected, found } => {
            let finding = Finding::new(Rule::BatchTooLarge, partition, place.file, expected, found);
            finding
                .at(place.position, place.position)
                .with_severity(Severity::Error)
                .because(NOT_CHECKED.to_owned())
        }
        Error::LogChanged { file, expected, found } => {
            Finding::new(Rule::Changed, partition, file, expected, found)
        }
        Error::Io { file, source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            Finding::new(Rule::Changed, partition, file, "the file that was listed", found)
        }
        Error::Io { file, .. } => {
            Finding::new(Rule::Unreadable, partition, file, "a file that can be read", found)
        }
        Error::LogNotFound { path, .. } => {
            Finding::new(Rule::Changed, partition, path, "the directory that was listed", found)
        }
        error => return Err(error),
    })
}

fn linked_file(partition: &Path, file: impl Into<PathBuf>) -> Finding {
    Finding::new(
        Rule::LinkedFile,
        partition,
        file,
        "a regular file",
        "a symbolic link, which is not followed",
    )
}
