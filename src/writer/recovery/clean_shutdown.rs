//! Whether a log is as it was when it was closed, by its [`CleanMarker`].

use std::sync::Arc;

use crate::error::{Malformed, Result};
use crate::fs::Directory;
use crate::index::TransactionIndex;
use crate::segment::Segment;
use crate::state::clean_marker::{CLEAN, CleanMarker};

/// Fails if the names and sizes of all files match the marker, but the log ends at another offset: the base
/// offset of the last batch is damaged, which no checksum covers.
pub(super) fn refuse_other_end(
    marker: &CleanMarker,
    directory: &Directory,
    segments: &[Arc<Segment>],
) -> Result<()> {
    let Some(last) = segments.last() else { return Ok(()) };
    if !marker.matches_files(directory)? || last.torn_tail()?.is_some() {
        return Ok(());
    }
    let end = last.end_offset()?;
    if end == marker.log_end_offset() {
        return Ok(());
    }
    let expected = format!(
        "a log that ends at offset {}, as it did when it was closed with files of the same sizes (to continue with the \
         present files, remove {CLEAN})",
        marker.log_end_offset()
    );
    Err(Malformed::new(expected, format!("its end at offset {end}")).at(last.path(), 0, Some(end)))
}

/// Whether the files and the log end offset match the marker, and the indexes of the last segment match its
/// `.log`, as far as their last entries show.
pub(super) fn is_unchanged(
    marker: &CleanMarker,
    directory: &Directory,
    segments: &[Arc<Segment>],
) -> Result<bool> {
    let Some(last) = segments.last() else { return Ok(false) };
    let end = marker.log_end_offset();
    if !marker.matches_files(directory)? || last.torn_tail()?.is_some() || last.end_offset()? != end {
        return Ok(false);
    }
    let (Some(index), Some(times)) = (last.offset_index()?, last.time_index()?) else { return Ok(false) };
    let is_inside = (times.entries() == 0 || times.last_entry().offset < end)
        && last.transaction_index()?.is_none_or(|transactions| is_ended_below(&transactions, end));
    Ok(is_inside && last.confirms_last_entry(&index)?)
}

/// Whether all entries of a transaction index can be read, and the log has their markers.
fn is_ended_below(transactions: &TransactionIndex, end: i64) -> bool {
    transactions.sanity_check().is_ok() && transactions.iter().flatten().all(|entry| entry.last_offset < end)
}
