//! A naive reader of a partition directory: reads every byte of every segment, in order, into memory.
//!
//! It is written from the format description and shares no code with the crate or the builder. It is slow and
//! strict: every deviation from Kafka's format is an `Err`. Queries of a log are in `queries`.

mod bytes;
mod decompress;
mod legacy;
mod queries;
mod v2;

pub use bytes::{crc32, crc32c, varint, varlong};

use std::fmt;
use std::fs;
use std::path::Path;

/// A deviation from Kafka's format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Irregular {
    /// Base offset of the segment.
    pub segment: i64,
    /// Start of the batch, in bytes from the start of the segment's `.log`.
    pub position: u64,
    pub what: String,
}

impl fmt::Display for Irregular {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segment {} position {}: {}", self.segment, self.position, self.what)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl Codec {
    fn from_attributes(attributes: u8) -> Result<Self, String> {
        Ok(match attributes & 7 {
            0 => Self::None,
            1 => Self::Gzip,
            2 => Self::Snappy,
            3 => Self::Lz4,
            4 => Self::Zstd,
            other => return Err(format!("codec {other}")),
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

/// −1, 0, 1: none, the producer's time, the broker's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::enum_variant_names, reason = "Kafka's names")]
pub enum TimestampType {
    NoTimestampType = -1,
    CreateTime = 0,
    LogAppendTime = 1,
}

/// The type of a control record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    Abort {
        coordinator_epoch: i32,
    },
    Commit {
        coordinator_epoch: i32,
    },
    /// Kafka's own (2 to 6) or unknown.
    Other {
        kind: i16,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub offset: i64,
    /// As a reader returns it: the batch's with `LogAppendTime`.
    pub timestamp: i64,
    pub sequence: i32,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    pub control: Option<Control>,
}

/// A v2 batch, a v0 or v1 wrapper, or one uncompressed v0 or v1 message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Base offset of the segment.
    pub segment: i64,
    /// Bytes from the start of the segment's `.log`.
    pub position: u64,
    pub size: u64,
    pub magic: u8,
    pub base_offset: i64,
    /// Inclusive.
    pub last_offset: i64,
    /// The field of a v2 batch.
    pub count: Option<i32>,
    pub codec: Codec,
    pub timestamp_type: TimestampType,
    /// The raw field of a v2 batch: the delete horizon, if there is one.
    pub base_timestamp: Option<i64>,
    pub max_timestamp: i64,
    pub leader_epoch: i32,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub last_sequence: i32,
    pub transactional: bool,
    pub control: bool,
    pub delete_horizon: Option<i64>,
    pub crc: u32,
    pub records: Vec<Record>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    pub base_offset: i64,
    /// Of the file, in bytes.
    pub size: u64,
    /// The position after the last batch.
    pub end: u64,
    /// Zeros after that, in a preallocated last segment. `end + zero_tail == size` in an intact log.
    pub zero_tail: u64,
}

/// A partition, completely read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Log {
    /// By base offset.
    pub segments: Vec<Segment>,
    /// Of all segments, in order.
    pub batches: Vec<Batch>,
}

/// The whole partition, or the first deviation.
pub fn read(dir: &Path) -> Result<Log, Irregular> {
    let (log, irregular) = read_until_damage(dir);
    irregular.map_or(Ok(log), Err)
}

/// The part before the first deviation, and that deviation.
pub fn read_until_damage(dir: &Path) -> (Log, Option<Irregular>) {
    let files = segment_files(dir);
    let mut log = Log::default();
    for (i, (base_offset, bytes)) in files.iter().enumerate() {
        let is_last = i + 1 == files.len();
        let bad = |position: usize, what: String| {
            Some(Irregular { segment: *base_offset, position: position as u64, what })
        };
        if let Some(previous) = log.batches.last()
            && *base_offset <= previous.last_offset
        {
            return (log, bad(0, "a segment that starts before the end of the previous segment".to_owned()));
        }
        let mut segment =
            Segment { base_offset: *base_offset, size: bytes.len() as u64, end: 0, zero_tail: 0 };
        let mut position = 0;
        let mut wrong = None;
        while position < bytes.len() {
            let rest = &bytes[position..];
            if is_last && rest.iter().all(|&byte| byte == 0) {
                segment.zero_tail = rest.len() as u64;
                break;
            }
            let read = read_batch(rest).and_then(|batch| follows(&log, *base_offset, &batch).map(|()| batch));
            match read {
                Ok(mut batch) => {
                    batch.segment = *base_offset;
                    batch.position = position as u64;
                    position += batch.size as usize;
                    segment.end = position as u64;
                    log.batches.push(batch);
                }
                Err(what) => {
                    wrong = bad(position, what);
                    break;
                }
            }
        }
        log.segments.push(segment);
        if wrong.is_some() {
            return (log, wrong);
        }
    }
    (log, None)
}

/// The batch at the start of `bytes`; its `segment` and `position` are 0.
pub fn read_batch(bytes: &[u8]) -> Result<Batch, String> {
    let prefix = bytes.get(..17).ok_or_else(|| format!("an incomplete batch: {} bytes left", bytes.len()))?;
    let size = i32::from_be_bytes(prefix[8..12].try_into().unwrap());
    if size < 14 {
        return Err(format!("size {size}"));
    }
    let size = size as usize + 12;
    let batch = bytes
        .get(..size)
        .ok_or_else(|| format!("an incomplete batch: it has {size} bytes and {} are left", bytes.len()))?;
    match prefix[16] {
        0 | 1 => legacy::read(batch),
        2 => v2::read(batch),
        other => Err(format!("magic {other}")),
    }
}

/// Checks that the batch may follow the batches before it.
fn follows(log: &Log, segment: i64, batch: &Batch) -> Result<(), String> {
    if batch.base_offset < segment {
        return Err(format!("base offset {} below that of the segment", batch.base_offset));
    }
    if let Some(previous) = log.batches.last()
        && batch.base_offset <= previous.last_offset
    {
        return Err(format!("base offset {} after last offset {}", batch.base_offset, previous.last_offset));
    }
    let epoch = log.batches.iter().rev().map(|b| b.leader_epoch).find(|&epoch| epoch >= 0);
    if let Some(epoch) = epoch
        && (0..epoch).contains(&batch.leader_epoch)
    {
        return Err(format!("leader epoch {} after {epoch}", batch.leader_epoch));
    }
    Ok(())
}

/// Base offset and content of every `.log`, in order.
fn segment_files(dir: &Path) -> Vec<(i64, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display())) {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap_or_default();
        if let Some(stem) = name.strip_suffix(".log")
            && stem.len() >= 20
            && stem.bytes().all(|byte| byte.is_ascii_digit())
        {
            files.push((stem.parse().unwrap(), fs::read(&path).unwrap()));
        }
    }
    files.sort();
    files
}
