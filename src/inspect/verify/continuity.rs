//! Offsets in no batch, between two segments or within one.

use super::finding::Finding;
use super::rule::{Rule, Severity};
use super::summary::Summary;
use crate::log::Log;

/// Gaps of a log: those between segments, each by the evidence for compaction next to it; and those within a segment if they are few
/// and nothing else shows compaction.
pub(super) fn check(log: &Log, summaries: &[Summary]) -> Vec<Finding> {
    let mut findings = Vec::new();
    // then gaps are usual, and none is worth a note
    let is_cleaned = log.is_cleaned() || summaries.iter().any(|summary| summary.is_rewritten);
    let is_compacted = summaries.iter().any(|summary| summary.is_compacted);
    let mut before: Option<(usize, i64)> = None;
    let mut is_compacted_before = false;
    for (number, summary) in summaries.iter().enumerate() {
        let start = summary.first_offset.unwrap_or(summary.base_offset);
        let expected = before.map_or(summary.base_offset, |(_, end)| end);
        let is_known = !summary.is_damaged_at_start
            && before
                .is_none_or(|(number, _)| summaries.get(number).is_some_and(|last| !last.is_damaged_at_end));
        let is_compacted_here = is_compacted_before || summary.is_compacted;
        if start > expected && is_known && !(is_cleaned && is_compacted_here) {
            let severity = if is_compacted_here {
                Severity::Info
            } else if is_cleaned || is_compacted || before.is_none() {
                Severity::Warning
            } else {
                Severity::Error
            };
            findings.push(
                between(log, before.map(|(number, _)| number), number, expected..start)
                    .with_severity(severity),
            );
        }
        if summary.batches > 0 || summary.is_damaged || before.is_none() {
            before = Some((number, summary.end_offset.max(summary.base_offset)));
            is_compacted_before = summary.is_compacted;
        } else {
            before = Some((number, summary.base_offset));
        }
    }
    if !is_cleaned {
        findings.extend(within(log, summaries));
    }
    findings
}

fn between(log: &Log, before: Option<usize>, number: usize, gap: std::ops::Range<i64>) -> Finding {
    let path = |number| log.segments().get(number).map(|segment| segment.path()).unwrap_or_default();
    let name = |number| path(number).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let expected = match before {
        Some(before) => format!("a batch at offset {}, where {} ends", gap.start, name(before)),
        None => format!("a batch at offset {}, as the name of the segment says", gap.start),
    };
    let found = format!("offset {} as the next one", gap.end);
    Finding::new(Rule::OffsetGap, log.path(), path(number), expected, found)
        .offsets(gap.start, Some(gap.end))
        .because("in a compacted log this is legal; in any other a segment is missing or was cut")
}

/// The number of gaps within segments up to which each is shown.
const MAX_SHOWN: u64 = 8;

fn within(log: &Log, summaries: &[Summary]) -> Vec<Finding> {
    let count: u64 = summaries.iter().map(|summary| summary.gap_count).sum();
    if count > MAX_SHOWN {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (summary, segment) in summaries.iter().zip(log.segments().iter()) {
        for (start, end, position) in &summary.gaps {
            let expected = format!("a batch at offset {start}");
            let found = format!("offset {end}");
            let finding = Finding::new(Rule::OffsetGap, log.path(), segment.path(), expected, found)
                .at(*position, *position)
                .offsets(*start, Some(*end))
                .with_severity(Severity::Info)
                .because("compaction and truncation leave such gaps; a batch that was cut out does too");
            findings.push(finding);
        }
    }
    findings
}
