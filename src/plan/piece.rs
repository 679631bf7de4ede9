//! Pieces of logs, and tasks made of them, as bytes that another process or machine reads.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use super::bounds::Bounds;
use super::directory::PartitionDirectory;
use super::error::{Code, PlanError, Result};
use crate::log::{AbortedRange, PlannedSegment, Split};
use crate::record::varint;

/// A part of one partition that one task reads. It has no open handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The partition.
    pub directory: PartitionDirectory,
    /// The range, and the planned segments: the scan of a task compares the log with them.
    pub split: Split,
    /// Whether this piece reports damage that begins before it, rather than the previous piece.
    pub is_first: bool,
}

impl Piece {
    /// A whole range, without planned segments.
    pub fn of_range(range: Bounds) -> Self {
        let Bounds { directory, start_offset, end_offset, continues } = range;
        let split = Split { path: directory.path.clone(), start_offset, end_offset, ..Split::default() };
        Self { directory, split, is_first: !continues }
    }

    /// The piece narrowed to a range of its offsets, with the segments of that range as they were planned.
    /// `aborted`: the transactions of the range; by default all of the piece.
    pub(crate) fn narrowed(
        &self,
        range: std::ops::Range<i64>,
        size: u64,
        aborted: Option<Vec<AbortedRange>>,
    ) -> Self {
        let Self { directory, split, is_first } = self;
        let segments = &split.segments;
        let first = segments.partition_point(|segment| segment.base_offset <= range.start).saturating_sub(1);
        let last = segments.partition_point(|segment| segment.base_offset < range.end).max(first + 1);
        Self {
            directory: directory.clone(),
            is_first: *is_first && range.start == split.start_offset,
            split: Split {
                start_offset: range.start,
                end_offset: range.end,
                size,
                aborted: aborted.or_else(|| split.aborted.clone()),
                segments: segments.get(first..last.min(segments.len())).unwrap_or_default().to_vec(),
                ..split.clone()
            },
        }
    }
}

/// What one task reads, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Task {
    /// The pieces.
    pub pieces: Vec<Piece>,
}

impl Task {
    const VERSION: u8 = 1;

    /// The approximate number of bytes of the logs that it reads.
    pub fn size(&self) -> u64 {
        self.pieces.iter().fold(0, |size, piece| size.saturating_add(piece.split.size))
    }

    /// The task as bytes, which [`Task::from_bytes`] of the same version reads.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![Self::VERSION];
        write_length(&mut bytes, self.pieces.len());
        for Piece { directory, split, is_first } in &self.pieces {
            write_bytes(&mut bytes, directory.path.as_os_str().as_bytes());
            // almost always the directory's
            let split_path = (split.path != directory.path).then(|| split.path.as_os_str().as_bytes());
            write_option(&mut bytes, split_path, write_bytes);
            write_option(&mut bytes, directory.topic.as_deref().map(str::as_bytes), write_bytes);
            write_option(&mut bytes, directory.partition.map(i64::from), varint::write);
            varint::write(&mut bytes, split.start_offset);
            varint::write(&mut bytes, split.end_offset);
            write_option(&mut bytes, split.start_time, varint::write);
            write_option(&mut bytes, split.end_time, varint::write);
            varint::write(&mut bytes, split.size.cast_signed());
            write_option(&mut bytes, split.aborted.as_ref(), |bytes, aborted| {
                write_length(bytes, aborted.len());
                for (producer, first, last) in aborted {
                    for number in [producer, first, last] {
                        varint::write(bytes, *number);
                    }
                }
            });
            write_length(&mut bytes, split.segments.len());
            for PlannedSegment { base_offset, size, first_batch_crc, is_last } in &split.segments {
                varint::write(&mut bytes, *base_offset);
                varint::write(&mut bytes, size.cast_signed());
                write_option(&mut bytes, first_batch_crc.map(i64::from), varint::write);
                bytes.push(u8::from(*is_last));
            }
            bytes.push(u8::from(*is_first));
        }
        bytes
    }

    /// Reads what [`Task::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`Code::BadOption`] for the bytes of another version, or other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let wrong = || {
            let reason = "task: expected one that this version of cordwood planned, found other bytes; use one version of \
                          cordwood in the driver and in all executors";
            PlanError::new(Code::BadOption, reason)
        };
        match bytes.split_first() {
            Some((&Self::VERSION, mut rest)) => {
                let task = read_task(&mut rest).filter(|_| rest.is_empty());
                task.ok_or_else(wrong)
            }
            _ => Err(wrong()),
        }
    }
}

fn read_task(rest: &mut &[u8]) -> Option<Task> {
    let mut pieces = Vec::new();
    for _ in 0..read_length(rest)? {
        let path = read_path(rest)?;
        let split_path = read_option(rest, read_path)?;
        let topic = read_option(rest, |rest| String::from_utf8(read_bytes(rest)?.to_vec()).ok())?;
        let partition = read_option(rest, |rest| read_number(rest)?.try_into().ok())?;
        let directory = PartitionDirectory { topic, partition, path: path.clone() };
        let [start_offset, end_offset] = [read_number(rest)?, read_number(rest)?];
        let [start_time, end_time] = [read_option(rest, read_number)?, read_option(rest, read_number)?];
        let size = read_number(rest)?.cast_unsigned();
        let aborted = read_option(rest, |rest| {
            let count = read_length(rest)?;
            (0..count).map(|_| Some((read_number(rest)?, read_number(rest)?, read_number(rest)?))).collect()
        })?;
        let count = read_length(rest)?;
        let segments = (0..count).map(|_| read_segment(rest)).collect::<Option<_>>()?;
        let is_first = read_flag(rest)?;
        let path = split_path.unwrap_or(path);
        let split = Split { path, start_offset, end_offset, start_time, end_time, size, aborted, segments };
        pieces.push(Piece { directory, split, is_first });
    }
    Some(Task { pieces })
}

fn read_segment(rest: &mut &[u8]) -> Option<PlannedSegment> {
    Some(PlannedSegment {
        base_offset: read_number(rest)?,
        size: read_number(rest)?.cast_unsigned(),
        first_batch_crc: read_option(rest, |rest| read_number(rest)?.try_into().ok())?,
        is_last: read_flag(rest)?,
    })
}

fn write_length(bytes: &mut Vec<u8>, length: usize) {
    varint::write(bytes, i64::try_from(length).unwrap_or(i64::MAX));
}

fn write_bytes(bytes: &mut Vec<u8>, content: &[u8]) {
    write_length(bytes, content.len());
    bytes.extend_from_slice(content);
}

fn write_option<T>(bytes: &mut Vec<u8>, value: Option<T>, write: impl FnOnce(&mut Vec<u8>, T)) {
    bytes.push(u8::from(value.is_some()));
    if let Some(value) = value {
        write(bytes, value);
    }
}

fn read_number(rest: &mut &[u8]) -> Option<i64> {
    varint::read_i64(rest).ok()
}

/// A number of items, each of which has a byte or more.
fn read_length(rest: &mut &[u8]) -> Option<usize> {
    usize::try_from(read_number(rest)?).ok().filter(|length| *length <= rest.len())
}

fn read_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = read_length(rest)?;
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(bytes)
}

fn read_path(rest: &mut &[u8]) -> Option<PathBuf> {
    Some(OsString::from_vec(read_bytes(rest)?.to_vec()).into())
}

fn read_flag(rest: &mut &[u8]) -> Option<bool> {
    let (flag, after) = rest.split_first()?;
    *rest = after;
    (*flag < 2).then_some(*flag == 1)
}

#[expect(clippy::option_option, reason = "the outer one is the result, the inner one the value")]
fn read_option<'a, T>(
    rest: &mut &'a [u8],
    read: impl FnOnce(&mut &'a [u8]) -> Option<T>,
) -> Option<Option<T>> {
    if read_flag(rest)? { read(rest).map(Some) } else { Some(None) }
}
