//! Writes a partition directory: segments, with the indexes that Kafka would write.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::batches::{ABORT, Built, COMMIT};

/// The offset in an `.index` entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryOffset {
    /// The offset of the batch's last record: Kafka 4.
    Last,
    /// The offset of the batch's first record: Kafka 0.8 to 0.11.
    Base,
}

/// How indexes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Indexing {
    /// The index interval: a batch gets an entry if more than this many bytes precede it since the last
    /// entry.
    pub interval_bytes: usize,
    pub entry_offset: EntryOffset,
    /// The last segment's indexes have this size, with zeros at the end, as with a running or killed broker.
    pub preallocated_bytes: Option<usize>,
    /// False: no time index, as in Kafka 0.8 and 0.9.
    pub has_time_index: bool,
}

impl Default for Indexing {
    fn default() -> Self {
        Self {
            interval_bytes: 0,
            entry_offset: EntryOffset::Last,
            preallocated_bytes: None,
            has_time_index: true,
        }
    }
}

impl Indexing {
    pub fn every(interval_bytes: usize) -> Self {
        Self { interval_bytes, ..Self::default() }
    }
}

/// The files of a segment, except the `.txnindex`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SegmentFiles {
    pub log: Vec<u8>,
    pub index: Vec<u8>,
    pub time_index: Vec<u8>,
}

/// A partition to be written: segments in order, each with its batches.
#[derive(Debug, Clone, Default)]
pub struct PartitionBuilder {
    pub segments: Vec<(i64, Vec<Built>)>,
    pub indexing: Indexing,
}

impl PartitionBuilder {
    pub fn new(indexing: Indexing) -> Self {
        Self { segments: Vec::new(), indexing }
    }

    /// A segment with its base offset, at or below the offset of its first batch.
    pub fn segment(mut self, base_offset: i64, batches: impl IntoIterator<Item = Built>) -> Self {
        self.segments.push((base_offset, batches.into_iter().collect()));
        self
    }

    /// Distributes batches to segments of at most `segment_bytes`, as Kafka rolls by size.
    pub fn rolled(
        indexing: Indexing,
        segment_bytes: usize,
        batches: impl IntoIterator<Item = Built>,
    ) -> Self {
        let mut segments: Vec<(i64, Vec<Built>)> = Vec::new();
        let mut size = 0;
        for batch in batches {
            if segments.is_empty() || size + batch.bytes.len() > segment_bytes {
                segments.push((if segments.is_empty() { 0 } else { batch.base_offset }, Vec::new()));
                size = 0;
            }
            size += batch.bytes.len();
            segments.last_mut().unwrap().1.push(batch);
        }
        Self { segments, indexing }
    }

    /// Writes everything to `<parent>/<name>`, which must not exist, and returns its path.
    pub fn write(&self, parent: &Path, name: &str) -> PathBuf {
        let dir = parent.join(name);
        fs::create_dir(&dir).unwrap();
        let transactions = txn_indexes(&self.segments);
        for (i, (base_offset, batches)) in self.segments.iter().enumerate() {
            let mut indexing = self.indexing;
            let is_last = i + 1 == self.segments.len();
            if !is_last {
                indexing.preallocated_bytes = None;
            }
            let files = segment_files(*base_offset, batches, indexing);
            fs::write(dir.join(file_name(*base_offset, "log")), &files.log).unwrap();
            fs::write(dir.join(file_name(*base_offset, "index")), &files.index).unwrap();
            if indexing.has_time_index {
                fs::write(dir.join(file_name(*base_offset, "timeindex")), &files.time_index).unwrap();
            }
            if let Some(entries) = transactions.get(base_offset) {
                fs::write(dir.join(file_name(*base_offset, "txnindex")), entries).unwrap();
            }
        }
        dir
    }
}

/// `%020d.<extension>`
pub fn file_name(base_offset: i64, extension: &str) -> String {
    format!("{base_offset:020}.{extension}")
}

/// The log of a segment and its two indexes, sealed as by a roll or a clean close.
pub fn segment_files(base_offset: i64, batches: &[Built], indexing: Indexing) -> SegmentFiles {
    let mut files = SegmentFiles::default();
    let mut since_last_entry = 0;
    let mut largest = (-1i64, -1i64);
    let mut last_time = -1;
    let mut put_time = |time_index: &mut Vec<u8>, (timestamp, offset): (i64, i64)| {
        if timestamp > last_time && is_relative(base_offset, offset) {
            last_time = timestamp;
            time_index.extend(time_entry(base_offset, timestamp, offset));
        }
    };
    for batch in batches {
        let position = files.log.len();
        if batch.max_timestamp > largest.0 {
            largest = (batch.max_timestamp, batch.last_offset);
        }
        if since_last_entry > indexing.interval_bytes {
            let offset = match indexing.entry_offset {
                EntryOffset::Last => batch.last_offset,
                EntryOffset::Base => batch.base_offset,
            };
            files.index.extend(offset_entry(base_offset, offset, position as i32));
            put_time(&mut files.time_index, largest);
            since_last_entry = 0;
        }
        files.log.extend(&batch.bytes);
        since_last_entry += batch.bytes.len();
    }
    if let Some(bytes) = indexing.preallocated_bytes {
        files.index.resize(files.index.len().max(bytes / 8 * 8), 0);
        files.time_index.resize(files.time_index.len().max(bytes / 12 * 12), 0);
    } else {
        put_time(&mut files.time_index, largest);
    }
    files
}

/// An entry of an `.index`.
pub fn offset_entry(base_offset: i64, offset: i64, position: i32) -> [u8; 8] {
    [relative(base_offset, offset), position.to_be_bytes()].concat().try_into().unwrap()
}

/// An entry of a `.timeindex`.
pub fn time_entry(base_offset: i64, timestamp: i64, offset: i64) -> [u8; 12] {
    [&timestamp.to_be_bytes()[..], &relative(base_offset, offset)].concat().try_into().unwrap()
}

/// An entry of a `.txnindex`; `last_offset` is that of the marker.
pub fn txn_entry(producer_id: i64, first_offset: i64, last_offset: i64, last_stable_offset: i64) -> [u8; 34] {
    let mut entry = 0i16.to_be_bytes().to_vec();
    for field in [producer_id, first_offset, last_offset, last_stable_offset] {
        entry.extend(field.to_be_bytes());
    }
    entry.try_into().unwrap()
}

fn relative(base_offset: i64, offset: i64) -> [u8; 4] {
    i32::try_from(offset - base_offset).unwrap().to_be_bytes()
}

fn is_relative(base_offset: i64, offset: i64) -> bool {
    i32::try_from(offset - base_offset).is_ok()
}

/// The content of each `.txnindex` that is not empty, by base offset: an entry for each aborted transaction,
/// in the segment of its marker.
fn txn_indexes(segments: &[(i64, Vec<Built>)]) -> BTreeMap<i64, Vec<u8>> {
    let mut open: BTreeMap<i64, i64> = BTreeMap::new();
    let mut files: BTreeMap<i64, Vec<u8>> = BTreeMap::new();
    for (base_offset, batches) in segments {
        for batch in batches.iter().filter(|batch| batch.is_transactional) {
            match batch.control {
                None => {
                    open.entry(batch.producer_id).or_insert(batch.base_offset);
                }
                Some(kind @ (ABORT | COMMIT)) => {
                    let Some(first_offset) = open.remove(&batch.producer_id) else { continue };
                    if kind == ABORT {
                        let marker = batch.base_offset;
                        let last_stable_offset = open.values().copied().min().unwrap_or(marker + 1);
                        files.entry(*base_offset).or_default().extend(txn_entry(
                            batch.producer_id,
                            first_offset,
                            marker,
                            last_stable_offset,
                        ));
                    }
                }
                Some(_) => {}
            }
        }
    }
    files
}
