//! The derived files of one segment.

use std::sync::atomic::{AtomicBool, Ordering};

use super::producer_replay::{FromProducers, ProducerFilesReplay};
use crate::error::{Malformed, Result};
use crate::fs::names::{FileKind, SegmentFileName, Stage};
use crate::index::due_entries::EntryRule;
use crate::segment::{Batch, PartBuilder, SCAN_READ, Segment, Step, is_relative};

/// The contents of a segment's derived files, as Kafka's recovery writes them.
///
/// *Source*: `LogSegment.recover`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DerivedFiles {
    /// The segment's base offset.
    pub base_offset: i64,
    /// The offset after its last batch; the base offset if there is no batch.
    pub end_offset: i64,
    /// The bytes of the `.index`.
    pub offset_index: Vec<u8>,
    /// The bytes of the `.timeindex`.
    pub time_index: Vec<u8>,
    /// The bytes of the `.txnindex`; if there are none, Kafka creates no file.
    pub transaction_index: Vec<u8>,
    /// Snapshots at offsets above the base offset, up to the base offset of the next segment; after the last
    /// segment, up to any offset. `None` for an offset inside a batch, where there is no state.
    pub snapshots: Vec<(i64, Option<Vec<u8>>)>,
}

impl DerivedFiles {
    /// The names and contents of the files. The contents are `None` for a snapshot that cannot exist.
    pub(super) fn files(&self) -> impl Iterator<Item = (SegmentFileName, Option<&[u8]>)> {
        let name = |base_offset, kind| SegmentFileName { base_offset, kind, stage: Stage::Live };
        let indexes = [
            (FileKind::OffsetIndex, &self.offset_index),
            (FileKind::TimeIndex, &self.time_index),
            (FileKind::TransactionIndex, &self.transaction_index),
        ];
        let indexes = indexes.map(|(kind, bytes)| (name(self.base_offset, kind), Some(&bytes[..])));
        let snapshots = self.snapshots.iter();
        let snapshots =
            snapshots.map(move |(offset, bytes)| (name(*offset, FileKind::Snapshot), bytes.as_deref()));
        indexes.into_iter().chain(snapshots)
    }
}

/// A segment that was read.
#[derive(Debug)]
pub(super) struct ReadSegment {
    pub(super) files: DerivedFiles,
    /// Whether a batch has a producer id.
    pub(super) has_producers: bool,
}

/// Reads a segment: verifies every batch, and derives its files. Without `replay` the files have nothing of
/// its producers.
///
/// # Errors
/// [`Error::Corrupt`](crate::Error::Corrupt) at the first damage;
/// [`Error::UnsupportedFormat`](crate::Error::UnsupportedFormat) for an offset that is too large for an
/// index; `None` if `is_stopped` became true.
pub(super) fn read_segment(
    segment: &Segment,
    rule: EntryRule,
    mut replay: Option<&mut ProducerFilesReplay>,
    is_stopped: &AtomicBool,
) -> Result<Option<ReadSegment>> {
    let base_offset = segment.base_offset();
    let mut walk = segment.walk(-1, SCAN_READ)?;
    let mut part = PartBuilder::new(base_offset, 0, rule);
    let mut has_producers = false;
    loop {
        segment.open_files().interrupt.check()?;
        if is_stopped.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let before = walk.before;
        let batch = match walk.step_through()? {
            Step::End => break,
            Step::Batch(batch) => batch,
            Step::Damage(damage) => return Err(segment.corrupt(&damage)),
        };
        if !is_relative(batch.header.last_offset, base_offset) {
            return Err(too_far(segment, &batch));
        }
        part.add(&batch);
        has_producers |= batch.header.producer_id >= 0;
        if let Some(replay) = replay.as_deref_mut()
            && let Err(malformed) = replay.add(&batch, &mut walk)?
        {
            return Err(segment.corrupt(&walk.reject(&batch, before, malformed)));
        }
    }
    let indexes = part.finish()?.indexes;
    let FromProducers { transaction_index, snapshots } =
        replay.map(|replay| replay.end_segment(segment.upper())).unwrap_or_default();
    let files = DerivedFiles {
        base_offset,
        end_offset: walk.expected_offset(),
        offset_index: indexes.offset_index,
        time_index: indexes.time_index,
        transaction_index,
        snapshots,
    };
    Ok(Some(ReadSegment { files, has_producers }))
}

fn too_far(segment: &Segment, batch: &Batch) -> crate::Error {
    let base_offset = segment.base_offset();
    let expected = format!(
        "offsets up to 2^31 - 1 above the base offset {base_offset}, because an index has no room for others (cordwood recover \
         splits the segment, and so does a broker)"
    );
    let last_offset = batch.header.last_offset;
    Malformed::unsupported(expected, format!("offset {last_offset}")).at(
        segment.path(),
        batch.position,
        Some(last_offset),
    )
}
