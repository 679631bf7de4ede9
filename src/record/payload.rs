//! Where the bytes of a batch's records lie.

/// The batch itself, or the buffer it was decompressed into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// In the batch, from this byte on.
    Batch(usize),
    /// In the buffer.
    Buffer,
}

impl Payload {
    /// The bytes, of the two places where they may lie.
    #[inline]
    pub fn of<'a>(self, batch: &'a [u8], buffer: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Batch(start) => batch.get(start..).unwrap_or_default(),
            Self::Buffer => buffer,
        }
    }
}
