//! `.cordwood.positions/<name>`: the offset up to which a consumer has processed the log.
//!
//! ```text
//! position   of the newer commit, or of the one before it
//!        0   block     block (the same)     0 ...
//!     4096   block     block (the same)     0 ...
//! ```
//!
//! A block is a text in the format `checksummed_text`, filled up with zeros to 512 bytes:
//!
//! ```text
//! 0
//! commit 7                   the number of the commit
//! offset 1234                the offset of the next record to process
//! timestamp 1700000000000    the time of the commit, ms
//! crc32c 9c4e08f1
//! ```
//!
//! A commit overwrites the older half and syncs it: one write, which needs no space on the disk. A crash can
//! tear only the half that is written, in another page than the commit before, which is in effect then. That
//! one must be durable before: a process that did not sync it itself does so first, because the other one may
//! have been killed. After a failed sync it is not known which half is durable, so that the whole file is
//! replaced. The second block makes a flipped bit harmless. A file of another size is one text without
//! `commit`, from an earlier version; the next commit replaces it.
//!
//! Committing processes take turns under a lock on `~lock`, so a staged file, `<name>~`, that is there when
//! the lock is taken is left from a killed process. No position has a name with `~`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use super::checksummed_text;
use crate::error::{Error, IoAction, Malformed, Result};
use crate::fs::names::is_topic;
use crate::fs::{Directory, FileType, Lock};

/// The directory of the positions, in the partition directory.
pub(crate) const POSITIONS: &str = ".cordwood.positions";
const LOCK: &str = "~lock";
/// The suffix of a staged file.
const STAGED: &str = "~";
/// The size of a file, bytes; one of an earlier version is smaller.
const FILE_BYTES: usize = 2 * HALF_BYTES;
const HALF_BYTES: usize = 4096;
const BLOCK_BYTES: usize = 512;

const COMMIT: &str = "commit";
const OFFSET: &str = "offset";
const TIMESTAMP: &str = "timestamp";

/// The number of the commit under a name that this process synced last; −1 for none, −2 after a sync that
/// failed. Clones share it.
#[derive(Debug, Clone)]
pub struct LastCommit(Arc<AtomicI64>);

impl LastCommit {
    const FAILED: i64 = -2;

    fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, commit: i64) {
        self.0.store(commit, Ordering::Relaxed);
    }
}

impl Default for LastCommit {
    fn default() -> Self {
        Self(Arc::new(AtomicI64::new(-1)))
    }
}

/// What was committed under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct CommittedOffset {
    /// The offset of the next record to process.
    pub offset: i64,
    /// The time of the commit, ms since the epoch.
    pub timestamp: i64,
}

impl CommittedOffset {
    /// Reads what is committed under a name; `None` if nothing is. Writes nothing.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the file is damaged or of another format; [`Error::Io`].
    pub(crate) fn read(partition: &Directory, name: &str) -> Result<Option<Self>> {
        let Some(folder) = partition.existing_folder(POSITIONS)? else { return Ok(None) };
        Ok(Stored::read(&folder, name)?.map(|stored| stored.committed))
    }

    /// Commits under a name. A reader, now or after a crash, finds the old or the new contents; after the
    /// return, the new ones.
    ///
    /// # Errors
    /// [`Error::Locked`] if another commit takes longer than 10 seconds; [`Error::Io`]: the old or the new
    /// contents are committed.
    pub(crate) fn write(self, partition: &Directory, name: &str, last_commit: &LastCommit) -> Result<()> {
        let folder = partition.folder(POSITIONS)?;
        let _lock = Lock::wait_exclusive(&folder, LOCK, "commits of positions take turns: commit again")?;
        let commit = match Stored::read(&folder, name) {
            Ok(Some(Stored { commit: Some(last), .. })) if last_commit.get() != LastCommit::FAILED => {
                match self.overwrite(&folder, name, last, last_commit.get() == last) {
                    // the system may report the next sync of the file as a success: whichever half is durable
                    // must not be overwritten
                    Err(Error::Io { action: IoAction::Sync, .. }) => {
                        last_commit.set(LastCommit::FAILED);
                        self.replace(partition, &folder, name)?
                    }
                    done => done?,
                }
            }
            Ok(_) | Err(Error::Corrupt { .. }) => self.replace(partition, &folder, name)?,
            Err(error) => return Err(error),
        };
        last_commit.set(commit);
        Ok(())
    }

    /// Overwrites the half that does not have the commit `last`. `is_synced`: whether this process has synced
    /// that commit. Returns the number of the new one.
    fn overwrite(self, folder: &Directory, name: &str, last: i64, is_synced: bool) -> Result<i64> {
        let (commit, file) = (last.wrapping_add(1) & i64::MAX, folder.open_writable(name)?);
        if !is_synced {
            file.sync()?;
        }
        file.write_all_at(&self.blocks(commit), half_of(commit) as u64)?;
        file.sync()?;
        Ok(commit)
    }

    /// Writes the whole file. Returns the number of the commit, which no earlier file of this name has had.
    fn replace(self, partition: &Directory, folder: &Directory, name: &str) -> Result<i64> {
        if folder.identity_of(name)?.is_none() {
            // a process that was killed may have created the directory, and not synced its name
            partition.sync()?;
        }
        for (left, _) in folder.entries()?.iter().filter(|(left, _)| left.ends_with(STAGED)) {
            folder.remove(left)?;
        }
        let commit = self.timestamp.max(0);
        let blocks = self.blocks(commit);
        let mut bytes = vec![0; half_of(commit)];
        bytes.extend(blocks);
        bytes.resize(FILE_BYTES, 0);
        folder.stage_with(name, STAGED, |file| file.write_all_at(&bytes, 0))?.put()?;
        Ok(commit)
    }

    fn blocks(self, commit: i64) -> Vec<u8> {
        let fields = BTreeMap::from([(COMMIT, commit), (OFFSET, self.offset), (TIMESTAMP, self.timestamp)]);
        let mut block = checksummed_text::write(&fields);
        block.resize(BLOCK_BYTES, 0);
        block.repeat(2)
    }
}

/// The position of the half of a commit.
fn half_of(commit: i64) -> usize {
    if commit % 2 == 0 { 0 } else { HALF_BYTES }
}

/// What is in a file.
#[derive(Debug, Clone, Copy)]
struct Stored {
    committed: CommittedOffset,
    /// The number of the commit; `None` in a file of an earlier version.
    commit: Option<i64>,
}

impl Stored {
    fn read(folder: &Directory, name: &str) -> Result<Option<Self>> {
        let Some(bytes) = folder.read_small(name, FILE_BYTES as u64)? else { return Ok(None) };
        Self::parse(&bytes).map(Some).map_err(|wrong| {
            let expected = "a committed offset with a valid checksum (commit the offset again, or remove the file: then no \
                            offset is committed under its name)";
            Malformed::new(expected, wrong).at(folder.path_of(name), 0, None)
        })
    }

    /// *Errors*: what is wrong with the first block.
    fn parse(bytes: &[u8]) -> std::result::Result<Self, String> {
        if bytes.len() != FILE_BYTES {
            let stored = Self::parse_text(bytes)?;
            return if stored.commit.is_none() { Ok(stored) } else { Err(format!("{} bytes", bytes.len())) };
        }
        let blocks = bytes.chunks(HALF_BYTES).flat_map(|half| half.chunks(BLOCK_BYTES).take(2));
        let mut parsed: Vec<_> = blocks
            .map(|block| {
                let end = block.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                Self::parse_text(block.get(..end).unwrap_or_default())
            })
            .collect();
        let newest = parsed.iter().flatten().max_by_key(|stored| stored.commit).copied();
        newest.map_or_else(|| parsed.swap_remove(0), Ok)
    }

    fn parse_text(text: &[u8]) -> std::result::Result<Self, String> {
        let fields = checksummed_text::read(text)?;
        let field = |name: &str| fields.get(name).copied().filter(|number| *number >= 0);
        let required = |name: &str| field(name).ok_or_else(|| format!("no line \"{name} NUMBER\""));
        let committed = CommittedOffset { offset: required(OFFSET)?, timestamp: required(TIMESTAMP)? };
        Ok(Self { committed, commit: field(COMMIT) })
    }
}

/// The names under which something is committed, sorted. Files with other names are ignored.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn names(partition: &Directory) -> Result<Vec<String>> {
    let Some(folder) = partition.existing_folder(POSITIONS)? else { return Ok(Vec::new()) };
    let is_position = |(name, file_type): (String, FileType)| {
        (file_type != FileType::Directory && is_topic(&name)).then_some(name)
    };
    let mut names: Vec<_> = folder.entries()?.into_iter().filter_map(is_position).collect();
    names.sort_unstable();
    Ok(names)
}

/// Fails if a position, or a producer, cannot have this name. `argument`: what the caller calls it.
///
/// # Errors
/// [`Error::Config`].
pub(crate) fn check_name(argument: &str, name: &str) -> Result<()> {
    if is_topic(name) {
        return Ok(());
    }
    let expected = "1 to 249 characters of a-z, A-Z, 0-9, '.', '_' and '-', and neither \".\" nor \"..\"";
    Err(Error::config(argument, expected, format!("{name:?}")))
}
