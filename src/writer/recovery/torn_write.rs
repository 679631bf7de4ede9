//! Decides where the log is cut: at a torn write, together with everything after it.

use std::sync::Arc;

use super::quarantine::Quarantined;
use super::recovery_plan::RecoveryCut;
use super::scan_segment::{DataEnd, Scanned};
use crate::error::Result;
use crate::fs::Directory;
use crate::fs::names::{FileKind, segment_file};
use crate::segment::Segment;

/// What is cut from the log.
#[derive(Debug)]
pub(super) struct Cut {
    /// The segment with the torn write, and the number of bytes of its `.log` that remain.
    pub(super) base_offset: i64,
    pub(super) size: u64,
    /// Segments that are removed as a whole, ascending.
    pub(super) removed: Vec<i64>,
    /// The copies in quarantine of what is cut and removed.
    pub(super) kept: Vec<Quarantined>,
}

/// Decides which of the scanned segments has a torn write; segments that are removed are taken out of
/// `scanned`. `durable`: the offset up to which the log was synced.
///
/// # Errors
/// [`Error::Corrupt`](crate::Error::Corrupt) for damage that is not a torn write.
pub(super) fn find(
    directory: &Directory,
    unclean: &[Arc<Segment>],
    scanned: &mut Vec<Scanned>,
    durable: Option<i64>,
) -> Result<Option<(Cut, Vec<RecoveryCut>)>> {
    let kept = match scanned.iter().position(|scanned| scanned.cut.is_some()) {
        Some(torn) => {
            refuse_damage(unclean, scanned, torn, durable)?;
            torn + 1
        }
        None => scanned.len(),
    };
    let has_lost_end = begins_after_lost_end(
        unclean.get(..kept).unwrap_or_default(),
        scanned.get(..kept).unwrap_or_default(),
        durable,
    );
    let kept = if has_lost_end { kept - 1 } else { kept };
    if kept == scanned.len() && scanned.last().is_none_or(|last| last.cut.is_none()) {
        return Ok(None);
    }
    let removed = scanned.split_off(kept);
    let (remaining, cut_segments) = unclean.split_at_checked(kept).unwrap_or_default();
    let (Some(last), Some(state)) = (remaining.last(), scanned.last()) else { return Ok(None) };
    let (base_offset, size) = (last.base_offset(), state.size());
    let mut cut = Cut { base_offset, size, removed: Vec::new(), kept: Vec::new() };
    let mut report = Vec::new();
    if let Some(DataEnd { damage, .. }) = &state.cut {
        let reason = format!("expected {}, found {}", damage.malformed.expected, damage.malformed.found);
        let range = CutRange { position: size, start_offset: state.end_offset, end_offset: None, reason };
        report.push(range.of(directory, &name_of(last), base_offset, &mut cut.kept)?);
    }
    for (segment, state) in cut_segments.iter().zip(removed) {
        cut.removed.push(segment.base_offset());
        let reason = format!("the segment before it ends at offset {}", scanned_end(scanned));
        let start_offset = segment.base_offset();
        let end_offset = (state.size() > 0).then_some(state.end_offset);
        let range = CutRange { position: 0, start_offset, end_offset, reason };
        report.push(range.of(directory, &name_of(segment), start_offset, &mut cut.kept)?);
    }
    Ok(Some((cut, report)))
}

/// A removed range from `position` to the end of a `.log`.
pub(super) struct CutRange {
    pub(super) position: u64,
    pub(super) start_offset: i64,
    pub(super) end_offset: Option<i64>,
    pub(super) reason: String,
}

impl CutRange {
    /// The public description of the cut. The bytes to quarantine are added to `kept`. `log_name`: the
    /// present name of the `.log`.
    pub(super) fn of(
        self,
        directory: &Directory,
        log_name: &str,
        base_offset: i64,
        kept: &mut Vec<Quarantined>,
    ) -> Result<RecoveryCut> {
        let Self { position, start_offset, end_offset, reason } = self;
        let name = segment_file(base_offset, FileKind::Log);
        let quarantined = Quarantined::find(directory, log_name, &name, position)?;
        let file_size = directory.identity_of(log_name)?.map_or(position, |file| file.size);
        let cut = RecoveryCut {
            file: directory.path_of(&name),
            start_position: position,
            end_position: file_size,
            start_offset,
            end_offset,
            reason,
            quarantine: quarantined.as_ref().map(|quarantined| quarantined.path(directory)),
        };
        kept.extend(quarantined);
        Ok(cut)
    }
}

/// The present name of a segment's `.log`: it ends in `.swap` if a committed replacement is not renamed yet.
fn name_of(segment: &Segment) -> String {
    segment.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn scanned_end(scanned: &[Scanned]) -> i64 {
    scanned.last().map_or(0, |scanned| scanned.end_offset)
}

/// Fails if the damage of a segment is not a torn write: the log was synced beyond it, valid batches follow
/// it, or it is a batch of another place, as in a file that was renamed.
fn refuse_damage(
    unclean: &[Arc<Segment>],
    scanned: &[Scanned],
    torn: usize,
    durable: Option<i64>,
) -> Result<()> {
    let rest = scanned.get(torn + 1..).unwrap_or_default();
    // the first batch of a later segment may be damaged, too, and intact ones follow it
    let is_last = rest.iter().all(Scanned::has_no_batch);
    let (Some(segment), Some(Scanned { cut: Some(cut), .. })) = (unclean.get(torn), scanned.get(torn)) else {
        return Ok(());
    };
    let foreign = unclean.iter().zip(scanned).skip(torn).find_map(|(segment, scanned)| {
        let cut = scanned.cut.as_ref().filter(|cut| cut.is_foreign)?;
        Some(segment.corrupt(&cut.damage))
    });
    if let Some(error) = foreign {
        return Err(error);
    }
    let DataEnd { damage, is_end, .. } = cut;
    let is_torn = match durable {
        Some(durable) => damage.offset >= durable,
        None => *is_end && is_last,
    };
    if is_torn { Ok(()) } else { Err(segment.corrupt(damage)) }
}

/// Whether the last segment is empty and begins above both the durable offset and the end of the segment
/// before it: that segment lost its unsynced end, and no record of the last segment was acknowledged.
fn begins_after_lost_end(unclean: &[Arc<Segment>], scanned: &[Scanned], durable: Option<i64>) -> bool {
    let (Some(durable), [.., previous, last], Some(segment)) = (durable, scanned, unclean.last()) else {
        return false;
    };
    last.size() == 0 && segment.base_offset() > previous.end_offset.max(durable)
}
