//! Leader epochs that fall within a log. A broker appends with the epoch of its own cluster also to the log
//! of another one, such as a restored backup, and a consumer reads on.
//!
//! No checksum covers an epoch, so that the batches around a fall tell it from a wrong epoch:
//!
//! ```text
//! 5 5 5 2 2 2     the epochs fall
//! 5 5 5 2 5 5     the epoch of the fourth batch is wrong
//! 2 2 5 2 2 2     the epoch of the third batch is wrong
//! ```

use super::damage::{Damage, EpochsBefore, Preceding, follows};
use super::walk::{Batch, Walk};
use crate::error::Result;
use crate::record::BatchHeader;

/// Whether the leader epochs of a log fall between a batch with the epoch `first` and the batch `second`, and
/// none of them is damaged.
///
/// One wrong epoch must not explain it: `before`, the highest epoch before `first`, is above that of `second`
/// too, and `third`, the batch after `second`, has a lower one than `first` too. At an end of the log, where
/// there is no such batch, more than one flipped bit must separate the two.
pub(super) fn is_epoch_fall(
    before: i32,
    first: i32,
    second: &BatchHeader,
    third: Option<&BatchHeader>,
) -> bool {
    let is_one_flip = (first ^ second.leader_epoch).cast_unsigned().is_power_of_two();
    let is_other = |epoch: Option<i32>, differs: bool| match epoch.filter(|epoch| *epoch >= 0) {
        Some(_) => differs,
        None => !is_one_flip,
    };
    let third = third.map(|third| third.leader_epoch);
    (0..first).contains(&second.leader_epoch)
        && is_other(Some(before), before > second.leader_epoch)
        && is_other(third, third.is_some_and(|third| third < first))
}

impl Walk {
    /// The damage if the header after the batch returned last (if there is one) cannot follow it.
    pub(crate) fn contradicted_by_next(&mut self, batch: &Batch) -> Result<Option<Damage>> {
        let Ok(&next) = self.header_at(batch.end())? else { return Ok(None) };
        let BatchHeader { last_offset, leader_epoch, .. } = batch.header;
        let Err(malformed) = follows(last_offset, leader_epoch, &next) else { return Ok(None) };
        if next.base_offset > last_offset {
            let third = self.header_at(batch.end() + u64::from(next.size))?.ok().copied();
            let before = EpochsBefore::after(self.preceding_from_start(batch.position)?);
            if is_epoch_fall(before.highest, leader_epoch, &next, third.as_ref()) {
                return Ok(None);
            }
        }
        Ok(Some(self.damage(malformed)))
    }

    /// Whether leader epochs fall at the position, and the batch there is not damaged: see [`is_epoch_fall`].
    /// If so, the epochs of the batches after it are compared with its own.
    #[cold]
    pub(super) fn is_after_epoch_fall(&mut self, header: &BatchHeader) -> Result<bool> {
        let Some(before) = self.before else { return Ok(false) };
        if header.base_offset <= before.last_offset || header.last_offset >= self.bounds.upper {
            return Ok(false);
        }
        let next = self.header_at(self.position + u64::from(header.size))?.ok().copied();
        let is_fall = is_epoch_fall(before.earlier_epoch, before.leader_epoch, header, next.as_ref());
        if is_fall {
            let leader_epoch = header.leader_epoch;
            self.before = Some(Preceding { leader_epoch, earlier_epoch: leader_epoch, ..before });
        }
        Ok(is_fall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::V2_HEADER;

    fn header(leader_epoch: i32) -> BatchHeader {
        let mut bytes = [0; V2_HEADER];
        bytes[12..16].copy_from_slice(&leader_epoch.to_be_bytes());
        bytes[16] = 2;
        BatchHeader::unchecked(&bytes, 61).unwrap()
    }

    /// Epochs before the fall, those of the two batches, and after it.
    fn falls(before: i32, first: i32, second: i32, third: Option<i32>) -> bool {
        is_epoch_fall(before, first, &header(second), third.map(header).as_ref())
    }

    #[test]
    fn two_batches_on_each_side_show_a_fall() {
        assert!(falls(5, 5, 2, Some(2)));
        assert!(falls(5, 5, 4, Some(4)));
        assert!(falls(4, 5, 2, Some(3)));
    }

    #[test]
    fn a_single_batch_with_another_epoch_is_wrong() {
        assert!(!falls(5, 5, 2, Some(5)));
        assert!(!falls(2, 5, 2, Some(2)));
        assert!(!falls(0, 1 << 30, 0, Some(0)));
        // epochs that do not fall, and batches without an epoch
        assert!(!falls(2, 2, 2, Some(2)));
        assert!(!falls(2, 2, -1, Some(2)));
    }

    #[test]
    fn at_an_end_of_the_log_more_than_a_flipped_bit_is_required() {
        assert!(falls(5, 5, 2, None));
        assert!(!falls(5, 5, 4, None));
        assert!(falls(-1, 5, 2, Some(2)));
        assert!(!falls(-1, 6, 2, Some(2)));
    }
}
