//! A finding: a place where a file breaks a rule, with the evidence, what Kafka does there, and what to do.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};

use super::rule::{Remedy, Rule, Severity};
use crate::error::Malformed;
use crate::fs::names::{CLUSTER_METADATA_DIRECTORY, FileKind, SegmentFileName};
use crate::types::offsets_in_words;

/// What Kafka does with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
enum Effect {
    /// As with every finding of the rule.
    OfRule,
    /// The checksum of a batch that is out of order is right.
    AsWritten,
    /// The offset index of the segment is missing.
    Rebuilt,
}

/// A place where a file breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// How serious it is.
    pub severity: Severity,
    /// The file or directory.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub file: PathBuf,
    /// Bytes from the start of the file, inclusive; `None` if the finding is not about bytes of it.
    pub position: Option<u64>,
    /// Bytes from the start of the file, exclusive.
    pub end_position: Option<u64>,
    /// The first offset that is concerned; `None` if the finding is not about offsets.
    pub start_offset: Option<i64>,
    /// The offset after the last one that is concerned; `None` also if it is not known.
    pub end_offset: Option<i64>,
    /// What the rule demands.
    pub expected: String,
    /// What the file has.
    pub found: String,
    /// Further facts, each a sentence.
    pub evidence: Vec<String>,
    /// Whether a broker that has no other data directory does not start with it, or ends soon after.
    pub stops_broker: bool,
    /// Whether a broker that has other data directories only takes this one offline, and starts with the
    /// others. It does not start without the one that has the metadata log of the cluster.
    pub takes_directory_offline: bool,
    effect: Effect,
    /// The partition's directory, for the advice.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    partition: PathBuf,
    remedy: Remedy,
}

impl Finding {
    /// A finding about a file of a partition.
    pub(super) fn new(
        rule: Rule,
        partition: &Path,
        file: impl Into<PathBuf>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self {
            rule,
            severity: rule.severity(),
            file: file.into(),
            position: None,
            end_position: None,
            start_offset: None,
            end_offset: None,
            expected: expected.into(),
            found: found.into(),
            evidence: Vec::new(),
            stops_broker: false,
            takes_directory_offline: false,
            effect: Effect::OfRule,
            partition: partition.to_owned(),
            remedy: rule.remedy(),
        }
    }

    /// A finding for bytes that break the format.
    pub(super) fn malformed(
        rule: Rule,
        partition: &Path,
        file: impl Into<PathBuf>,
        malformed: Malformed,
    ) -> Self {
        Self::new(rule, partition, file, malformed.expected, malformed.found)
    }

    pub(super) fn at(self, position: u64, end_position: u64) -> Self {
        Self { position: Some(position), end_position: Some(end_position), ..self }
    }

    pub(super) fn offsets(self, start_offset: i64, end_offset: Option<i64>) -> Self {
        Self { start_offset: Some(start_offset), end_offset, ..self }
    }

    pub(super) fn with_severity(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    pub(super) fn with_remedy(self, remedy: Remedy) -> Self {
        Self { remedy, ..self }
    }

    /// It is a replacement that is not committed, with records that no segment has.
    pub(super) fn that_is_needed(self, advice: &str) -> Self {
        let remedy = Remedy::Manual(format!("it has records that no segment has: {advice}").into());
        self.with_severity(Severity::Error).with_remedy(remedy)
    }

    /// It is a batch with a right checksum, which only offsets or epochs before it contradict.
    pub(super) fn that_is_as_written(self) -> Self {
        Self { effect: Effect::AsWritten, ..self }
    }

    /// As an error: a broker does not start with it.
    pub(super) fn that_stops_a_broker(self) -> Self {
        // what it would find behind a link is not known
        Self { severity: Severity::Error, stops_broker: self.rule != Rule::LinkedFile, ..self }
    }

    /// As an error: a broker takes the data directory offline, and does not start if it has no other.
    pub(super) fn that_takes_a_directory_offline(self) -> Self {
        let stops = self.that_stops_a_broker();
        Self { takes_directory_offline: stops.stops_broker, ..stops }
    }

    pub(super) fn because(mut self, evidence: impl Into<String>) -> Self {
        self.evidence.push(evidence.into());
        self
    }

    /// What Kafka does with it when it loads the log, after a clean stop and after a crash.
    pub fn kafka(&self) -> &'static str {
        match self.effect {
            Effect::OfRule => self.rule.kafka(),
            Effect::AsWritten => AS_WRITTEN,
            Effect::Rebuilt => REBUILT,
        }
    }

    /// The base offset in the name of its file, if that is an index.
    fn base_offset(&self) -> Option<i64> {
        let name = SegmentFileName::parse(self.file.file_name()?.to_str()?)?;
        let is_index = !matches!(name.kind, FileKind::Log | FileKind::Snapshot);
        is_index.then_some(name.base_offset)
    }

    /// Whether it is about the metadata log of a cluster.
    fn is_of_metadata(&self) -> bool {
        self.partition.file_name().is_some_and(|name| name == CLUSTER_METADATA_DIRECTORY)
    }

    /// What to do: a command, or a sentence; empty if there is nothing to do.
    pub fn advice(&self) -> String {
        let command = |name: &str, options| format!("cordwood {name} {} {options}", self.partition.display());
        match &self.remedy {
            Remedy::Reindex => command("reindex", "--yes"),
            Remedy::Repair => command("repair", "--apply"),
            Remedy::Salvage if self.is_of_metadata() => OF_METADATA.to_owned(),
            Remedy::Salvage => command("repair", "--policy salvage --apply"),
            Remedy::Recover => command("recover", "--yes"),
            Remedy::Manual(sentence) => sentence.clone().into_owned(),
            Remedy::Nothing => String::new(),
        }
    }
}

/// *Source*: `LogSegment.recover`, which compares no offsets; `OffsetIndex.append` does.
const AS_WRITTEN: &str = "loads it, also after a crash: the checksum is right, and offsets and epochs are not compared with those of the \
     batch before. Only where an index entry is due for it, a recovery empties the segment and deletes those after it. Consumers that \
     read on from the batch before it read it";

/// *Source*: `LogLoader.loadSegmentFiles`, `LogLoader.recoverSegment`.
const REBUILT: &str =
    "builds it, also after a clean stop, because an offset index is missing: then it reads the whole segment";

/// Of a segment without an offset index, a broker builds everything beside the `.log`, and a snapshot of the
/// producers after it.
pub(super) fn note_rebuilt(findings: &mut [Finding]) {
    let without_index: HashSet<_> = findings
        .iter()
        .filter(|finding| finding.rule == Rule::IndexMissing)
        .filter_map(Finding::base_offset)
        .collect();
    for finding in findings {
        let is_rebuilt = match finding.rule {
            Rule::IndexMissing => false,
            Rule::SnapshotMissing => !without_index.is_empty(),
            rule => {
                rule.remedy() == Remedy::Reindex
                    && finding.base_offset().is_some_and(|base| without_index.contains(&base))
            }
        };
        if is_rebuilt {
            finding.effect = Effect::Rebuilt;
            finding.severity = finding.severity.min(Severity::Warning);
        }
    }
}

/// In the place of a repair that leaves a hole: the state of the cluster after it would be wrong.
const OF_METADATA: &str = "of several controllers, stop this one and remove the files of the directory but quorum-state: it copies the log \
     from the others; of a controller that is alone, restore the directory from a copy. A broker cuts this log at its first damage at \
     each start, also after a clean stop";

/// What the findings of a partition say together: a command that mends one of them may refuse the log because
/// of another.
pub(super) fn agree_on_remedies(findings: &mut [Finding]) {
    let has = |remedy| findings.iter().any(|finding| finding.remedy == remedy);
    let breaks = |is_one: &dyn Fn(Rule) -> bool| findings.iter().any(|finding| is_one(finding.rule));
    let is_damaged = has(Remedy::Salvage);
    let is_torn =
        findings.iter().any(|finding| finding.rule == Rule::TornTail && finding.severity == Severity::Error);
    // records are missing that a writer or a broker had synced: what is left of a batch is no torn write
    let is_short = breaks(&|rule| {
        matches!(rule, Rule::LostEnd | Rule::LostStart | Rule::NotAsClosed | Rule::RecoveryPointBeyondEnd)
    });
    // no command opens a log without a segment
    let is_lost = breaks(&|rule| rule == Rule::NoSegment);
    let is_unfinished = breaks(&|rule| rule == Rule::ReplacementCommitted);
    // each command takes its records for damage, or refuses the log
    let is_misnamed = breaks(&|rule| rule == Rule::MisnamedSegment);
    // repair and recovery refuse the log
    let is_needed = findings
        .iter()
        .any(|finding| finding.rule == Rule::ReplacementUncommitted && finding.severity == Severity::Error);
    for finding in findings {
        match finding.remedy {
            Remedy::Reindex | Remedy::Repair | Remedy::Recover if is_lost => {
                finding.remedy = Rule::NoSegment.remedy();
            }
            Remedy::Reindex | Remedy::Repair | Remedy::Recover | Remedy::Salvage if is_misnamed => {
                finding.remedy = Remedy::manual(
                    "follow the advice about misnamed_segment first, then verify the log again",
                );
            }
            Remedy::Repair | Remedy::Recover | Remedy::Salvage if is_needed => {
                finding.remedy = Remedy::manual(
                    "follow the advice about replacement_uncommitted first, then verify the log again",
                );
            }
            Remedy::Reindex if is_damaged || is_torn || is_unfinished => {
                finding.remedy =
                    Remedy::manual("repair the log first, which makes the file again where it is needed");
            }
            Remedy::Repair | Remedy::Recover if is_damaged || is_short => finding.remedy = Remedy::Salvage,
            _ => {}
        }
    }
}

impl fmt::Display for Finding {
    /// One line: the severity, the rule, the place, what is expected and what was found.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}: {}", self.severity, self.rule.code(), self.file.display())?;
        if let Some(position) = self.position {
            write!(formatter, " at position {position}")?;
        }
        match (self.start_offset, self.end_offset) {
            (Some(start), Some(end)) if end > start => {
                write!(formatter, ", {}", offsets_in_words(start, Some(end)))?;
            }
            (Some(start), _) => write!(formatter, ", offset {start}")?,
            _ => {}
        }
        write!(formatter, ": expected {}, found {}", self.expected, self.found)?;
        self.evidence.iter().try_for_each(|evidence| write!(formatter, "; {evidence}"))
    }
}
