//! The contents of a `.log` after a repair, as ranges of the present file.

use std::sync::Arc;

use crate::error::{Error, Malformed, Result};
use crate::fs::{Directory, STAGED, Staged};
use crate::record::{BatchHeader, V2_HEADER};
use crate::segment::{Batch, LogFile};

/// Bytes that are copied at a time.
const CHUNK: usize = 1 << 20;

/// Ranges of the present `.log`, in the order in which they are in the new one. Each begins and ends between
/// two batches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Contents {
    parts: Vec<Part>,
}

/// A range of the present file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Replaces the first bytes of the range, which is one batch.
    pub(super) prefix: Option<Arc<[u8]>>,
}

impl Contents {
    /// Adds a range of whole batches at the end.
    pub(super) fn push(&mut self, part: Part) {
        match self.parts.last_mut() {
            Some(last) if last.end == part.start && last.prefix.is_none() && part.prefix.is_none() => {
                last.end = part.end;
            }
            _ if part.start == part.end => {}
            _ => self.parts.push(part),
        }
    }

    /// Inserts a batch before the one that begins at a position of the present file, or at the end.
    pub(super) fn insert_before(&mut self, position: Option<u64>, part: Part) {
        let parts = std::mem::take(&mut self.parts);
        let mut is_inserted = false;
        for old in parts {
            match position.filter(|position| !is_inserted && (old.start..old.end).contains(position)) {
                Some(position) => {
                    let prefix = old.prefix.clone().filter(|_| position == old.start);
                    let rest = Part { start: position, end: old.end, prefix };
                    self.push(Part { end: position, ..old });
                    self.push(part.clone());
                    self.push(rest);
                    is_inserted = true;
                }
                None => self.push(old),
            }
        }
        if !is_inserted {
            self.push(part);
        }
    }

    /// Whether they are all bytes of a file of this size, unchanged.
    pub(super) fn is_whole(&self, size: u64) -> bool {
        match &self.parts[..] {
            [] => size == 0,
            [part] => *part == Part { start: 0, end: size, prefix: None },
            _ => false,
        }
    }

    /// Bytes.
    pub(super) fn size(&self) -> u64 {
        self.parts.iter().map(|part| part.end - part.start).sum()
    }

    /// Calls a function with each batch, by its position in the new file, and its position in the present
    /// one.
    ///
    /// # Errors
    /// [`Error::LogChanged`] if there is no batch where one was before.
    pub(super) fn for_each_batch(
        &self,
        log: &mut LogFile,
        mut visit: impl FnMut(&Batch, u64) -> Result<()>,
    ) -> Result<()> {
        self.for_each_batch_with_bytes(log, |_| false, |batch, at, _| visit(batch, at))
    }

    /// As [`Contents::for_each_batch`], also with the bytes of those batches of which they are wanted, or
    /// none.
    pub(super) fn for_each_batch_with_bytes(
        &self,
        log: &mut LogFile,
        is_wanted: impl Fn(&BatchHeader) -> bool,
        mut visit: impl FnMut(&Batch, u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let (mut buffer, mut offset, mut end_offset) = (Vec::new(), 0, i64::MIN);
        for part in &self.parts {
            let mut at = part.start;
            while at < part.end {
                log.interrupt().check()?;
                let available = part.end - at;
                let wanted = usize::try_from(available).unwrap_or(V2_HEADER).min(V2_HEADER);
                let prefix = part.prefix.as_deref().filter(|_| at == part.start);
                let mut bytes = log.read(at, wanted)?.to_vec();
                patch(&mut bytes, prefix);
                let mut parsed = BatchHeader::parse(&bytes, available);
                let size = BatchHeader::size_to_prove(&bytes).filter(|size| *size as u64 <= available);
                if let (Err(_), Some(size)) = (&parsed, size) {
                    bytes = log.read(at, size)?.to_vec();
                    patch(&mut bytes, prefix);
                    parsed = BatchHeader::parse(&bytes, available);
                }
                let mut header = parsed.map_err(|malformed| changed(log, at, &malformed))?;
                bytes.clear();
                if header.is_wrapper() || is_wanted(&header) {
                    bytes.extend(log.read(at, usize::try_from(header.size).unwrap_or(0))?);
                    patch(&mut bytes, prefix);
                }
                if header.is_wrapper() {
                    let max = log.max_batch_bytes();
                    let resolved = header.resolve_base_offset_up_to(max, &bytes, &mut buffer);
                    resolved.map_err(|malformed| {
                        if malformed.is_too_large() {
                            malformed.at(log.path(), at, None)
                        } else {
                            changed(log, at, &malformed)
                        }
                    })?;
                }
                // readers pass over batches that repeat offsets
                if header.last_offset >= end_offset {
                    visit(&Batch { position: offset + (at - part.start), header }, at, &bytes)?;
                    end_offset = header.last_offset + 1;
                }
                at += u64::from(header.size);
            }
            offset += part.end - part.start;
        }
        Ok(())
    }

    /// Stages them as the new `.log`, with the modification time of the present one: Kafka takes it for the
    /// time of records without timestamps.
    pub(super) fn stage(&self, directory: &Directory, name: &str) -> Result<Staged> {
        let source = directory.open_file(name)?;
        directory.stage_with(name, STAGED, |file| {
            let (mut chunk, mut to) = (Vec::new(), 0);
            for part in &self.parts {
                let mut at = part.start;
                while at < part.end {
                    let length = usize::try_from(part.end - at).unwrap_or(CHUNK).min(CHUNK);
                    chunk.resize(length, 0);
                    source.read_exact_at(at, &mut chunk)?;
                    patch(&mut chunk, part.prefix.as_deref().filter(|_| at == part.start));
                    file.write_all_at(&chunk, to)?;
                    at += length as u64;
                    to += length as u64;
                }
            }
            file.set_modified(source.identity())
        })
    }
}

/// The error for bytes that were a batch when the contents were decided.
fn changed(log: &LogFile, position: u64, malformed: &Malformed) -> Error {
    Error::LogChanged {
        file: log.path().to_owned(),
        expected: format!(
            "the batch at position {position} that was there before, with {}",
            malformed.expected
        ),
        found: malformed.found.clone(),
    }
}

/// Replaces the first bytes, as many as there are.
fn patch(bytes: &mut [u8], prefix: Option<&[u8]>) {
    for (byte, new) in bytes.iter_mut().zip(prefix.unwrap_or_default()) {
        *byte = *new;
    }
}
