//! A segment of a copy while its batches are copied.

use std::collections::HashMap;
use std::sync::Arc;

use super::destination::Destination;
use super::indexes::IndexMaker;
use super::producers::Producers;
use super::source::Source;
use super::staged_log::{FinishedLog, StagedLog};
use crate::error::{Error, Result};
use crate::fs::names::FileKind;
use crate::index::{AbortedTransaction, encode_aborted};
use crate::log::{OnDamage, Ranges, ScanOptions, ScanStep};
use crate::record::crc::Running;
use crate::segment::{Batch, Segment};
use crate::types::Interrupt;

/// A segment of a copy.
pub(super) struct Piece {
    segment: Arc<Segment>,
    base_offset: i64,
    log: StagedLog,
    indexes: IndexMaker,
    transaction_index: Vec<u8>,
    /// The entries of the source's transaction index, by the offset of the marker.
    recorded: HashMap<i64, AbortedTransaction>,
    /// The first offset of its first batch, and the offset after its last one.
    offsets: Option<(i64, i64)>,
}

impl Piece {
    /// Begins a segment with the batches of a source segment from a position on. `may_link`: whether it may
    /// become a link.
    pub(super) fn begin(
        source: &Source,
        destination: &mut Destination,
        segment: &Arc<Segment>,
        start: u64,
        base_offset: i64,
        may_link: bool,
    ) -> Result<Self> {
        let link =
            (may_link && start == 0 && !segment.is_last()).then_some((source.log.directory(), &**segment));
        Ok(Self {
            log: StagedLog::open(destination, base_offset, link)?,
            indexes: IndexMaker::new(segment, start, base_offset),
            segment: Arc::clone(segment),
            base_offset,
            transaction_index: Vec::new(),
            recorded: recorded(segment),
            offsets: None,
        })
    }

    /// The base offset of the source segment.
    pub(super) fn source_base_offset(&self) -> i64 {
        self.segment.base_offset()
    }

    /// Adds a batch.
    pub(super) fn add(&mut self, batch: &Batch, bytes: &[u8], producers: &mut Producers) -> Result<()> {
        self.indexes.add(&batch.header, batch.position, self.log.size())?;
        self.log.add(bytes, &self.segment, batch.position)?;
        let recorded = self.recorded.get(&batch.header.base_offset).copied();
        if let Some(aborted) = producers.append(&batch.header, bytes, recorded) {
            self.transaction_index.extend(encode_aborted(aborted));
        }
        let (first, _) = self.offsets.unwrap_or((batch.header.base_offset, 0));
        self.offsets = Some((first, batch.header.last_offset + 1));
        Ok(())
    }

    /// Completes the segment, and checks that the source has not changed. `is_last`: whether it is the last
    /// one of the copy.
    pub(super) fn finish(
        self,
        source: &Source,
        destination: &mut Destination,
        is_last: bool,
        on_damage: OnDamage,
        interrupt: Interrupt,
    ) -> Result<FinishedLog> {
        let is_whole = self.log.size() == self.segment.file_size()?;
        // a writer of the copy appends to its last segment
        let finished = self.log.finish(&self.segment, is_whole && !is_last, interrupt)?;
        ensure_unchanged(source, &self.segment, self.offsets, finished.crc, on_damage)?;
        let [offset_index, time_index] = self.indexes.finish()?;
        destination.put_segment_file(self.base_offset, FileKind::OffsetIndex, &offset_index)?;
        destination.put_segment_file(self.base_offset, FileKind::TimeIndex, &time_index)?;
        if !self.transaction_index.is_empty() {
            let bytes = &self.transaction_index;
            destination.put_segment_file(self.base_offset, FileKind::TransactionIndex, bytes)?;
        }
        Ok(finished)
    }
}

/// The whole entries of the transaction index of a segment. Those that no marker confirms are not used.
fn recorded(segment: &Segment) -> HashMap<i64, AbortedTransaction> {
    let index = segment.or_warn(segment.transaction_index());
    let entries = index.iter().flat_map(|index| index.iter().map_while(Result::ok));
    entries.map(|entry| (entry.last_offset, entry)).collect()
}

/// Fails if the batches that were copied have changed since the source was opened.
///
/// A sealed segment never changes, and a later modification of its file has another time; but the last
/// segment grows, and after a truncation it may have other batches at the same place. So it is read a second
/// time, as is a segment that was modified shortly before the source was opened: equal bytes were there all
/// the time between.
fn ensure_unchanged(
    source: &Source,
    segment: &Segment,
    offsets: Option<(i64, i64)>,
    crc: u32,
    on_damage: OnDamage,
) -> Result<()> {
    source.log.check_unchanged()?;
    segment.ensure_unmodified()?;
    let Some((start, end)) =
        offsets.filter(|_| !segment.identity().is_ok_and(|known| known.is_older_than(source.opened)))
    else {
        return Ok(());
    };
    let ranges = Ranges { start_offset: Some(start), end_offset: Some(end), ..Ranges::default() };
    let options = ScanOptions { ranges, on_damage, batches_only: true, ..ScanOptions::default() };
    let (mut scan, mut again) = (source.log.with_hidden_records().scan(options)?, Running::new(2));
    while let Some(step) = scan.next_step().or_else(|error| source.damaged(error))? {
        if matches!(step, ScanStep::Batch(_)) && scan.segment() == Some(segment.base_offset()) {
            again.update(scan.batch_bytes()?);
        }
    }
    if again.value() == crc {
        return Ok(());
    }
    Err(Error::LogChanged {
        file: segment.path(),
        expected: "the same batches when they are read again".to_owned(),
        found: "others: the log was truncated".to_owned(),
    })
}
