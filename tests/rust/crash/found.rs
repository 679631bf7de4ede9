//! Reads the files of a log with the naive reader: the records, and deviations from Kafka's format.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use crate::naive::{self, Batch};

pub type Files = Vec<(String, Arc<Vec<u8>>)>;

/// A hash of a record's contents.
pub fn fingerprint(
    timestamp: i64,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[(Vec<u8>, Option<Vec<u8>>)],
) -> u64 {
    let mut hasher = DefaultHasher::new();
    (timestamp, key, value, headers).hash(&mut hasher);
    hasher.finish()
}

/// Base offset and contents of each `.log`, in order.
pub fn segments(files: &Files) -> Vec<(i64, &Arc<Vec<u8>>)> {
    let base = |name: &str| name.strip_suffix(".log").filter(|stem| stem.len() == 20)?.parse().ok();
    let mut found: Vec<_> = files.iter().filter_map(|(name, bytes)| Some((base(name)?, bytes))).collect();
    found.sort_unstable_by_key(|(base, _)| *base);
    found
}

/// Caches parsed batches: the same batches are in many images.
#[derive(Default)]
pub struct Reader {
    batches: HashMap<Vec<u8>, Rc<Batch>>,
}

impl Reader {
    /// Reads every batch of every segment. Strict: a segment must end with its last batch, and offsets must
    /// ascend.
    pub fn read(&mut self, files: &Files) -> Result<Vec<Rc<Batch>>, String> {
        let mut batches: Vec<Rc<Batch>> = Vec::new();
        for (base, bytes) in segments(files) {
            let mut rest = &bytes[..];
            let mut lowest = base;
            while !rest.is_empty() {
                let position = bytes.len() - rest.len();
                let wrong = |what: &str| format!("segment {base} position {position}: {what}");
                let size = rest.get(8..12).map(|size| u32::from_be_bytes(size.try_into().unwrap()));
                let size = size.map_or(usize::MAX, |size| size as usize + 12);
                let (bytes, after) =
                    rest.split_at_checked(size).ok_or_else(|| wrong("an incomplete batch"))?;
                let batch = if let Some(batch) = self.batches.get(bytes) {
                    Rc::clone(batch)
                } else {
                    let batch = Rc::new(naive::read_batch(bytes).map_err(|what| wrong(&what))?);
                    self.batches.insert(bytes.to_vec(), Rc::clone(&batch));
                    batch
                };
                let follows = batches.last().is_none_or(|last| batch.base_offset > last.last_offset);
                if batch.base_offset < lowest || !follows {
                    return Err(wrong("an offset that does not ascend"));
                }
                lowest = batch.last_offset + 1;
                batches.push(batch);
                rest = after;
            }
        }
        Ok(batches)
    }
}

/// Fails if the indexes of a closed log differ from Kafka's: only entries, each of an existing batch, and the
/// last time entry has the segment's largest timestamp.
pub fn check_closed_indexes(files: &Files) -> Result<(), String> {
    for (base, bytes) in segments(files) {
        let index = |kind: &str| {
            let name = format!("{base:020}.{kind}");
            let found = files.iter().find(|(file, _)| *file == name);
            found.map(|(_, bytes)| &bytes[..]).ok_or(format!("{name} is missing"))
        };
        // position, last offset, largest timestamp
        let mut batches = Vec::new();
        let mut position = 0;
        while position < bytes.len() {
            let batch = naive::read_batch(batch_at(bytes, position))?;
            batches.push((position as i64, batch.last_offset, batch.max_timestamp));
            position += batch.size as usize;
        }
        let wrong = |kind: &str, slot: &[u8]| Err(format!("{base:020}.{kind}: the entry {slot:02x?}"));
        let (offsets, times) = (index("index")?, index("timeindex")?);
        let mut before = 0;
        for slot in offsets.chunks(8) {
            let fields = slot.first_chunk().copied().map_or((-1, -1), |slot: [u8; 8]| {
                let slot = i64::from_be_bytes(slot);
                (base + (slot >> 32), slot & 0xffff_ffff)
            });
            let is_batch = batches.iter().any(|(position, last, _)| fields == (*last, *position));
            if !is_batch || fields.1 <= before {
                return wrong("index", slot);
            }
            before = fields.1;
        }
        let mut before = -1;
        for slot in times.chunks(12) {
            let fields = slot.first_chunk().copied().map_or((-1, -1), |slot: [u8; 12]| {
                let slot = i128::from_be_bytes([[0; 4].as_slice(), &slot].concat().try_into().unwrap());
                ((slot >> 32) as i64, base + (slot & 0xffff_ffff) as i64)
            });
            let is_batch = batches.iter().any(|(_, last, largest)| fields == (*largest, *last));
            if !is_batch || fields.0 <= before {
                return wrong("timeindex", slot);
            }
            before = fields.0;
        }
        let largest = batches.iter().map(|(_, _, largest)| *largest).max().unwrap_or(-1);
        if before != largest {
            return Err(format!("{base:020}.timeindex: ends with {before}, not with {largest}"));
        }
    }
    Ok(())
}

/// The bytes of the batch at a position, or all bytes from there if its length exceeds them.
fn batch_at(bytes: &[u8], position: usize) -> &[u8] {
    let rest = &bytes[position..];
    let size = rest.get(8..12).map_or(0, |size| u32::from_be_bytes(size.try_into().unwrap()) as usize + 12);
    rest.get(..size).unwrap_or(rest)
}

/// Offset and fingerprint of each record.
pub fn records(batches: &[Rc<Batch>]) -> Vec<(i64, u64)> {
    let records = batches.iter().flat_map(|batch| &batch.records);
    records
        .map(|record| {
            let print = fingerprint(
                record.timestamp,
                record.key.as_deref(),
                record.value.as_deref(),
                &record.headers,
            );
            (record.offset, print)
        })
        .collect()
}

/// A number in `.cordwood.checkpoint`.
pub fn checkpointed(files: &Files, name: &str) -> Option<i64> {
    let (_, text) = files.iter().find(|(file, _)| file == ".cordwood.checkpoint")?;
    let text = std::str::from_utf8(text).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

/// Bytes of the `.log` files of one directory that are neither in those of another nor in its `quarantine/`.
pub fn not_kept(before: &Files, after: &Files) -> Option<String> {
    let now = segments(after);
    let kept: Vec<_> = after.iter().filter(|(name, _)| name.starts_with("quarantine/")).collect();
    for (base, bytes) in segments(before) {
        let remaining = now.iter().find(|(other, _)| *other == base).map_or(&[][..], |(_, bytes)| &bytes[..]);
        if bytes.len() <= remaining.len() {
            continue;
        }
        let cut = &bytes[remaining.len()..];
        let length = cut.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let cut = &cut[..length];
        if !cut.is_empty() && !kept.iter().any(|(_, kept)| kept.starts_with(cut) && kept.len() <= bytes.len())
        {
            return Some(format!("{length} bytes of segment {base} from {} on", remaining.len()));
        }
    }
    None
}

/// A hash of all files outside `quarantine/`.
pub fn hash_of_log(files: &Files) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (name, bytes) in files.iter().filter(|(name, _)| !name.starts_with("quarantine/")) {
        (name, bytes).hash(&mut hasher);
    }
    hasher.finish()
}
