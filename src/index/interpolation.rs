//! The search of the first look-ups, before there is a [`Model`](super::learned::Model): it interpolates
//! between the keys that it has read.

use crate::types::distance;

/// Two guesses that are at most this many slots apart end the interpolation.
const NEAR: u64 = 32;

/// The largest slot whose key is at or below `target`, without a model; `None` if there is none.
///
/// `last_key`: the key of the last slot, which is above `target`. `before_first`: a guess of the key that a
/// slot before the first would have; without one, the first key is read. Evenly spaced keys cost two pages,
/// any others at most `6 + 2 · log₂(entries)` reads.
pub(super) fn interpolate<E>(
    entries: u64,
    last_key: i64,
    before_first: Option<i64>,
    target: i64,
    key: impl Fn(u64) -> Result<i64, E>,
) -> Result<Option<u64>, E> {
    let is_at_or_below = |slot| Ok(key(slot)? <= target);
    // the keys of slots below `low` are at or below the target, those from `high` on are above it
    let (mut low, mut high, mut high_key) = (0, entries.saturating_sub(1), last_key);
    let mut low_key = if let Some(guess) = before_first {
        guess
    } else {
        let first = key(0)?;
        if first > target {
            return Ok(None);
        }
        low = 1;
        first
    };
    let place = |low: u64, low_key: i64, high: u64, high_key: i64| {
        let above = u128::from(distance(low_key, target.max(low_key)));
        let span = u128::from(distance(low_key, high_key.max(low_key))).max(1);
        let slots = above * u128::from(high - low + 1) / span;
        // slot `low - 1` has `low_key`
        u64::try_from(slots).unwrap_or(u64::MAX).saturating_add(low).saturating_sub(1)
    };
    let mut guess = 0;
    for _ in 0..4 {
        if low >= high {
            break;
        }
        let before = guess;
        guess = place(low, low_key, high, high_key).clamp(low, high - 1);
        if guess.abs_diff(before) <= NEAR {
            break;
        }
        let key = key(guess)?;
        if key <= target {
            (low, low_key) = (guess + 1, key);
        } else {
            (high, high_key) = (guess, key);
        }
    }
    if low < high {
        (low, high) = gallop(guess.clamp(low, high - 1), low, high, is_at_or_below)?;
    }
    while low < high {
        let middle = low.midpoint(high);
        if is_at_or_below(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low.checked_sub(1))
}

/// Narrows the range in which the first slot above the target is searched, or at whose end it is, by steps of
/// 8, 16, … slots from a guess.
fn gallop<E>(
    guess: u64,
    mut low: u64,
    mut high: u64,
    is_at_or_below: impl Fn(u64) -> Result<bool, E>,
) -> Result<(u64, u64), E> {
    let mut step = 8;
    if is_at_or_below(guess)? {
        low = guess + 1;
        while low + step < high {
            if !is_at_or_below(low + step)? {
                return Ok((low, low + step));
            }
            low += step + 1;
            step *= 2;
        }
    } else {
        high = guess;
        while low + step < high {
            if is_at_or_below(high - step)? {
                return Ok((high - step + 1, high));
            }
            high -= step;
            step *= 2;
        }
    }
    Ok((low, high))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::convert::Infallible;

    use super::interpolate;
    use crate::index::learned::tests::{contents, naive, place, targets_of};

    #[test]
    fn interpolation_finds_any_increasing_keys_with_a_bounded_number_of_reads() {
        for (kind, keys) in contents() {
            for count in [1, 2, 9, 33, 1000, keys.len()] {
                let keys = &keys[..count];
                for (target, before_first) in targets_of(keys)
                    .into_iter()
                    .flat_map(|target| [(target, None), (target, Some(1_000)), (target, Some(i64::MAX))])
                {
                    let last_key = keys[count - 1];
                    if target >= last_key {
                        continue;
                    }
                    let reads = RefCell::new(0);
                    let found = interpolate(count as u64, last_key, before_first, target, |slot| {
                        *reads.borrow_mut() += 1;
                        Ok::<_, Infallible>(keys[place(slot)])
                    });
                    assert_eq!(found, Ok(naive(keys, target)), "{kind}: {target} of {count}");
                    assert!(*reads.borrow() <= 6 + 2 * count.ilog2(), "{kind}: {target} takes {reads:?}");
                }
            }
        }
    }

    #[test]
    fn a_search_of_keys_that_do_not_increase_ends_within_the_entries() {
        let key = |slot: u64| Ok::<_, Infallible>(slot.wrapping_mul(0x5DEE_CE66_D123_4567).cast_signed());
        for entries in [1, 2, 9, 700, 5000] {
            for target in [i64::MIN, -1, 0, 1_000_003, i64::MAX - 1] {
                for before_first in [None, Some(0), Some(i64::MAX)] {
                    let Ok(found) = interpolate(entries, i64::MAX, before_first, target, key);
                    assert!(found.is_none_or(|slot| slot < entries));
                }
            }
        }
    }
}
