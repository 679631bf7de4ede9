//! A file that is dumped: its path as Java prints it, and what its name says.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::fs::names::FileKind;

/// What a file is, by the suffix of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DumpedKind {
    /// Batches: a `.log`, or a snapshot of the metadata log (`.checkpoint`).
    Batches,
    OffsetIndex,
    TimeIndex,
    TransactionIndex,
    ProducerSnapshot,
}

/// The suffix of a snapshot of the metadata log. Source: `Snapshots.SUFFIX`.
const METADATA_SNAPSHOT_SUFFIX: &str = ".checkpoint";
/// The name of the snapshot with which a new cluster starts. Source:
/// `BootstrapDirectory.BINARY_BOOTSTRAP_FILENAME`.
const BOOTSTRAP_SNAPSHOT: &str = "bootstrap.checkpoint";

/// A file as it was given.
#[derive(Debug, Clone)]
pub(super) struct DumpedFile {
    path: PathBuf,
    /// The path as Java's `File` prints it: without repeated slashes and without one at the end.
    shown: String,
}

impl DumpedFile {
    pub(super) fn new(given: &Path) -> Self {
        let given = given.to_string_lossy();
        let mut shown = String::with_capacity(given.len());
        for letter in given.chars() {
            if letter != '/' || !shown.ends_with('/') {
                shown.push(letter);
            }
        }
        if shown.len() > 1 && shown.ends_with('/') {
            shown.pop();
        }
        Self { path: given.as_ref().into(), shown }
    }

    /// The path by which the file is opened.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The path as it is printed.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// The part of the path after the last slash.
    pub(super) fn name(&self) -> &str {
        self.shown.rsplit('/').next().unwrap_or_default()
    }

    /// The absolute path in messages. Unlike [`std::path::absolute`] it keeps `.` and `..`, as Java does.
    pub(super) fn absolute(&self) -> String {
        if self.shown.starts_with('/') {
            return self.shown.clone();
        }
        let current = std::env::current_dir().unwrap_or_default();
        let current = current.to_string_lossy();
        match (&*current, self.shown.as_str()) {
            (current, "") => current.to_owned(),
            ("/", shown) => format!("/{shown}"),
            (current, shown) => format!("{current}/{shown}"),
        }
    }

    /// What the file is; `None` if the tool ignores it.
    pub(super) fn kind(&self) -> Option<DumpedKind> {
        let name = self.name();
        let suffix = name.get(name.rfind('.')?..)?;
        let is = |kind: FileKind| suffix == kind.suffix();
        if is(FileKind::Log) || suffix == METADATA_SNAPSHOT_SUFFIX {
            Some(DumpedKind::Batches)
        } else if is(FileKind::OffsetIndex) {
            Some(DumpedKind::OffsetIndex)
        } else if is(FileKind::TimeIndex) {
            Some(DumpedKind::TimeIndex)
        } else if is(FileKind::TransactionIndex) {
            Some(DumpedKind::TransactionIndex)
        } else if is(FileKind::Snapshot) {
            Some(DumpedKind::ProducerSnapshot)
        } else {
            None
        }
    }

    /// The number before the first dot of the name. Any number of digits is accepted, with a sign, as by
    /// Java's `parseLong`.
    ///
    /// # Errors
    /// [`Error::Config`] if it is no number of 64 bits.
    pub(super) fn number(&self) -> Result<i64> {
        self.stem().parse().map_err(|_| self.wrong_name("a file name that is an offset before its first dot"))
    }

    /// The file of another kind of the same segment, in the same directory.
    pub(super) fn sibling(&self, kind: FileKind) -> PathBuf {
        self.path.with_file_name(format!("{}{}", self.stem(), kind.suffix()))
    }

    /// The offset and the epoch in the name of a snapshot of the metadata log; `None` for the one with which
    /// a cluster starts.
    ///
    /// # Errors
    /// [`Error::Config`] if the name has another form. Source: `Snapshots.parse`.
    pub(super) fn metadata_snapshot(&self) -> Result<Option<(i64, i32)>> {
        if self.name() == BOOTSTRAP_SNAPSHOT {
            return Ok(None);
        }
        let digits = |range| self.name().get(range);
        let offset = digits(0..20).and_then(|offset| offset.parse().ok());
        let epoch = digits(21..31).and_then(|epoch| epoch.parse().ok());
        let parsed = offset.zip(epoch);
        parsed
            .map(Some)
            .ok_or_else(|| self.wrong_name("20 digits of an offset, a dash and 10 digits of an epoch"))
    }

    /// Whether it is shown, and its name is that of a file of a log, with an offset in it.
    pub(super) fn is_of_a_log(&self) -> bool {
        match self.kind() {
            None => false,
            Some(DumpedKind::Batches) if !self.is_log() => self.metadata_snapshot().is_ok(),
            Some(_) => self.number().is_ok(),
        }
    }

    /// Whether the file is a `.log`.
    pub(super) fn is_log(&self) -> bool {
        self.name().ends_with(FileKind::Log.suffix())
    }

    fn stem(&self) -> &str {
        self.name().split('.').next().unwrap_or_default()
    }

    fn wrong_name(&self, expected: &str) -> Error {
        Error::config("files", expected, self.shown.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_printed_as_java_prints_them() {
        for (given, shown, name) in [
            ("t-0/00000000000000000000.log", "t-0/00000000000000000000.log", "00000000000000000000.log"),
            ("//a///b.log//", "/a/b.log", "b.log"),
            ("./../a.index", "./../a.index", "a.index"),
            ("/", "/", ""),
            ("", "", ""),
        ] {
            let file = DumpedFile::new(Path::new(given));
            assert_eq!((file.shown(), file.name()), (shown, name), "{given}");
        }
        let current = std::env::current_dir().unwrap();
        assert_eq!(
            DumpedFile::new(Path::new("../x//y.log")).absolute(),
            format!("{}/../x/y.log", current.display())
        );
        assert_eq!(DumpedFile::new(Path::new("/x.log")).absolute(), "/x.log");
    }

    #[test]
    fn the_kind_is_the_text_after_the_last_dot_and_the_number_the_text_before_the_first() {
        for (name, kind, number) in [
            ("7.log", Some(DumpedKind::Batches), Some(7)),
            ("5.x.log", Some(DumpedKind::Batches), Some(5)),
            ("-3.index", Some(DumpedKind::OffsetIndex), Some(-3)),
            ("+8.timeindex", Some(DumpedKind::TimeIndex), Some(8)),
            (".txnindex", Some(DumpedKind::TransactionIndex), None),
            ("99999999999999999999.snapshot", Some(DumpedKind::ProducerSnapshot), None),
            ("bootstrap.checkpoint", Some(DumpedKind::Batches), None),
            ("00000000000000000000.log.deleted", None, Some(0)),
            ("leader-epoch-checkpoint", None, None),
            ("a.", None, None),
        ] {
            let file = DumpedFile::new(Path::new(name));
            assert_eq!((file.kind(), file.number().ok()), (kind, number), "{name}");
        }
    }

    #[test]
    fn names_of_metadata_snapshots_have_an_offset_and_an_epoch() {
        let parsed = |name: &str| DumpedFile::new(Path::new(name)).metadata_snapshot().ok();
        assert_eq!(parsed("00000000000000000038-0000000001.checkpoint"), Some(Some((38, 1))));
        assert_eq!(parsed("bootstrap.checkpoint"), Some(None));
        assert_eq!(parsed("38-1.checkpoint"), None);
        assert_eq!(parsed("x.checkpoint"), None);
    }
}
