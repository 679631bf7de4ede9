//! Entries of an index that do not agree with the log. Entries in a row are one finding.

use std::path::{Path, PathBuf};

use super::finding::Finding;
use super::rule::Rule;

/// Collects the wrong entries of one index.
#[derive(Debug)]
pub(super) struct WrongEntries {
    rule: Rule,
    partition: PathBuf,
    file: PathBuf,
    entry_size: u64,
    /// The finding of the last wrong entries, and the slot after the last of them.
    last: Option<(Finding, u64)>,
    count: u64,
    findings: Vec<Finding>,
}

impl WrongEntries {
    /// The maximum number of findings: the last one covers all others.
    const MAX: usize = 1000;

    pub(super) fn new(rule: Rule, partition: &Path, file: &Path, entry_size: u64) -> Self {
        Self {
            rule,
            partition: partition.to_owned(),
            file: file.to_owned(),
            entry_size,
            last: None,
            count: 0,
            findings: Vec::new(),
        }
    }

    /// Adds the entry in a slot, for an offset.
    pub(super) fn add(&mut self, slot: u64, offset: i64, expected: String, found: String) {
        let is_full = self.findings.len() >= Self::MAX;
        if let Some((finding, next)) = &mut self.last
            && (*next == slot || is_full)
        {
            *next = slot + 1;
            finding.end_position = Some(*next * self.entry_size);
            finding.start_offset = finding.start_offset.map(|start| start.min(offset));
            finding.end_offset = finding.end_offset.map(|end| end.max(offset.saturating_add(1)));
            self.count += 1;
            return;
        }
        self.end_run();
        let start = slot * self.entry_size;
        let finding = Finding::new(self.rule, &self.partition, &self.file, expected, found)
            .at(start, start + self.entry_size)
            .offsets(offset, Some(offset.saturating_add(1)));
        self.last = Some((finding, slot + 1));
        self.count = 1;
    }

    /// Adds a fact about a wrong entry, if it is the first one of its finding.
    pub(super) fn explain(&mut self, slot: u64, evidence: String) {
        let start = Some(slot * self.entry_size);
        let last = self.last.iter_mut().map(|(finding, _)| finding);
        if let Some(finding) = last.chain(&mut self.findings).find(|finding| finding.position == start) {
            finding.evidence.push(evidence);
        }
    }

    fn end_run(&mut self) {
        if let Some((mut finding, _)) = self.last.take() {
            if self.count > 1 {
                finding = finding.because(format!("{} entries in a row are wrong", self.count));
            }
            self.findings.push(finding);
        }
    }

    pub(super) fn into_findings(mut self) -> Vec<Finding> {
        self.end_run();
        self.findings
    }
}
