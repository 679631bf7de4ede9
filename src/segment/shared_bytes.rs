//! Bytes of a log that may be kept after the reader that read them.
#![cfg_attr(not(feature = "arrow"), expect(dead_code, reason = "only columns of views keep bytes"))]

use std::fmt;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use memmap2::Mmap;

use super::SCAN_READ;

/// What owns bytes: a mapping, or a buffer that is not used for other bytes before.
type Owner = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A range of bytes with shared ownership.
#[derive(Clone)]
pub(crate) struct SharedBytes {
    owner: Owner,
    range: Range<usize>,
    /// See [`SharedBytes::memory`].
    memory: usize,
    /// See [`SharedBytes::is_mapped`].
    is_mapped: bool,
}

impl SharedBytes {
    /// A range of a mapping.
    pub(super) fn mapped(mapping: Arc<Mmap>, range: Range<usize>) -> Self {
        Self { owner: mapping, range, memory: 0, is_mapped: true }
    }

    /// A range of a buffer.
    pub(crate) fn buffer(buffer: &Arc<Vec<u8>>, range: Range<usize>) -> Self {
        let memory = buffer.capacity();
        Self { owner: Arc::<Vec<u8>>::clone(buffer), range, memory, is_mapped: false }
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        (*self.owner).as_ref().get(self.range.clone()).unwrap_or_default()
    }

    /// The position of the bytes in the mapping or buffer.
    pub(crate) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The memory that is kept with the bytes: the size of the whole buffer; 0 for a mapping.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// Whether both are in the same mapping or buffer.
    pub(crate) fn has_owner_of(&self, other: &Self) -> bool {
        ptr::addr_eq(Arc::as_ptr(&self.owner), Arc::as_ptr(&other.owner))
    }

    /// Whether the bytes are in a mapping, which another process may change.
    pub(crate) fn is_mapped(&self) -> bool {
        self.is_mapped
    }

    /// Moves the end of the range in the same mapping or buffer, if that makes it longer.
    pub(crate) fn extend_to(&mut self, end: usize) {
        self.range.end = self.range.end.max(end);
    }

    /// Another range of the same mapping or buffer.
    pub(crate) fn with_range(self, range: Range<usize>) -> Self {
        Self { range, ..self }
    }
}

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SharedBytes").field("range", &self.range).finish_non_exhaustive()
    }
}

/// The buffer for other bytes: the same one, or a new one if the bytes in it are shared. Its capacity is the
/// length of the old one, up to that of a scan's reads.
pub(crate) fn reusable(buffer: &mut Arc<Vec<u8>>) -> &mut Vec<u8> {
    if Arc::get_mut(buffer).is_none() {
        *buffer = Arc::new(Vec::with_capacity(buffer.len().min(SCAN_READ)));
    }
    // nothing else refers to it, so this does not copy it
    Arc::make_mut(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_unless_its_bytes_are_shared() {
        let mut buffer = Arc::new(vec![1, 2, 3]);
        reusable(&mut buffer).push(4);
        assert_eq!(*buffer, [1, 2, 3, 4]);
        let shared = SharedBytes::buffer(&buffer, 1..3);
        let at = buffer.as_ptr();
        reusable(&mut buffer).extend([9; 3]);
        assert_eq!((shared.bytes(), &buffer[..]), (&[2, 3][..], &[9; 3][..]));
        assert_ne!(buffer.as_ptr(), at);
    }
}
