//! Whether a broker loads a partition after a clean stop: then it believes the files, and checks few of them.

use std::borrow::Cow;
use std::path::Path;

use super::finding::Finding;
use super::rule::{Remedy, Rule, Severity};
use super::work::OF_THREAD;
use crate::config::{LogConfig, StatedSettings};
use crate::error::{Error, Result};
use crate::fs::{Directory, is_data_directory};
use crate::inspect::kafka_load::{KafkaLoad, LoadOptions};
use crate::log::Log;
use crate::state::checkpoint::CHECKPOINT;
use crate::state::data_directory::CLEAN_SHUTDOWN;

/// The finding about a log that a broker does not load, unless an error about the same file is among `known`.
pub(super) fn check(log: &Log, known: &[Finding]) -> Result<Option<Finding>> {
    let directory = log.directory();
    if is_closed(log, directory)? { failure(directory.path(), known) } else { Ok(None) }
}

/// The finding about a partition directory that a broker does not load after a clean stop, unless an error
/// about the same file is among `known`.
pub(super) fn failure(partition: &Path, known: &[Finding]) -> Result<Option<Finding>> {
    let options = LoadOptions {
        clean: Some(true),
        // without the reading of all segments for the interval, which matters after a crash
        config: Some(Cow::Owned(LogConfig { stated: StatedSettings::ALL, ..LogConfig::default() })),
        interrupt: OF_THREAD,
        ..LoadOptions::default()
    };
    let failure = match KafkaLoad::plan(partition, &options) {
        Ok(load) => load.failure,
        Err(error @ Error::Interrupted(_)) => return Err(error),
        Err(error) => {
            let finding = super::unreadable(partition, error)?;
            return Ok((!has_error(known, &finding.file)).then_some(finding));
        }
    };
    let Some(failure) = failure else { return Ok(None) };
    let file = failure.file.as_ref().map_or(partition.to_owned(), |name| partition.join(name));
    if has_error(known, &file) {
        return Ok(None);
    }
    let found = format!("{}: {}", failure.kind.class(), failure.reason);
    let expected = "a log that a broker loads after a clean stop";
    let finding = Finding::new(Rule::LoadFails, partition, &file, expected, found);
    let finding = if failure.kind.takes_directory_offline() {
        finding.that_takes_a_directory_offline()
    } else {
        finding.that_stops_a_broker()
    };
    let is_mended = known.iter().any(|known| known.file == file && known.rule.remedy() == Remedy::Repair);
    Ok(Some(if is_mended { finding } else { finding.with_remedy(LOOK) }))
}

const LOOK: Remedy = Remedy::manual(
    "cordwood verify --as-kafka shows what a broker does before; restore the file from another replica",
);

fn has_error(known: &[Finding], file: &Path) -> bool {
    known.iter().any(|finding| finding.file == file && finding.severity == Severity::Error)
}

/// Whether the log was closed cleanly. Outside a data directory, a broker that was killed has left the
/// indexes of the last segment with their full size; a writer of this library has a checkpoint, and recovers
/// its log itself.
fn is_closed(log: &Log, directory: &Directory) -> Result<bool> {
    if is_data_directory(directory, "../")? {
        let marker = directory.identity_of(&format!("../{CLEAN_SHUTDOWN}"))?;
        return Ok(marker.is_some() && !directory.is_locked());
    }
    if directory.is_locked() || directory.identity_of(CHECKPOINT)?.is_some() {
        return Ok(false);
    }
    let last = log.segments().last();
    let index = last.and_then(|segment| segment.offset_index().ok().flatten());
    Ok(index.is_some_and(|index| index.entries() == index.max_entries()))
}
