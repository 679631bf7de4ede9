//! `.cordwood.kept`: the `.deleted` files that a recovery or a repair has kept, because the records of their
//! segments may be nowhere else. Format: [`checksummed_text`].
//!
//! It is written before anything is taken out of the log, so that a later decision knows that records were
//! missing, also if nothing else shows it. And it has what the last decision was made from, so that the next
//! opening does not read the same files again.
//!
//! ```text
//! 0
//! 00000000000000000400.log.deleted 52428              its size, bytes
//! 00000000000000000400.log.deleted/end 412            the offset after its last batch; none if damaged
//! 00000000000000000400.log.deleted/seen 2716334018    a checksum over names, sizes and times of files
//! crc32c 9c4e08f1
//! ```

use std::collections::BTreeMap;

use super::checksummed_text;
use crate::error::{Error, Result};
use crate::fs::Directory;

/// The name of the file. It must not end with `.deleted`: see
/// [`CLEANED`](super::cleaner_checkpoint::CLEANED).
pub(crate) const KEPT_FILES: &str = ".cordwood.kept";
/// The maximum size of the file, bytes.
const MAX_BYTES: u64 = 64 << 20;

const END: &str = "/end";
const SEEN: &str = "/seen";

/// A `.log` that is marked as deleted, and was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptFile {
    pub(crate) size: u64,
    /// The offset after its last batch; `None` if it is damaged.
    pub(crate) end: Option<i64>,
    /// A checksum over what the decision was made from.
    pub(crate) seen: u32,
}

/// The contents of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeptFiles {
    files: BTreeMap<String, KeptFile>,
    /// Whether the file is damaged: any file may have been kept.
    is_damaged: bool,
}

impl KeptFiles {
    /// Reads the file; empty if there is none. One that cannot be read counts as damaged.
    pub(crate) fn read(directory: &Directory) -> Result<Self> {
        let text = match directory.read_small(KEPT_FILES, MAX_BYTES) {
            Ok(None) => return Ok(Self::default()),
            Err(interrupted @ Error::Interrupted(_)) => return Err(interrupted),
            text => text.ok().flatten(),
        };
        let Some(fields) = text.and_then(|text| checksummed_text::read(&text).ok()) else {
            return Ok(Self { is_damaged: true, ..Self::default() });
        };
        let names = fields.keys().filter(|name| !name.contains('/'));
        let files = names.map(|name| {
            let field = |kind: &str| fields.get(&format!("{name}{kind}")).copied();
            let size = field("").and_then(|size| u64::try_from(size).ok()).unwrap_or(0);
            let seen = field(SEEN).and_then(|seen| u32::try_from(seen).ok()).unwrap_or(0);
            (name.clone(), KeptFile { size, end: field(END), seen })
        });
        Ok(Self { files: files.collect(), is_damaged: false })
    }

    /// Makes the file have these contents, durably; without a kept file there is none.
    pub(crate) fn store(&self, directory: &Directory) -> Result<()> {
        if *self == Self::read(directory)? {
            return Ok(());
        }
        if self.files.is_empty() {
            directory.remove(KEPT_FILES)?;
            return directory.sync();
        }
        let mut fields = BTreeMap::new();
        for (name, KeptFile { size, end, seen }) in &self.files {
            fields.insert(name.clone(), i64::try_from(*size).unwrap_or(i64::MAX));
            fields.insert(format!("{name}{SEEN}"), i64::from(*seen));
            fields.extend(end.map(|end| (format!("{name}{END}"), end)));
        }
        let fields = fields.iter().map(|(name, number)| (name.as_str(), *number)).collect();
        directory.replace(KEPT_FILES, &checksummed_text::write(&fields))
    }

    /// Adds a file.
    pub(crate) fn insert(&mut self, name: &str, file: KeptFile) {
        self.files.insert(name.to_owned(), file);
    }

    /// What was noted of a file.
    pub(crate) fn get(&self, name: &str) -> Option<&KeptFile> {
        self.files.get(name)
    }

    /// Whether a file with this name and size may have been kept.
    pub(crate) fn may_have(&self, name: &str, size: u64) -> bool {
        self.is_damaged || self.get(name).is_some_and(|file| file.size == size)
    }
}
