//! What the batches of a segment say after the repair, and the index files that follow from them.

use super::contents::Contents;
use super::epochs::EpochRun;
use super::index_check::{IndexCheck, is_zero_from};
use crate::error::Result;
use crate::fs::names::FileKind;
use crate::fs::{Directory, FileBytes};
use crate::index::due_entries::EntryRule;
use crate::log::{LiveOffsets, OffsetRun};
use crate::segment::{LogFile, PartBuilder, is_relative};

/// What the batches of a segment say, after the repair.
#[derive(Debug, Default)]
pub(super) struct Derived {
    pub(super) batches: u64,
    /// The offset after the last batch; `None` if there is none.
    pub(super) end_offset: Option<i64>,
    /// The offsets of the batches.
    pub(super) offsets: LiveOffsets,
    /// The leader epochs, as the batches follow each other.
    pub(super) epochs: Vec<EpochRun>,
    /// The offset of the first batch.
    pub(super) first_offset: Option<i64>,
    /// The start of a gap between two batches that contains the durable offset.
    pub(super) gap_at_durable: Option<i64>,
    /// Whether a batch has a producer id.
    pub(super) has_producers: bool,
    /// The kinds of the index files that do not match the batches.
    pub(super) stale: Vec<FileKind>,
    /// Those of them that have the right entries, and space after them.
    pub(super) untrimmed: Vec<FileKind>,
}

/// The name of each index file of a segment; `None` if there is none.
pub(super) type IndexNames = Vec<(FileKind, Option<String>)>;

/// The bytes of index files.
pub(super) type IndexFiles = Vec<(FileKind, Vec<u8>)>;

/// A segment, as it is after the repair.
pub(super) struct NewSegment<'a> {
    pub(super) directory: &'a Directory,
    pub(super) base_offset: i64,
    pub(super) contents: &'a Contents,
    pub(super) rule: EntryRule,
    /// Whether it is the last one.
    pub(super) is_last: bool,
}

impl NewSegment<'_> {
    /// The bytes of the indexes; none if the segment has offsets to which no index can refer.
    pub(super) fn indexes(&self, log: &mut LogFile) -> Result<IndexFiles> {
        let mut builder = PartBuilder::new(self.base_offset, 0, self.rule);
        let mut is_far = false;
        self.contents.for_each_batch(log, |batch, _| {
            is_far |= !is_relative(batch.header.last_offset, self.base_offset);
            builder.add(batch);
            Ok(())
        })?;
        if is_far {
            // a split of the segment gives it indexes
            return Ok(Vec::new());
        }
        Ok(builder.finish()?.indexes.files().map(|(kind, bytes)| (kind, bytes.to_vec())).to_vec())
    }

    /// Reads the batches, and compares the index files with them. `names`: the present names of the index
    /// files; `durable`: the durable offset of a `LogWriter`.
    pub(super) fn derive(
        &self,
        names: &IndexNames,
        durable: Option<i64>,
        log: &mut LogFile,
    ) -> Result<Derived> {
        let mut derived = Derived::default();
        let mut check = IndexCheck::new(self.base_offset);
        // a broker gives the indexes of the last segment their full size, and cuts them when it rolls or
        // closes the log
        let preallocated = self.is_last.then_some(self.rule.max_index_size);
        for (kind, name) in names {
            if let Some(name) = name {
                check.read(self.directory, *kind, name, self.contents.size(), preallocated)?;
            }
        }
        self.contents.for_each_batch(log, |batch, _| {
            derived.add(
                batch.header.base_offset,
                batch.header.last_offset,
                batch.header.leader_epoch,
                durable,
            );
            derived.has_producers |= batch.header.producer_id >= 0;
            check.add(batch);
            Ok(())
        })?;
        for (kind, bytes) in self.indexes(log)? {
            if !check.matches(kind, bytes.is_empty(), self.is_last) && !self.is_same(names, kind, &bytes)? {
                derived.stale.push(kind);
                if self.has_space_after(names, kind, &bytes)? {
                    derived.untrimmed.push(kind);
                }
            }
        }
        Ok(derived)
    }

    /// Whether an index file has these bytes, and only zeros after them.
    fn has_space_after(&self, names: &IndexNames, kind: FileKind, bytes: &[u8]) -> Result<bool> {
        let Some(name) = name_of(names, kind) else { return Ok(false) };
        let size = bytes.len() as u64;
        if self.directory.identity_of(name)?.is_none_or(|file| file.size <= size) {
            return Ok(false);
        }
        let file = FileBytes::new(self.directory.open_file(name)?, None, false)?;
        let mut buffer = Vec::new();
        Ok(file.read(0, bytes.len(), &mut buffer)? == bytes && is_zero_from(&file, size)?)
    }

    /// Whether an index file has exactly these bytes.
    fn is_same(&self, names: &IndexNames, kind: FileKind, bytes: &Vec<u8>) -> Result<bool> {
        let Some(name) = name_of(names, kind) else { return Ok(false) };
        let size = bytes.len() as u64;
        Ok(self.directory.identity_of(name)?.is_some_and(|file| file.size == size)
            && self.directory.read_small(name, size)?.as_ref() == Some(bytes))
    }
}

fn name_of(names: &IndexNames, kind: FileKind) -> Option<&String> {
    names.iter().find(|(named, _)| *named == kind).and_then(|(_, name)| name.as_ref())
}

impl Derived {
    fn add(&mut self, first_offset: i64, last_offset: i64, epoch: i32, durable: Option<i64>) {
        self.batches += 1;
        self.offsets.add(OffsetRun { offsets: first_offset..last_offset + 1, epoch });
        self.first_offset.get_or_insert(first_offset);
        let end = self.end_offset.replace(last_offset + 1);
        if let (Some(end), Some(durable)) = (end, durable)
            && end < durable
            && durable <= first_offset
        {
            self.gap_at_durable = Some(end);
        }
        if epoch >= 0 {
            EpochRun { epoch, first: first_offset, last: first_offset }.add_to(&mut self.epochs);
        }
    }
}
