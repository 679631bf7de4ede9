//! Which rows of a column are null.

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};

/// The number of rows of a word.
const WORD: usize = 64;

/// The validity of the rows of a column under construction; nothing is stored before the first null.
#[derive(Debug, Default)]
pub(super) struct Validity {
    rows: usize,
    /// One bit for each row, from the lowest: 1 is valid. The bits after the last row are 0.
    valid: Option<Vec<u64>>,
    /// The number of words of the last bits: the next ones are probably as long.
    expected: usize,
}

impl Validity {
    /// Adds a row for each item.
    #[inline]
    pub(super) fn extend<T>(&mut self, items: &[T], is_valid: impl Fn(&T) -> bool) {
        if self.valid.is_some() || !items.iter().all(&is_valid) {
            for items in items.chunks(WORD) {
                let word = items.iter().rev().fold(0, |word, item| word << 1 | u64::from(is_valid(item)));
                self.push(word, items.len());
            }
        } else {
            self.rows += items.len();
        }
    }

    /// Adds rows that are all valid, or all null.
    pub(super) fn repeat(&mut self, is_valid: bool, count: usize) {
        if is_valid && self.valid.is_none() {
            self.rows += count;
            return;
        }
        let mut left = count;
        while left > 0 {
            let rows = left.min(WORD);
            self.push(if is_valid { u64::MAX >> (WORD - rows) } else { 0 }, rows);
            left -= rows;
        }
    }

    /// The rows so far; none is left.
    pub(super) fn finish(&mut self) -> Option<NullBuffer> {
        let rows = std::mem::take(&mut self.rows);
        let words = self.valid.take()?;
        self.expected = words.len();
        // Arrow numbers the bits of bytes
        let words: Vec<_> = words.into_iter().map(u64::to_le).collect();
        Some(NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(words), 0, rows)))
    }

    /// Adds up to 64 rows; the other bits of the word are 0.
    #[inline]
    fn push(&mut self, word: u64, rows: usize) {
        let (before, expected) = (self.rows, self.expected);
        let words = self.valid.get_or_insert_with(|| all_valid(before, expected));
        let shift = before % WORD;
        match words.last_mut() {
            Some(last) if shift > 0 => {
                *last |= word << shift;
                if shift + rows > WORD {
                    words.push(word >> (WORD - shift));
                }
            }
            _ => words.push(word),
        }
        self.rows += rows;
    }
}

/// The bits of rows that are all valid, with room for `expected` words.
#[cold]
fn all_valid(rows: usize, expected: usize) -> Vec<u64> {
    let mut words = Vec::with_capacity(expected.max(rows.div_ceil(WORD)));
    words.resize(rows / WORD, u64::MAX);
    if !rows.is_multiple_of(WORD) {
        words.push(u64::MAX >> (WORD - rows % WORD));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Rows that are added by one call.
    fn added() -> impl Strategy<Value = (bool, Vec<bool>)> {
        let rows = prop_oneof![
            (any::<bool>(), 0..200usize).prop_map(|(is_valid, count)| vec![is_valid; count]),
            proptest::collection::vec(any::<bool>(), 0..150),
            proptest::collection::vec(proptest::bool::weighted(0.98), 0..150),
        ];
        (any::<bool>(), rows)
    }

    proptest! {
        #![proptest_config(crate::types::fixed_seed(2_000))]

        #[test]
        fn packed_rows_are_the_rows_one_by_one(
            arrays in proptest::collection::vec(proptest::collection::vec(added(), 0..6), 1..4)
        ) {
            let mut validity = Validity::default();
            for array in arrays {
                let mut naive = Vec::new();
                for (is_repeated, rows) in array {
                    match rows.first() {
                        Some(first) if is_repeated && rows.iter().all(|row| row == first) => {
                            validity.repeat(*first, rows.len());
                        }
                        _ => validity.extend(&rows, |row| *row),
                    }
                    naive.extend(rows);
                }
                let wanted = naive.contains(&false).then(|| NullBuffer::from(naive));
                prop_assert_eq!(validity.finish(), wanted);
            }
        }
    }
}
