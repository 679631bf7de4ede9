//! The marker of a transaction in which one bit differs. Without it, the records of the transaction would
//! count as those of the producer's next one: aborted records would be read, or committed ones hidden.

use super::correction::{Correction, Neighbours};
use super::repair_plan::RepairActionKind;
use crate::record::control::EndMarker;
use crate::record::{BatchHeader, PREFIX, V2_HEADER};

/// Markers are shorter: Kafka's have 78 bytes. The checksum detects up to five wrong bits in so few bytes
/// (Koopman, *32-Bit Cyclic Redundancy Codes for Internet Applications*, DSN 2002), so that damage of two to
/// four bits never looks like that of another bit.
const MAX_BYTES: usize = 128;

/// The correction of a damaged range that is a marker, if the checksum matches with one other bit of what it
/// covers, or of itself.
pub(super) fn with_one_bit(bytes: &[u8], neighbours: &Neighbours) -> Option<Correction> {
    if !(V2_HEADER..=MAX_BYTES).contains(&bytes.len()) {
        return None;
    }
    (PREFIX..bytes.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))).find_map(|(at, bit)| {
        let mut whole = bytes.to_vec();
        let byte = whole.get_mut(at)?;
        let found = *byte;
        *byte ^= 1 << bit;
        let wanted = *byte;
        is_marker(&whole, neighbours).then(|| Correction {
            kind: RepairActionKind::CorrectMarker,
            prefix: whole.into(),
            description: format!(
                "byte {at} of the batch, {found:#04x}, is {wanted:#04x}: one bit differs, and with it the checksum matches and \
                 the batch is the marker of a transaction"
            ),
        })
    })
}

fn is_marker(whole: &[u8], neighbours: &Neighbours) -> bool {
    let Ok(header) = BatchHeader::parse(whole, whole.len() as u64) else { return false };
    header.size as usize == whole.len()
        && header.ensure_valid(whole).is_ok()
        && header.is_control()
        && header.is_transactional()
        && neighbours.fits(&header)
        // no checksum covers the offset
        && (header.base_offset == neighbours.expected || Some(header.last_offset + 1) == neighbours.next_offset)
        && neighbours.allows_epoch(header.leader_epoch)
        && matches!(EndMarker::read(header, whole, &mut Vec::new()), Ok(Some(_)))
}
