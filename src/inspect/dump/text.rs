//! The text of the tool, written into a byte buffer.

/// Bytes of text after which a block is complete: large enough for few writes, small enough to stay in the
/// processor's cache.
pub(super) const BLOCK_BYTES: usize = 256 << 10;

/// Room for the line that completes a block.
const SPARE_BYTES: usize = 4 << 10;

/// A buffer of text. The methods return the buffer, so that a line reads like the text that it writes.
#[derive(Debug, Default)]
pub(super) struct Text(Vec<u8>);

impl Text {
    /// An empty buffer with room for a block.
    pub(super) fn block() -> Self {
        Self(Vec::with_capacity(BLOCK_BYTES + SPARE_BYTES))
    }

    #[inline]
    pub(super) fn str(&mut self, text: &str) -> &mut Self {
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    #[inline]
    pub(super) fn int(&mut self, number: impl itoa::Integer) -> &mut Self {
        self.0.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self
    }

    /// `true` or `false`.
    pub(super) fn bool(&mut self, value: bool) -> &mut Self {
        self.str(if value { "true" } else { "false" })
    }

    /// A number as Java prints an `OptionalLong`.
    pub(super) fn optional(&mut self, number: Option<i64>) -> &mut Self {
        match number {
            Some(number) => self.str("OptionalLong[").int(number).str("]"),
            None => self.str("OptionalLong.empty"),
        }
    }

    pub(super) fn end_line(&mut self) {
        self.0.push(b'\n');
    }

    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= BLOCK_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}
