//! `.cordwood.copy`: a copy of a log is being written to this directory. Format: [`checksummed_text`].
//!
//! It is the first file of a copy, and is removed last. A new data directory that is the copy of another one
//! has it too.
//!
//! ```text
//! 0
//! end-offset 412            the log end offset of the copy
//! hard-links 0              1: files may be hard links to those of the source
//! range-end-offset 400      the range that is copied, with the bounds that were given: range-start-offset,
//!                           range-end-offset, range-start-time, range-end-time
//! source 2716334018         the CRC-32C of the path of the source
//! crc32c 9c4e08f1
//! ```

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{COPY_JOURNAL, checksummed_text};
use crate::error::{Malformed, Result};
use crate::fs::Directory;
use crate::record::crc;

/// The maximum size of the file, bytes.
const MAX_BYTES: u64 = 4096;

const SOURCE: &str = "source";
const END_OFFSET: &str = "end-offset";
const HARD_LINKS: &str = "hard-links";

/// The bounds of the range that is copied, in the order of [`BOUNDS`]; `None`: not given.
pub(crate) type CopiedRange = [Option<i64>; 4];
/// The lines of the bounds, and their names in messages.
const BOUNDS: [(&str, &str); 4] = [
    ("range-start-offset", "start offset"),
    ("range-end-offset", "end offset"),
    ("range-start-time", "start time"),
    ("range-end-time", "end time"),
];

/// The contents of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CopyJournal {
    source: i64,
    range: CopiedRange,
    /// The log end offset of the copy.
    pub(crate) end_offset: i64,
    /// Whether staged files may be hard links to files of the source, which must not be modified.
    pub(crate) has_links: bool,
}

impl CopyJournal {
    /// The journal of a copy of this range of a directory.
    pub(crate) fn new(source: &Path, range: CopiedRange, end_offset: i64, has_links: bool) -> Self {
        Self { source: i64::from(crc::crc32c(source.as_os_str().as_bytes())), range, end_offset, has_links }
    }

    /// What the copy is, if it is another one than that of this range of this directory.
    pub(crate) fn other_copy(&self, source: &Path, range: CopiedRange) -> Option<String> {
        if self.source != Self::new(source, range, 0, false).source {
            return Some("the unfinished copy of another directory".to_owned());
        }
        (self.range != range).then(|| {
            let bounds = BOUNDS.iter().zip(&self.range);
            let given: Vec<_> =
                bounds.filter_map(|((_, name), bound)| Some(format!("{name} {}", (*bound)?))).collect();
            let range = if given.is_empty() { "no bound".to_owned() } else { given.join(", ") };
            format!("the unfinished copy of another range ({range})")
        })
    }

    /// Reads the file; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the checksum does not match;
    /// [`Error::Io`](crate::Error::Io).
    pub(crate) fn read(directory: &Directory) -> Result<Option<Self>> {
        let Some(text) = directory.read_small(COPY_JOURNAL, MAX_BYTES)? else { return Ok(None) };
        let parsed = checksummed_text::read(&text).and_then(|fields| {
            let number = |name: &str| fields.get(name).copied().ok_or_else(|| format!("no line \"{name}\""));
            Ok(Self {
                source: number(SOURCE)?,
                range: BOUNDS.map(|(line, _)| fields.get(line).copied()),
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
        let mut fields = BTreeMap::from([
            (SOURCE, self.source),
            (END_OFFSET, self.end_offset),
            (HARD_LINKS, i64::from(self.has_links)),
        ]);
        let bounds = BOUNDS.iter().zip(self.range);
        fields.extend(bounds.filter_map(|((line, _), bound)| Some((*line, bound?))));
        directory.replace(COPY_JOURNAL, &checksummed_text::write(&fields))
    }

    /// Removes the file, durably.
    pub(crate) fn remove(directory: &Directory) -> Result<()> {
        directory.remove(COPY_JOURNAL)?;
        directory.sync()
    }
}
