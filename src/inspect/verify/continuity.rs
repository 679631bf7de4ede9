//! Offsets in no batch, between two segments or within one.

use std::ops::Range;

use super::deleted_files;
use super::finding::Finding;
use super::rule::{Remedy, Rule, Severity};
use super::summary::Summary;
use crate::error::Result;
use crate::log::Log;
use crate::segment::is_relative;

/// Gaps of a log, between segments and within them.
///
/// A gap is what compaction leaves, and what a batch or a segment leaves that was taken out. So it is no
/// evidence that a segment beside it was not lost. Between two segments it is an error, because the files of
/// a segment are easily lost. Within one it is a warning: hardly anything but compaction takes whole batches
/// out of the middle of a file, and compaction leaves no other trace where each batch has one record. Both
/// are less if something explains the gap:
///
/// - The log was compacted, by batches that compaction has rewritten, the cleaner's checkpoint, or the
///   topic's settings: no finding within a segment, and none between two if one of them may have lost its
///   last or first batches; otherwise a warning.
/// - No segment is before it, and the name of the first one is below its first batch: a warning.
/// - Between two segments, more offsets are missing than a segment can have, in a log with other gaps: its
///   offsets were given to it. A warning.
/// - The batch before it has so many more records than offsets that they may have these: the warning says so.
/// - A truncation inside a batch leaves it: a note.
pub(super) fn check(log: &Log, summaries: &[Summary]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    // then gaps are usual, and none is worth a note
    let is_cleaned = log.is_stated_compacted() || summaries.iter().any(|summary| summary.is_rewritten);
    let cleaned_end = log.cleaned_end();
    // compaction leaves a segment without its first batches, or without any; a lost one would not be there
    let is_emptied = |summary: &Summary| {
        let is_short = summary.first_offset.is_none_or(|first| first > summary.base_offset);
        is_short && !summary.is_damaged && cleaned_end.is_none_or(|end| summary.end_offset <= end)
    };
    let mut before: Option<(usize, i64)> = None;
    let mut is_compacted_before = false;
    for (number, summary) in summaries.iter().enumerate() {
        let start = summary.first_offset.unwrap_or(summary.base_offset);
        let expected = before.map_or(summary.base_offset, |(_, end)| end);
        let last = before.and_then(|(number, _)| summaries.get(number));
        let is_known = !summary.is_damaged_at_start && last.is_none_or(|last| !last.is_damaged_at_end);
        let is_compacted_here = is_compacted_before || summary.is_compacted || is_emptied(summary);
        if start > expected && is_known && !(is_cleaned && is_compacted_here) {
            // a segment cannot have so many offsets; those of a log with gaps everywhere may have been given
            // to it
            let is_leap = is_compacted_here && last.is_some_and(|last| !is_relative(start, last.base_offset));
            let is_explained = is_cleaned || is_leap || before.is_none();
            let finding = between(log, before.map(|(number, _)| number), number, expected..start)?;
            findings.push(if is_explained { finding.with_severity(Severity::Warning) } else { finding });
        }
        if summary.batches > 0 || summary.is_damaged || before.is_none() {
            before = Some((number, summary.end_offset.max(summary.base_offset)));
            is_compacted_before = summary.is_compacted || is_emptied(summary);
        } else {
            before = Some((number, summary.base_offset));
            is_compacted_before = is_emptied(summary);
        }
    }
    if !is_cleaned {
        findings.extend(within(log, summaries));
    }
    Ok(findings)
}

fn between(log: &Log, before: Option<usize>, number: usize, gap: Range<i64>) -> Result<Finding> {
    let path = |number| log.segments().get(number).map(|segment| segment.path()).unwrap_or_default();
    let name = |number| path(number).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let expected = match before {
        Some(before) => format!("a batch at offset {}, where {} ends", gap.start, name(before)),
        None => format!("a batch at offset {}, as the name of the segment says", gap.start),
    };
    let found = format!("offset {} as the next one", gap.end);
    let finding = Finding::new(Rule::OffsetGap, log.path(), path(number), expected, found)
        .offsets(gap.start, Some(gap.end))
        .because("compaction leaves such gaps; otherwise a segment is missing or was cut");
    let remedy = deleted_files::rename_into(log, &gap)?;
    let finding = deleted_files::beside(finding, log, &gap)?;
    Ok(remedy.map_or(finding.clone(), |remedy| finding.with_remedy(remedy)))
}

/// The number of gaps within segments up to which each is shown.
const MAX_SHOWN: u64 = 8;

const CUT_OUT: &str = "compaction leaves such gaps; batches that were taken out do too";

const USED: &str = "the batch before it has more records than offsets, and may have records with these";

const LIST_OFFSETS: Remedy = Remedy::manual(
    "cordwood cat --columns offset shows which offsets the records have; nothing is lost if they have these",
);

/// Gaps within segments.
fn within(log: &Log, summaries: &[Summary]) -> Vec<Finding> {
    let count: u64 = summaries.iter().map(|summary| summary.gap_count).sum();
    let mut findings = Vec::new();
    for (summary, segment) in summaries.iter().zip(log.segments().iter()) {
        for gap in &summary.gaps {
            let expected = format!("a batch at offset {}", gap.start_offset);
            let found = format!("offset {}", gap.end_offset);
            let finding = Finding::new(Rule::OffsetGap, log.path(), segment.path(), expected, found)
                .at(gap.position, gap.position)
                .offsets(gap.start_offset, Some(gap.end_offset));
            findings.push(if gap.may_be_used {
                finding.with_severity(Severity::Warning).because(USED).with_remedy(LIST_OFFSETS)
            } else if gap.is_truncation {
                finding.with_severity(Severity::Info).because("a truncation inside a batch leaves such a gap")
            } else {
                finding.with_severity(Severity::Warning).because(CUT_OUT)
            });
        }
    }
    if count <= MAX_SHOWN {
        return findings;
    }
    findings.truncate(1);
    let missing = summaries.iter().fold(0_u64, |sum, summary| sum.saturating_add(summary.missing_offsets));
    let has_other = summaries.iter().any(|summary| summary.is_compacted);
    let end = summaries.iter().rev().find(|summary| summary.gap_count > 0).map(|last| last.end_offset);
    for first in &mut findings {
        first.found = format!(
            "{count} gaps within segments, in which {missing} offsets are missing; this is the first"
        );
        first.end_offset = end;
        if has_other {
            first.severity = Severity::Warning;
            first.evidence = vec![CUT_OUT.to_owned()];
        }
    }
    findings
}
