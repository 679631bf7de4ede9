//! The exceptions with which Kafka ends the loading of a partition.

use std::fmt;

use crate::error::Error;

/// The kind of an exception of Kafka, with the meaning that it has while a log is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub enum ExceptionKind {
    /// Bytes of a `.log` are not a batch.
    CorruptRecord,
    /// A record breaks the format.
    InvalidRecord,
    /// An index entry with an offset at or below the one before.
    InvalidOffset,
    /// An offset that is too far above the base offset for an index entry.
    IndexOffsetOverflow,
    /// A record of no transaction, from a producer with an open transaction.
    InvalidTxnState,
    /// A file that cannot be read, or whose text breaks the format. Kafka takes the data directory offline.
    Io,
    /// As [`ExceptionKind::Io`], from a checkpoint or `partition.metadata`.
    Storage,
    /// Any other error of Kafka's.
    Kafka,
    /// An argument that a class of Kafka or the JDK refuses.
    IllegalArgument,
    /// A state that a class of Kafka refuses.
    IllegalState,
    /// Text that is not a number.
    NumberFormat,
    /// A batch that is missing.
    NoSuchElement,
    /// A line that is missing.
    NullPointer,
}

impl ExceptionKind {
    /// A stable name, for programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::CorruptRecord => "corrupt_record",
            Self::InvalidRecord => "invalid_record",
            Self::InvalidOffset => "invalid_offset",
            Self::IndexOffsetOverflow => "index_offset_overflow",
            Self::InvalidTxnState => "invalid_txn_state",
            Self::Io => "io",
            Self::Storage => "storage",
            Self::Kafka => "kafka",
            Self::IllegalArgument => "illegal_argument",
            Self::IllegalState => "illegal_state",
            Self::NumberFormat => "number_format",
            Self::NoSuchElement => "no_such_element",
            Self::NullPointer => "null_pointer",
        }
    }

    /// The full name of the Java class.
    pub fn class(self) -> &'static str {
        match self {
            Self::CorruptRecord => "org.apache.kafka.common.errors.CorruptRecordException",
            Self::InvalidRecord => "org.apache.kafka.common.InvalidRecordException",
            Self::InvalidOffset => "org.apache.kafka.common.errors.InvalidOffsetException",
            Self::IndexOffsetOverflow => {
                "org.apache.kafka.storage.internals.log.IndexOffsetOverflowException"
            }
            Self::InvalidTxnState => "org.apache.kafka.common.errors.InvalidTxnStateException",
            Self::Io => "java.io.IOException",
            Self::Storage => "org.apache.kafka.common.errors.KafkaStorageException",
            Self::Kafka => "org.apache.kafka.common.KafkaException",
            Self::IllegalArgument => "java.lang.IllegalArgumentException",
            Self::IllegalState => "java.lang.IllegalStateException",
            Self::NumberFormat => "java.lang.NumberFormatException",
            Self::NoSuchElement => "java.util.NoSuchElementException",
            Self::NullPointer => "java.lang.NullPointerException",
        }
    }

    /// Whether the broker takes the data directory offline and continues with the others. Any other exception
    /// ends the broker's start.
    ///
    /// *Source*: `LogManager.loadLogs`.
    pub fn takes_directory_offline(self) -> bool {
        matches!(self, Self::Io | Self::Storage)
    }
}

/// An exception with which Kafka ends the loading of a partition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct LoadFailure {
    /// Its kind.
    pub kind: ExceptionKind,
    /// The name of the file that causes it; `None` if it is caused by the name of the directory.
    pub file: Option<String>,
    /// What is wrong. Not Kafka's own words.
    pub reason: String,
}

impl LoadFailure {
    pub(super) fn new(kind: ExceptionKind, file: &str, reason: impl Into<String>) -> Self {
        Self { kind, file: Some(file.to_owned()), reason: reason.into() }
    }
}

impl fmt::Display for LoadFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = self.kind.class();
        let class = class.rsplit('.').next().unwrap_or(class);
        let effect = if self.kind.takes_directory_offline() {
            "the broker takes the data directory offline"
        } else {
            "the broker does not start"
        };
        write!(formatter, "{class}")?;
        if let Some(file) = &self.file {
            write!(formatter, " at {file}")?;
        }
        write!(formatter, ": {}; {effect}", self.reason)
    }
}

/// How a step of the loading ends early.
#[derive(Debug)]
pub(super) enum Thrown {
    /// An exception of Kafka's.
    Kafka(LoadFailure),
    /// A batch of the segment with this base offset has an offset that is too far above it. Kafka splits the
    /// segment and starts again.
    Overflow(i64),
    /// An error of ours: the plan cannot be made.
    Error(Error),
}

impl Thrown {
    pub(super) fn kafka(kind: ExceptionKind, file: &str, reason: impl Into<String>) -> Self {
        Self::Kafka(LoadFailure::new(kind, file, reason))
    }
}

impl From<Error> for Thrown {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// The result of a step of the loading.
pub(super) type Step<T> = std::result::Result<T, Thrown>;
