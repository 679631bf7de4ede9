//! What recovery does with each segment that remains.

use std::sync::Arc;

use super::existing_log::Existing;
use super::recovery_plan::RebuildReason;
use super::scan_segment::{self, DataEnd, Scanned};
use crate::error::Result;
use crate::fs::names::FileKind;
use crate::segment::{Segment, is_relative};

/// A segment that remains.
#[derive(Debug)]
pub(super) struct SegmentPlan {
    pub(super) base_offset: i64,
    treatment: Treatment,
    /// The scan of the segment; `None` if it was not scanned and stays unchanged.
    pub(super) scanned: Option<Scanned>,
    /// The indexes that are rebuilt.
    pub(super) rebuilt: Vec<(FileKind, RebuildReason)>,
    /// If it is recovered, the base offset of each part and the bytes of its transaction index.
    pub(super) transaction_indexes: Vec<(i64, Vec<u8>)>,
}

/// How much of what Kafka derives from a segment is derived again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Treatment {
    /// The `.log` is durable: its indexes, if they are stale.
    Sealed,
    /// The `.log` is durable, but the offset index is missing or the transaction index is damaged: all. So
    /// does Kafka, even after a clean shutdown.
    Suspect,
    /// The `.log` may not be durable yet: all.
    Unclean,
}

impl SegmentPlan {
    /// The base offsets after recovery: several if the segment is split.
    pub(super) fn base_offsets(&self) -> Vec<i64> {
        match &self.scanned {
            Some(scanned) => scanned.parts.iter().map(|part| part.base_offset).collect(),
            None => vec![self.base_offset],
        }
    }

    /// Whether the `.log` may not be durable yet.
    pub(super) fn is_unclean(&self) -> bool {
        self.treatment == Treatment::Unclean
    }

    /// Whether all that Kafka derives from it is derived again.
    pub(super) fn is_recovered(&self) -> bool {
        self.treatment != Treatment::Sealed || self.is_split()
    }

    pub(super) fn is_split(&self) -> bool {
        self.scanned.as_ref().is_some_and(|scanned| scanned.is_overflowed(self.base_offset))
    }
}

impl Existing<'_> {
    /// The plans of the segments `before` the first unclean one, and of the `unclean` ones, which were
    /// scanned.
    pub(super) fn segment_plans(
        &self,
        before: &[Arc<Segment>],
        unclean: &[Arc<Segment>],
        scanned: Vec<Scanned>,
        closed_cleanly: bool,
    ) -> Result<Vec<SegmentPlan>> {
        let sealed = before.iter().map(|segment| self.plan_of_sealed(segment, closed_cleanly));
        let unclean = unclean.iter().zip(scanned);
        let unclean = unclean.map(|(segment, scanned)| {
            self.plan_of_scanned(segment.base_offset(), Treatment::Unclean, scanned)
        });
        sealed.chain(unclean).collect()
    }

    fn plan_of_sealed(&self, segment: &Segment, closed_cleanly: bool) -> Result<SegmentPlan> {
        let base_offset = segment.base_offset();
        let unchanged = SegmentPlan {
            base_offset,
            treatment: Treatment::Sealed,
            scanned: None,
            rebuilt: Vec::new(),
            transaction_indexes: Vec::new(),
        };
        let has_valid_indexes = has_indexes(segment)?
            && (closed_cleanly || has_trimmed_indexes(segment)? && has_closing_entry(segment)?);
        let is_suspect = segment.offset_index()?.is_none() || has_damaged_transaction_index(segment)?;
        if has_valid_indexes && !is_suspect {
            return Ok(unchanged);
        }
        let scanned = self.scan(segment, -1, None)?;
        match &scanned.cut {
            // a reader skips the damage, and a split must not lose the batches after it
            Some(DataEnd { damage, .. }) if scanned.is_overflowed(base_offset) => {
                Err(segment.corrupt(damage))
            }
            // only the transaction index knows of the markers that the damage destroyed
            Some(_) if has_valid_indexes => Ok(unchanged),
            None if is_suspect => self.plan_of_scanned(base_offset, Treatment::Suspect, scanned),
            _ => self.plan_of_scanned(base_offset, Treatment::Sealed, scanned),
        }
    }

    fn plan_of_scanned(
        &self,
        base_offset: i64,
        treatment: Treatment,
        scanned: Scanned,
    ) -> Result<SegmentPlan> {
        let rebuilt = match &scanned.parts[..] {
            // a split writes the indexes of its parts
            [part, ..] if !scanned.is_overflowed(base_offset) => {
                self.stale_indexes(base_offset, &part.indexes)?
            }
            _ => Vec::new(),
        };
        let transaction_indexes = Vec::new();
        Ok(SegmentPlan { base_offset, treatment, scanned: Some(scanned), rebuilt, transaction_indexes })
    }
}

fn has_indexes(segment: &Segment) -> Result<bool> {
    Ok(segment.offset_index()?.is_some() && segment.time_index()?.is_some())
}

/// Whether both indexes are trimmed to their entries. After a crash during a roll they are not.
fn has_trimmed_indexes(segment: &Segment) -> Result<bool> {
    Ok(match (segment.offset_index()?, segment.time_index()?) {
        (Some(offsets), Some(times)) => {
            offsets.entries() == offsets.max_entries() && times.entries() == times.max_entries()
        }
        _ => false,
    })
}

/// Whether the time index contains the largest timestamp of the segment, as after a roll, unless its offset
/// is too far from the base offset. A deletion of records raises the recovery point, possibly to the end of
/// the active segment, so that a crash during the next roll can lose the entry.
fn has_closing_entry(segment: &Segment) -> Result<bool> {
    let largest = scan_segment::closed_state(segment)?.largest;
    let last = segment.time_index()?.map_or(-1, |times| times.last_entry().timestamp);
    Ok(last >= largest.timestamp || !is_relative(largest.offset, segment.base_offset()))
}

/// *Source*: `LogSegment.sanityCheck`.
fn has_damaged_transaction_index(segment: &Segment) -> Result<bool> {
    Ok(segment.transaction_index()?.is_some_and(|transactions| transactions.sanity_check().is_err()))
}
