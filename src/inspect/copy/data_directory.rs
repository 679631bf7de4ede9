//! Copies of a data directory: its partitions, and their lines in its checkpoints.

use std::path::Path;

use super::super::spark_writes::warn_of_copies;
use super::destination::something_else;
use super::metadata::copy_file;
use super::source::copied_range;
use super::{CopyOptions, CopyProgress, CopyReport, OnProgress, copy_partition, refuse_inside};
use crate::error::{Error, NotFound, Result};
use crate::fs::names::{PartitionName, PartitionState};
use crate::fs::{
    DATA_DIRECTORY_LOCK, Directory, Lock, META_PROPERTIES, PartitionLocks, STAGED, is_data_directory,
};
use crate::state::copy_journal::{CopiedRange, CopyJournal};
use crate::state::data_directory::{CLEAN_SHUTDOWN, DataDirectory, holds_partition, is_partition};
use crate::state::offset_checkpoint::{CLEANED_OFFSETS, HIGH_WATERMARKS, OffsetCheckpoint, RECOVERY_POINTS};
use crate::types::Interrupt;

/// The maximum size of `meta.properties`, bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The snapshot with which a new cluster starts. Kafka: `BootstrapDirectory`.
const BOOTSTRAP_SNAPSHOT: &str = "bootstrap.checkpoint";

/// The contents of `.kafka_cleanshutdown`. Without a broker's epoch: the copy is not the state in which a
/// broker stopped.
const CLEAN_SHUTDOWN_TEXT: &str = "{\"version\":0,\"brokerEpoch\":-1}";

/// Copies partitions of a data directory into another one, which is created if it does not exist: each as
/// [`copy()`](super::copy()) does, in the state in which it is opened. A partition without a segment is left
/// out, as are partitions that are being deleted or moved.
///
/// The checkpoints of the copy have the lines of its partitions. A new directory also gets `meta.properties`
/// and `bootstrap.checkpoint` of the source, and with `meta.properties` the marker of a clean shutdown, so
/// that a broker opens it without recovery.
///
/// `is_selected`: which partitions, by their names.
///
/// # Errors
/// As [`copy()`](super::copy()); [`Error::LogNotFound`] if no partition is selected.
pub fn copy_data_directory(
    source: impl AsRef<Path>,
    destination: impl AsRef<Path>,
    options: &CopyOptions,
    is_selected: impl Fn(&PartitionName) -> bool,
    progress: OnProgress<'_>,
) -> Result<CopyReport> {
    let advice = "give the path of a data directory or of a partition directory";
    let source = Directory::open(source.as_ref(), advice)?;
    refuse_inside(&source, destination.as_ref())?;
    let partitions = partitions(&source, is_selected)?;
    if partitions.is_empty() {
        let path = source.path().to_owned();
        return Err(Error::LogNotFound {
            path,
            found: NotFound::NoSegment,
            advice: "select partitions that exist: the data directory has none of those",
        });
    }
    let advice = "create the parent folder of the destination first";
    let to = Directory::open_or_create(destination.as_ref(), advice, |_, _| Ok(()))?;
    let range = copied_range(options.ranges);
    // held to the end: no broker starts on a part of the copy
    let (is_new, lock) = begin(&source, &to, range, options.interrupt)?;
    let mut done = Vec::new();
    let (mut bytes, mut total_bytes) = (0, 0);
    for (name, parsed) in &partitions {
        let mut last = CopyProgress { bytes: 0, total_bytes: 0 };
        let copied = copy_partition(&source.path_of(name), &to.path_of(name), options, true, &mut |of_one| {
            last = of_one;
            progress(CopyProgress {
                bytes: bytes + of_one.bytes,
                total_bytes: total_bytes + of_one.total_bytes,
            })
        });
        match copied {
            Ok(report) => done.push((parsed, report)),
            // a partition that Kafka has just created
            Err(Error::LogNotFound { found: NotFound::NoSegment, .. }) => {}
            Err(error) => return Err(error),
        }
        (bytes, total_bytes) = (bytes + last.bytes, total_bytes + last.total_bytes);
    }
    // a broker that has stopped meanwhile deletes the file of the lock
    let locks = [lock, Lock::shared(&to, DATA_DIRECTORY_LOCK)?];
    for name in [CLEANED_OFFSETS, HIGH_WATERMARKS] {
        copy_lines(&source, &to, name, &done)?;
    }
    // without `meta.properties`, no broker starts on the copy
    if is_new && has_only(&to, &partitions)? && to.identity_of(META_PROPERTIES)?.is_some() {
        to.replace(CLEAN_SHUTDOWN, CLEAN_SHUTDOWN_TEXT.as_bytes())?;
    }
    for (_, report) in &done {
        CopyJournal::remove(&Directory::open(&report.path, "copy the data directory again")?)?;
    }
    if is_new {
        CopyJournal::remove(&to)?;
    }
    drop(locks);
    let mut reports: Vec<_> = done.into_iter().map(|(_, report)| report).collect();
    warn_of_copies(&source, &mut reports);
    Ok(CopyReport::of_partitions(source.path().to_owned(), to.path().to_owned(), reports))
}

/// The live partitions, by topic and number.
fn partitions(
    source: &Directory,
    is_selected: impl Fn(&PartitionName) -> bool,
) -> Result<Vec<(String, PartitionName)>> {
    let names = source.entries()?.into_iter();
    let mut found: Vec<_> = names
        .filter_map(|(name, _)| PartitionName::parse(&name).map(|parsed| (name, parsed)))
        .filter(|(_, parsed)| parsed.state == PartitionState::Live && is_selected(parsed))
        .filter(|(name, _)| source.path_of(name).is_dir())
        .collect();
    found.sort_by(|(_, one), (_, other)| (&one.topic, one.partition).cmp(&(&other.topic, other.partition)));
    Ok(found)
}

/// Makes the destination a data directory. Returns whether it is new, and the lock that the writers of a data
/// directory share. A journal in it says that the copy of this source has begun it, and not yet completed it.
fn begin(
    source: &Directory,
    to: &Directory,
    range: CopiedRange,
    interrupt: Interrupt,
) -> Result<(bool, Lock)> {
    let journal = CopyJournal::read(to)?;
    if let Some(other) = journal.and_then(|journal| journal.other_copy(source.path(), range)) {
        return Err(something_else(to, &other));
    }
    let entries = to.entries()?;
    let names = || entries.iter().map(|(name, _)| name.as_str());
    let is_one = is_data_directory(to, "")? || holds_partition(to, names());
    let is_empty = names().all(|name| name == PartitionLocks::NAME || name.strip_suffix(STAGED).is_some());
    if journal.is_none() && (is_partition(names()) || !is_one && !is_empty) {
        return Err(something_else(to, "other files"));
    }
    let is_new = journal.is_some() || is_empty;
    if is_new {
        CopyJournal::new(source.path(), range, 0, false).write(to)?;
    }
    // fails if a broker is running
    let lock = Lock::shared(to, DATA_DIRECTORY_LOCK)?;
    let _writers = Lock::wait_exclusive(to, PartitionLocks::NAME, DataDirectory::TURNS)?;
    if to.identity_of(RECOVERY_POINTS)?.is_none() {
        to.replace(RECOVERY_POINTS, OffsetCheckpoint::default().to_text().as_bytes())?;
    }
    if to.identity_of(META_PROPERTIES)?.is_none()
        && let Some(properties) = source.read_small(META_PROPERTIES, MAX_BYTES)?
    {
        to.replace(META_PROPERTIES, &properties)?;
    }
    if is_new {
        copy_file(source, BOOTSTRAP_SNAPSHOT, to, interrupt)?;
    }
    Ok((is_new, lock))
}

/// Copies the lines of partitions in a checkpoint, within the offsets of their copies. A damaged file has no
/// lines.
fn copy_lines(
    source: &Directory,
    to: &Directory,
    name: &str,
    done: &[(&PartitionName, CopyReport)],
) -> Result<()> {
    // the writers of other partitions rewrite the same files
    let _writers = Lock::wait_exclusive(to, PartitionLocks::NAME, DataDirectory::TURNS)?;
    let (Ok(lines), Ok(mut kept)) =
        (OffsetCheckpoint::read(source, name)?, OffsetCheckpoint::read(to, name)?)
    else {
        return Ok(());
    };
    let mut is_changed = false;
    for (partition, report) in done {
        if let Some(offset) = lines.offset_of(&partition.topic, partition.partition) {
            let (Some(start), Some(end)) = (report.log_start_offset, report.end_offset) else { continue };
            let offset = offset.clamp(start, end);
            is_changed |= kept.set(&partition.topic, partition.partition, offset);
        }
    }
    if is_changed { to.replace(name, kept.to_text().as_bytes()) } else { Ok(()) }
}

/// Whether a data directory has no other partitions than these.
fn has_only(to: &Directory, partitions: &[(String, PartitionName)]) -> Result<bool> {
    let is_known = |name: &str| partitions.iter().any(|(known, _)| known == name);
    let names = to.entries()?;
    Ok(names.iter().all(|(name, _)| is_known(name) || PartitionName::parse(name).is_none()))
}
