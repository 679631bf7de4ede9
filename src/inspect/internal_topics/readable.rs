//! The primitive types of Kafka's messages, and the texts of the errors with which Kafka's classes refuse
//! them.

use std::fmt;

/// Why bytes are not the message that they should be, where possible in the words of Kafka's exception.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes end too early. Kafka's `BufferUnderflowException` has no message.
    Underflow,
    /// The message has more values than the memory should hold. Kafka has no such limit.
    TooManyValues,
    /// The record has a type that Kafka 4.3.1 does not know: one of a later version.
    UnknownType(i16),
    /// Another error, with Kafka's message.
    Message(String),
}

impl DecodeError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self::Message(message.into())
    }
}

impl fmt::Display for DecodeError {
    /// The message as Java writes it: `null` if there is none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Underflow => f.write_str("null"),
            Self::TooManyValues => write!(f, "the message has more than {MAX_VALUES} values"),
            Self::UnknownType(id) => write!(
                f,
                "org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {id}"
            ),
            Self::Message(message) => f.write_str(message),
        }
    }
}

/// The values of one message. A value takes more memory than the byte that it may come from, and bytes may be
/// compressed, so that without a limit a small record could exhaust the memory. Kafka has none; its brokers
/// write no record that comes near this one.
const MAX_VALUES: usize = 1_000_000;

/// Bytes that are read from the front. Kafka: `ByteBufferAccessor`.
#[derive(Debug)]
pub(super) struct Readable<'a> {
    bytes: &'a [u8],
    values_left: usize,
}

impl<'a> Readable<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, values_left: MAX_VALUES }
    }

    /// Counts values that are about to be made.
    ///
    /// # Errors
    /// [`DecodeError::TooManyValues`].
    pub(super) fn make_values(&mut self, count: usize) -> Result<(), DecodeError> {
        self.values_left = self.values_left.checked_sub(count).ok_or(DecodeError::TooManyValues)?;
        Ok(())
    }

    /// The number of bytes that are left. A count above `i32::MAX` is not possible: no record is so large.
    pub(super) fn remaining(&self) -> i32 {
        i32::try_from(self.bytes.len()).unwrap_or(i32::MAX)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (first, rest) = self.bytes.split_first_chunk::<N>().ok_or(DecodeError::Underflow)?;
        self.bytes = rest;
        Ok(*first)
    }

    pub(super) fn int8(&mut self) -> Result<i8, DecodeError> {
        Ok(i8::from_be_bytes(self.array()?))
    }

    pub(super) fn int16(&mut self) -> Result<i16, DecodeError> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    pub(super) fn int32(&mut self) -> Result<i32, DecodeError> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub(super) fn int64(&mut self) -> Result<i64, DecodeError> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// Kafka: `ByteUtils.readUnsignedVarint`, which returns a signed number, and ignores the bits above the
    /// 32nd.
    pub(super) fn unsigned_varint(&mut self) -> Result<i32, DecodeError> {
        let mut bits = 0u32;
        for place in 0..5 {
            let [byte] = self.array()?;
            // the fifth byte is shifted with its sign, as a Java byte
            let group = if place < 4 { u32::from(byte & 0x7f) } else { u32::from(byte) };
            bits |= group.wrapping_shl(7 * place);
            if byte < 0x80 {
                return Ok(bits.cast_signed());
            }
        }
        Err(DecodeError::new(format!(
            "Varint is too long, the most significant bit in the 5th byte is set, converted value: {bits:x}"
        )))
    }

    pub(super) fn bytes(&mut self, size: i32) -> Result<&'a [u8], DecodeError> {
        let length = usize::try_from(size).map_err(|_| DecodeError::new(size.to_string()))?;
        let (first, rest) = self.bytes.split_at_checked(length).ok_or_else(|| {
            let available = self.remaining();
            DecodeError::new(format!(
                "Error reading byte array of {size} byte(s): only {available} byte(s) available"
            ))
        })?;
        self.bytes = rest;
        Ok(first)
    }
}
