//! Which rows of a column are null.

use arrow_buffer::{BooleanBuffer, NullBuffer};

use super::recycled::RecycledBuffers;

/// The number of rows of a word.
const WORD: usize = 64;

/// Whether up to 64 rows are valid; the highest bit is the last row.
#[derive(Debug, Default)]
pub(super) struct Word(u64);

impl Word {
    /// Adds a row.
    #[inline]
    pub(super) fn push(&mut self, is_valid: bool) {
        self.0 = self.0 >> 1 | u64::from(is_valid) << (WORD - 1);
    }
}

/// The validity of the rows of a column under construction; nothing is stored before the first null.
#[derive(Debug, Default)]
pub(super) struct Validity {
    rows: usize,
    /// One bit for each row, from the lowest: 1 is valid. The bits after the last row are 0.
    valid: Option<Vec<u64>>,
    recycled: RecycledBuffers,
}

impl Validity {
    /// Adds a row for each item.
    #[inline]
    pub(super) fn extend<T>(&mut self, items: &[T], is_valid: impl Fn(&T) -> bool) {
        self.extend_words(items, |items| {
            let mut word = Word::default();
            for item in items {
                word.push(is_valid(item));
            }
            word
        });
    }

    /// Adds a row for each item. `word`: whether the rows of up to 64 items are valid.
    #[inline]
    pub(super) fn extend_words<T>(&mut self, items: &[T], mut word: impl FnMut(&[T]) -> Word) {
        for items in items.chunks(WORD) {
            let Word(bits) = word(items);
            self.push(bits >> (WORD - items.len()), items.len());
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
            self.push(if is_valid { first(rows) } else { 0 }, rows);
            left -= rows;
        }
    }

    /// The rows so far; none is left.
    pub(super) fn finish(&mut self) -> Option<NullBuffer> {
        let rows = std::mem::take(&mut self.rows);
        let words = self.valid.take()?;
        // Arrow numbers the bits of bytes
        let words: Vec<_> = words.into_iter().map(u64::to_le).collect();
        let bits = self.recycled.buffer(words);
        Some(NullBuffer::new(BooleanBuffer::new(bits, 0, rows)))
    }

    /// Adds up to 64 rows; the other bits of the word are 0.
    #[inline]
    fn push(&mut self, word: u64, rows: usize) {
        let shift = self.rows % WORD;
        let words = match &mut self.valid {
            Some(words) => words,
            None if word == first(rows) => {
                self.rows += rows;
                return;
            }
            None => self.valid.insert(all_valid(self.rows, self.recycled.take())),
        };
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

/// The bits of the first rows of a word: 1 to 64 rows.
#[inline]
fn first(rows: usize) -> u64 {
    u64::MAX >> (WORD - rows)
}

/// The bits of rows that are all valid, in these words.
#[cold]
fn all_valid(rows: usize, mut words: Vec<u64>) -> Vec<u64> {
    words.resize(rows / WORD, u64::MAX);
    if !rows.is_multiple_of(WORD) {
        words.push(first(rows % WORD));
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
