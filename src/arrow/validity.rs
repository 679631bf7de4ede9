//! Which rows of a column are null.

use arrow_buffer::NullBuffer;

/// The validity of the rows of a column under construction; nothing is stored before the first null.
#[derive(Debug, Default)]
pub(super) struct Validity {
    rows: usize,
    valid: Option<Vec<bool>>,
}

impl Validity {
    /// Adds a row for each item.
    #[inline]
    pub(super) fn extend<T>(&mut self, items: &[T], is_valid: impl Fn(&T) -> bool) {
        if self.valid.is_some() || !items.iter().all(&is_valid) {
            let rows = self.rows;
            self.valid.get_or_insert_with(|| vec![true; rows]).extend(items.iter().map(is_valid));
        }
        self.rows += items.len();
    }

    /// Adds rows that are all valid, or all null.
    pub(super) fn repeat(&mut self, is_valid: bool, count: usize) {
        if self.valid.is_some() || !is_valid && count > 0 {
            let rows = self.rows;
            self.valid.get_or_insert_with(|| vec![true; rows]).extend(std::iter::repeat_n(is_valid, count));
        }
        self.rows += count;
    }

    /// The rows so far; none is left.
    pub(super) fn finish(&mut self) -> Option<NullBuffer> {
        self.rows = 0;
        self.valid.take().map(NullBuffer::from)
    }
}
