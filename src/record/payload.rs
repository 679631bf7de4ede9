//! The location of the bytes of a batch's records.

/// The batch, or the buffer into which its records were decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// In the batch, starting at this byte.
    Batch(usize),
    /// In the buffer.
    Buffer,
}

impl Payload {
    /// Selects the records' bytes from the batch and the buffer.
    #[inline]
    pub fn of<'a>(self, batch: &'a [u8], buffer: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Batch(start) => batch.get(start..).unwrap_or_default(),
            Self::Buffer => buffer,
        }
    }
}
