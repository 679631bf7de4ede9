//! A batch whose header fields outside the checksum are wrong: base offset, length, leader epoch, magic.
//!
//! ```text
//!   base offset   length   leader epoch   magic   crc   …     v2: the checksum covers what follows it
//!   offset        length   crc            magic   …           v0, v1: it covers what follows it, the magic too
//! ```
//!
//! A field is corrected only if its value is determined:
//!
//! - length and magic by the checksum, which matches the bytes up to the next batch, and no other number of
//!   them;
//! - the base offset by the neighbours, if the batch has exactly as many offsets as are missing between them,
//!   and one bit differs;
//! - the leader epoch by the neighbours, if both have the same, and one bit differs. Where the batch is whole
//!   and has exactly the missing offsets, it is kept in any case, with the nearest epoch that they allow.
//!
//! A batch with another base offset than expected is not always one with a wrong base offset: a disk may have
//! written it to a wrong place. [`super::places`] has those.

use std::sync::Arc;

use super::repair_plan::RepairActionKind;
use super::survey::Damaged;
use crate::error::Malformed;
use crate::record::{BatchHeader, LOG_OVERHEAD, PREFIX, V2_HEADER};

/// The bytes of a v2 header outside the checksum, without the checksum itself.
const PREFIX_BYTES: usize = PREFIX;

/// The corrected start of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Correction {
    pub(super) kind: RepairActionKind,
    pub(super) prefix: Arc<[u8]>,
    /// The fields, their old and new values, and the evidence.
    pub(super) description: String,
}

impl Correction {
    fn of_header(prefix: [u8; PREFIX_BYTES], description: String) -> Self {
        Self { kind: RepairActionKind::CorrectHeader, prefix: prefix.into(), description }
    }
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

    pub(super) fn fits(&self, header: &BatchHeader) -> bool {
        header.base_offset >= self.expected && self.next_offset.is_none_or(|next| header.last_offset < next)
    }

    /// Whether the batch has exactly the missing offsets.
    fn is_filled_by(&self, header: &BatchHeader) -> bool {
        header.base_offset == self.expected && Some(header.last_offset + 1) == self.next_offset
    }

    /// Whether a batch fits with one bit of its base offset (or last offset, which the old formats store)
    /// changed.
    pub(super) fn may_have(&self, batch: &WholeBatch) -> bool {
        let Some(header) = &batch.header else { return true };
        let to_base = if header.magic == 2 { 0 } else { batch.span - 1 };
        (0..63).any(|bit| {
            let base_offset = ((header.base_offset + to_base) ^ (1 << bit)) - to_base;
            base_offset >= self.expected
                && self.next_offset.is_none_or(|next| next - base_offset >= batch.span)
        })
    }

    /// The allowed leader epoch that is nearest to this one; `None` if the neighbours allow none.
    fn nearest_epoch(&self, epoch: i32) -> Option<i32> {
        let nearest =
            if epoch > self.next_epoch && self.next_epoch >= 0 { self.next_epoch } else { self.epoch_before };
        self.allows_epoch(nearest).then_some(nearest)
    }

    pub(super) fn allows_epoch(&self, epoch: i32) -> bool {
        epoch == -1
            || epoch >= 0 && epoch >= self.epoch_before && (self.next_epoch < 0 || epoch <= self.next_epoch)
    }
}

/// The correction of a damaged range that is one batch, whose base offset is left as it is; `None` if the
/// range is not one batch, or if a field is not determined.
///
/// # Errors
/// [`Malformed`] for a batch above `max_batch_bytes` whose offsets are in its compressed records.
pub(super) fn in_place(
    bytes: &[u8],
    neighbours: &Neighbours,
    max_batch_bytes: usize,
) -> Result<Option<Correction>, Malformed> {
    let Some(found) = bytes.first_chunk::<PREFIX_BYTES>() else { return Ok(None) };
    for magic in [2, 1, 0] {
        // the checksum of the old formats covers the magic
        if magic != 2 && Some(&magic) != found.last() {
            continue;
        }
        let Some((whole, evidence)) = mended(magic, bytes, neighbours) else { continue };
        let fits = resolved(&whole, max_batch_bytes)?.is_some_and(|header| neighbours.fits(&header));
        if let Some(prefix) = whole.first_chunk().filter(|prefix| fits && *prefix != found) {
            return Ok(Some(Correction::of_header(*prefix, evidence.join("; "))));
        }
    }
    Ok(None)
}

/// The batch with the length, the magic and the leader epoch that it must have, and the evidence.
fn mended(magic: u8, bytes: &[u8], neighbours: &Neighbours) -> Option<(Vec<u8>, Vec<String>)> {
    let found: [u8; PREFIX_BYTES] = *bytes.first_chunk()?;
    let mut whole = bytes.to_vec();
    let length = i32::try_from(bytes.len().checked_sub(LOG_OVERHEAD)?).ok()?;
    write(&mut whole, 8, &length.to_be_bytes());
    write(&mut whole, PREFIX - 1, &[magic]);
    let mut evidence = Vec::new();
    valid_at_start(&whole).filter(|header| header.size as usize == whole.len())?;
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
            let is_one_bit = both >= 0 && both == neighbours.next_epoch && (epoch ^ both).count_ones() == 1;
            let is_whole = evidence.is_empty()
                && matches!(resolved(&whole, usize::MAX), Ok(Some(header)) if neighbours.is_filled_by(&header));
            let new = if is_one_bit || is_whole { neighbours.nearest_epoch(epoch)? } else { return None };
            write(&mut whole, LOG_OVERHEAD, &new.to_be_bytes());
            evidence.push(if is_one_bit {
                format!("leader epoch {epoch} is {new}, as before and after it: one bit differs")
            } else {
                format!("leader epoch {epoch} is {new}, as beside it: the checksum is right, and the offsets are those missing")
            });
        }
    }
    Some((whole, evidence))
}

/// The correction of a batch that is wrong only in its base offset, and has exactly the missing offsets. The
/// stored value must differ from the right one in one bit: any other batch is a whole one of another place.
pub(super) fn renumbered(
    bytes: &[u8],
    neighbours: &Neighbours,
    max_batch_bytes: usize,
) -> Option<Correction> {
    let mut whole = bytes.to_vec();
    let magic = *bytes.get(PREFIX - 1)?;
    let old = i64::from_be_bytes(*bytes.first_chunk()?);
    // the old formats have the last offset there
    let new = if magic == 2 { neighbours.expected } else { neighbours.next_offset? - 1 };
    if (old ^ new).count_ones() != 1 {
        return None;
    }
    write(&mut whole, 0, &new.to_be_bytes());
    let filling = resolved(&whole, max_batch_bytes)
        .ok()?
        .filter(|header| neighbours.is_filled_by(header) && neighbours.allows_epoch(header.leader_epoch))?;
    let description = format!(
        "offset {old} is {new}: one bit differs, and the batch has exactly the offsets {} to {}, which are missing between its \
         neighbours",
        filling.base_offset, filling.last_offset
    );
    Some(Correction::of_header(*whole.first_chunk()?, description))
}

/// A batch in damaged bytes, whole by its own length and its checksum.
#[derive(Debug, Clone, Copy)]
pub(super) struct WholeBatch {
    /// The position in the range.
    pub(super) at: usize,
    pub(super) size: usize,
    /// The number of its offsets.
    pub(super) span: i64,
    /// Its header; `None` if the offsets or the epoch are impossible by themselves.
    pub(super) header: Option<BatchHeader>,
    pub(super) sequences: Sequences,
}

/// The producer of a batch, and the sequences of its records.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sequences {
    pub(super) producer_id: i64,
    producer_epoch: i16,
    first: i32,
    last: i32,
}

impl Sequences {
    /// `None` if the batch has no sequences.
    pub(super) fn of(header: &BatchHeader) -> Option<Self> {
        (header.producer_id >= 0 && header.base_sequence >= 0).then(|| Self::new(header))
    }

    fn new(header: &BatchHeader) -> Self {
        Self {
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            first: header.base_sequence,
            last: header.last_sequence(),
        }
    }

    pub(super) fn is_none(&self) -> bool {
        self.producer_id < 0 || self.first < 0
    }

    /// Whether a later batch of the same producer is the next one.
    pub(super) fn is_continued_by(&self, next: &Self) -> bool {
        if self.producer_epoch == next.producer_epoch {
            self.last.checked_add(1).unwrap_or(0) == next.first
        } else {
            self.producer_epoch < next.producer_epoch && next.first == 0
        }
    }
}

/// The whole batches of a range: it is divided by their lengths, also by the lengths of batches whose
/// checksum does not match. Bytes that are no header are skipped if whole batches follow up to the end of the
/// range: a batch inside a value does not end there.
///
/// `is_log_end`: no batch follows the range. The rest of a torn batch there is its payload, in which no batch
/// is looked for.
///
/// # Errors
/// The position in the range of a batch above `max_batch_bytes` whose offsets are in its compressed records.
pub(super) fn batches_in(
    bytes: &[u8],
    is_log_end: bool,
    max_batch_bytes: usize,
) -> Result<Vec<WholeBatch>, (usize, Malformed)> {
    let (mut found, mut at) = (Vec::new(), 0);
    let mut work_left = bytes.len().saturating_mul(4);
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let parsed = possible_at_start(rest, u64::MAX);
        let whole = parsed.and_then(|header| Some((header, rest.get(..header.size as usize)?)));
        let is_batch =
            |header: &BatchHeader, whole| header.is_consistent() || header.ensure_valid(whole).is_ok();
        let Some((header, whole)) = whole.filter(|(header, whole)| is_batch(header, whole)) else {
            if is_log_end && parsed.is_some_and(|header| header.size as usize > rest.len()) {
                break;
            }
            match next_leading_to_end(bytes, at, &mut work_left) {
                Some(next) => at = next,
                None => break,
            }
            continue;
        };
        let size = whole.len();
        if header.ensure_valid(whole).is_ok() {
            let own = resolved(whole, max_batch_bytes).map_err(|malformed| (at, malformed))?;
            // a wrapper whose offsets cannot be found has no place
            if own.is_some() || !header.is_wrapper() {
                let placed = own.unwrap_or(header);
                let span = placed.last_offset - placed.base_offset + 1;
                found.push(WholeBatch { at, size, span, header: own, sequences: Sequences::new(&header) });
            }
        }
        at += size;
    }
    Ok(found)
}

/// The first position after `from` at which whole batches begin that lead to the end of the bytes.
/// `work_left`: the number of bytes whose checksums may be computed.
fn next_leading_to_end(bytes: &[u8], from: usize, work_left: &mut usize) -> Option<usize> {
    let mut at = from + 1;
    while bytes.len().saturating_sub(at) >= V2_HEADER {
        let mut end = at;
        while let Some(rest) = bytes.get(end..).filter(|rest| rest.get(PREFIX - 1) == Some(&2)) {
            let Some(header) = possible_at_start(rest, rest.len() as u64) else { break };
            *work_left = work_left.checked_sub(header.size as usize)?;
            let Some(header) = valid_at_start(rest) else { break };
            end += header.size as usize;
        }
        if end == bytes.len() {
            return Some(at);
        }
        at = end.max(at + 1);
    }
    None
}

/// The header with its first offset; `None` if it cannot be found.
fn resolved(bytes: &[u8], max_batch_bytes: usize) -> Result<Option<BatchHeader>, Malformed> {
    let Ok(mut header) = BatchHeader::parse(bytes, bytes.len() as u64) else { return Ok(None) };
    match header.resolve_base_offset_up_to(max_batch_bytes, bytes, &mut Vec::new()) {
        Err(malformed) if malformed.is_too_large() => Err(malformed),
        resolved => Ok(resolved.is_ok().then_some(header)),
    }
}

/// The header at the start of some bytes, with the offsets and the leader epoch set to 0: no checksum covers
/// them. One that needs its checksum to be acceptable is not compared with it. `available`: the largest size
/// that it may have.
fn possible_at_start(bytes: &[u8], available: u64) -> Option<BatchHeader> {
    let mut start = bytes.get(..V2_HEADER).unwrap_or(bytes).to_vec();
    write(&mut start, 0, &0_i64.to_be_bytes());
    if start.get(PREFIX - 1) == Some(&2) {
        write(&mut start, LOG_OVERHEAD, &0_i32.to_be_bytes());
    }
    BatchHeader::parse_unproven(&start, available).ok()
}

/// [`possible_at_start`] of a batch whose checksum matches.
fn valid_at_start(bytes: &[u8]) -> Option<BatchHeader> {
    let header = possible_at_start(bytes, bytes.len() as u64)?;
    let whole = bytes.get(..header.size as usize)?;
    header.ensure_valid(whole).is_ok().then_some(header)
}

fn write(bytes: &mut [u8], at: usize, field: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + field.len()) {
        place.copy_from_slice(field);
    }
}
