//! A segment whose file has the name of another one.

use super::finding::Finding;
use super::rule::{Remedy, Rule};
use crate::error::Result;
use crate::segment::Segment;

/// The finding in the place of damage at a position, if that is the start of such a file.
pub(super) fn check(segment: &Segment, position: u64) -> Result<Option<Finding>> {
    let misnamed = if position == 0 { segment.misnamed()? } else { None };
    let Some(misnamed) = misnamed else { return Ok(None) };
    let remedy = Remedy::Manual(misnamed.advice().into());
    let partition = segment.open_files().directory.path();
    let finding = Finding::malformed(Rule::MisnamedSegment, partition, segment.path(), misnamed.malformed);
    Ok(Some(finding.at(0, segment.file_size()?).with_remedy(remedy)))
}
