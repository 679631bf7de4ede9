//! The files of a directory that the tool dumps.

use std::path::{Path, PathBuf};

use super::dumped_file::DumpedFile;
use crate::error::{Error, Result};
use crate::fs::names::PartitionName;
use crate::fs::{Directory, FileType};

/// The files that a path stands for: of a directory, the files of a log that [`Dump`](super::Dump) shows, in
/// name order, and then the files of the partition directories in it, which are also in name order. Any other
/// path, also of no file, stands for itself.
///
/// # Errors
/// [`Error::Config`] for a directory without such files; [`Error::Io`].
pub fn dumped_files(path: &Path) -> Result<Vec<PathBuf>> {
    let directory = match Directory::open(path, "") {
        Ok(directory) => directory,
        Err(Error::LogNotFound { .. }) => return Ok(vec![path.to_owned()]),
        Err(error) => return Err(error),
    };
    let (mut files, folders) = entries(&directory, path)?;
    for name in folders {
        let folder = Directory::open(&directory.path_of(&name), "")?;
        files.extend(entries(&folder, &path.join(name))?.0);
    }
    if files.is_empty() {
        let expected = "a file, or a directory with files of a log";
        return Err(Error::config("files", expected, format!("{}, a directory without one", path.display())));
    }
    Ok(files)
}

/// The files of a directory that are shown, and the names of the partition directories in it. `path`: the
/// directory as it was given.
fn entries(directory: &Directory, path: &Path) -> Result<(Vec<PathBuf>, Vec<String>)> {
    let mut entries = directory.entries()?;
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for (name, kind) in entries {
        if kind == FileType::Directory {
            if PartitionName::parse(&name).is_some() {
                folders.push(name);
            }
        } else if DumpedFile::new(Path::new(&name)).is_of_a_log() {
            files.push(path.join(name));
        }
    }
    Ok((files, folders))
}
