//! Segments whose files have the names of others, in the place of the damage as which they appear.

use super::finding::Finding;
use super::rule::{Remedy, Rule};
use crate::error::Result;
use crate::log::Log;

/// Replaces the findings of damage that wrong names explain.
pub(super) fn explain(log: &Log, findings: &mut Vec<Finding>) -> Result<()> {
    let is_damage = |finding: &Finding| matches!(finding.rule, Rule::DamagedBatch | Rule::TornTail);
    let is_damaged = |path| findings.iter().any(|finding| is_damage(finding) && finding.file == path);
    let damaged = log.segments().iter().filter(|segment| is_damaged(segment.path()));
    let damaged: Vec<_> = damaged.map(|segment| segment.base_offset()).collect();
    for misnamed in log.misnamed(&damaged)? {
        let explained = log.segments().floor(misnamed.damaged).map(|segment| segment.path());
        let explained = [explained, Some(misnamed.path.clone())];
        let is_hidden = |finding: &Finding| {
            let offsets = finding.start_offset.zip(finding.end_offset);
            finding.rule == Rule::OffsetGap
                && offsets
                    .is_some_and(|(start, end)| misnamed.hidden.start <= start && end <= misnamed.hidden.end)
        };
        findings.retain(|finding| !is_hidden(finding));
        findings.retain(|finding| !is_damage(finding) || !explained.contains(&Some(finding.file.clone())));
        let finding =
            Finding::malformed(Rule::MisnamedSegment, log.path(), misnamed.path, misnamed.malformed);
        let remedy = Remedy::Manual(misnamed.advice.into());
        findings.push(finding.at(0, misnamed.size).with_remedy(remedy));
    }
    Ok(())
}
