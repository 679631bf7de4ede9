//! One partition: its segments, and what is compared across them.

use std::path::PathBuf;
use std::sync::Arc;

use super::checkpoints::Checkpoints;
use super::finding::Finding;
use super::rule::Rule;
use super::segment::SegmentReport;
use super::summary::Summary;
use super::target::Target;
use super::writer_files::WriterFiles;
use super::{Unprotected, continuity, epochs, files, loading, misnamed, snapshots, transactions};
use crate::error::{Error, Result};
use crate::fs::Directory;
use crate::log::{Log, LogOptions};
use crate::segment::{Segment, with_descriptors};
use crate::state::data_directory;

/// A partition whose segments are being verified.
#[derive(Debug)]
pub(super) struct PartitionCheck {
    directory: Directory,
    /// `None` if it cannot be opened.
    log: Option<Log>,
    checkpoints: Option<Arc<Checkpoints>>,
    writer_files: Option<WriterFiles>,
    /// The base offset of the only segment to be verified.
    only: Option<i64>,
    findings: Vec<Finding>,
}

impl PartitionCheck {
    /// Opens a partition. Errors about its files are findings.
    pub(super) fn open(
        target: &Target,
        options: &LogOptions,
        checkpoints: Option<Arc<Checkpoints>>,
    ) -> Result<Self> {
        let directory = with_descriptors(|| {
            Directory::open(&target.path, "give the path of a partition directory, such as data/orders-0")
        })?;
        let mut check = Self {
            directory: directory.clone(),
            log: None,
            checkpoints,
            writer_files: None,
            only: target.only,
            findings: Vec::new(),
        };
        // before the segments are listed
        match WriterFiles::read(&directory) {
            Ok(read) => check.writer_files = Some(read),
            Err(error) => check.findings.push(super::unreadable(directory.path(), error)?),
        }
        match Log::open_if_any(directory.clone(), options.clone()) {
            Ok(Some(log)) => check.log = Some(log),
            Ok(None) => check.without_segment()?,
            Err(error) => check.findings.push(super::unreadable(directory.path(), error)?),
        }
        Ok(check)
    }

    fn without_segment(&mut self) -> Result<()> {
        match data_directory::refuse_lost(&self.directory) {
            Err(Error::Corrupt { expected, found, .. }) => {
                let path = self.directory.path();
                self.findings.push(Finding::new(Rule::NoSegment, path, path, expected, found));
            }
            Err(error) => self.findings.push(super::unreadable(self.directory.path(), error)?),
            Ok(()) => {}
        }
        Ok(())
    }

    /// The partition's directory.
    pub(super) fn path(&self) -> PathBuf {
        self.directory.path().to_owned()
    }

    /// The segments to be verified.
    pub(super) fn segments(&self) -> Vec<Arc<Segment>> {
        let is_wanted = |segment: &&Arc<Segment>| self.only.is_none_or(|only| only == segment.base_offset());
        self.log.iter().flat_map(|log| log.segments().iter()).filter(is_wanted).cloned().collect()
    }

    /// All findings of the partition, from those of its segments, which are `None` where one could not be
    /// read.
    pub(super) fn finish(
        self,
        reports: Vec<Option<SegmentReport>>,
        failed: Vec<Finding>,
        unprotected: &mut Unprotected,
    ) -> Result<Vec<Finding>> {
        let is_complete = reports.iter().all(Option::is_some);
        let mut findings: Vec<_> = failed;
        let mut summaries = Vec::with_capacity(reports.len());
        for report in reports.into_iter().flatten() {
            findings.extend(report.findings);
            summaries.push(report.summary);
        }
        if self.only.is_some() {
            return Ok(findings);
        }
        let (path, log) = (self.path(), self.log.clone());
        match self.compare(is_complete.then_some(&summaries[..]), unprotected) {
            Ok(found) => findings.extend(found),
            Err(error) => findings.push(super::unreadable(&path, error)?),
        }
        if let Some(log) = log {
            if let Err(error) = misnamed::explain(&log, &mut findings) {
                findings.push(super::unreadable(&path, error)?);
            }
            let found = loading::check(&log, &findings);
            findings.extend(found.or_else(|error| super::unreadable(&path, error).map(Some))?);
        }
        Ok(findings)
    }

    /// What is compared across segments; `summaries`: `None` if not all of them were read.
    fn compare(self, summaries: Option<&[Summary]>, unprotected: &mut Unprotected) -> Result<Vec<Finding>> {
        let Self { directory, log, checkpoints, writer_files, mut findings, .. } = self;
        findings.extend(files::check(&directory, log.as_ref())?);
        let Some(log) = log else { return Ok(findings) };
        if let Some(writer_files) = writer_files {
            findings.extend(writer_files.compare(&log)?);
        }
        if let Some(checkpoints) = checkpoints {
            findings.extend(checkpoints.of_partition(&log, &directory)?);
        }
        let Some(summaries) = summaries else { return Ok(findings) };
        findings.extend(continuity::check(&log, summaries)?);
        findings.extend(empty_indexes(&log, summaries));
        findings.extend(epochs::falls(&log, summaries));
        let (found, without_epoch) = epochs::checkpoint(&log, &directory, summaries)?;
        findings.extend(found);
        findings.extend(transactions::check(&log, summaries)?);
        findings.extend(snapshots::check(&log, &directory, summaries)?);
        unprotected.leader_epochs += without_epoch;
        unprotected.base_offsets += summaries.iter().map(|summary| summary.batches_at_gaps).sum::<u64>();
        // nothing follows the last batch
        unprotected.base_offsets += u64::from(summaries.iter().any(|summary| summary.batches > 0));
        Ok(findings)
    }
}

/// Offset indexes without entries, where entries are due. The setting `index.interval.bytes` is not on disk:
/// the other indexes of the log show how far entries are apart.
fn empty_indexes(log: &Log, summaries: &[Summary]) -> Vec<Finding> {
    let usual = summaries.iter().filter_map(|summary| summary.index_distance).max();
    let mut findings = Vec::new();
    for (summary, segment) in summaries.iter().zip(log.segments().iter()) {
        let Some(index) = segment.offset_index().ok().flatten().filter(|index| index.entries() == 0) else {
            continue;
        };
        if summary.last_position > usual.unwrap_or(u64::MAX) && !segment.is_last() {
            let expected = "an entry, as the other indexes of the log have";
            let finding = Finding::new(Rule::IndexEmpty, log.path(), index.path(), expected, "no entry");
            let finding = finding.offsets(summary.base_offset, Some(summary.end_offset));
            findings.push(finding.because(format!(
                "the segment has {} bytes before its last batch; elsewhere entries are at most {} bytes apart",
                summary.last_position,
                usual.unwrap_or(0)
            )));
        }
    }
    findings
}
