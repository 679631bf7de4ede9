//! Bytes that break the format, without and with a file and a position.

use std::path::PathBuf;

use super::Error;

/// Bytes that break a rule of the format. The decoders return it: they have neither a file nor a position.
///
/// [`Malformed::at`] makes it an [`Error::Corrupt`] or an [`Error::UnsupportedFormat`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// The rule of the format.
    pub expected: String,
    /// What the bytes contain.
    pub found: String,
    /// True for bytes that are well-formed but not supported by this version, such as a codec or a feature that was not compiled
    /// in.
    pub unsupported: bool,
}

impl Malformed {
    /// Bytes that break a rule.
    pub fn new(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { expected: expected.into(), found: found.into(), unsupported: false }
    }

    /// Bytes that this version does not support.
    pub fn unsupported(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { expected: expected.into(), found: found.into(), unsupported: true }
    }

    /// Adds the file, the position in it (bytes from its start) and the offset that was expected there.
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
