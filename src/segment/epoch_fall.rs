//! Leader epochs that fall within a log. A broker appends with the epoch of its own cluster also to the log
//! of another one, such as a restored backup, and a consumer reads on.
//!
//! No checksum covers an epoch. A batch has a wrong one if those on both sides of it agree without it. What
//! the batches around it leave open is no damage: a broker may have written it.
//!
//! ```text
//! 5 5 5 2 2 2     the epochs fall
//! 5 5 5 2         the epochs fall
//! 5 2 2 2         the epochs fall
//! 5 5 5 2 5 5     the epoch of the fourth batch is wrong
//! 2 2 5 2 2 2     the epoch of the third batch is wrong
//! ```

use super::damage::{Damage, EpochsBefore, follows};
use super::walk::{Batch, Walk};
use crate::error::Result;
use crate::record::BatchHeader;

/// Which of two batches has a wrong leader epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WrongEpoch {
    First,
    Second,
}

/// Which of two batches has a wrong leader epoch, where that of the `second` is lower; `None` if epochs fall
/// between them. `before`: the highest epoch before the first since they last fell. `third`: that of the
/// batch after the second. Each is −1 if it is not known.
pub(crate) fn wrong_epoch(before: i32, first: i32, second: i32, third: i32) -> Option<WrongEpoch> {
    if third >= first {
        Some(WrongEpoch::Second)
    } else if (0..=second).contains(&before) {
        Some(WrongEpoch::First)
    } else {
        None
    }
}

#[cfg(feature = "inspect")]
impl EpochsBefore {
    /// Whether the last batch of a segment has a wrong leader epoch, by that of the first batch of the next
    /// one; −1: not known.
    pub(crate) fn is_last_wrong(self, next: i32) -> bool {
        let Self { highest, earlier } = self;
        if next < 0 || highest < 0 {
            false
        } else if next < highest {
            wrong_epoch(earlier, highest, next, -1) == Some(WrongEpoch::First)
        } else {
            // the epochs fell at the last batch
            earlier > highest && wrong_epoch(-1, earlier, highest, next) == Some(WrongEpoch::Second)
        }
    }
}

impl Walk {
    /// The damage if the header after the batch returned last (if there is one) cannot follow it.
    pub(crate) fn contradicted_by_next(&mut self, batch: &Batch) -> Result<Option<Damage>> {
        let Ok(&next) = self.header_at(batch.end())? else { return Ok(None) };
        let BatchHeader { last_offset, leader_epoch, .. } = batch.header;
        let Err(malformed) = follows(last_offset, leader_epoch, &next) else { return Ok(None) };
        if next.base_offset > last_offset {
            let third = self.epoch_at(batch.end() + u64::from(next.size))?;
            let before = EpochsBefore::after(self.preceding_from_start(batch.position)?).highest;
            if wrong_epoch(before, leader_epoch, next.leader_epoch, third).is_none() {
                return Ok(None);
            }
        }
        Ok(Some(self.damage(malformed)))
    }

    /// Whether leader epochs fall at the position, and the batch there is not damaged.
    #[cold]
    pub(super) fn is_after_epoch_fall(&mut self, header: &BatchHeader) -> Result<bool> {
        let Some(before) = self.before else { return Ok(false) };
        if header.base_offset <= before.last_offset || header.last_offset >= self.bounds.upper {
            return Ok(false);
        }
        let next = self.epoch_at(self.position + u64::from(header.size))?;
        let wrong = wrong_epoch(before.earlier_epoch, before.leader_epoch, header.leader_epoch, next);
        Ok(wrong != Some(WrongEpoch::Second))
    }

    /// The leader epoch of the batch at a position; −1 if there is no readable header.
    pub(crate) fn epoch_at(&mut self, position: u64) -> Result<i32> {
        Ok(self.header_at(position)?.as_ref().map_or(-1, |header| header.leader_epoch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNKNOWN: i32 = -1;

    #[test]
    fn epochs_fall_unless_the_batches_around_show_a_wrong_one() {
        for (before, first, second, third) in [
            (5, 5, 2, 2),
            (5, 5, 4, 4),
            (4, 5, 2, 3),
            (5, 5, 4, UNKNOWN),
            (UNKNOWN, 6, 2, 2),
            (UNKNOWN, 1, 0, UNKNOWN),
        ] {
            assert_eq!(wrong_epoch(before, first, second, third), None, "{before} {first} {second} {third}");
        }
    }

    #[test]
    fn a_single_batch_with_another_epoch_than_those_around_it_is_wrong() {
        assert_eq!(wrong_epoch(5, 5, 2, 5), Some(WrongEpoch::Second));
        assert_eq!(wrong_epoch(UNKNOWN, 5, 2, 6), Some(WrongEpoch::Second));
        assert_eq!(wrong_epoch(2, 5, 2, 2), Some(WrongEpoch::First));
        assert_eq!(wrong_epoch(2, 5, 3, UNKNOWN), Some(WrongEpoch::First));
        assert_eq!(wrong_epoch(0, 1 << 30, 0, 0), Some(WrongEpoch::First));
    }

    #[cfg(feature = "inspect")]
    #[test]
    fn the_next_segment_shows_that_the_last_epoch_of_a_segment_is_wrong() {
        let after = |highest, earlier| EpochsBefore { highest, earlier };
        assert!(after(5, 2).is_last_wrong(2));
        assert!(!after(5, 5).is_last_wrong(2));
        assert!(!after(5, UNKNOWN).is_last_wrong(2));
        // the epochs fell at the last batch
        assert!(after(4, 5).is_last_wrong(5));
        assert!(!after(4, 5).is_last_wrong(4));
        assert!(!after(4, 5).is_last_wrong(UNKNOWN));
        assert!(!EpochsBefore::UNKNOWN.is_last_wrong(0));
    }
}
