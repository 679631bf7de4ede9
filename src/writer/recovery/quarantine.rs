//! `quarantine/`: the bytes that recovery cuts from the log, and the files that a rebuild replaces, unchanged, in the partition
//! directory.

use std::path::PathBuf;

use crate::error::Result;
use crate::fs::{Directory, SystemFile};
use crate::record::crc;

/// The name of the folder. Kafka ignores it.
pub(crate) const QUARANTINE: &str = "quarantine";

/// The number of bytes copied at a time, and held in memory.
const CHUNK: u64 = 1 << 20;

/// The end of a file, to be copied to `quarantine/<name>.<position>.<checksum>`. The copy's name depends on the bytes, so that a
/// recovery that is repeated after a crash finds the file written before.
///
/// Trailing zeros are preallocated space and are not copied; the copy of a whole file has its full length.
#[derive(Debug)]
pub(crate) struct Quarantined {
    /// The file's final name.
    file: String,
    position: u64,
    /// The position after the last byte that is not zero.
    end: u64,
    /// The copy's name.
    name: String,
}

impl Quarantined {
    /// Reads the bytes at and after `position`. `present_name`: the name of the file now; `name`: its final one. `None` if all of
    /// the bytes are zero.
    pub(crate) fn find(
        directory: &Directory,
        present_name: &str,
        name: &str,
        position: u64,
    ) -> Result<Option<Self>> {
        let file = directory.open_file(present_name)?;
        let mut buffer = Vec::new();
        let mut checksum = 0;
        let mut end = position;
        let mut at = position;
        while at < file.size() {
            read(&file, at, &mut buffer)?;
            if let Some(last) = buffer.iter().rposition(|byte| *byte != 0) {
                end = at + last as u64 + 1;
            }
            // each chunk's checksum includes the previous one
            checksum = crc::crc32c(&[&u32::to_be_bytes(checksum)[..], &buffer].concat());
            at += buffer.len() as u64;
        }
        let copy = format!("{name}.{position}.{checksum:08x}");
        Ok((end > position).then_some(Self { file: name.to_owned(), position, end, name: copy }))
    }

    /// The path of the copy.
    pub(crate) fn path(&self, directory: &Directory) -> PathBuf {
        directory.path_of(QUARANTINE).join(&self.name)
    }

    /// Copies the bytes durably. The file already has its final name.
    pub(crate) fn keep(&self, directory: &Directory) -> Result<()> {
        let Self { file, position, end, name } = self;
        let file = directory.open_file(file)?;
        let folder = directory.folder(QUARANTINE)?;
        directory.sync()?;
        if folder.identity_of(name)?.is_some() {
            return Ok(());
        }
        let staged = format!("{name}.tmp");
        folder.remove(&staged)?;
        let copy = folder.create(&staged)?;
        let mut buffer = Vec::new();
        let mut at = *position;
        while at < *end {
            read(&file, at, &mut buffer)?;
            copy.write_all_at(&buffer, at - position)?;
            at += buffer.len() as u64;
        }
        copy.set_size(if *position == 0 { file.size() } else { end - position })?;
        copy.sync()?;
        folder.rename(&staged, name)?;
        folder.sync()
    }
}

fn read(file: &SystemFile, position: u64, buffer: &mut Vec<u8>) -> Result<()> {
    let length = usize::try_from((file.size() - position).min(CHUNK)).unwrap_or(0);
    buffer.resize(length, 0);
    file.read_exact_at(position, buffer)
}
