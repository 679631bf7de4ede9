//! What counts as damage between batches: offsets that do not increase, a leader epoch that one batch has
//! below those around it, or above ([`wrong_epoch`](super::epoch_fall::wrong_epoch)), a batch outside its
//! segment. Kafka's reader does not check this.

use std::ops::RangeInclusive;

use super::roll::is_relative;
use crate::error::Malformed;
use crate::record::BatchHeader;

/// A place where the log breaks the format.
#[derive(Debug, Clone)]
pub(crate) struct Damage {
    pub(crate) position: u64,
    /// The first offset that may be missing.
    pub(crate) offset: i64,
    pub(crate) malformed: Malformed,
}

/// The state that the next batch is checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Preceding {
    pub(crate) last_offset: i64,
    /// The highest leader epoch since it last fell; −1 if no batch had one.
    pub(crate) leader_epoch: i32,
    /// The same, without the last batch: higher if they fell at the last batch.
    pub(crate) earlier_epoch: i32,
}

/// The leader epochs before a segment, as in [`Preceding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EpochsBefore {
    pub(crate) highest: i32,
    pub(crate) earlier: i32,
}

impl EpochsBefore {
    /// −1: nothing is known.
    pub(crate) const UNKNOWN: Self = Self { highest: -1, earlier: -1 };

    pub(crate) fn after(before: Option<Preceding>) -> Self {
        before.map_or(Self::UNKNOWN, Self::from)
    }
}

impl From<Preceding> for EpochsBefore {
    fn from(before: Preceding) -> Self {
        Self { highest: before.leader_epoch, earlier: before.earlier_epoch }
    }
}

/// All batches before have had the epoch.
impl From<i32> for EpochsBefore {
    fn from(leader_epoch: i32) -> Self {
        Self { highest: leader_epoch, earlier: leader_epoch }
    }
}

/// The bounds of a segment's batches, which its name and the next segment's name set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The segment's base offset: no batch starts below it.
    pub(crate) base_offset: i64,
    /// The next segment's base offset: every batch ends below it.
    pub(crate) upper: i64,
    /// The position after the last byte that is data.
    pub(crate) end: u64,
}

impl Bounds {
    /// The state before the first batch.
    pub(crate) fn before_first(&self, epochs: impl Into<EpochsBefore>) -> Preceding {
        let EpochsBefore { highest, earlier } = epochs.into();
        Preceding { last_offset: self.base_offset - 1, leader_epoch: highest, earlier_epoch: earlier }
    }

    /// Whether a batch has offsets more than 2^31 - 1 above the base, to which no index can refer. Kafka
    /// reads such batches, which old versions of its cleaner left; a flipped bit of a base offset looks
    /// the same.
    pub(super) fn is_far(&self, header: &BatchHeader) -> bool {
        !is_relative(header.last_offset, self.base_offset)
    }

    /// Checks the offsets and the epoch of a header against the segment and the batch before it.
    #[inline]
    pub(super) fn check(
        &self,
        header: &BatchHeader,
        before: Option<Preceding>,
    ) -> std::result::Result<(), Malformed> {
        if header.base_offset < self.base_offset || header.last_offset >= self.upper {
            return Err(self.outside(header));
        }
        before.map_or(Ok(()), |before| follows(before.last_offset, before.leader_epoch, header))
    }

    #[cold]
    fn outside(&self, header: &BatchHeader) -> Malformed {
        Malformed::new(
            format!("offsets from {} to {}, by the segments' names", self.base_offset, self.upper - 1),
            format!("offsets {} to {}", header.base_offset, header.last_offset),
        )
    }
}

/// Whether a batch may follow a last offset and an epoch. A forward gap is legal: compaction and aborted
/// producers leave them.
#[inline]
pub(super) fn follows(
    last_offset: i64,
    leader_epoch: i32,
    header: &BatchHeader,
) -> std::result::Result<(), Malformed> {
    if header.base_offset > last_offset && is_possible_epoch(leader_epoch, header) {
        Ok(())
    } else {
        Err(contradiction(last_offset, leader_epoch, header))
    }
}

/// Whether a batch may follow a leader epoch. Batches without one (−1: old formats, written by tools) are not
/// compared.
#[inline]
pub(super) fn is_possible_epoch(leader_epoch: i32, header: &BatchHeader) -> bool {
    header.leader_epoch < 0 || header.leader_epoch >= leader_epoch
}

#[cold]
fn contradiction(last_offset: i64, leader_epoch: i32, header: &BatchHeader) -> Malformed {
    if header.base_offset <= last_offset {
        Malformed::new(
            format!("a batch that starts above offset {last_offset}"),
            format!("base offset {}", header.base_offset),
        )
    } else {
        Malformed::new(
            format!("a leader epoch of {leader_epoch} or more"),
            format!("leader epoch {}", header.leader_epoch),
        )
    }
}

/// `second` begins below the end of `first`. True if `first` is the damaged one, false if it is `second`.
///
/// The evidence, strongest first. An undamaged batch usually starts one above its predecessor. If the first
/// batch's offset jumped up, the third batch contradicts it; if the second batch's fell, it does not. The
/// damaged batch must fit, with its length in offsets, at its original place: the first before the second,
/// or the second before the third. Beside gaps both may fit: then it is the one that a single flipped bit
/// of its base offset explains. If both or neither are explained, it is the second, as a reader without
/// lookahead would decide.
pub(super) fn first_is_damaged(
    before: Option<Preceding>,
    first: &BatchHeader,
    second: &BatchHeader,
    third: Option<&BatchHeader>,
) -> bool {
    let identity = |header: &BatchHeader| (header.base_offset, header.size, header.crc);
    if identity(first) == identity(second) {
        return false;
    }
    // both headers are well-formed, so no last offset is `i64::MAX` and the additions cannot overflow
    let span = |header: &BatchHeader| header.last_offset - header.base_offset + 1;
    let room_before_second = before.map(|before| second.base_offset - (before.last_offset + 1));
    if let Some(before) = before {
        match room_before_second {
            _ if first.base_offset == before.last_offset + 1 => return false,
            Some(room) if room == span(first) => return true,
            _ => {}
        }
    }
    let first_flip = before.is_some_and(|before| {
        is_one_bit_from(
            first.base_offset,
            before.last_offset.saturating_add(1)..=second.base_offset - span(first),
        )
    });
    let Some(third) = third else {
        // one that ends above the first may overlap it, as a leader has written it
        let (end, next) = (second.base_offset - span(first), first.last_offset.saturating_add(1));
        let is_second_explained = is_one_bit_from(second.base_offset, next..=next)
            && !is_one_bit_from(first.base_offset, end..=end);
        return second.last_offset <= first.last_offset && first_flip && !is_second_explained;
    };
    let first_fits = room_before_second.is_some_and(|room| room >= span(first));
    let second_places = first.last_offset.saturating_add(1)..=third.base_offset - span(second);
    let is_first_flipped = first_flip && !is_one_bit_from(second.base_offset, second_places.clone());
    // a second batch that begins where the first does shows no jump of the first
    let has_only_first_place = second_places.is_empty() && second.base_offset < first.base_offset;
    third.base_offset <= first.last_offset || first_fits && (has_only_first_place || is_first_flipped)
}

/// Whether a base offset differs in one bit from one of these offsets.
fn is_one_bit_from(base_offset: i64, offsets: RangeInclusive<i64>) -> bool {
    (0..i64::BITS - 1).any(|bit| offsets.contains(&(base_offset ^ 1 << bit)))
}
