//! The plan, and how it is made.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::action::LoadAction;
use super::disk::{Contents, Disk};
use super::epochs::Epochs;
use super::exception::{ExceptionKind, LoadFailure, Step, Thrown};
use super::loader::{self, LoadedOffsets};
use super::lost::{self, LostOffsets};
use super::recovery::Loading;
use super::run::{Run, Segments};
use super::segment::LoadedSegment;
use super::snapshots::is_of_several_producers;
use super::topic_id;
use super::warning::{self, LoadWarning};
use crate::config::{LogConfig, StatedSettings};
use crate::error::{Error, Result};
use crate::fs::names::{CLUSTER_METADATA_DIRECTORY, FileKind, PartitionName};
use crate::fs::{Directory, is_data_directory};
use crate::inspect::internal_topics::known_settings;
use crate::inspect::rebuild::topics_index_settings;
use crate::log::{IntervalSource, Log, LogOptions, shown_interval};
use crate::record::MAX_BATCH_BYTES;
use crate::record::crc::crc32c;
use crate::state::data_directory::{CLEAN_SHUTDOWN, DataDirectory};
use crate::state::offset_checkpoint::{LOG_START_OFFSETS, OffsetCheckpoint, RECOVERY_POINTS};
use crate::state::producers::ProducerEntry;
use crate::types::Interrupt;

/// How the partition is opened.
#[derive(Debug, Clone)]
pub struct LoadOptions<'a> {
    /// Whether the broker was shut down cleanly; `None`: whether the data directory has the marker
    /// `.kafka_cleanshutdown`.
    pub clean: Option<bool>,
    /// `None`: from the data directory's checkpoint, 0 without one.
    pub recovery_point: Option<i64>,
    /// `None`: from the data directory's checkpoint, 0 without one.
    pub log_start_offset: Option<i64>,
    /// The topic's settings. Those that it does not state ([`LogConfig::states`]), and all for `None`: those
    /// in the metadata of the data directory, or Kafka's defaults; if neither states
    /// `index.interval.bytes`, the one that the existing offset indexes show: after an unclean shutdown,
    /// what Kafka finds depends on it.
    pub config: Option<Cow<'a, LogConfig>>,
    /// The largest batch that is read as a whole, bytes, as stored and decompressed. A larger one with a
    /// marker, or of v0 or v1 with its offsets in its compressed records, is an
    /// [`Error::BatchTooLarge`].
    pub max_batch_bytes: usize,
    /// Called during long operations.
    pub interrupt: Interrupt,
}

impl Default for LoadOptions<'_> {
    fn default() -> Self {
        Self {
            clean: None,
            recovery_point: None,
            log_start_offset: None,
            config: None,
            max_batch_bytes: MAX_BATCH_BYTES,
            interrupt: Interrupt::NEVER,
        }
    }
}

/// What a broker does when it opens a partition directory.
///
/// Producer ids do not expire in it, because that depends on the time of the start. The topic id that a
/// broker writes to a missing `partition.metadata` is not part of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct KafkaLoad {
    /// The partition directory.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub path: PathBuf,
    /// Whether the broker takes the last shutdown for a clean one.
    pub closed_cleanly: bool,
    /// The recovery point with which it starts.
    pub recovery_point: i64,
    /// The log start offset with which it starts.
    pub log_start_offset: i64,
    /// What is done, in order.
    pub actions: Vec<LoadAction>,
    /// The log; `None` if the loading fails.
    pub log: Option<LoadedLog>,
    /// How the loading fails.
    pub failure: Option<LoadFailure>,
    /// Every file, before and afterwards.
    pub files: Vec<LoadedFile>,
    /// The offsets that the log no longer has, ascending.
    pub lost_offsets: Vec<LostOffsets>,
    /// Damage that Kafka accepts.
    pub warnings: Vec<LoadWarning>,
    /// The `index.interval.bytes` of the plan.
    pub index_interval_bytes: u64,
    /// Where the interval is from.
    pub interval_source: IntervalSource,
}

/// The log after it was loaded.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct LoadedLog {
    /// The lowest offset that can be read.
    pub log_start_offset: i64,
    /// The offset of the next record.
    pub log_end_offset: i64,
    /// Below it, Kafka takes everything to be on the disk.
    pub recovery_point: i64,
    /// The first offset of the oldest open transaction, or the log end offset.
    pub last_stable_offset: i64,
    /// Ascending.
    pub segments: Vec<LoadedSegment>,
    /// Epochs and their start offsets, ascending.
    pub leader_epochs: Vec<(i32, i64)>,
    /// In the order of a snapshot.
    pub producers: Vec<ProducerEntry>,
}

/// A file of the directory, before and afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct LoadedFile {
    /// Its name.
    pub name: String,
    /// Bytes now; `None` if it does not exist.
    pub old_size: Option<u64>,
    /// Bytes after the loading; `None` if it does not exist then. The active segment's indexes have their
    /// full size.
    pub new_size: Option<u64>,
    /// Bytes after a clean shutdown that follows without an append; `None` if the file does not exist then,
    /// or if the loading fails.
    pub closed_size: Option<u64>,
    /// The CRC-32C of the bytes after that shutdown, or after a loading that fails. `None` if they are a part
    /// of a file of the directory, and of a snapshot of several producers, which Kafka writes in the order of
    /// a hash map.
    pub crc32c: Option<u32>,
}

impl KafkaLoad {
    /// Plans the loading of a partition directory, and changes nothing.
    ///
    /// # Errors
    /// [`Error::Config`] if `clean` is `None` and the directory is not in a Kafka data directory, or for a
    /// wrong setting; [`Error::BatchTooLarge`]; [`Error::LogNotFound`]; [`Error::Io`];
    /// [`Error::LogChanged`]; [`Error::Interrupted`].
    pub fn plan(path: &Path, options: &LoadOptions<'_>) -> Result<Self> {
        let directory = Directory::open(path, "give the path of a partition directory")?;
        DataDirectory::refuse_itself(&directory)?;
        let (config, interval_source) = settings(&directory, options)?;
        let start = Start::of(&directory, options)?;
        let mut run = Run {
            disk: Disk::of(&directory, options.max_batch_bytes)?,
            config: &config,
            epochs: Epochs::default(),
            interrupt: options.interrupt,
            actions: Vec::new(),
            deleted_later: Vec::new(),
            stop_reason: None,
            cuts: Vec::new(),
        };
        let mut load = Self {
            path: directory.path().to_owned(),
            closed_cleanly: start.clean,
            recovery_point: start.recovery_point,
            log_start_offset: start.log_start_offset,
            actions: Vec::new(),
            log: None,
            failure: None,
            files: Vec::new(),
            lost_offsets: Vec::new(),
            warnings: Vec::new(),
            index_interval_bytes: config.index_interval_bytes.into(),
            interval_source,
        };
        match load.simulate(&mut run, &start) {
            Ok(()) => {}
            Err(Thrown::Kafka(exception)) => load.failure = Some(exception),
            Err(Thrown::Overflow(base_offset)) => {
                let reason = format!("offsets overflow in the segment {base_offset}");
                load.failure = Some(LoadFailure::new(ExceptionKind::Kafka, "", reason));
            }
            Err(Thrown::Error(error)) => return Err(error),
        }
        if load.failure.is_some() {
            load.log = None;
            load.files = files(&run, &Sizes::of(&run.disk), None)?;
        }
        load.lost_offsets = lost::find(&run, load.log.as_ref().map(|log| log.log_end_offset))?;
        load.actions = run.actions;
        Ok(load)
    }

    /// Whether the loading succeeds, loses nothing, and accepts no damage. It may rebuild indexes.
    pub fn is_clean(&self) -> bool {
        self.failure.is_none()
            && self.lost_offsets.is_empty()
            && self.warnings.is_empty()
            && self.bytes_cut() == 0
    }

    /// The bytes that are cut off `.log` files, and the bytes of the segments that are removed behind a cut.
    pub fn bytes_cut(&self) -> u64 {
        use super::{ActionKind, ActionReason};
        let of_logs = self.actions.iter().filter(|action| action.file.ends_with(FileKind::Log.suffix()));
        let lost = of_logs.filter(|action| {
            let is_lost = matches!(action.reason, ActionReason::AfterCut | ActionReason::BelowLogStart);
            action.kind == ActionKind::Cut || is_lost
        });
        lost.map(|action| action.old_size.unwrap_or(0) - action.new_size.unwrap_or(0)).sum()
    }

    fn simulate(&mut self, run: &mut Run, start: &Start) -> Step<()> {
        run.epochs = Epochs::read(&mut run.disk)?;
        let mut loading = Loading {
            segments: Segments::default(),
            producers: loader::producers(run)?,
            log_start_offset: start.log_start_offset,
            recovery_point: start.recovery_point,
            was_closed_cleanly: start.clean,
            overflowed: None,
        };
        let is_deleted = run.disk.directory().path().to_string_lossy().ends_with("-delete");
        let offsets = loader::load(run, &mut loading, is_deleted)?;
        topic_id::check(&run.disk)?;
        let epochs = run.epochs.entries().to_vec();
        if run.epochs.flush(&mut run.disk) {
            run.epochs_written()?;
        }
        self.warnings = warnings(run, &mut loading)?;
        let loaded = Sizes::of(&run.disk);
        self.log = Some(loaded_log(run, &mut loading, offsets, epochs)?);
        for name in std::mem::take(&mut run.deleted_later) {
            run.disk.remove(&name);
        }
        for segment in loading.segments.iter_mut() {
            segment.close(&mut run.disk)?;
        }
        let closed = Sizes::of(&run.disk);
        self.files = files(run, &loaded, Some(&closed))?;
        Ok(())
    }
}

/// The settings with which the broker opens the log, and where their interval of index entries is from.
fn settings(directory: &Directory, options: &LoadOptions<'_>) -> Result<(LogConfig, IntervalSource)> {
    let given = options.config.as_deref().cloned().unwrap_or_default();
    given.validate()?;
    let LoadOptions { max_batch_bytes, interrupt, .. } = *options;
    let log_options = LogOptions { max_batch_bytes, interrupt, ..LogOptions::default() };
    let known = match given.stated {
        StatedSettings::ALL => None,
        _ => known_settings(directory.path(), &log_options)?.settings,
    };
    let (mut config, source) = topics_index_settings(&given, known.as_ref())?;
    if let Some(source) = source {
        return Ok((config, source));
    }
    let shown = Log::open_in(directory.clone(), log_options).and_then(|log| shown_interval(&log));
    let (interval, source) = match shown {
        Ok((interval, source)) => (u32::try_from(interval).ok(), source),
        Err(error @ Error::Interrupted(_)) => return Err(error),
        // a log that a reader cannot open shows no interval
        Err(_) => (None, IntervalSource::Default),
    };
    config.index_interval_bytes = interval.unwrap_or(config.index_interval_bytes);
    Ok((config, source))
}

/// With what the broker starts.
#[derive(Debug)]
struct Start {
    clean: bool,
    recovery_point: i64,
    log_start_offset: i64,
}

impl Start {
    fn of(directory: &Directory, options: &LoadOptions<'_>) -> Result<Self> {
        let name = directory.path().file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let folder = if is_data_directory(directory, "../")? { directory.parent()? } else { None };
        let marker = folder.as_ref().map(|folder| folder.identity_of(CLEAN_SHUTDOWN)).transpose()?;
        // a broker recovers the metadata log of the cluster always. *Source*: `KafkaRaftLog.createLog`
        let is_metadata = name == CLUSTER_METADATA_DIRECTORY;
        let marker = marker.map(|marker| marker.is_some() && !is_metadata);
        let clean = options.clean.or(marker).ok_or_else(|| {
            let expected = "whether the broker was shut down cleanly, because the directory is not in a Kafka data directory";
            Error::config("clean", expected, "nothing")
        })?;
        let checkpoint = |file: &str| -> Result<i64> {
            let (Some(folder), Some(name)) = (&folder, PartitionName::parse(name)) else { return Ok(0) };
            let lines = OffsetCheckpoint::read(folder, file)?.unwrap_or_default();
            Ok(lines.offset_of(&name.topic, name.partition).unwrap_or(0))
        };
        let given = |given: Option<i64>, file| given.map_or_else(|| checkpoint(file), Ok);
        Ok(Self {
            clean,
            recovery_point: given(options.recovery_point, RECOVERY_POINTS)?,
            log_start_offset: given(options.log_start_offset, LOG_START_OFFSETS)?,
        })
    }
}

fn warnings(run: &mut Run, loading: &mut Loading) -> Step<Vec<LoadWarning>> {
    let active = loading.segments.bases().next_back();
    let mut warnings = Vec::new();
    for segment in loading.segments.iter_mut() {
        let is_active = Some(segment.base_offset) == active;
        let end = if is_active { Some(segment.next_offset(&mut run.disk)?) } else { None };
        warnings.extend(warning::find(run, segment, end)?);
    }
    Ok(warnings)
}

fn loaded_log(
    run: &mut Run,
    loading: &mut Loading,
    offsets: LoadedOffsets,
    leader_epochs: Vec<(i32, i64)>,
) -> Step<LoadedLog> {
    let LoadedOffsets { log_start_offset, recovery_point, log_end_offset } = offsets;
    let segments =
        loading.segments.iter_mut().map(|segment| segment.loaded(&mut run.disk)).collect::<Step<_>>()?;
    let states = &loading.producers.producers.states;
    let first_open = states.first_open_offset().map(|first| first.max(log_start_offset));
    Ok(LoadedLog {
        log_start_offset,
        log_end_offset,
        recovery_point,
        last_stable_offset: first_open.unwrap_or(log_end_offset),
        segments,
        leader_epochs,
        producers: states.iter().cloned().collect(),
    })
}

/// The sizes of all files at a moment.
struct Sizes(std::collections::BTreeMap<String, u64>);

impl Sizes {
    fn of(disk: &Disk) -> Self {
        Self(disk.files().iter().map(|(name, contents)| (name.clone(), contents.size())).collect())
    }
}

fn files(run: &Run, loaded: &Sizes, closed: Option<&Sizes>) -> Result<Vec<LoadedFile>> {
    let before = run.disk.before();
    let names = before.keys().chain(loaded.0.keys()).chain(closed.iter().flat_map(|closed| closed.0.keys()));
    let names: std::collections::BTreeSet<_> = names.collect();
    let file = |name: &String| {
        let crc32c = match run.disk.files().get(name) {
            Some(Contents::Made { bytes, size }) if !is_of_several_producers(name, *size) => {
                Some(crc_with_zeros(bytes, *size))
            }
            _ => None,
        };
        Ok(LoadedFile {
            name: name.clone(),
            old_size: before.get(name).copied(),
            new_size: loaded.0.get(name).copied(),
            closed_size: closed.and_then(|closed| closed.0.get(name).copied()),
            crc32c,
        })
    };
    names.into_iter().map(file).collect()
}

/// The checksum of bytes with zeros up to `size` after them.
fn crc_with_zeros(bytes: &[u8], size: u64) -> u32 {
    let used = bytes.get(..usize::try_from(size).unwrap_or(usize::MAX)).unwrap_or(bytes);
    if used.len() as u64 == size {
        return crc32c(used);
    }
    let mut running = crate::record::crc::Running::new(2);
    running.update(used);
    let mut left = size - used.len() as u64;
    let zeros = [0; 4096];
    while left > 0 {
        let chunk = zeros.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        running.update(zeros.get(..chunk).unwrap_or_default());
        left -= chunk as u64;
    }
    running.value()
}
