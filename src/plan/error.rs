//! Errors of plans: a code, the log where it happened, and a sentence. Engines pass only their text from a
//! task to the driver.
//!
//! The text of an error is one line: a sentence, and a JSON object with the code and the place, which
//! programs read:
//!
//! ```text
//! [CORDWOOD_CORRUPT_BATCH] orders-3 segment 400 position 61: bad checksum | cordwood: {"code":…,"topic":…}
//! ```

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

use serde_json::{Map, Value};

use super::directory::PartitionDirectory;
use crate::error::Error;
use crate::fs::names::{FileKind, SegmentFileName};

/// `Result` with [`PlanError`].
pub type Result<T, E = PlanError> = std::result::Result<T, E>;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// No such path, or no partition that matches.
    NotFound,
    /// An option, a schema or a path is not allowed.
    BadOption,
    /// An offset is below the log start or above the log end.
    OffsetOutOfRange,
    /// No record has this time or a later one.
    TimeNotFound,
    /// Bytes are not valid in the format.
    CorruptBatch,
    /// A batch is above the limit `maxLogBatchBytes`.
    BatchTooLarge,
    /// This version does not support it: a codec, a version of the format.
    Unsupported,
    /// Data is lost: a planned segment was deleted, shortened or replaced, or offsets are missing.
    SegmentGone,
    /// An error of the system: no permission, an I/O error.
    Io,
    /// A defect of cordwood.
    Internal,
}

impl Code {
    /// Its name in the text of an error.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotFound => "CORDWOOD_NOT_FOUND",
            Self::BadOption => "CORDWOOD_BAD_OPTION",
            Self::OffsetOutOfRange => "CORDWOOD_OFFSET_OUT_OF_RANGE",
            Self::TimeNotFound => "CORDWOOD_TIME_NOT_FOUND",
            Self::CorruptBatch => "CORDWOOD_CORRUPT_BATCH",
            Self::BatchTooLarge => "CORDWOOD_BATCH_TOO_LARGE",
            Self::Unsupported => "CORDWOOD_UNSUPPORTED",
            Self::SegmentGone => "CORDWOOD_SEGMENT_GONE",
            Self::Io => "CORDWOOD_IO",
            Self::Internal => "CORDWOOD_INTERNAL",
        }
    }

    fn of(error: &Error) -> Self {
        match error {
            Error::Corrupt { .. } => Self::CorruptBatch,
            Error::OffsetOutOfRange { .. } => Self::OffsetOutOfRange,
            Error::LogNotFound { .. } => Self::NotFound,
            Error::LogChanged { .. } => Self::SegmentGone,
            Error::UnsupportedFormat { .. } => Self::Unsupported,
            Error::BatchTooLarge { .. } => Self::BatchTooLarge,
            Error::Config { .. } => Self::BadOption,
            Error::Io { .. } => Self::Io,
            _ => Self::Internal,
        }
    }
}

/// An error of a plan or of one of its tasks.
#[derive(Debug)]
pub struct PlanError {
    /// What happened.
    pub code: Code,
    /// The sentence without the place; one line.
    pub reason: String,
    /// The topic of the log; `None` if unknown.
    pub topic: Option<String>,
    /// The partition of the log; `None` if unknown.
    pub partition: Option<i32>,
    /// The base offset of the segment; `None` if unknown.
    pub segment: Option<i64>,
    /// Bytes from the start of the segment's `.log`; `None` if unknown.
    pub position: Option<u64>,
    /// The error of the core that caused it.
    pub source: Option<Box<Error>>,
}

impl PlanError {
    /// An error without a place.
    pub(crate) fn new(code: Code, reason: impl AsRef<str>) -> Self {
        let reason = one_line(reason.as_ref());
        Self { code, reason, topic: None, partition: None, segment: None, position: None, source: None }
    }

    /// A defect.
    #[doc(hidden)]
    pub fn internal(found: &str) -> Self {
        Self::new(Code::Internal, found)
    }

    /// The error for an option whose value is not allowed.
    pub(crate) fn option(name: &str, expected: impl AsRef<str>, found: impl fmt::Display) -> Self {
        Self::new(Code::BadOption, format!("{name}: expected {}, found {found}", expected.as_ref()))
    }

    /// An error of the core, with its code.
    pub(crate) fn of(error: Error) -> Self {
        let code = Code::of(&error);
        let file = error.file().and_then(segment_file);
        let mut reason = error.to_string();
        if code == Code::CorruptBatch && file.as_ref().is_some_and(|file| file.kind == FileKind::Log) {
            reason += "; mode=DROPMALFORMED reads the rest";
        }
        if code == Code::BatchTooLarge {
            reason += "; raise the option maxLogBatchBytes, if the memory is there";
        }
        Self {
            segment: file.map(|file| file.base_offset),
            position: error.position(),
            source: Some(Box::new(error)),
            ..Self::new(code, reason)
        }
    }

    /// The same error of a log.
    #[must_use]
    pub(crate) fn in_log(self, directory: &PartitionDirectory) -> Self {
        Self { topic: directory.topic.clone(), partition: directory.partition, ..self }
    }

    /// The same error in the segment of a file.
    #[must_use]
    pub(crate) fn in_file(self, file: &Path) -> Self {
        Self { segment: segment_file(file).map(|file| file.base_offset), ..self }
    }

    /// The same error in a segment.
    #[must_use]
    pub(crate) fn in_segment(self, base_offset: i64) -> Self {
        Self { segment: Some(base_offset), ..self }
    }

    /// The same error with another code.
    #[must_use]
    pub(crate) fn with_code(self, code: Code) -> Self {
        Self { code, ..self }
    }

    /// The same error with more at the end of its sentence.
    #[must_use]
    pub(crate) fn with_advice(self, advice: &str) -> Self {
        Self { reason: self.reason + advice, ..self }
    }

    /// Whether the engine's user ended the call.
    pub(crate) fn is_interrupt(&self) -> bool {
        matches!(self.source.as_deref(), Some(Error::Interrupted(_)))
    }

    /// Whether it says that a planned offset, file or directory does not exist.
    pub(crate) fn is_missing(&self) -> bool {
        match self.source.as_deref() {
            Some(Error::OffsetOutOfRange { .. } | Error::LogNotFound { .. }) => true,
            Some(Error::Io { source, .. }) => source.kind() == ErrorKind::NotFound,
            _ => false,
        }
    }

    /// The sentence, without the JSON object.
    pub fn sentence(&self) -> String {
        let Self { code, reason, .. } = self;
        let (Some(topic), Some(partition)) = (&self.topic, self.partition) else {
            return format!("[{}] {reason}", code.name());
        };
        let segment = self.segment.map(|segment| format!(" segment {segment}")).unwrap_or_default();
        let position = self.position.map(|position| format!(" position {position}")).unwrap_or_default();
        let topic = one_line(topic);
        format!("[{}] {topic}-{partition}{segment}{position}: {reason}", code.name())
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = [
            ("code", Some(Value::from(self.code.name()))),
            ("topic", self.topic.clone().map(Value::from)),
            ("partition", self.partition.map(Value::from)),
            ("segment", self.segment.map(Value::from)),
            ("position", self.position.map(Value::from)),
        ];
        let known: Map<_, _> =
            fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        let mut object = Value::from(known).to_string();
        // JSON allows these in a string
        for end in LINE_ENDS.into_iter().filter(|end| !end.is_ascii()) {
            object = object.replace(end, &format!("\\u{:04x}", u32::from(end)));
        }
        write!(formatter, "{} | cordwood: {object}", self.sentence())
    }
}

/// The name of a file of a segment; `None` for another file.
fn segment_file(file: &Path) -> Option<SegmentFileName> {
    SegmentFileName::parse(file.file_name()?.to_str()?)
}

/// What ends a line in Python and in Java.
const LINE_ENDS: [char; 10] =
    ['\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}'];

/// A text in one line, because readers of errors search line by line.
fn one_line(text: &str) -> String {
    text.split(LINE_ENDS).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

impl std::error::Error for PlanError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|error| error.as_ref() as _)
    }
}

impl From<Error> for PlanError {
    fn from(error: Error) -> Self {
        Self::of(error)
    }
}
