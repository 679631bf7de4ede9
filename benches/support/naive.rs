//! A naive reader: every file is open, headers are read one after another, and nothing is verified.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::batches::crc32c;
use super::partition::file_name;

/// The bytes of a v2 batch that a walk reads.
#[derive(Debug, Clone, Copy)]
pub struct Header {
    pub base_offset: i64,
    pub size: u64,
    pub crc: u32,
    pub codec: u8,
    pub last_offset: i64,
    pub base_timestamp: i64,
    pub max_timestamp: i64,
    pub count: i32,
}

fn at<const N: usize>(bytes: &[u8], position: usize) -> [u8; N] {
    bytes[position..position + N].try_into().unwrap()
}

impl Header {
    pub fn new(bytes: &[u8]) -> Self {
        let base_offset = i64::from_be_bytes(at(bytes, 0));
        Self {
            base_offset,
            size: i32::from_be_bytes(at(bytes, 8)) as u64 + 12,
            crc: u32::from_be_bytes(at(bytes, 17)),
            codec: bytes[22] & 7,
            last_offset: base_offset + i64::from(i32::from_be_bytes(at(bytes, 23))),
            base_timestamp: i64::from_be_bytes(at(bytes, 27)),
            max_timestamp: i64::from_be_bytes(at(bytes, 35)),
            count: i32::from_be_bytes(at(bytes, 57)),
        }
    }
}

/// The last slot whose key is at or below `target`: plain binary search over the bytes of an index.
pub fn floor<const N: usize>(index: &[u8], key: impl Fn([u8; N]) -> i64, target: i64) -> Option<[u8; N]> {
    let slots = index.as_chunks::<N>().0;
    slots.partition_point(|slot| key(*slot) <= target).checked_sub(1).map(|slot| slots[slot])
}

/// The key of an offset index's slot, relative to the segment's base offset.
pub fn offset_key(slot: [u8; 8]) -> i64 {
    i64::from(i32::from_be_bytes(at(&slot, 0)))
}

/// The position in an offset index's slot.
pub fn position(slot: [u8; 8]) -> i64 {
    i64::from(i32::from_be_bytes(at(&slot, 4)))
}

/// The key of a time index's slot.
pub fn time_key(slot: [u8; 12]) -> i64 {
    i64::from_be_bytes(at(&slot, 0))
}

/// The offset in a time index's slot, relative to the segment's base offset.
pub fn time_offset(slot: [u8; 12]) -> i64 {
    i64::from(i32::from_be_bytes(at(&slot, 8)))
}

/// The start of a look-up's walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    SegmentStart,
    Index,
}

/// A segment with its open `.log`, and its indexes in memory.
pub struct Segment {
    pub base_offset: i64,
    pub log: File,
    pub size: u64,
    offset_index: Vec<u8>,
    time_index: Vec<u8>,
}

/// The location of a batch, as in [`Location`](cordwood::types::Location).
pub type Location = (i64, i64, u64, u64);

pub struct Reader {
    pub segments: Vec<Segment>,
}

impl Reader {
    pub fn open(dir: &Path) -> Self {
        let mut bases: Vec<i64> = fs::read_dir(dir)
            .unwrap()
            .filter_map(|entry| {
                entry.unwrap().file_name().to_str().unwrap().strip_suffix(".log")?.parse().ok()
            })
            .collect();
        bases.sort_unstable();
        let segments = bases.into_iter().map(|base_offset| {
            let log = File::open(dir.join(file_name(base_offset, "log"))).unwrap();
            Segment {
                base_offset,
                size: log.metadata().unwrap().len(),
                log,
                offset_index: fs::read(dir.join(file_name(base_offset, "index"))).unwrap(),
                time_index: fs::read(dir.join(file_name(base_offset, "timeindex"))).unwrap(),
            }
        });
        Self { segments: segments.collect() }
    }

    /// The batch that holds an offset; its checksum is verified if `crc` is true.
    pub fn locate(&self, offset: i64, from: From, crc: bool) -> Location {
        let after = self.segments.partition_point(|segment| segment.base_offset <= offset);
        let segment = &self.segments[after - 1];
        let start = if from == From::Index { segment.start_of(offset) } else { 0 };
        let (position, header) = segment.walk(start, |header| header.last_offset >= offset);
        if crc {
            segment.read(position, &header);
        }
        (segment.base_offset, header.base_offset, position, header.size)
    }

    /// The first record at or after a time: timestamp and offset.
    pub fn offset_for_time(&self, target: i64, from: From) -> (i64, i64) {
        let reaches = |segment: &&Segment| time_key(*segment.time_index.last_chunk().unwrap()) >= target;
        let segment = self.segments.iter().find(reaches).unwrap();
        let mut start = 0;
        if from == From::Index
            && let Some(slot) = floor(&segment.time_index, time_key, target)
        {
            start = segment.start_of(segment.base_offset + time_offset(slot));
        }
        let (position, header) = segment.walk(start, |header| header.max_timestamp >= target);
        let bytes = segment.read(position, &header);
        let found = rows(&header, &bytes[61..]).into_iter().find(|row| row.timestamp >= target).unwrap();
        (found.timestamp, found.offset)
    }
}

impl Segment {
    fn start_of(&self, offset: i64) -> u64 {
        floor(&self.offset_index, offset_key, offset - self.base_offset)
            .map_or(0, |slot| position(slot) as u64)
    }

    /// The first batch at or after `position` that satisfies `matches`.
    fn walk(&self, mut position: u64, matches: impl Fn(&Header) -> bool) -> (u64, Header) {
        let mut bytes = [0; 61];
        loop {
            self.log.read_exact_at(&mut bytes, position).unwrap();
            let header = Header::new(&bytes);
            if matches(&header) {
                return (position, header);
            }
            position += header.size;
        }
    }

    /// A batch, after a check of its checksum.
    fn read(&self, position: u64, header: &Header) -> Vec<u8> {
        let mut bytes = vec![0; header.size as usize];
        self.log.read_exact_at(&mut bytes, position).unwrap();
        assert_eq!(crc32c(&bytes[21..]), header.crc);
        bytes
    }
}

/// A record as a row of owned values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub offset: i64,
    pub timestamp: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// The records of a batch, from its decompressed bytes after the header.
pub fn rows(header: &Header, mut bytes: &[u8]) -> Vec<Row> {
    let bytes = &mut bytes;
    let row = |_| {
        let _length = varint(bytes);
        let _attributes = take(bytes, 1);
        let timestamp = header.base_timestamp + varint(bytes);
        let offset = header.base_offset + varint(bytes);
        let (key, value) = (sized(bytes), sized(bytes));
        let headers = (0..varint(bytes)).map(|_| (sized(bytes).unwrap(), sized(bytes))).collect();
        Row { offset, timestamp, key, value, headers }
    };
    (0..header.count).map(row).collect()
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    taken
}

fn sized(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let length = usize::try_from(varint(bytes)).ok()?;
    Some(take(bytes, length).to_vec())
}

fn varint(bytes: &mut &[u8]) -> i64 {
    let (mut raw, mut shift) = (0u64, 0);
    loop {
        let byte = take(bytes, 1)[0];
        raw |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return (raw >> 1) as i64 ^ -((raw & 1) as i64);
        }
        shift += 7;
    }
}

/// The decompressed bytes of a batch after its header, by each library's simplest call.
pub fn decompressed(codec: u8, bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    match codec {
        0 => plain.extend_from_slice(bytes),
        1 => {
            flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
        }
        2 => {
            let mut chunks = &bytes[16..];
            while !chunks.is_empty() {
                let length = i32::from_be_bytes(at(take(&mut chunks, 4), 0)) as usize;
                plain.extend(snap::raw::Decoder::new().decompress_vec(take(&mut chunks, length)).unwrap());
            }
        }
        3 => {
            // after the frame's header: blocks of at most 64 KiB; the highest bit of their length means
            // stored
            let mut blocks = &bytes[7..];
            loop {
                let word = u32::from_le_bytes(at(take(&mut blocks, 4), 0));
                if word == 0 {
                    break;
                }
                let block = take(&mut blocks, (word & 0x7fff_ffff) as usize);
                if word >> 31 == 1 {
                    plain.extend_from_slice(block);
                } else {
                    plain.extend(lz4_flex::block::decompress(block, 64 << 10).unwrap());
                }
            }
        }
        _ => plain = zstd::decode_all(bytes).unwrap(),
    }
    plain
}
