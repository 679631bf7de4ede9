//! The error type of the crate: the file, the position, what was expected and what was found.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

mod io_action;
mod malformed;
mod size_limit;

pub use io_action::IoAction;
pub use malformed::{Malformed, Place, Reason};
pub use size_limit::SizeLimit;

/// `Result` with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What was found at a path instead of a log or a file of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotFound {
    /// No directory.
    NoDirectory,
    /// A file instead of a directory.
    NoDirectoryButAFile,
    /// Another directory than the one that was opened.
    AnotherDirectory,
    /// A directory without a segment.
    NoSegment,
    /// No file.
    NoFile,
    /// Another file than the one that was opened.
    AnotherFile,
}

impl fmt::Display for NotFound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NoDirectory => "no such directory",
            Self::NoDirectoryButAFile => "a file, not a directory",
            Self::AnotherDirectory => "another directory than the one that was opened",
            Self::NoSegment => "a directory without a segment (a .log named by 20 digits)",
            Self::NoFile => "no such file",
            Self::AnotherFile => "another file than the one that was opened",
        })
    }
}

/// Every error of the crate. The messages state facts; the interfaces (Python, the command line, Spark) add
/// advice on what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bytes of a file break the format. A scan that skips damage reads the rest of a damaged
    /// `.log`.
    #[error("{} is damaged at position {}{}: expected {expected}, found {found}",
             place.file.display(), place.position, offset_words(place.offset))]
    Corrupt {
        /// The position of the damage.
        place: Box<Place>,
        /// The rule of the format.
        expected: String,
        /// What the file contains.
        found: String,
    },
    /// Bytes of a file that this version does not support.
    #[error("{} holds at position {}{} something this version cannot read: expected {expected}, found {found}",
            place.file.display(), place.position, offset_words(place.offset))]
    UnsupportedFormat {
        /// The position of the bytes.
        place: Box<Place>,
        /// What this version supports.
        expected: String,
        /// What the file contains.
        found: String,
    },
    /// A batch that is larger than the limit of a reader, `max_batch_bytes`, as stored or decompressed. It is
    /// not damaged, and no reader skips it: read it with a higher limit.
    #[error("{} has at position {}{} a batch above max_batch_bytes: expected {expected}, found {found}",
            place.file.display(), place.position, offset_words(place.offset))]
    BatchTooLarge {
        /// The position of the batch.
        place: Box<Place>,
        /// The limit.
        expected: String,
        /// The offsets of the batch and its size.
        found: String,
    },
    /// A record, or bytes of a batch, that a log does not accept.
    #[error("{argument}: expected {expected}, found {found}")]
    InvalidRecord {
        /// The part that is not accepted: `raw` (bytes that are not a valid batch), `timestamp` or `key`.
        argument: &'static str,
        /// The position of the batch in the given bytes; `None` for a record.
        position: Option<u64>,
        /// The rule.
        expected: String,
        /// What was given.
        found: String,
    },
    /// A record, or a batch, that is larger than a limit.
    #[error("{limit}: expected a batch of at most {max_bytes} bytes, found {found}")]
    RecordTooLarge {
        /// The limit.
        limit: SizeLimit,
        /// Its value, in bytes.
        max_bytes: u64,
        /// The size that was given.
        found: String,
    },
    /// A batch of a producer whose first sequence does not follow the last one of that producer: a batch
    /// before it is missing, or it is an old batch again.
    #[error(
        "{}: expected sequence {expected} of producer {producer_id}, epoch {producer_epoch}, found {found}{}",
        sequence_argument(*position), batch_words(*position)
    )]
    OutOfOrderSequence {
        /// The position of the batch in the given bytes; `None` if the writer builds the batch.
        position: Option<u64>,
        /// The producer's id.
        producer_id: i64,
        /// The epoch of the batch.
        producer_epoch: i16,
        /// The sequence that follows the producer's last one; 0 in a new epoch.
        expected: i32,
        /// The first sequence of the batch.
        found: i32,
    },
    /// A batch with a lower epoch than its producer had before: the id belongs to a newer producer.
    #[error(
        "{}: expected epoch {expected} or above of producer {producer_id}, found {found}{}",
        epoch_argument(*position), batch_words(*position)
    )]
    InvalidProducerEpoch {
        /// The position of the batch in the given bytes; `None` if the writer builds the batch.
        position: Option<u64>,
        /// The producer's id.
        producer_id: i64,
        /// The producer's epoch.
        expected: i16,
        /// The epoch of the batch.
        found: i16,
    },
    /// An offset outside the log.
    #[error("offset {offset} is outside {}, which {}", path.display(),
            range_words(*log_start_offset, *log_end_offset))]
    OffsetOutOfRange {
        /// The partition directory.
        path: PathBuf,
        /// The offset that was given.
        offset: i64,
        /// Inclusive.
        log_start_offset: i64,
        /// Exclusive.
        log_end_offset: i64,
    },
    /// A file of the log was shortened, replaced or removed after the log was opened. Open the log again, or
    /// refresh it.
    #[error("{} changed while it was read: expected {expected}, found {found}", file.display())]
    LogChanged {
        /// The file.
        file: PathBuf,
        /// The state of the file when the log was opened.
        expected: String,
        /// The present state of the file.
        found: String,
    },
    /// There is no log at the path.
    #[error("no log at {}: {found}; {advice}", path.display())]
    LogNotFound {
        /// The path that was given.
        path: PathBuf,
        /// What is at the path.
        found: NotFound,
        /// What to do next.
        advice: &'static str,
    },
    /// An argument or a setting that is not allowed.
    #[error("{argument}: expected {expected}, found {found}")]
    Config {
        /// The argument's or setting's name.
        argument: String,
        /// What is allowed.
        expected: String,
        /// What was given.
        found: String,
    },
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The operation.
        action: IoAction,
        /// The system's error.
        source: io::Error,
    },
    /// Another process, or another handle of this one, holds a lock.
    #[error("{} is locked by {found}; {rule}", file.display())]
    Locked {
        /// The lock's file.
        file: PathBuf,
        /// The holder, as far as the system reports it.
        found: String,
        /// What the lock is for.
        rule: &'static str,
    },
    /// An earlier write or flush failed, so the state of the disk is not known and the handle accepts no more
    /// writes. Open the log again: recovery keeps all acknowledged records.
    #[error("the log takes no more writes: {reason}")]
    Poisoned {
        /// What failed.
        reason: String,
    },
    /// A handle was used after it was closed.
    #[error("{handle} is closed: expected an open handle")]
    Closed {
        /// The class of the handle.
        handle: &'static str,
    },
    /// A handle was used in a forked child of the process that opened it.
    #[error("{handle} was opened before a fork and belongs to the parent; open one in the child")]
    Forked {
        /// The class of the handle.
        handle: &'static str,
    },
    /// The caller's [`Interrupt`](crate::types::Interrupt) stopped the call; the source is the caller's
    /// error.
    #[error("interrupted: {0}")]
    Interrupted(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// An [`Error::Config`].
    pub fn config(
        argument: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self::Config { argument: argument.into(), expected: expected.into(), found: found.into() }
    }

    /// An [`Error::Io`].
    pub fn io(file: impl Into<PathBuf>, action: IoAction, source: impl Into<io::Error>) -> Self {
        Self::Io { file: file.into(), action, source: source.into() }
    }

    /// A stable name for the kind of error, for programs: `"corrupt"`, `"offset_out_of_range"`, …
    pub fn code(&self) -> &'static str {
        match self {
            Self::Corrupt { .. } => "corrupt",
            Self::UnsupportedFormat { .. } => "unsupported_format",
            Self::BatchTooLarge { .. } => "batch_too_large",
            Self::InvalidRecord { .. } => "invalid_record",
            Self::RecordTooLarge { .. } => "record_too_large",
            Self::OutOfOrderSequence { .. } => "out_of_order_sequence",
            Self::InvalidProducerEpoch { .. } => "invalid_producer_epoch",
            Self::OffsetOutOfRange { .. } => "offset_out_of_range",
            Self::LogChanged { .. } => "log_changed",
            Self::LogNotFound { found: NotFound::NoSegment, .. } => "no_segment",
            Self::LogNotFound { .. } => "log_not_found",
            Self::Config { .. } => "config",
            Self::Io { .. } => "io",
            Self::Locked { .. } => "locked",
            Self::Poisoned { .. } => "poisoned",
            Self::Closed { .. } => "closed",
            Self::Forked { .. } => "forked_handle",
            Self::Interrupted(_) => "interrupted",
        }
    }

    /// The file or directory of the error; `None` if there is none.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Corrupt { place, .. }
            | Self::UnsupportedFormat { place, .. }
            | Self::BatchTooLarge { place, .. } => Some(&place.file),
            Self::OffsetOutOfRange { path, .. } | Self::LogNotFound { path, .. } => Some(path),
            Self::LogChanged { file, .. } | Self::Io { file, .. } | Self::Locked { file, .. } => Some(file),
            _ => None,
        }
    }

    /// Bytes from the start of [`Error::file`]; for batches that were given, from the start of these bytes.
    pub fn position(&self) -> Option<u64> {
        match self {
            Self::Corrupt { place, .. }
            | Self::UnsupportedFormat { place, .. }
            | Self::BatchTooLarge { place, .. } => Some(place.position),
            Self::InvalidRecord { position, .. } => *position,
            Self::OutOfOrderSequence { position, .. } | Self::InvalidProducerEpoch { position, .. } => {
                *position
            }
            _ => None,
        }
    }

    /// The offset (logical) of the error; `None` if there is none.
    pub fn offset(&self) -> Option<i64> {
        match self {
            Self::Corrupt { place, .. }
            | Self::UnsupportedFormat { place, .. }
            | Self::BatchTooLarge { place, .. } => place.offset,
            Self::OffsetOutOfRange { offset, .. } => Some(*offset),
            _ => None,
        }
    }

    /// The offsets of the log, `[log start offset, log end offset)`; `None` for any error but
    /// [`Error::OffsetOutOfRange`].
    pub fn log_offsets(&self) -> Option<Range<i64>> {
        match self {
            Self::OffsetOutOfRange { log_start_offset, log_end_offset, .. } => {
                Some(*log_start_offset..*log_end_offset)
            }
            _ => None,
        }
    }

    /// The producer id and the epoch of a batch that was refused for them; `None` for any other error.
    pub fn producer(&self) -> Option<(i64, i16)> {
        match self {
            Self::OutOfOrderSequence { producer_id, producer_epoch, .. } => {
                Some((*producer_id, *producer_epoch))
            }
            Self::InvalidProducerEpoch { producer_id, found, .. } => Some((*producer_id, *found)),
            _ => None,
        }
    }

    /// The argument or setting of the error; `None` if there is none.
    pub fn argument(&self) -> Option<&str> {
        match self {
            Self::Config { argument, .. } => Some(argument),
            Self::InvalidRecord { argument, .. } => Some(argument),
            Self::OutOfOrderSequence { position, .. } => Some(sequence_argument(*position)),
            Self::InvalidProducerEpoch { position, .. } => Some(epoch_argument(*position)),
            Self::RecordTooLarge { limit, .. } => limit.setting(),
            _ => None,
        }
    }

    /// What was expected; `None` if the error has no such part.
    pub fn expected(&self) -> Option<String> {
        match self {
            Self::Corrupt { expected, .. }
            | Self::UnsupportedFormat { expected, .. }
            | Self::BatchTooLarge { expected, .. }
            | Self::InvalidRecord { expected, .. }
            | Self::LogChanged { expected, .. }
            | Self::Config { expected, .. } => Some(expected.clone()),
            Self::OutOfOrderSequence { expected, .. } => Some(format!("sequence {expected}")),
            Self::InvalidProducerEpoch { expected, .. } => Some(format!("epoch {expected} or above")),
            Self::RecordTooLarge { max_bytes, .. } => Some(format!("a batch of at most {max_bytes} bytes")),
            Self::OffsetOutOfRange { log_start_offset, log_end_offset, .. } => {
                Some(format!("{log_start_offset} <= offset < {log_end_offset}"))
            }
            Self::LogNotFound { .. } => Some("a partition directory".to_owned()),
            Self::Locked { .. } => Some("a lock that no other handle holds".to_owned()),
            Self::Closed { .. } => Some("an open handle".to_owned()),
            Self::Forked { .. } => Some("a handle that this process opened".to_owned()),
            Self::Poisoned { .. } | Self::Io { .. } | Self::Interrupted(_) => None,
        }
    }

    /// What was found; `None` if the error has no such part.
    pub fn found(&self) -> Option<String> {
        match self {
            Self::Corrupt { found, .. }
            | Self::UnsupportedFormat { found, .. }
            | Self::BatchTooLarge { found, .. }
            | Self::InvalidRecord { found, .. }
            | Self::RecordTooLarge { found, .. }
            | Self::LogChanged { found, .. }
            | Self::Locked { found, .. }
            | Self::Config { found, .. } => Some(found.clone()),
            Self::OutOfOrderSequence { found, .. } => Some(found.to_string()),
            Self::InvalidProducerEpoch { found, .. } => Some(found.to_string()),
            Self::OffsetOutOfRange { offset, .. } => Some(offset.to_string()),
            Self::LogNotFound { found, .. } => Some(found.to_string()),
            Self::Io { source, .. } => Some(source.to_string()),
            Self::Poisoned { reason } => Some(reason.clone()),
            Self::Closed { .. } => Some("a closed handle".to_owned()),
            Self::Forked { .. } => Some("a handle that the parent process opened".to_owned()),
            Self::Interrupted(_) => None,
        }
    }
}

#[cfg(feature = "inspect")]
impl Error {
    /// Whether it is about files that cannot be read now, such as files of another user, and not about what
    /// they contain.
    pub(crate) fn is_unreadable(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::LogNotFound { .. } | Self::LogChanged { .. })
    }

    /// Whether it ends a call that goes on to the next log when one cannot be opened.
    pub(crate) fn ends_all(&self) -> bool {
        matches!(self, Self::Interrupted(_) | Self::Config { .. })
    }
}

fn range_words(start: i64, end: i64) -> String {
    if start == end {
        return format!("is empty: the next record there gets offset {end}");
    }
    format!("holds offsets {start} (inclusive) to {end} (exclusive): the next record there gets offset {end}")
}

fn sequence_argument(position: Option<u64>) -> &'static str {
    if position.is_some() { "raw" } else { "sequence" }
}

fn epoch_argument(position: Option<u64>) -> &'static str {
    if position.is_some() { "raw" } else { "producer" }
}

fn batch_words(position: Option<u64>) -> String {
    position.map_or_else(String::new, |position| format!(" in the batch at position {position}"))
}

fn offset_words(offset: Option<i64>) -> String {
    offset.map_or_else(String::new, |offset| format!(" (offset {offset})"))
}
