//! The offsets of records that are replaced by later ones of the pass: a bit for each, so that the keys of
//! most records are looked up once.

use std::ops::Range;

/// The largest part of the memory for the keys that the bits may take beside it.
const PART: usize = 32;

/// A set of offsets of a range.
#[derive(Debug)]
pub(super) struct ReplacedOffsets {
    start: i64,
    words: Vec<u64>,
}

impl ReplacedOffsets {
    /// An empty set. `bytes`: the memory for the keys; `None` if the range is too large for a part of it.
    pub(super) fn new(range: Range<i64>, bytes: usize) -> Option<Self> {
        let length = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        let words = length.div_ceil(64);
        (words <= bytes / PART / 8).then(|| Self { start: range.start, words: vec![0; words] })
    }

    /// Adds an offset of the range.
    pub(super) fn add(&mut self, offset: i64) {
        if let Some((word, bit)) = self.place(offset)
            && let Some(word) = self.words.get_mut(word)
        {
            *word |= 1 << bit;
        }
    }

    /// Whether an offset was added; `None` outside the range.
    pub(super) fn contains(&self, offset: i64) -> Option<bool> {
        let (word, bit) = self.place(offset)?;
        Some(self.words.get(word)? >> bit & 1 == 1)
    }

    /// How many offsets from `first` to `last`, both inclusive, were added; `None` if one of these two is
    /// outside the range.
    pub(super) fn count(&self, first: i64, last: i64) -> Option<i32> {
        let (first, first_bit) = self.place(first)?;
        let (last, last_bit) = self.place(last)?;
        let words = self.words.get(first..=last)?.iter().enumerate();
        let counts = words.map(|(number, word)| {
            let below = if number == 0 { u64::MAX << first_bit } else { u64::MAX };
            let above = if number == last - first { u64::MAX >> (63 - last_bit) } else { u64::MAX };
            (word & below & above).count_ones()
        });
        i32::try_from(counts.map(u64::from).sum::<u64>()).ok()
    }

    fn place(&self, offset: i64) -> Option<(usize, usize)> {
        let bit = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        Some((bit / 64, bit % 64))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_range_too_large_for_the_memory_has_no_set() {
        assert!(ReplacedOffsets::new(0..64, 32 * 8).is_some());
        assert!(ReplacedOffsets::new(0..65, 32 * 8).is_none());
        assert!(ReplacedOffsets::new(0..i64::MAX, 128 << 20).is_none());
        assert!(ReplacedOffsets::new(Range { start: 5, end: 0 }, 128 << 20).is_none());
    }

    proptest! {
        #![proptest_config(crate::types::fixed_seed(500))]

        #[test]
        fn the_answers_are_those_of_a_set(
            start in prop_oneof![0..1000_i64, i64::MAX - 2000..i64::MAX - 1000],
            added in prop::collection::btree_set(0..300_i64, 0..300),
            (first, length) in (-10..310_i64, 0..310_i64),
        ) {
            let mut set = ReplacedOffsets::new(start..start + 300, 1 << 20).unwrap();
            let added: BTreeSet<i64> = added.into_iter().map(|offset| start + offset).collect();
            for offset in &added {
                set.add(*offset);
            }
            for offset in start..start + 300 {
                prop_assert_eq!(set.contains(offset), Some(added.contains(&offset)));
            }
            prop_assert_eq!((set.contains(start - 1), set.contains(start + 320)), (None, None));
            let (first, last) = (start + first, start + first + length);
            let count = added.range(first..=last).count();
            let is_within = first >= start && last < start + 320;
            prop_assert_eq!(set.count(first, last), is_within.then(|| count.try_into().unwrap()));
        }
    }
}
