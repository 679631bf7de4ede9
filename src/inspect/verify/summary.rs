//! What other segments and the small files are compared with: a few numbers of a segment.

use crate::segment::{Batch, DamagedSpan, Preceding};
use crate::types::distance;

/// Batches in a row that have one leader epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EpochRun {
    pub(crate) epoch: i32,
    /// The base offset of the first of them.
    pub(crate) start_offset: i64,
    /// The base offset of the last of them.
    pub(crate) last_start_offset: i64,
    /// The last offset of the last of them.
    pub(crate) last_offset: i64,
    /// The position of the first of them.
    pub(crate) position: u64,
    /// The position after the last of them.
    pub(crate) end_position: u64,
    /// Their number.
    pub(crate) batches: u64,
}

impl EpochRun {
    /// The offsets whose epoch is compared: the first of them, and both ends of the last batch. So an epoch
    /// that begins inside that batch is found.
    pub(super) fn probes(&self) -> [i64; 3] {
        [self.start_offset, self.last_start_offset, self.last_offset]
    }
}

/// Missing offsets between two batches of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap {
    /// The first missing offset.
    pub(crate) start_offset: i64,
    /// The base offset of the batch after it.
    pub(crate) end_offset: i64,
    /// The position of that batch.
    pub(crate) position: u64,
    /// Whether a truncation inside a batch may have left it: a leader epoch begins there, or a `LogWriter`
    /// had the log open.
    pub(crate) is_truncation: bool,
    /// Whether the batch before it has so many more records than offsets that they may have these.
    pub(crate) may_be_used: bool,
}

/// The numbers of a segment.
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a segment")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(super) base_offset: i64,
    /// The next segment's base offset, or `i64::MAX` for the last.
    pub(super) upper: i64,
    /// The base offset of the first batch; `None` without batches.
    pub(super) first_offset: Option<i64>,
    /// The offset after the last batch; the base offset without batches.
    pub(super) end_offset: i64,
    /// Bytes of the batches.
    pub(super) size: u64,
    pub(super) batches: u64,
    /// The position of the last batch.
    pub(super) last_position: u64,
    /// Batches next to missing offsets within the segment: their base offsets may be anywhere in the gap.
    pub(super) batches_at_gaps: u64,
    /// The first gaps within the segment.
    pub(super) gaps: Vec<Gap>,
    pub(super) gap_count: u64,
    /// The offsets that are missing in all gaps within the segment.
    pub(super) missing_offsets: u64,
    pub(super) epochs: Vec<EpochRun>,
    /// Whether a batch has a trace of compaction itself: records are missing in it, or it has a delete
    /// horizon.
    pub(super) is_rewritten: bool,
    /// Whether a batch shows that the segment was compacted.
    pub(super) is_compacted: bool,
    pub(super) is_damaged: bool,
    /// Whether damage is before the first batch, and after the last one.
    pub(super) is_damaged_at_start: bool,
    pub(super) is_damaged_at_end: bool,
    /// Whether a batch has a producer id.
    pub(super) has_producers: bool,
    pub(super) is_transactional: bool,
    /// Whether a batch is of a format with timestamps.
    pub(super) has_timestamps: bool,
    pub(super) largest_timestamp: i64,
    /// Producer and offset of each ABORT marker.
    pub(super) aborts: Vec<(i64, i64)>,
    /// The largest distance of two entries of the offset index, bytes.
    pub(super) index_distance: Option<u64>,
    /// The leader epoch of the last batch with one.
    leader_epoch: i32,
    /// By how many the records of the last batch are more than its offsets.
    excess: u64,
}

impl Summary {
    const MAX_GAPS: usize = 8;

    pub(super) fn new(base_offset: i64, upper: i64) -> Self {
        Self {
            base_offset,
            upper,
            first_offset: None,
            end_offset: base_offset,
            size: 0,
            batches: 0,
            last_position: 0,
            batches_at_gaps: 0,
            gaps: Vec::new(),
            gap_count: 0,
            missing_offsets: 0,
            epochs: Vec::new(),
            is_rewritten: false,
            is_compacted: false,
            is_damaged: false,
            is_damaged_at_start: false,
            is_damaged_at_end: false,
            has_producers: false,
            is_transactional: false,
            has_timestamps: false,
            largest_timestamp: -1,
            aborts: Vec::new(),
            index_distance: None,
            leader_epoch: -1,
            excess: 0,
        }
    }

    /// The state before the next batch; `None` after damage, and before the first.
    pub(super) fn preceding(&self) -> Option<Preceding> {
        let is_known = self.batches > 0 && !self.is_damaged_at_end;
        let leader_epoch = self.leader_epoch;
        is_known.then_some(Preceding {
            last_offset: self.end_offset - 1,
            leader_epoch,
            earlier_epoch: leader_epoch,
        })
    }

    pub(super) fn add(&mut self, batch: &Batch, shows_compaction: bool) {
        let header = &batch.header;
        if self.batches > 0 && !self.is_damaged_at_end && header.base_offset > self.end_offset {
            self.gap_count += 1;
            let missing = distance(self.end_offset, header.base_offset);
            self.missing_offsets = self.missing_offsets.saturating_add(missing);
            if self.gaps.len() < Self::MAX_GAPS {
                self.gaps.push(Gap {
                    start_offset: self.end_offset,
                    end_offset: header.base_offset,
                    position: batch.position,
                    is_truncation: !shows_compaction,
                    may_be_used: missing <= self.excess.max(batch.records_beyond_offsets()),
                });
            }
        }
        self.excess = batch.records_beyond_offsets();
        self.is_rewritten |= batch.is_rewritten();
        self.first_offset.get_or_insert(header.base_offset);
        self.end_offset = header.last_offset + 1;
        self.last_position = batch.position;
        self.batches += 1;
        self.is_damaged_at_end = false;
        self.is_compacted |= shows_compaction;
        self.has_producers |= header.producer_id >= 0;
        self.is_transactional |= header.is_transactional();
        self.has_timestamps |= header.max_timestamp >= 0;
        self.largest_timestamp = self.largest_timestamp.max(header.max_timestamp);
        if header.leader_epoch >= 0 {
            self.leader_epoch = header.leader_epoch;
        }
        match self.epochs.last_mut() {
            Some(run) if run.epoch == header.leader_epoch => {
                run.last_start_offset = header.base_offset;
                run.last_offset = header.last_offset;
                run.end_position = batch.end();
                run.batches += 1;
            }
            _ => self.epochs.push(EpochRun {
                epoch: header.leader_epoch,
                start_offset: header.base_offset,
                last_start_offset: header.base_offset,
                last_offset: header.last_offset,
                position: batch.position,
                end_position: batch.end(),
                batches: 1,
            }),
        }
    }

    pub(super) fn pass_damage(&mut self, span: &DamagedSpan) {
        self.is_damaged = true;
        self.is_damaged_at_start |= self.batches == 0;
        self.is_damaged_at_end = true;
        if self.first_offset.is_none() && span.start_position == 0 {
            self.is_damaged_at_start = true;
        }
    }
}
