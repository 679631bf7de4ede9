//! Segments whose files have the names of others, in the place of the damage as which they appear.

use std::collections::HashSet;

use super::finding::Finding;
use super::rule::{Remedy, Rule};
use crate::error::Result;
use crate::log::Log;

/// Replaces the findings of damage that wrong names explain.
pub(super) fn explain(log: &Log, findings: &mut Vec<Finding>) -> Result<()> {
    let is_damage = |finding: &Finding| matches!(finding.rule, Rule::DamagedBatch | Rule::TornTail);
    let damaged: HashSet<_> =
        findings.iter().filter(|finding| is_damage(finding)).map(|finding| finding.file.clone()).collect();
    let damaged: Vec<_> = log
        .segments()
        .iter()
        .filter(|segment| damaged.contains(&segment.path()))
        .map(|segment| segment.base_offset())
        .collect();
    let found = log.misnamed(&damaged)?;
    let mut explained = HashSet::new();
    for misnamed in &found {
        explained.extend(log.segments().floor(misnamed.damaged).map(|segment| segment.path()));
        explained.insert(misnamed.path.clone());
    }
    // also the gap up to the wrong name
    let is_hidden = |finding: &Finding| {
        let offsets = finding.start_offset.zip(finding.end_offset);
        finding.rule == Rule::OffsetGap
            && offsets.is_some_and(|(start, end)| {
                found.iter().any(|misnamed| {
                    misnamed.hidden.contains(&start) && end <= misnamed.hidden.end.max(misnamed.base_offset)
                })
            })
    };
    findings
        .retain(|finding| !(is_hidden(finding) || is_damage(finding) && explained.contains(&finding.file)));
    for misnamed in found {
        let finding =
            Finding::malformed(Rule::MisnamedSegment, log.path(), misnamed.path, misnamed.malformed);
        let remedy = Remedy::Manual(misnamed.advice.into());
        findings.push(finding.at(0, misnamed.size).with_remedy(remedy));
    }
    Ok(())
}
