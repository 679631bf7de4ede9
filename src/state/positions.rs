//! `.cordwood.positions/<name>`: the offset up to which a consumer has processed the log. Format: `checksummed_text`.
//!
//! ```text
//! 0
//! offset 1234                the offset of the next record to process
//! timestamp 1700000000000    the time of the commit, ms
//! crc32c 9c4e08f1
//! ```
//!
//! A commit replaces the file as a whole. Committing processes take turns under a lock on `~lock`, so a staged file, `<name>~`, that
//! is there when the lock is taken is left from a killed process. No position has a name with `~`.

use std::collections::BTreeMap;

use super::checksummed_text;
use crate::error::{Error, Malformed, Result};
use crate::fs::names::is_topic;
use crate::fs::{Directory, FileType, Lock};

/// The directory of the positions, in the partition directory.
pub(crate) const POSITIONS: &str = ".cordwood.positions";
const LOCK: &str = "~lock";
/// The suffix of a staged file.
const STAGED: &str = "~";
/// The maximum size of a file, bytes.
const MAX_BYTES: u64 = 4096;

const OFFSET: &str = "offset";
const TIMESTAMP: &str = "timestamp";

/// What was committed under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
        let Some(text) = folder.read_small(name, MAX_BYTES)? else { return Ok(None) };
        let parsed = checksummed_text::read(&text).and_then(|fields| {
            let field = |name: &str| fields.get(name).copied().filter(|number| *number >= 0);
            let required = |name: &str| field(name).ok_or_else(|| format!("no line \"{name} NUMBER\""));
            Ok(Self { offset: required(OFFSET)?, timestamp: required(TIMESTAMP)? })
        });
        parsed.map(Some).map_err(|wrong| {
            let expected = "a committed offset with a valid checksum (commit the offset again, or remove the file: then no \
                            offset is committed under its name)";
            Malformed::new(expected, wrong).at(folder.path_of(name), 0, None)
        })
    }

    /// Commits under a name. A reader, now or after a crash, finds the old or the new contents; after the return, the new ones.
    ///
    /// # Errors
    /// [`Error::Locked`] if another commit takes longer than 10 seconds; [`Error::Io`]: the old or the new contents are committed.
    pub(crate) fn write(self, partition: &Directory, name: &str) -> Result<()> {
        let folder = partition.folder(POSITIONS)?;
        let _lock = Lock::wait_exclusive(&folder, LOCK, "commits of positions take turns: commit again")?;
        if folder.identity_of(name)?.is_none() {
            // a process that was killed may have created the directory, and not synced its name
            partition.sync()?;
        }
        for (left, _) in folder.entries()?.iter().filter(|(left, _)| left.ends_with(STAGED)) {
            folder.remove(left)?;
        }
        let text =
            checksummed_text::write(&BTreeMap::from([(OFFSET, self.offset), (TIMESTAMP, self.timestamp)]));
        folder.stage_with(name, STAGED, |file| file.write_all_at(&text, 0))?.put()
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
