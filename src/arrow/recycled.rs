//! The memory of arrays that were dropped, for the next arrays of the same column.

use arrow_buffer::{ArrowNativeType, Buffer};

/// Smaller buffers are not copied.
const MIN_COPIED: usize = 64 << 10;

/// Larger buffers are not kept.
const MAX_KEPT: usize = 32 << 20;

/// The buffers of the last two arrays of a column. If nothing else refers to one of them, its memory is used
/// again: the allocator returns memory of this size to the system and gets it back page by page, which takes
/// as long as decoding.
///
/// A loop over record batches usually has one of the two when it asks for the next.
#[derive(Debug, Default)]
pub(super) struct RecycledBuffers {
    last: Option<Buffer>,
    before: Option<Buffer>,
    /// The expected length of the next array, bytes: that of the longest of the last arrays.
    length: usize,
}

impl RecycledBuffers {
    /// The buffer of the next array, with these values. If it is much smaller than their memory, it is a
    /// copy: an array must not keep the memory of a larger one.
    pub(super) fn buffer<T: ArrowNativeType>(&mut self, values: Vec<T>) -> Buffer {
        let expected = self.length.min(MAX_KEPT);
        let buffer = Buffer::from_vec(values);
        self.length = buffer.len().max(expected - expected / 8);
        self.before = self.last.take();
        self.last = (buffer.capacity() <= MAX_KEPT).then(|| buffer.clone());
        let is_small = buffer.len() < buffer.capacity() / 4 && buffer.capacity() > MIN_COPIED;
        if is_small { Buffer::from_slice_ref(buffer.as_slice()) } else { buffer }
    }

    /// An empty vector with room for as many values as the next array is expected to have.
    pub(super) fn take<T: ArrowNativeType>(&mut self) -> Vec<T> {
        self.take_for(self.length / size_of::<T>())
    }

    /// [`RecycledBuffers::take`] with room for `more` values, and for a sixteenth more than expected: a
    /// vector that is too small doubles its size and copies all values.
    pub(super) fn take_larger<T: ArrowNativeType>(&mut self, more: usize) -> Vec<T> {
        let expected = self.length / size_of::<T>();
        self.take_for(expected + expected / 16 + more)
    }

    fn take_for<T: ArrowNativeType>(&mut self, capacity: usize) -> Vec<T> {
        for slot in [&mut self.last, &mut self.before] {
            match slot.take().map(Buffer::into_vec) {
                Some(Ok(mut values)) if is_fitting(values.capacity(), capacity) => {
                    values.clear();
                    values.reserve_exact(capacity);
                    return values;
                }
                Some(Err(shared)) => *slot = Some(shared),
                _ => {}
            }
        }
        Vec::with_capacity(capacity)
    }
}

/// Whether memory is used again: not that of an array that was much larger.
fn is_fitting(found: usize, wanted: usize) -> bool {
    wanted > 0 && found / 4 <= wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A buffer of `length` numbers from recycled memory, and its address.
    fn next(recycled: &mut RecycledBuffers, length: usize) -> (Buffer, usize) {
        let mut values = recycled.take_for::<i64>(length);
        assert!(values.is_empty());
        values.resize(length, 7);
        let buffer = recycled.buffer(values);
        let address = buffer.as_ptr() as usize;
        (buffer, address)
    }

    #[test]
    fn the_memory_of_an_array_is_used_again_after_it_was_dropped() {
        let mut recycled = RecycledBuffers::default();
        let (first, at) = next(&mut recycled, 1000);
        drop(first);
        assert_eq!(next(&mut recycled, 990).1, at);
    }

    #[test]
    fn the_memory_of_an_array_that_is_still_used_is_not() {
        let mut recycled = RecycledBuffers::default();
        let arrays: Vec<_> = (0..4).map(|_| next(&mut recycled, 1000)).collect();
        for (index, (array, at)) in arrays.iter().enumerate() {
            assert!(arrays.iter().skip(index + 1).all(|(_, other)| other != at));
            assert!(array.typed_data::<i64>().iter().all(|number| *number == 7));
        }
    }

    #[test]
    fn a_loop_that_keeps_one_array_at_a_time_uses_two_memories() {
        let mut recycled = RecycledBuffers::default();
        let mut used = Vec::new();
        let mut kept = None;
        for _ in 0..10 {
            let (array, at) = next(&mut recycled, 1000);
            kept.replace(array);
            used.push(at);
        }
        used.sort_unstable();
        used.dedup();
        assert_eq!(used.len(), 2);
    }

    #[test]
    fn the_memory_of_a_much_larger_array_is_freed() {
        let mut recycled = RecycledBuffers::default();
        drop(next(&mut recycled, 1000));
        assert!(recycled.take_for::<i64>(200).capacity() < 1000);
    }
    #[test]
    fn a_small_array_does_not_keep_the_memory_of_a_large_one() {
        let mut recycled = RecycledBuffers::default();
        drop(next(&mut recycled, 1_000_000));
        let mut values = recycled.take::<i64>();
        assert!(values.capacity() >= 1_000_000);
        values.extend([1, 2, 3]);
        let buffer = recycled.buffer(values);
        assert!(buffer.capacity() < 1000, "{}", buffer.capacity());
        assert_eq!(buffer.typed_data::<i64>(), [1, 2, 3]);
    }
}
