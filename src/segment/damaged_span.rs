//! What a walk skips at damage.

use super::damage::Damage;
use crate::error::Malformed;

/// The bytes and offsets of damage that a walk skips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DamagedSpan {
    pub(crate) start_position: u64,
    pub(crate) end_position: u64,
    /// The first offset that may be missing.
    pub(crate) start_offset: i64,
    /// The offset of the batch after it; `None` if no valid batch follows in the segment.
    pub(crate) end_offset: Option<i64>,
    /// Whether the search was completed. Otherwise valid batches may be in the span, or follow it if
    /// `end_offset` is `None`.
    pub(crate) is_searched: bool,
    /// Whether no valid batch follows, and it begins with a batch whose checksum is right, or has those of
    /// another segment: not a torn write, whatever contradicts it.
    pub(crate) is_intact: bool,
    /// An intact batch in it whose format this version does not know.
    pub(super) newer: Option<NewerBatch>,
}

impl DamagedSpan {
    /// A span whose end is known without a search.
    pub(crate) fn known(
        start_position: u64,
        end_position: u64,
        start_offset: i64,
        end_offset: Option<i64>,
    ) -> Self {
        Self {
            start_position,
            end_position,
            start_offset,
            end_offset,
            is_searched: true,
            is_intact: false,
            newer: None,
        }
    }

    /// The damage before it, with a remark if the search for whole batches was given up.
    pub(crate) fn describe(&self, damage: &Damage) -> Damage {
        let mut described = damage.clone();
        if !self.is_searched {
            described.malformed.expected.push_str(UNSEARCHED);
        }
        described
    }

    /// The first intact batch in it whose format this version does not know: not damage, but unsupported.
    pub(crate) fn unsupported(&self) -> Option<Damage> {
        self.newer.map(|NewerBatch { position, offset, magic }| Damage {
            position,
            offset,
            malformed: Malformed::unsupported("magic 0, 1 or 2", format!("magic {magic}")),
        })
    }
}

/// What is added to the description of damage after which the search was given up.
pub(crate) const UNSEARCHED: &str =
    " (whole batches may follow: the search for them was given up, because too many bytes look like batches)";

/// A batch of a later format: its layout is that of v2 up to the checksum, which matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NewerBatch {
    pub(super) position: u64,
    pub(super) offset: i64,
    pub(super) magic: u8,
}
