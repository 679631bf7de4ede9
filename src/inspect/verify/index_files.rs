//! The index files of a segment: whether they exist, and their sizes.

use super::finding::Finding;
use super::rule::Rule;
use super::summary::Summary;
use crate::error::Result;
use crate::fs::FileBytes;
use crate::fs::names::{FileKind, segment_file};
use crate::index::{AbortedTransaction, OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES};
use crate::segment::Segment;
use crate::types::Interrupt;

/// An index of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexKind {
    Offset,
    Time,
    Transaction,
}

impl IndexKind {
    pub(super) const ALL: [Self; 3] = [Self::Offset, Self::Time, Self::Transaction];

    fn file_kind(self) -> FileKind {
        match self {
            Self::Offset => FileKind::OffsetIndex,
            Self::Time => FileKind::TimeIndex,
            Self::Transaction => FileKind::TransactionIndex,
        }
    }

    fn entry_size(self) -> u64 {
        let bytes = match self {
            Self::Offset => OFFSET_ENTRY_BYTES,
            Self::Time => TIME_ENTRY_BYTES,
            Self::Transaction => AbortedTransaction::BYTES,
        };
        bytes as u64
    }
}

/// The findings about an index file of a segment whose batches were read.
pub(super) fn index_file(
    segment: &Segment,
    kind: IndexKind,
    partition: &std::path::Path,
    summary: &Summary,
) -> Result<Vec<Finding>> {
    let files = segment.files();
    let name = match kind {
        IndexKind::Offset => files.offset_index.as_ref(),
        IndexKind::Time => files.time_index.as_ref(),
        IndexKind::Transaction => files.transaction_index.as_ref(),
    };
    let directory = &segment.open_files().directory;
    let identity = name.map(|name| directory.identity_of(name)).transpose()?.flatten();
    let (Some(name), Some(identity)) = (name, identity) else {
        return Ok(missing(segment, kind, partition, summary));
    };
    let opened = match kind {
        IndexKind::Offset => segment.offset_index().map(|index| index.map(|index| index.entries())),
        IndexKind::Time => segment.time_index().map(|index| index.map(|index| index.entries())),
        IndexKind::Transaction => segment.transaction_index().map(|_| None),
    };
    // one that cannot be opened is a finding already
    let Ok(entries) = opened else { return Ok(Vec::new()) };
    let path = directory.path_of(name);
    let mut findings = Vec::new();
    let size = identity.size;
    let fragment = size % kind.entry_size();
    if fragment != 0 {
        let rule =
            if kind == IndexKind::Transaction { Rule::TransactionIndexFragment } else { Rule::IndexFragment };
        let expected = format!("a whole number of entries of {} bytes", kind.entry_size());
        let found = format!("{size} bytes, of which the last {fragment} are no entry");
        findings.push(Finding::new(rule, partition, &path, expected, found).at(size - fragment, size));
    }
    let Some(entries) = entries else { return Ok(findings) };
    let (end, whole) = (entries * kind.entry_size(), size - fragment);
    if end < whole {
        let bytes = FileBytes::new(directory.open_file(name)?, Some(whole), false)?;
        let other = first_other_than_zero(&bytes, end, whole, segment.open_files().interrupt)?;
        let is_zero = other.is_none();
        if !segment.is_last() || !is_zero {
            let rule = match kind {
                _ if is_zero => Rule::IndexZeroTail,
                IndexKind::Time => Rule::TimeIndexEntryWrong,
                _ => Rule::IndexEntryWrong,
            };
            let found = match other {
                None => format!("{} bytes of zeros after {entries} entries", whole - end),
                Some(position) => format!("zeros, and other bytes at position {position} after them"),
            };
            let position = other.map_or(end, |position| position - position % kind.entry_size());
            let finding = Finding::new(rule, partition, &path, "entries up to the end of the file", found);
            findings.push(finding.at(position, whole));
        }
    }
    let is_due = kind == IndexKind::Time && summary.largest_timestamp >= 0 && !segment.is_last();
    if entries == 0 && is_due && !summary.is_damaged {
        let expected = format!("an entry for the largest timestamp, {}", summary.largest_timestamp);
        findings.push(Finding::new(Rule::IndexEmpty, partition, &path, expected, "no entry"));
    }
    Ok(findings)
}

fn missing(
    segment: &Segment,
    kind: IndexKind,
    partition: &std::path::Path,
    summary: &Summary,
) -> Vec<Finding> {
    let rule = match kind {
        IndexKind::Offset => Rule::IndexMissing,
        // versions before 0.10 wrote none
        IndexKind::Time if summary.has_timestamps => Rule::TimeIndexMissing,
        IndexKind::Time | IndexKind::Transaction => return Vec::new(),
    };
    // a segment that was just created may have none yet
    if segment.is_last() && summary.batches == 0 {
        return Vec::new();
    }
    let name = segment_file(segment.base_offset(), kind.file_kind());
    let path = segment.open_files().directory.path_of(&name);
    let finding = Finding::new(rule, partition, path, "the index of the segment", "no such file");
    vec![finding.offsets(segment.base_offset(), Some(summary.end_offset))]
}

/// The position of the first byte other than zero.
fn first_other_than_zero(
    bytes: &FileBytes,
    start: u64,
    end: u64,
    interrupt: Interrupt,
) -> Result<Option<u64>> {
    const CHUNK: usize = 128 << 10;
    let (mut position, mut buffer) = (start, Vec::new());
    loop {
        interrupt.check()?;
        position = bytes.after_hole(position)?;
        if position >= end {
            return Ok(None);
        }
        let wanted = usize::try_from(end - position).unwrap_or(CHUNK).min(CHUNK);
        let read = bytes.read(position, wanted, &mut buffer)?;
        if let Some(at) = read.iter().position(|byte| *byte != 0) {
            return Ok(Some(position + at as u64));
        }
        position += read.len().max(1) as u64;
    }
}
