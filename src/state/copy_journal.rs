//! `.cordwood.copy`: a copy of a log is being written to this directory. Format: [`checksummed_text`].
//!
//! It is the first file of a copy, and is removed last. A new data directory that is the copy of another one has it too.
//!
//! ```text
//! 0
//! end-offset 412            the log end offset of the copy
//! hard-links 0              1: files may be hard links to those of the source
//! source 2716334018         the CRC-32C of the path of the source
//! crc32c 9c4e08f1
//! ```

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::checksummed_text;
use crate::error::{Malformed, Result};
use crate::fs::Directory;
use crate::record::crc;

/// The name of the file.
pub(crate) const COPY_JOURNAL: &str = ".cordwood.copy";
/// The maximum size of the file, bytes.
const MAX_BYTES: u64 = 4096;

const SOURCE: &str = "source";
const END_OFFSET: &str = "end-offset";
const HARD_LINKS: &str = "hard-links";

/// The contents of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CopyJournal {
    source: i64,
    /// The log end offset of the copy.
    pub(crate) end_offset: i64,
    /// Whether staged files may be hard links to files of the source, which must not be modified.
    pub(crate) has_links: bool,
}

impl CopyJournal {
    /// The journal of a copy of this directory.
    pub(crate) fn new(source: &Path, end_offset: i64, has_links: bool) -> Self {
        Self { source: i64::from(crc::crc32c(source.as_os_str().as_bytes())), end_offset, has_links }
    }

    /// Whether it is that of a copy of this directory.
    pub(crate) fn is_of(&self, source: &Path) -> bool {
        self.source == Self::new(source, 0, false).source
    }

    /// Reads the file; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the checksum does not match; [`Error::Io`](crate::Error::Io).
    pub(crate) fn read(directory: &Directory) -> Result<Option<Self>> {
        let Some(text) = directory.read_small(COPY_JOURNAL, MAX_BYTES)? else { return Ok(None) };
        let parsed = checksummed_text::read(&text).and_then(|fields| {
            let number = |name: &str| fields.get(name).copied().ok_or_else(|| format!("no line \"{name}\""));
            Ok(Self {
                source: number(SOURCE)?,
                end_offset: number(END_OFFSET)?,
                has_links: number(HARD_LINKS)? != 0,
            })
        });
        parsed.map(Some).map_err(|wrong| {
            let expected =
                "the journal of a copy with a valid checksum (remove the directory, and copy again)";
            Malformed::new(expected, wrong).at(directory.path_of(COPY_JOURNAL), 0, None)
        })
    }

    /// Writes the file, durably.
    pub(crate) fn write(&self, directory: &Directory) -> Result<()> {
        let fields = BTreeMap::from([
            (SOURCE, self.source),
            (END_OFFSET, self.end_offset),
            (HARD_LINKS, i64::from(self.has_links)),
        ]);
        directory.replace(COPY_JOURNAL, &checksummed_text::write(&fields))
    }

    /// Removes the file, durably.
    pub(crate) fn remove(directory: &Directory) -> Result<()> {
        directory.remove(COPY_JOURNAL)?;
        directory.sync()
    }
}
