//! The last stable offsets in the entries of transaction indexes, compared with the transactions that were
//! open at the markers.

use std::collections::HashMap;

use super::finding::Finding;
use super::rule::Rule;
use super::wrong_entries::WrongEntries;
use crate::error::Result;
use crate::log::Log;
use crate::state::producers::EndedTransaction;

/// The maximum number of aborted transactions that are compared.
const MAX_ABORTED: usize = 1 << 20;

/// The highest last stable offset that the entry of an aborted transaction may have.
///
/// Which offset it has depends on how appends were grouped. But a transaction of another producer that began
/// before the marker, and was open at it, is not stable: the last stable offset is at most its first offset.
/// That holds in a compacted log too: the first batches of a transaction may be gone, but not its marker
/// while a batch is left.
#[derive(Debug, Default)]
pub(super) struct StableLimits {
    /// By producer and offset of the ABORT marker.
    limits: HashMap<(i64, i64), i64>,
}

impl StableLimits {
    pub(super) fn add(&mut self, ended: &EndedTransaction) {
        let has_other = ended.last_stable_offset <= ended.last_offset;
        if ended.is_aborted && has_other && self.limits.len() < MAX_ABORTED {
            self.limits.insert((ended.producer_id, ended.last_offset), ended.last_stable_offset);
        }
    }

    /// The findings about the entries of all transaction indexes. What is wrong with an entry otherwise is
    /// found with its segment.
    pub(super) fn check(&self, log: &Log) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        if self.limits.is_empty() {
            return Ok(findings);
        }
        for segment in log.segments().iter() {
            // one that cannot be opened is a finding of the segment
            let Some(index) = segment.transaction_index().ok().flatten() else { continue };
            let rule = Rule::TransactionIndexEntryWrong;
            let mut wrong = WrongEntries::new(rule, log.path(), index.path(), index.entry_size());
            for (slot, entry) in (0..).zip(index.iter()) {
                log.options().interrupt.check()?;
                let Ok(entry) = entry else { break };
                let limit = self.limits.get(&(entry.producer_id, entry.last_offset));
                if let Some(limit) = limit.filter(|limit| entry.last_stable_offset > **limit) {
                    let expected = format!(
                        "a last stable offset up to {limit}, where a transaction begins that was open at the marker"
                    );
                    let found = format!("last stable offset {}", entry.last_stable_offset);
                    wrong.add(slot, entry.first_offset, expected, found);
                }
            }
            findings.extend(wrong.into_findings());
        }
        Ok(findings)
    }
}
