//! A message of magic 0 or 1 as Kafka reads it: field by field, each where it is asked for, with no check of
//! the whole.
//!
//! [`crate::record`] rejects a message whose parts do not fit together. The dump shows the fields of such a
//! message up to the one that cannot be read.

use crate::error::Malformed;
use crate::record::{Attributes, LOG_OVERHEAD, crc, i32_at, i64_at, u32_at};

/// The bytes of a message from its checksum on, at least 14.
///
/// Kafka: `LegacyRecord`.
#[derive(Debug, Clone, Copy)]
pub(super) struct LegacyMessage<'a>(&'a [u8]);

impl<'a> LegacyMessage<'a> {
    /// The message of an entry, whose offset and length come first.
    pub(super) fn of_entry(entry: &'a [u8]) -> Self {
        Self(entry.get(LOG_OVERHEAD..).unwrap_or_default())
    }

    pub(super) fn magic(self) -> i8 {
        self.0.get(4).map_or(0, |magic| magic.cast_signed())
    }

    pub(super) fn attributes(self) -> Attributes {
        Attributes(self.0.get(5).map_or(0, |byte| i16::from(*byte)))
    }

    pub(super) fn crc(self) -> u32 {
        u32_at(self.0, 0).unwrap_or(0)
    }

    pub(super) fn is_valid(self) -> bool {
        self.crc() == crc::crc32(self.0.get(4..).unwrap_or_default())
    }

    /// Its own timestamp, −1 in magic 0.
    pub(super) fn timestamp(self) -> Result<i64, Malformed> {
        if self.magic() == 0 { Ok(-1) } else { i64_at(self.0, 6).ok_or_else(|| self.cut("a timestamp")) }
    }

    /// The size of the key as stored: any negative number is null.
    pub(super) fn key_size(self) -> Result<i32, Malformed> {
        i32_at(self.0, self.key_at()).ok_or_else(|| self.cut("the size of a key"))
    }

    /// The size of the value as stored: any negative number is null.
    pub(super) fn value_size(self) -> Result<i32, Malformed> {
        i32_at(self.0, self.value_at()?).ok_or_else(|| self.cut("the size of a value"))
    }

    /// The key; `None` is null.
    pub(super) fn key(self) -> Result<Option<&'a [u8]>, Malformed> {
        self.sized(self.key_at(), self.key_size()?)
    }

    /// The value; `None` is null.
    pub(super) fn value(self) -> Result<Option<&'a [u8]>, Malformed> {
        self.sized(self.value_at()?, self.value_size()?)
    }

    fn key_at(self) -> usize {
        if self.magic() == 0 { 6 } else { 14 }
    }

    fn value_at(self) -> Result<usize, Malformed> {
        let key = usize::try_from(self.key_size()?).unwrap_or(0);
        Ok((self.key_at() + 4).saturating_add(key))
    }

    fn sized(self, size_at: usize, size: i32) -> Result<Option<&'a [u8]>, Malformed> {
        let Ok(size) = usize::try_from(size) else { return Ok(None) };
        let bytes = self.0.get(size_at + 4..).and_then(|rest| rest.get(..size));
        bytes.map(Some).ok_or_else(|| self.cut("as many bytes as a size says"))
    }

    #[cold]
    fn cut(self, wanted: &str) -> Malformed {
        Malformed::new(
            format!("{wanted} within the message"),
            format!("the end of its {} bytes", self.0.len()),
        )
    }
}
