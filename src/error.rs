//! The one error type: what was wanted, what was found, where, and what to do next.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// `Result` with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Bytes that break a rule of the format, as the pure decoders see them: they know neither file nor position.
///
/// [`Malformed::at`] makes it an [`Error::Corrupt`] (or [`Error::UnsupportedFormat`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// What the format asks for.
    pub expected: String,
    /// What the bytes say.
    pub found: String,
    /// True where the bytes are well-formed but of a kind this version cannot read (a codec, a feature left out).
    pub unsupported: bool,
}

impl Malformed {
    /// Bytes that break a rule.
    pub fn new(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { expected: expected.into(), found: found.into(), unsupported: false }
    }

    /// Bytes that may be right but cannot be read by this version.
    pub fn unsupported(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { expected: expected.into(), found: found.into(), unsupported: true }
    }

    /// Adds the place: the file, the position in it (bytes from its start) and the offset that was expected there.
    pub fn at(self, file: impl Into<PathBuf>, position: u64, offset: Option<i64>) -> Error {
        let place = Box::new(Place { file: file.into(), position, offset });
        let Self { expected, found, unsupported } = self;
        if unsupported {
            Error::UnsupportedFormat { place, expected, found }
        } else {
            Error::Corrupt { place, expected, found }
        }
    }
}

/// Where in a log something was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// Bytes from the start of `file`.
    pub position: u64,
    /// The offset (logical) that was expected or found there, if one is known.
    pub offset: Option<i64>,
}

/// What is at a path where a log, or a file of one, was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotFound {
    /// No directory.
    NoDirectory,
    /// Something else than a directory.
    NoDirectoryButAFile,
    /// A directory without a segment.
    NoSegment,
    /// No file.
    NoFile,
}

impl fmt::Display for NotFound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NoDirectory => "no such directory",
            Self::NoDirectoryButAFile => "a file, not a directory",
            Self::NoSegment => "a directory without a segment (a .log named by 20 digits)",
            Self::NoFile => "no such file",
        })
    }
}

/// Everything that can go wrong. Its words are facts: what to do next depends on the interface by which it was met.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bytes of a log or of an index break the format. Of a `.log` a scan that passes over damage reads what is left.
    #[error("{} is damaged at position {}{}: expected {expected}, found {found}",
             place.file.display(), place.position, offset_words(place.offset))]
    Corrupt {
        /// Where.
        place: Box<Place>,
        /// What the format asks for.
        expected: String,
        /// What is there.
        found: String,
    },
    /// Bytes that this version cannot read, though they may be right.
    #[error("{} holds at position {}{} something this version cannot read: expected {expected}, found {found}",
            place.file.display(), place.position, offset_words(place.offset))]
    UnsupportedFormat {
        /// Where.
        place: Box<Place>,
        /// What can be read.
        expected: String,
        /// What is there.
        found: String,
    },
    /// An offset outside the log.
    #[error("offset {offset} is outside {}, which {}", path.display(), range_words(*start, *end))]
    OffsetOutOfRange {
        /// The partition directory.
        path: PathBuf,
        /// What was asked for.
        offset: i64,
        /// The log start offset, inclusive.
        start: i64,
        /// The log end offset, exclusive.
        end: i64,
    },
    /// A file of the log was shortened, replaced or removed since the log was opened: it has to be opened again, or
    /// refreshed.
    #[error("{} changed while it was read: expected {expected}, found {found}", file.display())]
    LogChanged {
        /// The file.
        file: PathBuf,
        /// What was there when the log was opened.
        expected: String,
        /// What is there now.
        found: String,
    },
    /// There is no log at the path.
    #[error("no log at {}: {found}; {advice}", path.display())]
    LogNotFound {
        /// The path asked for.
        path: PathBuf,
        /// What is there instead.
        found: NotFound,
        /// What to do.
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
    /// The system refused a file operation.
    #[error("cannot {action} {}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The operation, as a verb: "open", "read", "list".
        action: &'static str,
        /// The system's own error.
        source: io::Error,
    },
    /// Another process, or another handle of this one, holds a lock.
    #[error("{} is locked by {found}; only one writer may use a log at a time", file.display())]
    Locked {
        /// The lock's file.
        file: PathBuf,
        /// Who holds it, as far as the system tells.
        found: String,
    },
    /// A write or a flush failed before, and what is on the disk is in doubt: the handle takes no more. Opening the log
    /// again recovers what was acknowledged.
    #[error("the log takes no more writes: {reason}")]
    Poisoned {
        /// What failed.
        reason: String,
    },
    /// A handle that a fork has copied was used in the child.
    #[error("{handle} was opened before a fork and belongs to the parent; open one in the child")]
    Forked {
        /// What was used.
        handle: &'static str,
    },
    /// The caller's [`Interrupt`](crate::types::Interrupt) asked to stop; the source is the caller's own error.
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
    pub fn io(file: impl Into<PathBuf>, action: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Io { file: file.into(), action, source: source.into() }
    }

    /// A stable name for the kind of error, for programs: `"corrupt"`, `"offset_out_of_range"`, …
    pub fn code(&self) -> &'static str {
        match self {
            Self::Corrupt { .. } => "corrupt",
            Self::UnsupportedFormat { .. } => "unsupported_format",
            Self::OffsetOutOfRange { .. } => "offset_out_of_range",
            Self::LogChanged { .. } => "log_changed",
            Self::LogNotFound { found: NotFound::NoSegment, .. } => "no_segment",
            Self::LogNotFound { .. } => "log_not_found",
            Self::Config { .. } => "config",
            Self::Io { .. } => "io",
            Self::Locked { .. } => "locked",
            Self::Poisoned { .. } => "poisoned",
            Self::Forked { .. } => "forked_handle",
            Self::Interrupted(_) => "interrupted",
        }
    }

    /// The file or directory that the error speaks of.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Corrupt { place, .. } | Self::UnsupportedFormat { place, .. } => Some(&place.file),
            Self::OffsetOutOfRange { path, .. } | Self::LogNotFound { path, .. } => Some(path),
            Self::LogChanged { file, .. } | Self::Io { file, .. } | Self::Locked { file, .. } => Some(file),
            Self::Config { .. } | Self::Poisoned { .. } | Self::Forked { .. } | Self::Interrupted(_) => None,
        }
    }

    /// Bytes from the start of [`Error::file`].
    pub fn position(&self) -> Option<u64> {
        match self {
            Self::Corrupt { place, .. } | Self::UnsupportedFormat { place, .. } => Some(place.position),
            _ => None,
        }
    }

    /// The offset (logical) that the error speaks of.
    pub fn offset(&self) -> Option<i64> {
        match self {
            Self::Corrupt { place, .. } | Self::UnsupportedFormat { place, .. } => place.offset,
            Self::OffsetOutOfRange { offset, .. } => Some(*offset),
            _ => None,
        }
    }

    /// The argument or setting that is not allowed.
    pub fn argument(&self) -> Option<&str> {
        match self {
            Self::Config { argument, .. } => Some(argument),
            _ => None,
        }
    }

    /// What was wanted.
    pub fn expected(&self) -> Option<String> {
        match self {
            Self::Corrupt { expected, .. }
            | Self::UnsupportedFormat { expected, .. }
            | Self::LogChanged { expected, .. }
            | Self::Config { expected, .. } => Some(expected.clone()),
            Self::OffsetOutOfRange { start, end, .. } => Some(format!("{start} <= offset < {end}")),
            Self::LogNotFound { .. } => Some("a partition directory".to_owned()),
            Self::Locked { .. } => Some("a lock that nobody else holds".to_owned()),
            Self::Forked { .. } => Some("a handle that this process opened".to_owned()),
            Self::Poisoned { .. } | Self::Io { .. } | Self::Interrupted(_) => None,
        }
    }

    /// What was found.
    pub fn found(&self) -> Option<String> {
        match self {
            Self::Corrupt { found, .. }
            | Self::UnsupportedFormat { found, .. }
            | Self::LogChanged { found, .. }
            | Self::Locked { found, .. }
            | Self::Config { found, .. } => Some(found.clone()),
            Self::OffsetOutOfRange { offset, .. } => Some(offset.to_string()),
            Self::LogNotFound { found, .. } => Some(found.to_string()),
            Self::Io { source, .. } => Some(source.to_string()),
            Self::Poisoned { reason } => Some(reason.clone()),
            Self::Forked { .. } => Some("one that its parent opened".to_owned()),
            Self::Interrupted(_) => None,
        }
    }
}

fn range_words(start: i64, end: i64) -> String {
    if start == end {
        return format!("is empty: the next record there gets offset {end}");
    }
    format!("holds offsets {start} (inclusive) to {end} (exclusive): the next record there gets offset {end}")
}

fn offset_words(offset: Option<i64>) -> String {
    offset.map_or_else(String::new, |offset| format!(" (offset {offset})"))
}
