//! A column of numbers under construction.

use arrow_array::{ArrowPrimitiveType, PrimitiveArray};
use arrow_buffer::{ArrowNativeType, ScalarBuffer};

use super::recycled::RecycledBuffers;
use super::validity::{Validity, Word};

/// Numbers, some of which may be null. The value of a null is 0.
#[derive(Debug, Default)]
pub(super) struct Numbers<T> {
    values: Vec<T>,
    validity: Validity,
    recycled: RecycledBuffers,
}

impl<T: ArrowNativeType> Numbers<T> {
    /// Adds values.
    #[inline]
    pub(super) fn extend(&mut self, values: impl ExactSizeIterator<Item = T>) {
        self.validity.repeat(true, values.len());
        self.room().extend(values);
    }

    /// Adds one value for each item; `None` is null.
    #[inline]
    pub(super) fn extend_options<I>(&mut self, items: &[I], value: impl Fn(&I) -> Option<T>) {
        self.room();
        let Self { values, validity, .. } = self;
        validity.extend_words(items, |items| {
            let mut valid = Word::default();
            values.extend(items.iter().map(|item| {
                let value = value(item);
                valid.push(value.is_some());
                value.unwrap_or_default()
            }));
            valid
        });
    }

    /// Adds `count` times the same value, or null.
    pub(super) fn repeat(&mut self, value: Option<T>, count: usize) {
        self.validity.repeat(value.is_some(), count);
        self.room().extend(std::iter::repeat_n(value.unwrap_or_default(), count));
    }

    /// Returns the rows so far and empties the column.
    pub(super) fn finish<P: ArrowPrimitiveType<Native = T>>(&mut self) -> PrimitiveArray<P> {
        let values = self.recycled.buffer(std::mem::take(&mut self.values));
        PrimitiveArray::new(ScalarBuffer::from(values), self.validity.finish())
    }

    fn room(&mut self) -> &mut Vec<T> {
        if self.values.is_empty() {
            self.values = self.recycled.take();
        }
        &mut self.values
    }
}
