//! The aborted transactions of a log, compared with the entries of its transaction indexes.

use std::collections::HashMap;

use super::finding::Finding;
use super::rule::Rule;
use super::summary::Summary;
use crate::error::{Error, Result};
use crate::fs::names::{FileKind, segment_file};
use crate::log::Log;

/// The maximum number of aborted transactions that are compared.
const MAX_ABORTED: usize = 1 << 20;

/// The findings: an aborted transaction without an entry, and an entry with another first offset. Nothing if
/// no batch is of a transaction, or if damage may have destroyed a marker.
pub(super) fn check(log: &Log, summaries: &[Summary]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    if !summaries.iter().any(|summary| summary.is_transactional) {
        return Ok(findings);
    }
    let transactions = log.transactions()?;
    let Some(aborted) = transactions.aborted_in(0..i64::MAX, MAX_ABORTED) else { return Ok(findings) };
    let mut by_segment: HashMap<i64, Vec<(i64, i64, i64)>> = HashMap::new();
    for (producer_id, first, last) in aborted {
        let of = summaries.partition_point(|summary| summary.base_offset <= last);
        let Some(summary) = of.checked_sub(1).and_then(|of| summaries.get(of)) else { continue };
        by_segment.entry(summary.base_offset).or_default().push((producer_id, first, last));
    }
    let log_first = summaries.first().map_or(0, |summary| summary.base_offset);
    let is_compacted = log.is_stated_compacted() || summaries.iter().any(|summary| summary.is_compacted);
    for segment in log.segments().iter() {
        let Some(mut expected) = by_segment.remove(&segment.base_offset()) else { continue };
        expected.sort_unstable_by_key(|(_, _, last)| *last);
        let index = match segment.transaction_index() {
            Ok(index) => index,
            // a finding of the segment
            Err(Error::Io { .. }) => continue,
            Err(error) => return Err(error),
        };
        let entries = index.iter().flat_map(|index| index.iter()).filter_map(Result::ok);
        let entries: HashMap<_, _> =
            entries.map(|entry| ((entry.producer_id, entry.last_offset), entry.first_offset)).collect();
        let name = segment_file(segment.base_offset(), FileKind::TransactionIndex);
        let path = log.path().join(segment.files().transaction_index.as_ref().unwrap_or(&name));
        let mut missing = Vec::new();
        for (producer_id, first, last) in expected {
            match entries.get(&(producer_id, last)) {
                None => missing.push((producer_id, first, last)),
                Some(known) if *known == first => {}
                // its first batches were deleted, or removed by compaction
                Some(known) if *known < log_first || is_compacted && *known < first => {}
                Some(known) => {
                    let rule = Rule::TransactionIndexEntryWrong;
                    let text = format!(
                        "first offset {first} of the transaction of producer {producer_id} aborted at {last}"
                    );
                    let finding =
                        Finding::new(rule, log.path(), &path, text, format!("first offset {known}"));
                    findings.push(finding.offsets(first, Some(last + 1)));
                }
            }
        }
        if let Some((producer_id, first, last)) = missing.first() {
            let expected =
                format!("an entry for producer {producer_id}, offsets {first} to {last}, which was aborted");
            let found = if index.is_some() { "no such entry" } else { "no such file" };
            let end = missing.last().map(|(_, _, last)| last + 1);
            let finding =
                Finding::new(Rule::TransactionIndexEntryMissing, log.path(), &path, expected, found)
                    .offsets(*first, end)
                    .because(format!("{} of its aborted transactions have no entry", missing.len()));
            findings.push(finding);
        }
    }
    Ok(findings)
}
