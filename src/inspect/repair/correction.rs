//! A batch whose header fields outside the checksum are wrong: base offset, length, leader epoch, magic.
//!
//! ```text
//!   base offset   length   leader epoch   magic   crc   …     v2: the checksum covers what follows it
//!   offset        length   crc            magic   …           v0, v1: it covers what follows it, the magic too
//! ```
//!
//! A field is corrected only if its value is determined:
//!
//! - length and magic by the checksum, which matches the bytes up to the next batch, and no other number of them;
//! - the base offset by the neighbours, if the batch has exactly as many offsets as are missing between them;
//! - the leader epoch by the neighbours, if both have the same.

use super::survey::Damaged;
use crate::error::Malformed;
use crate::record::{BatchHeader, LOG_OVERHEAD, PREFIX};

/// The bytes of a v2 header outside the checksum, without the checksum itself.
pub(super) const PREFIX_BYTES: usize = PREFIX;

/// The corrected start of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Correction {
    pub(super) prefix: [u8; PREFIX_BYTES],
    pub(super) header: BatchHeader,
    /// The fields, their old and new values, and the evidence.
    pub(super) description: String,
}

/// The batches around damage.
#[derive(Debug, Clone, Copy)]
pub(super) struct Neighbours {
    /// The offset after the batch before.
    pub(super) expected: i64,
    /// The highest leader epoch before; −1 if there is none.
    pub(super) epoch_before: i32,
    /// The base offset of the batch after it, or of the next segment; `None` at the end of the log.
    pub(super) next_offset: Option<i64>,
    /// The leader epoch of the batch after it; −1 if it has none or there is no batch.
    pub(super) next_epoch: i32,
}

impl Neighbours {
    pub(super) fn of(damaged: &Damaged, upper: i64, next: Option<&BatchHeader>) -> Self {
        Self {
            expected: damaged.start_offset,
            epoch_before: damaged.before.map_or(-1, |before| before.leader_epoch),
            next_offset: damaged.end_offset.or_else(|| (upper != i64::MAX).then_some(upper)),
            next_epoch: next.map_or(-1, |next| next.leader_epoch),
        }
    }

    fn fits(&self, header: &BatchHeader) -> bool {
        header.base_offset >= self.expected && self.next_offset.is_none_or(|next| header.last_offset < next)
    }

    /// Whether the batch has exactly the missing offsets.
    fn is_filled_by(&self, header: &BatchHeader) -> bool {
        header.base_offset == self.expected && Some(header.last_offset + 1) == self.next_offset
    }

    pub(super) fn allows_epoch(&self, epoch: i32) -> bool {
        epoch == -1
            || epoch >= 0 && epoch >= self.epoch_before && (self.next_epoch < 0 || epoch <= self.next_epoch)
    }
}

/// The correction of a damaged range that is one batch; `None` if it is not, or if a field is not determined.
pub(super) fn correct(bytes: &[u8], neighbours: &Neighbours) -> Option<Correction> {
    let found_magic = *bytes.get(PREFIX - 1)?;
    [2, 1, 0].into_iter().find_map(|magic| {
        // the checksum of the old formats covers the magic
        (magic == 2 || magic == found_magic).then(|| correct_as(magic, bytes, neighbours))?
    })
}

fn correct_as(magic: u8, bytes: &[u8], neighbours: &Neighbours) -> Option<Correction> {
    let found: [u8; PREFIX_BYTES] = *bytes.first_chunk()?;
    let mut whole = bytes.to_vec();
    let length = i32::try_from(bytes.len().checked_sub(LOG_OVERHEAD)?).ok()?;
    write(&mut whole, 8, &length.to_be_bytes());
    write(&mut whole, PREFIX - 1, &[magic]);
    let mut evidence = Vec::new();
    if !is_valid(&whole) {
        return None;
    }
    if whole.get(8..LOG_OVERHEAD) != found.get(8..LOG_OVERHEAD) {
        let old = i32::from_be_bytes(*found.get(8..)?.first_chunk()?);
        evidence.push(format!(
            "length {old} is {length}: with it the checksum matches, and the batch ends where the next one begins"
        ));
    }
    if magic != *found.last()? {
        evidence.push(format!("magic {} is {magic}: with it the checksum matches", found.last()?));
    }
    if magic == 2 {
        let epoch = i32::from_be_bytes(*found.get(LOG_OVERHEAD..)?.first_chunk()?);
        if !neighbours.allows_epoch(epoch) {
            let both = neighbours.epoch_before;
            if both < 0 || both != neighbours.next_epoch {
                return None;
            }
            write(&mut whole, LOG_OVERHEAD, &both.to_be_bytes());
            evidence.push(format!("leader epoch {epoch} is {both}, as before and after it"));
        }
    }
    let mut header = resolved(&whole).filter(|header| neighbours.fits(header));
    if header.is_none() {
        let old = i64::from_be_bytes(*found.first_chunk()?);
        // the old formats have the last offset there
        let new = if magic == 2 { neighbours.expected } else { neighbours.next_offset? - 1 };
        write(&mut whole, 0, &new.to_be_bytes());
        let filling = resolved(&whole).filter(|header| neighbours.is_filled_by(header))?;
        evidence.push(format!(
            "offset {old} is {new}: the batch has exactly the offsets {} to {}, which are missing between its neighbours",
            filling.base_offset, filling.last_offset
        ));
        header = Some(filling);
    }
    let header = header?;
    let prefix = *whole.first_chunk()?;
    (prefix != found).then(|| Correction { prefix, header, description: evidence.join("; ") })
}

/// The whole batches into which a range divides by their own lengths, each with a valid checksum, and their positions in it; none if
/// bytes are left.
pub(super) fn batches_in(bytes: &[u8]) -> Vec<(usize, BatchHeader)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let rest = bytes.get(at..).unwrap_or_default();
        let Ok(header) = BatchHeader::parse(rest, rest.len() as u64) else { return Vec::new() };
        let size = usize::try_from(header.size).unwrap_or(usize::MAX);
        let Some(whole) = rest.get(..size).filter(|whole| is_valid(whole)) else { return Vec::new() };
        // a wrapper whose offsets cannot be found has no place
        let Some(header) = resolved(whole) else { return Vec::new() };
        found.push((at, header));
        at += size;
    }
    found
}

fn resolved(bytes: &[u8]) -> Option<BatchHeader> {
    let mut header = BatchHeader::parse(bytes, bytes.len() as u64).ok()?;
    header.resolve_base_offset(bytes, &mut Vec::new()).ok()?;
    Some(header)
}

/// Whether the bytes are one batch with a valid checksum, whatever its offsets and its leader epoch.
fn is_valid(bytes: &[u8]) -> bool {
    let mut checked = bytes.to_vec();
    // offsets and epochs that are impossible by themselves do not matter here
    write(&mut checked, 0, &0_i64.to_be_bytes());
    if checked.get(PREFIX - 1) == Some(&2) {
        write(&mut checked, LOG_OVERHEAD, &0_i32.to_be_bytes());
    }
    let header: Result<BatchHeader, Malformed> = BatchHeader::parse(&checked, checked.len() as u64);
    header.is_ok_and(|header| header.size as usize == checked.len() && header.ensure_valid(&checked).is_ok())
}

fn write(bytes: &mut [u8], at: usize, field: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + field.len()) {
        place.copy_from_slice(field);
    }
}
