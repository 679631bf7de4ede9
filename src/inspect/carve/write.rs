//! Writes runs as partition directories.

use std::path::Path;

use super::runs::Run;
use crate::config::LogConfig;
use crate::error::{Error, Result};
use crate::fs::names::{FileKind, segment_file};
use crate::fs::{Directory, SystemFile, WritableFile};
use crate::index::due_entries::EntryRule;
use crate::inspect::rebuild::ProducerFilesReplay;
use crate::record::{BatchHeader, V2_HEADER};
use crate::segment::{Batch, PartBuilder, is_relative};
use crate::state::leader_epochs::LeaderEpochs;
use crate::types::Interrupt;

const ADVICE: &str = "give the path of a new directory in an existing one";

/// Opens the destination, which must be new or empty.
pub(super) fn destination(path: &Path) -> Result<Directory> {
    let directory = Directory::open_or_create(path, ADVICE, |_, _| Ok(()))?;
    if let Some((name, _)) = directory.entries()?.into_iter().next() {
        let found = directory.path_of(&name).display().to_string();
        return Err(Error::config("destination", "a new or an empty directory", found));
    }
    Ok(directory)
}

/// Writes a run into a new folder.
pub(super) fn write(
    destination: &Directory,
    name: &str,
    run: &Run,
    images: &[SystemFile],
    interrupt: Interrupt,
) -> Result<()> {
    let directory = destination.folder(name)?;
    let config = LogConfig::default();
    let rule = EntryRule {
        interval_bytes: u64::from(config.index_interval_bytes),
        max_index_size: u64::from(config.segment_index_bytes),
    };
    let mut writer = Writer {
        directory: &directory,
        rule,
        segment_bytes: u64::from(config.segment_bytes),
        segment: None,
        epochs: LeaderEpochs::default(),
        epoch: -1,
        producers: ProducerFilesReplay::default(),
    };
    let mut bytes = Vec::new();
    for piece in &run.pieces {
        let Some(image) = images.get(piece.image) else { continue };
        let mut at = piece.start;
        while at < piece.end {
            interrupt.check()?;
            let wanted = usize::try_from(piece.end - at).unwrap_or(V2_HEADER).min(V2_HEADER);
            bytes.resize(wanted, 0);
            image.read_exact_at(at, &mut bytes)?;
            let changed = || Error::LogChanged {
                file: image.path().to_owned(),
                expected: format!("the batch that was found at position {at}"),
                found: "other bytes".to_owned(),
            };
            let mut header = BatchHeader::parse_unproven(&bytes, piece.end - at).map_err(|_| changed())?;
            bytes.resize(usize::try_from(header.size).unwrap_or(0), 0);
            image.read_exact_at(at, &mut bytes)?;
            header.ensure_valid(&bytes).map_err(|_| changed())?;
            header.resolve_base_offset(&bytes, &mut Vec::new()).map_err(|_| changed())?;
            writer.add(header, &bytes)?;
            at += u64::from(header.size);
        }
    }
    writer.close_segment(i64::MAX)?;
    directory
        .replace(crate::state::leader_epochs::LEADER_EPOCH_CHECKPOINT, writer.epochs.to_text().as_bytes())?;
    directory.sync()
}

struct Writer<'a> {
    directory: &'a Directory,
    rule: EntryRule,
    segment_bytes: u64,
    segment: Option<NewSegment>,
    epochs: LeaderEpochs,
    epoch: i32,
    producers: ProducerFilesReplay,
}

struct NewSegment {
    base_offset: i64,
    log: WritableFile,
    size: u64,
    part: PartBuilder,
}

impl Writer<'_> {
    fn add(&mut self, header: BatchHeader, bytes: &[u8]) -> Result<()> {
        let is_full = self.segment.as_ref().is_some_and(|segment| {
            segment.size + bytes.len() as u64 > self.segment_bytes
                || !is_relative(header.last_offset, segment.base_offset)
        });
        if is_full {
            self.close_segment(header.base_offset)?;
        }
        if header.leader_epoch > self.epoch {
            self.epoch = header.leader_epoch;
            self.epochs.assign(header.leader_epoch, header.base_offset);
        }
        if self.segment.is_none() {
            let base_offset = header.base_offset;
            let log = self.directory.create(&segment_file(base_offset, FileKind::Log))?;
            let part = PartBuilder::new(base_offset, 0, self.rule);
            self.segment = Some(NewSegment { base_offset, log, size: 0, part });
        }
        // a batch that contradicts the producer's others, for example because it is from another partition,
        // aborts nothing
        let _ = self.producers.add_header(&header, bytes);
        let Some(segment) = &mut self.segment else { return Ok(()) };
        segment.log.write_all_at(bytes, segment.size)?;
        segment.part.add(&Batch { position: segment.size, header });
        segment.size += bytes.len() as u64;
        Ok(())
    }

    /// Ends the segment. `upper`: the base offset of the next one.
    fn close_segment(&mut self, upper: i64) -> Result<()> {
        let Some(segment) = self.segment.take() else { return Ok(()) };
        let transactions = self.producers.end_segment(upper).transaction_index;
        if !transactions.is_empty() {
            let name = segment_file(segment.base_offset, FileKind::TransactionIndex);
            self.directory.replace(&name, &transactions)?;
        }
        segment.log.sync()?;
        let part = segment.part.finish()?;
        for (kind, bytes) in part.indexes.files() {
            self.directory.replace(&segment_file(segment.base_offset, kind), bytes)?;
        }
        Ok(())
    }
}
