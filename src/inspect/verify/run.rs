//! The run: partitions in groups, their segments on some threads.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::broker_files;
use super::checkpoints::Checkpoints;
use super::directories;
use super::finding::{agree_on_remedies, note_rebuilt};
use super::journal::{self, Journal};
use super::partition::PartitionCheck;
use super::segment::{SegmentCheck, SegmentReport};
use super::target::{Target, targets};
use super::work::{Interruption, OF_THREAD, Progress, Source, Work};
use super::{Finding, Rule, Verification, VerifyOptions, files};
use crate::error::{Error, Result};
use crate::fs::names::{CLUSTER_METADATA_DIRECTORY, FileKind, Stage};
use crate::fs::{Directory, is_data_directory, max_open_files};
use crate::inspect::internal_topics::is_topic_compacted;
use crate::log::LogOptions;
use crate::segment::{Segment, with_descriptors};

/// The number of partitions that are open at a time, if the limit of descriptors allows it.
const MAX_GROUP: usize = 64;

/// The time between two reports of the progress.
const TICK: Duration = Duration::from_millis(100);

/// Verifies partitions: the directories of partitions, data directories with all their partitions, or single
/// `.log` files, of which only the segment is verified. `progress` is called by the calling thread, about ten
/// times a second; its error ends the verification.
///
/// A path in the order of the arguments; a partition that is given twice is verified once. A file that cannot
/// be read is a finding.
///
/// # Errors
/// [`Error::Config`] for a path that is none of these, or a journal within a partition;
/// [`Error::LogNotFound`]; [`Error::Io`] for a data directory that cannot be listed, or the journal;
/// [`Error::Interrupted`].
pub fn verify(
    paths: &[PathBuf],
    options: &VerifyOptions,
    mut progress: impl FnMut(Progress) -> Result<()>,
) -> Result<Verification> {
    let _interruption = Interruption::by(Source::Caller(options.interrupt));
    let (targets, findings, data_directories) = targets(paths)?;
    let total_bytes = total_bytes(&targets)?;
    let directories: Vec<_> =
        targets.iter().map(|target| target.path.clone()).chain(data_directories.clone()).collect();
    let journal = options.journal.as_deref();
    let journal = journal.map(|path| Journal::open(path, &directories, options.is_deep)).transpose()?;
    let mut run = Run {
        options,
        journal,
        now: options.now.unwrap_or_else(now),
        bytes: AtomicU64::new(0),
        total_bytes,
        known: HashMap::new(),
        result: Verification { findings, is_deep: options.is_deep, ..Verification::default() },
    };
    let has_metadata = data_directories.iter().any(|path| path.join(CLUSTER_METADATA_DIRECTORY).is_dir());
    for path in &data_directories {
        let directory = with_descriptors(|| Directory::open(path, "give the path of a data directory"))?;
        run.result.findings.extend(files::unfinished_copy(&directory)?);
        run.result.findings.extend(Checkpoints::read(&directory, "", &[])?.findings);
        run.result.findings.extend(broker_files::check(&directory, has_metadata)?);
        run.result.findings.extend(directories::check(&directory, &data_directories)?);
    }
    // each keeps two descriptors, and the files of those that are read need others
    let group = (max_open_files() / 8).clamp(1, MAX_GROUP);
    let partitions: Vec<_> =
        targets.iter().filter(|target| target.only.is_none()).map(|target| target.path.as_path()).collect();
    let copies = directories::copies(&partitions, &run.result.findings);
    run.result.findings.extend(copies);
    for group in targets.chunks(group) {
        run.group(group, &data_directories, &mut progress)?;
    }
    progress(Progress { bytes: total_bytes, total_bytes })?;
    Ok(run.result)
}

struct Run<'a> {
    options: &'a VerifyOptions,
    journal: Option<Journal>,
    now: i64,
    bytes: AtomicU64,
    total_bytes: u64,
    /// By data directory; `None` for a folder that is not one.
    known: HashMap<PathBuf, Option<Arc<Checkpoints>>>,
    result: Verification,
}

/// The result for one segment, and whether it was verified before.
type Verified = Result<(SegmentReport, bool)>;

impl Run<'_> {
    fn group(
        &mut self,
        group: &[Target],
        data_directories: &[PathBuf],
        progress: &mut dyn FnMut(Progress) -> Result<()>,
    ) -> Result<()> {
        let VerifyOptions { io, max_batch_bytes, .. } = *self.options;
        let log_options = LogOptions {
            io,
            max_batch_bytes,
            is_topic_compacted,
            interrupt: OF_THREAD,
            ..LogOptions::default()
        };
        let mut checks = Vec::with_capacity(group.len());
        for target in group {
            self.options.interrupt.check()?;
            if let Err(error) = self.open(target, &log_options, data_directories, &mut checks) {
                self.result.findings.push(super::unreadable(&target.path, error)?);
            }
        }
        self.verify_opened(checks, progress)
    }

    fn open(
        &mut self,
        target: &Target,
        log_options: &LogOptions,
        data_directories: &[PathBuf],
        checks: &mut Vec<PartitionCheck>,
    ) -> Result<()> {
        let parent = target.path.parent().unwrap_or(&target.path).to_owned();
        // a single segment is not compared with them
        let checkpoints = if target.only.is_some() {
            None
        } else if let Some(checkpoints) = self.known.get(&parent) {
            checkpoints.clone()
        } else {
            let read = self.checkpoints_around(target, data_directories)?;
            self.known.insert(parent, read.clone());
            read
        };
        checks.push(PartitionCheck::open(target, log_options, checkpoints)?);
        Ok(())
    }

    fn verify_opened(
        &mut self,
        checks: Vec<PartitionCheck>,
        progress: &mut dyn FnMut(Progress) -> Result<()>,
    ) -> Result<()> {
        let segments: Vec<_> = checks.iter().map(PartitionCheck::segments).collect();
        let units: Vec<_> = checks
            .iter()
            .zip(&segments)
            .flat_map(|(check, segments)| segments.iter().map(|segment| (check.path(), Arc::clone(segment))))
            .collect();
        let mut reports = self.segments(&units, progress)?.into_iter();
        for (check, segments) in checks.into_iter().zip(&segments) {
            self.options.interrupt.check()?;
            self.partition(check, reports.by_ref().take(segments.len()).collect())?;
        }
        Ok(())
    }

    /// The checkpoints of the data directory around a partition; `None` if the folder is not one. Findings
    /// about the files are reported once.
    fn checkpoints_around(
        &mut self,
        target: &Target,
        data_directories: &[PathBuf],
    ) -> Result<Option<Arc<Checkpoints>>> {
        let directory =
            with_descriptors(|| Directory::open(&target.path, "give the path of a partition directory"))?;
        if !is_data_directory(&directory, "../")? {
            return Ok(None);
        }
        let is_reported =
            target.path.parent().is_some_and(|parent| data_directories.iter().any(|path| path == parent));
        let mut checkpoints = Checkpoints::read(&directory, "../", data_directories)?;
        let findings = std::mem::take(&mut checkpoints.findings);
        if !is_reported {
            self.result.findings.extend(findings);
            if let Some(data_directory) = directory.parent()? {
                self.result.findings.extend(broker_files::check(&data_directory, true)?);
            }
        }
        Ok(Some(Arc::new(checkpoints)))
    }

    fn partition(&mut self, check: PartitionCheck, results: Vec<Verified>) -> Result<()> {
        let path = check.path();
        let (mut reports, mut failed) = (Vec::with_capacity(results.len()), Vec::new());
        for result in results {
            match result {
                Ok((report, true)) => {
                    self.result.segments_skipped += 1;
                    reports.push(Some(report));
                }
                Ok((report, false)) => {
                    self.result.segments_checked += 1;
                    self.result.bytes_checked += report.summary.size;
                    self.result.batches_checked += report.summary.batches;
                    reports.push(Some(report));
                }
                Err(error) => {
                    failed.push(super::unreadable(&path, error)?);
                    reports.push(None);
                }
            }
        }
        let mut findings = check.finish(reports, failed, &mut self.result.unprotected)?;
        findings.sort_by(|left, right| key(left).cmp(&key(right)));
        // each check that needs the file finds it
        findings.dedup_by(|next, last| last.rule == Rule::LinkedFile && next == last);
        note_rebuilt(&mut findings);
        agree_on_remedies(&mut findings);
        self.result.partitions += 1;
        self.result.findings.extend(findings);
        Ok(())
    }

    fn segment(&self, path: &std::path::Path, segment: &Segment, work: &Work<'_>) -> Verified {
        let check = || SegmentCheck::new(segment, path, self.options.is_deep, self.now).run(work);
        let Some(journal) = &self.journal else { return Ok((check()?, false)) };
        if let Some(summary) = journal.find(path, segment)? {
            work.add(summary.size);
            return Ok((SegmentReport { findings: Vec::new(), summary }, true));
        }
        let before = journal::identities(segment)?;
        let report = check()?;
        journal.add(path, segment, &before, &report)?;
        Ok((report, false))
    }

    /// Verifies segments on the threads. The calling thread reports the progress, and stops the others if it
    /// is interrupted.
    fn segments(
        &self,
        units: &[(PathBuf, Arc<Segment>)],
        progress: &mut dyn FnMut(Progress) -> Result<()>,
    ) -> Result<Vec<Verified>> {
        let results: Vec<Mutex<Option<Verified>>> = units.iter().map(|_| Mutex::new(None)).collect();
        let (next, is_stopped) = (AtomicUsize::new(0), Arc::new(AtomicBool::new(false)));
        let (done, finished) = mpsc::channel::<()>();
        let threads = self.options.threads.clamp(1, units.len().max(1));
        let interrupted = std::thread::scope(|scope| {
            for _ in 0..threads {
                let done = done.clone();
                let (next, is_stopped, results) = (&next, &is_stopped, &results);
                scope.spawn(move || {
                    let _interruption = Interruption::by(Source::Flag(Arc::clone(is_stopped)));
                    let work = Work::new(&self.bytes, is_stopped);
                    while let Some(((path, segment), result)) = {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        units.get(number).zip(results.get(number))
                    } {
                        let found = self.segment(path, segment, &work);
                        let is_interrupted = matches!(found, Err(Error::Interrupted(_)));
                        *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
                        if is_interrupted {
                            break;
                        }
                    }
                    drop(done);
                });
            }
            drop(done);
            loop {
                match finished.recv_timeout(TICK) {
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                    Ok(()) | Err(RecvTimeoutError::Timeout) => {}
                }
                let bytes = self.bytes.load(Ordering::Relaxed).min(self.total_bytes);
                let reported = progress(Progress { bytes, total_bytes: self.total_bytes });
                if let Err(error) = reported.and_then(|()| self.options.interrupt.check()) {
                    is_stopped.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
        });
        interrupted?;
        let results = results.into_iter().map(|result| {
            let result = result.into_inner().unwrap_or_else(PoisonError::into_inner);
            result.unwrap_or_else(|| Err(Error::Interrupted("the thread of a segment ended".into())))
        });
        Ok(results.collect())
    }
}

/// Findings are in the order of the files, and within one of the positions.
fn key(finding: &Finding) -> (&std::path::Path, Option<u64>, Option<i64>, super::Rule) {
    (&finding.file, finding.position, finding.start_offset, finding.rule)
}

/// The bytes of the `.log` files to be verified, as far as they can be listed.
fn total_bytes(targets: &[Target]) -> Result<u64> {
    let mut total = 0;
    for target in targets {
        let opened =
            with_descriptors(|| Directory::open(&target.path, "give the path of a partition directory"));
        // what cannot be listed becomes a finding later
        let Ok(directory) = opened else { continue };
        for file in with_descriptors(|| directory.segment_files()).unwrap_or_default() {
            if file.parsed.kind == FileKind::Log
                && file.parsed.stage == Stage::Live
                && target.only.is_none_or(|only| only == file.parsed.base_offset)
            {
                total += directory.identity_of(&file.name)?.map_or(0, |file| file.size);
            }
        }
    }
    Ok(total)
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
