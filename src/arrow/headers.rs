//! The headers of records as a list of structs.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::{ArrayRef, ListArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field};

use super::{HeaderKeys, header_fields};
use crate::record::Headers;

#[derive(Debug)]
enum Keys {
    Utf8(StringBuilder),
    Binary(BinaryBuilder),
}

/// The column of headers under construction; null if a record has none.
#[derive(Debug)]
pub(super) struct HeadersBuilder {
    keys: Keys,
    values: BinaryBuilder,
    ends: Vec<usize>,
    validity: NullBufferBuilder,
    count: usize,
}

impl HeadersBuilder {
    pub(super) fn new(keys: HeaderKeys) -> Self {
        let keys = match keys {
            HeaderKeys::Utf8 => Keys::Utf8(StringBuilder::new()),
            HeaderKeys::Binary => Keys::Binary(BinaryBuilder::new()),
        };
        let validity = NullBufferBuilder::new(0);
        Self { keys, values: BinaryBuilder::new(), ends: Vec::new(), validity, count: 0 }
    }

    /// Adds a row; returns its size in bytes.
    pub(super) fn append(&mut self, headers: Headers<'_>) -> usize {
        let mut bytes = 0;
        self.validity.append(!headers.is_empty());
        for (key, value) in headers {
            bytes += key.len() + value.map_or(0, <[u8]>::len);
            match &mut self.keys {
                Keys::Utf8(keys) => keys.append_value(java_string(key)),
                Keys::Binary(keys) => keys.append_value(key),
            }
            self.values.append_option(value);
            self.count += 1;
        }
        self.ends.push(self.count);
        bytes
    }

    pub(super) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let (keys, header_keys): (ArrayRef, _) = match &mut self.keys {
            Keys::Utf8(keys) => (Arc::new(keys.finish()), HeaderKeys::Utf8),
            Keys::Binary(keys) => (Arc::new(keys.finish()), HeaderKeys::Binary),
        };
        let fields = header_fields(header_keys);
        let structs = StructArray::try_new(fields.clone(), vec![keys, Arc::new(self.values.finish())], None)?;
        let mut start = 0;
        let offsets = OffsetBuffer::from_lengths(
            self.ends.drain(..).map(|end| end - std::mem::replace(&mut start, end)),
        );
        self.count = 0;
        let item = Arc::new(Field::new("item", DataType::Struct(fields), true));
        Ok(Arc::new(ListArray::try_new(item, offsets, Arc::new(structs), self.validity.finish())?))
    }
}

/// Decodes UTF-8 like Java's `new String(bytes, UTF_8)`, which Kafka's client uses for a header's name.
///
/// It differs from [`String::from_utf8_lossy`] in one case: three bytes that encode a surrogate become one U+FFFD.
pub(crate) fn java_string(bytes: &[u8]) -> Cow<'_, str> {
    let mut decoded = String::new();
    let mut rest = bytes;
    loop {
        let error = match std::str::from_utf8(rest) {
            Ok(text) if decoded.is_empty() && rest.len() == bytes.len() => return Cow::Borrowed(text),
            Ok(text) => {
                decoded.push_str(text);
                return Cow::Owned(decoded);
            }
            Err(error) => error,
        };
        let (valid, broken) = rest.split_at(error.valid_up_to());
        decoded.push_str(std::str::from_utf8(valid).unwrap_or_default());
        decoded.push('\u{fffd}');
        let skipped = match broken {
            [0xed, 0x80..=0xbf, 0x80..=0xbf, ..] => 3,
            _ => error.error_len().unwrap_or(broken.len()),
        };
        rest = broken.get(skipped..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::java_string;

    #[test]
    fn names_that_are_not_utf8_are_decoded_as_java_does() {
        // each right side is the result of `new String(bytes, UTF_8)` in JDK 17
        for (bytes, decoded) in [
            (&b"plain"[..], "plain"),
            (b"", ""),
            (b"a\xffb", "a\u{fffd}b"),
            (b"\xed\xa0\x80", "\u{fffd}"),
            (b"\xe2\x82", "\u{fffd}"),
            (b"\xf0\x9f\x98x", "\u{fffd}x"),
            (b"\xc0\xaf", "\u{fffd}\u{fffd}"),
            (b"\xf4\x90\x80\x80", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(java_string(bytes), decoded, "{bytes:02x?}");
        }
    }
}
