//! The entries of a transaction index, compared with the ABORT markers of its segment.

use std::path::Path;

use super::finding::Finding;
use super::rule::Rule;
use super::summary::Summary;
use super::work::Work;
use super::wrong_entries::WrongEntries;
use crate::error::{Error, Result};
use crate::index::TransactionIndex;

/// The findings about each entry by itself: its marker is in the segment, its offsets and those of the
/// entries are in order.
///
/// The last stable offset in an entry depends on how appends were grouped, so only its range is checked: an
/// append with the marker may have gone on up to the end of the segment.
/// [`StableLimits`](super::stable_limits::StableLimits) compares it with the transactions that were open.
pub(super) fn check(
    index: &TransactionIndex,
    partition: &Path,
    summary: &Summary,
    work: &Work<'_>,
) -> Result<Vec<Finding>> {
    let rule = Rule::TransactionIndexEntryWrong;
    let mut wrong = WrongEntries::new(rule, partition, index.path(), index.entry_size());
    let mut findings = Vec::new();
    let mut previous = -1;
    for (slot, entry) in (0..).zip(index.iter()) {
        work.check()?;
        let entry = match entry {
            Ok(entry) => entry,
            Err(
                Error::Corrupt { expected, found, .. } | Error::UnsupportedFormat { expected, found, .. },
            ) => {
                wrong.add(slot, summary.base_offset, expected, found);
                continue;
            }
            Err(error) => return Err(error),
        };
        let has_marker = summary.aborts.binary_search_by_key(&entry.last_offset, |(_, offset)| *offset);
        let has_marker =
            has_marker.is_ok_and(|at| summary.aborts.get(at).is_some_and(|(id, _)| *id == entry.producer_id));
        let expected = if entry.last_offset <= previous {
            format!("a marker after that of the entry before, offset {previous}")
        } else if !has_marker && !summary.is_damaged {
            format!("an ABORT marker of producer {} at offset {}", entry.producer_id, entry.last_offset)
        } else if !(0..entry.last_offset).contains(&entry.first_offset) {
            format!("a first offset below the marker's, {}", entry.last_offset)
        } else if !(0..=summary.end_offset).contains(&entry.last_stable_offset) {
            format!("a last stable offset up to {}, the end of the segment", summary.end_offset)
        } else {
            previous = entry.last_offset;
            continue;
        };
        let found = format!(
            "producer {}, offsets {} to {}, last stable offset {}",
            entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset
        );
        wrong.add(slot, entry.first_offset, expected, found);
    }
    findings.extend(wrong.into_findings());
    Ok(findings)
}
