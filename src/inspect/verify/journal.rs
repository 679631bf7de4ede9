//! The journal of a verification: segments that were verified whole, without a finding.
//!
//! A line of JSON for each of them: the directory, the base offset, the identity of its files and its
//! [`Summary`], with which the checks across segments are made again. Lines are appended as segments are
//! finished. A line that was cut by a crash is ignored, and so is one whose files have changed. The last
//! segment of a partition is never in it: a broker appends to it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};

use super::segment::SegmentReport;
use super::summary::{EpochRun, Gap, Summary};
use crate::error::{Error, Result};
use crate::fs::{Directory, FileIdentity, WritableFile};
use crate::segment::{Segment, with_descriptors};

/// The version of the lines: what is noted of a segment, and the rules that it was verified by. Lines of
/// another version are ignored.
const VERSION: u64 = 2;

/// The maximum size of a journal that is read, bytes.
const MAX_BYTES: u64 = 1 << 30;

/// The journal, open for reading and appending.
#[derive(Debug)]
pub(super) struct Journal {
    known: HashMap<(PathBuf, i64), Value>,
    is_deep: bool,
    /// The file, and its end.
    file: Mutex<(WritableFile, u64)>,
}

impl Journal {
    /// Opens a journal, or creates it. `partitions`: the directories to be verified, in none of which it may
    /// be.
    ///
    /// # Errors
    /// [`Error::Config`] for a path within a partition or a file that is no journal; [`Error::Io`];
    /// [`Error::LogNotFound`] for a directory that does not exist.
    pub(super) fn open(path: &Path, partitions: &[PathBuf], is_deep: bool) -> Result<Self> {
        let path = std::path::absolute(path)
            .map_err(|error| Error::io(path, crate::error::IoAction::Resolve, error))?;
        let wrong = |expected: &str| Error::config("resume", expected, path.display().to_string());
        let parent = path.parent().unwrap_or(Path::new("/"));
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| wrong("the path of a file, in UTF-8"))?;
        let directory = with_descriptors(|| {
            Directory::open(parent, "give the path of a file in a directory that exists")
        })?;
        if partitions.iter().any(|partition| parent.starts_with(partition)) {
            return Err(wrong("a file outside the directories that are verified"));
        }
        let mut known = HashMap::new();
        let (file, end) = match directory.read_small(name, MAX_BYTES)? {
            None => (directory.create(name)?, 0),
            Some(bytes) => {
                // a line that was cut by a crash is overwritten
                let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
                for line in bytes.get(..end).unwrap_or_default().split(|byte| *byte == b'\n') {
                    if line.is_empty() {
                        continue;
                    }
                    let Some((key, value)) = entry(line) else {
                        return Err(wrong("a file that an earlier verification wrote, or a new one"));
                    };
                    known.insert(key, value);
                }
                (directory.open_writable(name)?, u64::try_from(end).unwrap_or(u64::MAX))
            }
        };
        Ok(Self { known, is_deep, file: Mutex::new((file, end)) })
    }

    /// The summary of a segment that was verified and is unchanged since.
    pub(super) fn find(&self, partition: &Path, segment: &Segment) -> Result<Option<Summary>> {
        if segment.is_last() {
            return Ok(None);
        }
        let Some(known) = self.known.get(&(partition.to_owned(), segment.base_offset())) else {
            return Ok(None);
        };
        let is_deep_enough = known.get("deep").and_then(Value::as_bool) == Some(true) || !self.is_deep;
        let is_of_version = known.get("version").and_then(Value::as_u64) == Some(VERSION);
        if !is_of_version || !is_deep_enough || known.get("files") != Some(&identities(segment)?) {
            return Ok(None);
        }
        Ok(known.get("summary").and_then(decode).filter(|summary| {
            (summary.base_offset, summary.upper) == (segment.base_offset(), segment.upper())
        }))
    }

    /// Adds a segment that was verified, if it has no finding. `before`: its files before the verification.
    pub(super) fn add(
        &self,
        partition: &Path,
        segment: &Segment,
        before: &Value,
        report: &SegmentReport,
    ) -> Result<()> {
        if segment.is_last() || !report.findings.is_empty() || identities(segment)? != *before {
            return Ok(());
        }
        // a path that is not UTF-8 cannot be written
        let Some(directory) = partition.to_str() else { return Ok(()) };
        let line = json!({
            "version": VERSION,
            "directory": directory,
            "base_offset": segment.base_offset(),
            "deep": self.is_deep,
            "files": before,
            "summary": encode(&report.summary),
        });
        let mut line = line.to_string().into_bytes();
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, end) = &mut *file;
        file.write_all_at(&line, *end)?;
        *end += line.len() as u64;
        Ok(())
    }
}

fn entry(line: &[u8]) -> Option<((PathBuf, i64), Value)> {
    let value: Value = serde_json::from_slice(line).ok()?;
    let directory = value.get("directory")?.as_str()?;
    let base_offset = value.get("base_offset")?.as_i64()?;
    value.get("files")?;
    Some(((PathBuf::from(directory), base_offset), value))
}

/// The identities of a segment's files: inode, size, and the times of the last modification and change.
pub(super) fn identities(segment: &Segment) -> Result<Value> {
    let files = segment.files();
    let directory = &segment.open_files().directory;
    let names = [
        ("log", Some(&files.log)),
        ("index", files.offset_index.as_ref()),
        ("timeindex", files.time_index.as_ref()),
        ("txnindex", files.transaction_index.as_ref()),
    ];
    let mut found = Map::new();
    for (kind, name) in names {
        let Some(name) = name else { continue };
        let Some(FileIdentity { inode, size, modified, changed }) = directory.identity_of(name)? else {
            continue;
        };
        found.insert(kind.to_owned(), json!([inode, size, modified.0, modified.1, changed.0, changed.1]));
    }
    Ok(Value::Object(found))
}

fn encode(summary: &Summary) -> Value {
    let runs = summary.epochs.iter().map(|run| {
        json!([
            run.epoch,
            run.start_offset,
            run.last_start_offset,
            run.last_offset,
            run.position,
            run.end_position,
            run.batches
        ])
    });
    let gaps = summary.gaps.iter();
    let gaps = gaps.map(|gap| {
        json!([gap.start_offset, gap.end_offset, gap.position, gap.is_truncation, gap.may_be_used])
    });
    json!({
        "base_offset": summary.base_offset,
        "upper": summary.upper,
        "first_offset": summary.first_offset,
        "end_offset": summary.end_offset,
        "size": summary.size,
        "batches": summary.batches,
        "last_position": summary.last_position,
        "batches_at_gaps": summary.batches_at_gaps,
        "gaps": gaps.collect::<Vec<_>>(),
        "gap_count": summary.gap_count,
        "missing_offsets": summary.missing_offsets,
        "epochs": runs.collect::<Vec<_>>(),
        "is_rewritten": summary.is_rewritten,
        "is_compacted": summary.is_compacted,
        "has_producers": summary.has_producers,
        "is_transactional": summary.is_transactional,
        "has_timestamps": summary.has_timestamps,
        "largest_timestamp": summary.largest_timestamp,
        "aborts": summary.aborts,
        "index_distance": summary.index_distance,
    })
}

fn decode(value: &Value) -> Option<Summary> {
    let offset = |name: &str| value.get(name)?.as_i64();
    let number = |name: &str| value.get(name)?.as_u64();
    let flag = |name: &str| value.get(name)?.as_bool();
    let list = |name: &str| value.get(name)?.as_array();
    let mut summary = Summary::new(offset("base_offset")?, offset("upper")?);
    summary.first_offset = offset("first_offset");
    summary.end_offset = offset("end_offset")?;
    summary.size = number("size")?;
    summary.batches = number("batches")?;
    summary.last_position = number("last_position")?;
    summary.batches_at_gaps = number("batches_at_gaps")?;
    summary.gap_count = number("gap_count")?;
    summary.missing_offsets = number("missing_offsets")?;
    summary.is_rewritten = flag("is_rewritten")?;
    summary.is_compacted = flag("is_compacted")?;
    summary.has_producers = flag("has_producers")?;
    summary.is_transactional = flag("is_transactional")?;
    summary.has_timestamps = flag("has_timestamps")?;
    summary.largest_timestamp = offset("largest_timestamp")?;
    summary.index_distance = number("index_distance");
    for gap in list("gaps")? {
        summary.gaps.push(Gap {
            start_offset: gap.get(0)?.as_i64()?,
            end_offset: gap.get(1)?.as_i64()?,
            position: gap.get(2)?.as_u64()?,
            is_truncation: gap.get(3)?.as_bool()?,
            may_be_used: gap.get(4)?.as_bool()?,
        });
    }
    for abort in list("aborts")? {
        summary.aborts.push((abort.get(0)?.as_i64()?, abort.get(1)?.as_i64()?));
    }
    for run in list("epochs")? {
        summary.epochs.push(EpochRun {
            epoch: i32::try_from(run.get(0)?.as_i64()?).ok()?,
            start_offset: run.get(1)?.as_i64()?,
            last_start_offset: run.get(2)?.as_i64()?,
            last_offset: run.get(3)?.as_i64()?,
            position: run.get(4)?.as_u64()?,
            end_position: run.get(5)?.as_u64()?,
            batches: run.get(6)?.as_u64()?,
        });
    }
    Some(summary)
}
