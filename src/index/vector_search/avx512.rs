//! The instructions of AVX-512.
#![expect(unsafe_code, reason = "S8 of SAFETY.md: instructions that not every processor has")]

use std::arch::x86_64::{
    _MM_HINT_T0, _mm_prefetch, _mm512_cmple_epi64_mask, _mm512_cmple_epu32_mask, _mm512_loadu_si512,
    _mm512_set_epi64, _mm512_set1_epi32, _mm512_set1_epi64, _mm512_shuffle_epi8,
};

use crate::index::learned::GROUP;
use crate::index::sampled_keys::{SampledKeys, WINDOW};

/// Slots of an offset index; in memory, a line.
type Group = [[u8; 8]; GROUP];

/// Proof that the processor has the instructions that [`last_slot`] enables.
#[derive(Debug, Clone, Copy)]
pub(in crate::index) struct Avx512(());

impl Avx512 {
    /// `None` if the processor does not have them.
    pub(in crate::index) fn detect() -> Option<Self> {
        let has_all = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt");
        has_all.then_some(Self(()))
    }

    /// The last of these slots whose key is at or below a target: the slots of an offset index, without a
    /// rest that is no group. `distance`: of the target from the first key; `relative`: from the base
    /// offset, which is in the range of an i32. `None` if another search must find it: if many keys are
    /// in one bucket, or for the last few slots.
    #[inline]
    #[expect(clippy::unused_self, reason = "it shows that the processor has the instructions")]
    pub(in crate::index) fn last_slot<'a>(
        self,
        keys: &SampledKeys<u32>,
        groups: &'a [Group],
        distance: u32,
        relative: i64,
    ) -> Option<&'a [u8; 8]> {
        // SAFETY: S8: `self` exists only where the processor has the instructions.
        unsafe { last_slot(keys, groups, distance, relative) }
    }
}

#[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,lzcnt")]
fn last_slot<'a>(
    keys: &SampledKeys<u32>,
    groups: &'a [Group],
    distance: u32,
    relative: i64,
) -> Option<&'a [u8; 8]> {
    let (window, before, guess) = keys.window(distance)?;
    // two of them, because the guess may be the number before the right one; the address may be after the end
    let guessed = groups.as_ptr().wrapping_add(guess);
    _mm_prefetch::<_MM_HINT_T0>(guessed.cast());
    _mm_prefetch::<_MM_HINT_T0>(guessed.wrapping_add(1).cast());
    let at_or_below = at_or_below(window, distance);
    if at_or_below == u16::MAX {
        return None;
    }
    let group = groups.get(before.wrapping_add(highest(at_or_below)))?;
    group.get(highest(slots_at_or_below(group, relative).into()))
}

/// The number of the highest bit that is set; 0 if none is.
#[target_feature(enable = "lzcnt")]
#[inline]
fn highest(bits: u16) -> usize {
    (u32::from(bits) | 1).ilog2() as usize
}

/// Which of these sorted distances are at or below `target`: the lowest bit is the first one.
#[target_feature(enable = "avx512f")]
#[inline]
fn at_or_below(sorted: &[u32; WINDOW], target: u32) -> u16 {
    // SAFETY: S8: the array has the 64 bytes that are loaded.
    let sorted = unsafe { _mm512_loadu_si512(sorted.as_ptr().cast()) };
    _mm512_cmple_epu32_mask(sorted, _mm512_set1_epi32(target.cast_signed()))
}

/// Which of these slots have a key at or below `relative`: the lowest bit is the first one.
///
/// The bytes of a slot are a big-endian number of 64 bits, whose upper half is the key.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn slots_at_or_below(slots: &Group, relative: i64) -> u8 {
    const LOW: i64 = 0x0001_0203_0405_0607;
    const HIGH: i64 = 0x0809_0A0B_0C0D_0E0F;
    // SAFETY: S8: the array has the 64 bytes that are loaded.
    let bytes = unsafe { _mm512_loadu_si512(slots.as_ptr().cast()) };
    let slots = _mm512_shuffle_epi8(bytes, _mm512_set_epi64(HIGH, LOW, HIGH, LOW, HIGH, LOW, HIGH, LOW));
    _mm512_cmple_epi64_mask(slots, _mm512_set1_epi64(relative << 32 | 0xFFFF_FFFF))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::index::learned::tests::{contents, model_of, naive, targets_of};
    use crate::types::fixed_seed;

    /// The slots of an offset index with these keys, whose positions look like keys.
    fn slots_of(keys: &[i64], base_offset: i64) -> Vec<[u8; 8]> {
        let slot = |key: &i64| {
            let relative = i32::try_from(key - base_offset).unwrap().to_be_bytes();
            // no two slots are equal
            let position = i32::try_from(*key).unwrap().wrapping_neg().to_be_bytes();
            *[relative, position].as_flattened().first_chunk().unwrap()
        };
        keys.iter().map(slot).collect()
    }

    /// Compares all answers with a bisection's; returns how many targets between the first key and the last
    /// had none.
    fn assert_finds(keys: &[i64], base_offset: i64, kind: &str) -> [usize; 2] {
        let Some(model) = model_of(keys) else { return [0; 2] };
        let slots = slots_of(keys, base_offset);
        let (mut found, mut missed) = (0, 0);
        for target in targets_of(keys) {
            match model.last_slot(&slots, base_offset, target) {
                Some(slot) => {
                    let naive =
                        naive(keys, target).and_then(|slot| slots.get(usize::try_from(slot).unwrap()));
                    assert_eq!(Some(slot), naive, "{kind}: {target}");
                    found += 1;
                }
                None if target >= keys[0] && target < keys[keys.len() - 1] => missed += 1,
                None => {}
            }
        }
        [found, missed]
    }

    #[test]
    fn slots_found_by_vectors_are_those_found_by_bisection() {
        let Some(_) = Avx512::detect() else {
            eprintln!("not tested: this processor has no AVX-512");
            return;
        };
        for (kind, keys) in contents() {
            let keys: Vec<i64> = keys.into_iter().take_while(|key| *key < 1 << 31).collect();
            for base_offset in [0, 7, 1_000, 100_000] {
                for count in [8, 9, 16, 17, 129, 1024, keys.len()] {
                    assert_finds(keys.get(..count).unwrap_or(&keys), base_offset, kind);
                }
            }
        }
        let even: Vec<i64> = (0..10_000).map(|n| 40 * n + n % 9).collect();
        let [found, missed] = assert_finds(&even, 0, "even");
        assert!(found > 100 * missed, "{found} found, {missed} not");
    }

    #[test]
    fn slots_that_changed_since_their_keys_were_read_are_no_error() {
        let keys: Vec<i64> = (0..5000).map(|n| n * 3).collect();
        let model = model_of(&keys).unwrap();
        for changed in [[0; 8], [0xFF; 8], [0x7F; 8], [0x80; 8]] {
            for target in targets_of(&keys) {
                let slots = vec![changed; keys.len()];
                assert!(model.last_slot(&slots, 0, target).is_none_or(|slot| *slot == changed));
            }
        }
        // a file that is shorter than when its keys were read
        assert_eq!(model.last_slot(&[], 0, 60), None);
    }

    proptest! {
        #![proptest_config(fixed_seed(300))]

        #[test]
        fn a_slot_found_by_vectors_is_the_one_found_by_bisection(
            steps in proptest::collection::vec(
                prop_oneof![8 => 1_i64..4, 4 => 1_i64..500, 1 => 1_i64..1 << 20], 1..3000,
            ),
            base_offset in -50_i64..50,
        ) {
            let keys: Vec<i64> = steps.into_iter().scan(0, |key, step| { *key += step; Some(*key) }).collect();
            let keys: Vec<i64> = keys.into_iter().take_while(|key| *key < 1 << 31).collect();
            assert_finds(&keys, base_offset, "random");
        }
    }
}
