//! Bytes that break the format, without and with a file and a position.

use std::path::PathBuf;

use super::Error;

/// Why bytes cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// They break a rule of the format.
    Damaged,
    /// They are well-formed but not supported by this version, such as a codec or a feature that was not
    /// compiled in.
    Unsupported,
    /// They are a batch above the limit `max_batch_bytes`, stored or decompressed.
    TooLarge,
}

/// Bytes that break a rule of the format, or cannot be read for another [`Reason`]. The decoders return it:
/// they have neither a file nor a position.
///
/// [`Malformed::at`] makes it an [`Error::Corrupt`], an [`Error::UnsupportedFormat`] or an
/// [`Error::BatchTooLarge`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// The rule of the format.
    pub expected: String,
    /// What the bytes contain.
    pub found: String,
    /// Why they cannot be read.
    pub reason: Reason,
}

impl Malformed {
    /// Bytes that break a rule.
    pub fn new(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { expected: expected.into(), found: found.into(), reason: Reason::Damaged }
    }

    /// Bytes that this version does not support.
    pub fn unsupported(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { expected: expected.into(), found: found.into(), reason: Reason::Unsupported }
    }

    /// A batch that is larger than `max_batch_bytes`.
    pub(crate) fn too_large(max_batch_bytes: usize, found: impl Into<String>) -> Self {
        let expected = format!("at most {max_batch_bytes} bytes in a batch (max_batch_bytes)");
        Self { expected, found: found.into(), reason: Reason::TooLarge }
    }

    /// Whether the bytes break a rule of the format. Otherwise they may be intact: they are not skipped, cut
    /// or repaired.
    pub fn is_damage(&self) -> bool {
        self.reason == Reason::Damaged
    }

    /// Whether they are a batch above `max_batch_bytes`.
    pub(crate) fn is_too_large(&self) -> bool {
        self.reason == Reason::TooLarge
    }

    /// Adds the file, the position in it (bytes from its start) and the offset that was expected there.
    pub fn at(self, file: impl Into<PathBuf>, position: u64, offset: Option<i64>) -> Error {
        let place = Box::new(Place { file: file.into(), position, offset });
        let Self { expected, found, reason } = self;
        match reason {
            Reason::Damaged => Error::Corrupt { place, expected, found },
            Reason::Unsupported => Error::UnsupportedFormat { place, expected, found },
            Reason::TooLarge => Error::BatchTooLarge { place, expected, found },
        }
    }
}

/// A position in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// Bytes from the start of `file`.
    pub position: u64,
    /// The offset (logical) expected or found there; `None` if it is not known.
    pub offset: Option<i64>,
}
