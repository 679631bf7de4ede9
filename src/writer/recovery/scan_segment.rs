//! Reads a segment from its first byte to its last, checks every batch, and builds its indexes.

use super::preconditions::refuse_missing_end;
use crate::error::Result;
use crate::index::due_entries::EntryRule;
use crate::segment::{
    Bounds, Damage, DamagedSpan, EpochsBefore, IndexBytes, Part, PartBuilder, SCAN_READ, Segment,
    SegmentState, Step, Walk, is_relative,
};
use crate::types::{Interrupt, TimestampOffset};

/// The result of a scan.
#[derive(Debug)]
pub(in crate::writer) struct Scanned {
    /// One part; several if offsets are more than 2^31 - 1 above the base offset, which splits the segment.
    pub(in crate::writer) parts: Vec<Part>,
    /// The offset after the last batch; the base offset if there is no batch.
    pub(in crate::writer) end_offset: i64,
    /// The leader epochs up to the end of the segment, including earlier segments.
    pub(super) epochs_before_next: EpochsBefore,
    /// The leader epochs of the batches and the base offset at which each begins, in log order.
    pub(super) epochs: Vec<(i32, i64)>,
    /// Whether a batch has a producer id.
    pub(super) has_producers: bool,
    /// The damage at which the data ends; `None` if all bytes are valid.
    pub(in crate::writer) cut: Option<DataEnd>,
}

/// The damage at which the data of a segment ends.
#[derive(Debug)]
pub(in crate::writer) struct DataEnd {
    pub(in crate::writer) damage: Damage,
    /// Whether it may be a torn write by the bytes alone: no valid batch follows, or is there.
    pub(super) is_end: bool,
    /// Whether a batch of another place is there: not a torn write, whatever was synced.
    pub(super) is_foreign: bool,
}

impl DataEnd {
    /// `span`: what the walk skipped at the damage.
    fn new(segment: &Segment, walk: &mut Walk, damage: &Damage, span: &DamagedSpan) -> Result<Self> {
        Ok(Self {
            damage: span.describe(damage),
            is_end: span.end_offset.is_none() && span.is_searched && !span.is_intact,
            is_foreign: segment.has_foreign_batch(walk, damage, span)?,
        })
    }
}

impl Scanned {
    /// The number of data bytes in the `.log`.
    pub(super) fn size(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.start + part.state.size)
    }

    /// Whether no valid batch is in the segment, nor after its damage.
    pub(super) fn has_no_batch(&self) -> bool {
        self.size() == 0 && self.cut.as_ref().is_none_or(|cut| cut.is_end)
    }

    /// The indexes of the first part.
    pub(in crate::writer) fn into_indexes(self) -> IndexBytes {
        self.parts.into_iter().next().map(|part| part.indexes).unwrap_or_default()
    }

    /// Whether the segment must be split for its indexes to refer to every offset.
    pub(in crate::writer) fn is_overflowed(&self, base_offset: i64) -> bool {
        self.parts.len() > 1 || self.parts.first().is_some_and(|part| part.base_offset != base_offset)
    }
}

/// Reads a segment and checks every batch. `epochs_before`: those before the segment.
///
/// A segment with a batch more than 2^31 - 1 above its base offset is divided into parts, as Kafka splits it:
/// the base offset of a part is that of its first batch, and a part contains all following batches that its
/// indexes can refer to.
///
/// `synced`: the durable offset, at which a batch ended.
///
/// *Source*: `LogSegment.recover`; `UnifiedLog.splitOverflowedSegment`.
pub(in crate::writer) fn scan(
    segment: &Segment,
    epochs_before: impl Into<EpochsBefore>,
    synced: Option<i64>,
    rule: EntryRule,
    interrupt: Interrupt,
) -> Result<Scanned> {
    let (base_offset, epochs_before) = (segment.base_offset(), epochs_before.into());
    let bounds = Bounds { base_offset, upper: segment.upper(), end: segment.file_size()? };
    let mut walk =
        Walk::new(segment.log_file(SCAN_READ)?, bounds, 0, Some(bounds.before_first(epochs_before)));
    let mut parts = Vec::new();
    let mut part = PartBuilder::new(base_offset, 0, rule);
    let mut epochs: Vec<(i32, i64)> = Vec::new();
    let mut has_producers = false;
    let cut = loop {
        interrupt.check()?;
        let before = walk.before;
        let damage = match walk.step_through()? {
            Step::End => {
                part.end_at(bounds.end);
                break None;
            }
            Step::Damage(damage) => {
                part.end_at(damage.position);
                damage
            }
            Step::Batch(batch) => {
                let header = &batch.header;
                if let (Some(synced), Some(before)) = (synced, before) {
                    refuse_missing_end(segment, before.last_offset + 1, &batch, synced)?;
                }
                has_producers |= header.producer_id >= 0;
                if header.leader_epoch >= 0
                    && epochs.last().is_none_or(|(last, _)| *last != header.leader_epoch)
                {
                    epochs.push((header.leader_epoch, header.base_offset));
                }
                if !is_relative(header.last_offset, part.base_offset) && parts.is_empty() {
                    part.base_offset = part.first_offset.unwrap_or(header.base_offset);
                }
                if !is_relative(header.last_offset, part.base_offset) {
                    let next = PartBuilder::new(header.base_offset, batch.position, rule);
                    parts.push(std::mem::replace(&mut part, next).finish()?);
                }
                part.add(&batch);
                continue;
            }
        };
        let span = segment.resume(&mut walk, &damage)?;
        if let Some(newer) = span.unsupported() {
            return Err(segment.corrupt(&newer));
        }
        break Some(DataEnd::new(segment, &mut walk, &damage, &span)?);
    };
    parts.push(part.finish()?);
    let before = cut.is_none().then_some(walk.before).flatten();
    Ok(Scanned {
        parts,
        end_offset: cut.as_ref().map_or_else(|| walk.expected_offset(), |cut| cut.damage.offset),
        epochs_before_next: before.map_or(epochs_before, EpochsBefore::from),
        epochs,
        has_producers,
        cut,
    })
}

/// The state of a closed segment, from its indexes and the batch headers after their last entries.
///
/// *Source*: `LogSegment.truncateTo`, its last step; `LogSegment.maxTimestampSoFar`.
pub(in crate::writer) fn closed_state(segment: &Segment) -> Result<SegmentState> {
    let base_offset = segment.base_offset();
    let bounds = segment.bounds()?;
    let start = bounds.before_first(-1);
    let mut walk = Walk::new(segment.log_file(SCAN_READ)?, bounds, 0, Some(start));
    let first_batch_timestamp = walk.header_at(0)?.ok().map(|header| header.max_timestamp);
    let mut largest = TimestampOffset { timestamp: -1, offset: base_offset };
    if let (Some(times), Some(offsets)) = (segment.time_index()?, segment.offset_index()?)
        && times.entries() > 0
    {
        largest = times.last_entry();
        let position = offsets.lookup(largest.offset, crate::index::Method::Warm)?.position;
        walk.position = u64::try_from(position).unwrap_or(0);
        walk.before = (position == 0).then_some(start);
    }
    while let Step::Batch(batch) = walk.step()? {
        if batch.header.max_timestamp > largest.timestamp {
            largest =
                TimestampOffset { timestamp: batch.header.max_timestamp, offset: batch.header.last_offset };
        }
    }
    Ok(SegmentState { size: bounds.end, first_batch_timestamp, largest })
}
