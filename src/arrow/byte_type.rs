//! The types of keys and values.

use std::str::Utf8Error;

use arrow_schema::DataType;

use crate::error::Error;
use crate::log::Origin;
use crate::record::{ByteSpan, RecordSpan};

/// The type of the column of keys or values.
///
/// The bytes of a view are not copied: the buffers of the array are the blocks that were read from the file,
/// or the decompressed batches. They stay in memory as long as one row of them is used. With
/// [`Io::Mmap`](crate::types::Io::Mmap) they are the mapped files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ByteType {
    /// Bytes.
    #[default]
    Binary,
    /// Views of bytes.
    BinaryView,
    /// Text. See [`InvalidText`](super::InvalidText) for bytes that are not UTF-8.
    String,
    /// Views of text, otherwise as `String`.
    StringView,
}

impl ByteType {
    /// The type of Arrow.
    pub(super) fn data_type(self) -> DataType {
        match self {
            Self::Binary => DataType::Binary,
            Self::BinaryView => DataType::BinaryView,
            Self::String => DataType::Utf8,
            Self::StringView => DataType::Utf8View,
        }
    }

    /// The same type with views.
    #[must_use]
    pub fn with_views(self) -> Self {
        match self {
            Self::Binary | Self::BinaryView => Self::BinaryView,
            Self::String | Self::StringView => Self::StringView,
        }
    }
}

/// The number of the first of these byte strings that is not UTF-8.
pub(super) fn check_text<I>(
    payload: &[u8],
    items: &[I],
    span: impl Fn(&I) -> ByteSpan,
) -> Result<(), (usize, Utf8Error)> {
    let check = |(index, item)| match std::str::from_utf8(span(item).bytes(payload)) {
        Ok(_) => Ok(()),
        Err(invalid) => Err((index, invalid)),
    };
    items.iter().enumerate().try_for_each(check)
}

/// The error for a key or value that is not UTF-8. `argument`: the option that requires it.
#[cold]
pub(super) fn not_text(
    argument: &'static str,
    spans: &[RecordSpan],
    origin: &Origin<'_>,
    (index, invalid): (usize, Utf8Error),
) -> Error {
    let offset = spans.get(index).map_or(-1, |span| span.offset);
    let partition = match (origin.topic, origin.partition) {
        (Some(topic), Some(partition)) => format!(" of {topic}-{partition}"),
        _ => String::new(),
    };
    let found = format!(
        "{invalid} in the record at offset {offset}{partition}, in the batch at position {} of segment {}",
        origin.batch.position, origin.segment
    );
    Error::config(
        argument,
        "binary or binary_view, or on_invalid_utf8 null or replace, because not all bytes are UTF-8",
        found,
    )
}
