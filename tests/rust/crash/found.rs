//! Reads the files of a log, with the naive reader: the records, and where they are not as Kafka writes them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use crate::naive::{self, Batch};

pub type Files = Vec<(String, Arc<Vec<u8>>)>;

/// Stands for all that a record holds.
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

/// Remembers batches that it has read: the same ones are in a million images.
#[derive(Default)]
pub struct Reader {
    batches: HashMap<Vec<u8>, Rc<Batch>>,
}

impl Reader {
    /// Every batch of every segment. Strict: a segment ends with its last batch, and offsets rise.
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
                let (bytes, behind) =
                    rest.split_at_checked(size).ok_or_else(|| wrong("a batch cut short"))?;
                let batch = if let Some(batch) = self.batches.get(bytes) {
                    Rc::clone(batch)
                } else {
                    let batch = Rc::new(naive::read_batch(bytes).map_err(|what| wrong(&what))?);
                    self.batches.insert(bytes.to_vec(), Rc::clone(&batch));
                    batch
                };
                let follows = batches.last().is_none_or(|last| batch.base_offset > last.last_offset);
                if batch.base_offset < lowest || !follows {
                    return Err(wrong("an offset that does not rise"));
                }
                lowest = batch.last_offset + 1;
                batches.push(batch);
                rest = behind;
            }
        }
        Ok(batches)
    }
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

/// What was in the logs of one directory, is not in those of another, and was not kept in `quarantine/`.
pub fn not_kept(before: &Files, after: &Files) -> Option<String> {
    let now = segments(after);
    let kept: Vec<_> = after.iter().filter(|(name, _)| name.starts_with("quarantine/")).collect();
    for (base, bytes) in segments(before) {
        let held = now.iter().find(|(other, _)| *other == base).map_or(&[][..], |(_, bytes)| &bytes[..]);
        if bytes.len() <= held.len() {
            continue;
        }
        let cut = &bytes[held.len()..];
        let length = cut.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let cut = &cut[..length];
        if !cut.is_empty() && !kept.iter().any(|(_, kept)| kept.starts_with(cut) && kept.len() <= bytes.len())
        {
            return Some(format!("{length} bytes of segment {base} from {} on", held.len()));
        }
    }
    None
}

/// Stands for all files but what was cut.
pub fn hash_of_log(files: &Files) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (name, bytes) in files.iter().filter(|(name, _)| !name.starts_with("quarantine/")) {
        (name, bytes).hash(&mut hasher);
    }
    hasher.finish()
}
