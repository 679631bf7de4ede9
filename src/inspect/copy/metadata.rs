//! The files of the metadata log of a cluster beside its segments: snapshots, and the state of its elections.
//! They belong to the whole log: a controller does not start without a snapshot at or above the log start
//! offset.

use super::destination::{Destination, something_else};
use crate::error::{Error, Result};
use crate::fs::names::metadata_snapshot;
use crate::fs::{Directory, STAGED, SystemFile};
use crate::types::Interrupt;

/// The state of the elections. Kafka: `FileQuorumStateStore`.
const QUORUM_STATE: &str = "quorum-state";
/// The number of bytes that are copied or compared at a time.
const CHUNK: usize = 1 << 20;

/// The names of the snapshots in a directory, and their end offsets.
pub(super) fn snapshots_in(directory: &Directory) -> Result<Vec<(String, i64)>> {
    let entries = directory.entries()?.into_iter();
    let mut found: Vec<_> = entries
        .filter_map(|(name, _)| metadata_snapshot(&name).map(|(end_offset, _)| (name, end_offset)))
        .collect();
    found.sort_unstable();
    Ok(found)
}

/// Copies the snapshots that the source had at its moment, and its last election. `end_offset`: of the copy.
pub(super) fn put_metadata(
    source: &Directory,
    snapshots: &[(String, i64)],
    destination: &Destination,
    end_offset: i64,
    interrupt: Interrupt,
) -> Result<()> {
    // those that were made after the moment are of a later log
    let snapshots = snapshots.iter().filter(|(_, end)| *end <= end_offset).map(|(name, _)| name.as_str());
    let names: Vec<_> = snapshots.chain([QUORUM_STATE]).collect();
    for (name, _) in destination.directory.entries()? {
        let final_name = name.strip_suffix(STAGED).unwrap_or(&name);
        let is_of_metadata = final_name == QUORUM_STATE || metadata_snapshot(final_name).is_some();
        if is_of_metadata && (final_name != name || !names.contains(&final_name)) {
            // of an earlier call
            destination.put(&name, None)?;
        }
    }
    for name in names {
        match open(source, name)? {
            Some(file) => put_file(destination, name, &file, interrupt)?,
            None if name == QUORUM_STATE => destination.put(name, None)?,
            None => {
                return Err(Error::LogChanged {
                    file: source.path_of(name),
                    expected: "the snapshot that it had when it was opened".to_owned(),
                    found: "no file".to_owned(),
                });
            }
        }
    }
    Ok(())
}

/// Copies a file of a data directory, if the source has it.
pub(super) fn copy_file(source: &Directory, name: &str, to: &Directory, interrupt: Interrupt) -> Result<()> {
    match open(source, name)? {
        Some(file) => write(to, name, &file, interrupt),
        None => Ok(()),
    }
}

fn open(directory: &Directory, name: &str) -> Result<Option<SystemFile>> {
    match directory.open_file(name) {
        Ok(file) => Ok(Some(file)),
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn put_file(destination: &Destination, name: &str, file: &SystemFile, interrupt: Interrupt) -> Result<()> {
    if !destination.is_complete() {
        return write(&destination.directory, name, file, interrupt);
    }
    let copied = open(&destination.directory, name)?;
    match copied.map(|copied| is_same(file, &copied, interrupt)).transpose()? {
        Some(true) => Ok(()),
        _ => Err(something_else(&destination.directory, &format!("another {name}"))),
    }
}

fn write(to: &Directory, name: &str, source: &SystemFile, interrupt: Interrupt) -> Result<()> {
    let staged = to.stage_with(name, STAGED, |file| {
        each_chunk(source, interrupt, |position, bytes| file.write_all_at(bytes, position).map(|()| true))
            .map(drop)
    })?;
    staged.put()
}

fn is_same(one: &SystemFile, other: &SystemFile, interrupt: Interrupt) -> Result<bool> {
    let mut existing = Vec::new();
    Ok(one.size() == other.size()
        && each_chunk(one, interrupt, |position, bytes| {
            existing.resize(bytes.len(), 0);
            other.read_exact_at(position, &mut existing)?;
            Ok(existing == bytes)
        })?)
}

/// Calls a function with the position and the bytes of each part of a file, until it returns false. Returns
/// whether it did not.
fn each_chunk(
    file: &SystemFile,
    interrupt: Interrupt,
    mut visit: impl FnMut(u64, &[u8]) -> Result<bool>,
) -> Result<bool> {
    let (mut chunk, mut position) = (Vec::new(), 0);
    while position < file.size() {
        interrupt.check()?;
        let left = usize::try_from(file.size() - position).unwrap_or(CHUNK);
        chunk.resize(left.min(CHUNK), 0);
        file.read_exact_at(position, &mut chunk)?;
        if !visit(position, &chunk)? {
            return Ok(false);
        }
        position += chunk.len() as u64;
    }
    Ok(true)
}
