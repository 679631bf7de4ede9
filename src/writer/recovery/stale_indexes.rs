//! Decides which index files recovery rebuilds.

use super::existing_log::Existing;
use super::recovery_plan::RebuildReason;
use crate::error::Result;
use crate::fs::Directory;
use crate::fs::names::FileKind;
use crate::segment::IndexBytes;

impl Existing<'_> {
    /// The indexes of a segment whose files do not contain exactly these bytes.
    pub(super) fn stale_indexes(
        &self,
        base_offset: i64,
        indexes: &IndexBytes,
    ) -> Result<Vec<(FileKind, RebuildReason)>> {
        let mut stale = Vec::new();
        for (kind, bytes) in indexes.files() {
            let reason = match self.replacement.present_name(base_offset, kind) {
                Some(name) => stale_index(self.directory, &name, bytes)?,
                None => Some(RebuildReason::Missing),
            };
            stale.extend(reason.map(|reason| (kind, reason)));
        }
        Ok(stale)
    }

    /// Why the transaction index of a segment does not contain exactly these bytes. A missing file is one
    /// without entries.
    pub(super) fn stale_transaction_index(
        &self,
        base_offset: i64,
        entries: &[u8],
    ) -> Result<Option<RebuildReason>> {
        let reason = match self.replacement.present_name(base_offset, FileKind::TransactionIndex) {
            Some(name) => stale_index(self.directory, &name, entries)?,
            None => Some(RebuildReason::Missing),
        };
        Ok(reason.filter(|reason| !(entries.is_empty() && *reason == RebuildReason::Missing)))
    }
}

/// Why an index file does not contain exactly these bytes; `None` if it does.
fn stale_index(directory: &Directory, name: &str, bytes: &[u8]) -> Result<Option<RebuildReason>> {
    let Some(file) = directory.identity_of(name)? else { return Ok(Some(RebuildReason::Missing)) };
    let size = bytes.len() as u64;
    if file.size < size {
        return Ok(Some(RebuildReason::Differs));
    }
    let mut found = vec![0; bytes.len()];
    let read = directory.open_file(name).and_then(|file| file.read_exact_at(0, &mut found));
    if file.size > size {
        // the file is rebuilt in any case, so a read error does not matter
        let is_prefix = read.is_ok() && found == bytes;
        return Ok(Some(if is_prefix { RebuildReason::Untrimmed } else { RebuildReason::Differs }));
    }
    read?;
    Ok((found != bytes).then_some(RebuildReason::Differs))
}
