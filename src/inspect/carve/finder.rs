//! Finds every whole batch in an image, at any position, in one pass.
//!
//! Any 61 bytes may look like a header, and a length may be 128 MiB, so that computing the checksum of each
//! possible batch could take time quadratic in the size of the image. Here the checksum of the image is
//! computed once, up to each position at which a possible batch begins or ends; that of the batch follows
//! from the two ([`PartChecksums`]):
//!
//! ```text
//!   image    ────────┬───────────────────┬────────
//!                    begins              ends          the ends are in a heap, the nearest first
//! ```
//!
//! A valid batch inside another valid one is in a record of it, and is left out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use super::candidate;
use crate::error::Result;
use crate::fs::FileBytes;
use crate::record::BatchHeader;
use crate::record::crc::{PartChecksums, Running};
use crate::types::Interrupt;

/// Bytes that are read at a time.
const CHUNK: usize = 1 << 20;

/// A batch above this size is only looked for while few possible ones are open: Kafka's default limit is 1
/// MiB.
const LARGE: u32 = 1 << 20;
const MAX_OPEN_LARGE: usize = 1 << 18;
const MAX_OPEN: usize = 1 << 20;

/// A batch in an image.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) position: u64,
    pub(super) header: BatchHeader,
}

impl Found {
    pub(super) fn end(&self) -> u64 {
        self.position + u64::from(self.header.size)
    }
}

/// The possible batches of one kind of checksum that are open.
struct Checksum {
    running: Running,
    /// The position up to which it is computed.
    position: u64,
    parts: PartChecksums,
    /// End, start, the checksum before the part that is covered, the stored checksum.
    open: BinaryHeap<Reverse<(u64, u64, u32, u32)>>,
}

impl Checksum {
    fn new(magic: u8) -> Self {
        Self {
            running: Running::new(magic),
            position: 0,
            // no batch has 2^28 bytes
            parts: PartChecksums::new(magic, 28),
            open: BinaryHeap::new(),
        }
    }

    /// Adds the bytes up to a position. `chunk` begins at `start`.
    fn advance(&mut self, chunk: &[u8], start: u64, position: u64) {
        let place = |position: u64| usize::try_from(position.saturating_sub(start)).unwrap_or(usize::MAX);
        let piece = chunk.get(place(self.position)..place(position)).unwrap_or_default();
        self.running.update(piece);
        self.position += piece.len() as u64;
    }
}

/// Calls `each` with every batch of an image, by position. Returns the number of possible batches that were
/// given up.
pub(super) fn find(
    image: &FileBytes,
    interrupt: Interrupt,
    mut each: impl FnMut(&Found) -> Result<()>,
) -> Result<u64> {
    let mut finder = Finder {
        checksums: [Checksum::new(0), Checksum::new(2)],
        open: BTreeMap::new(),
        valid: VecDeque::new(),
        given_up: 0,
    };
    let size = image.size();
    let (mut start, mut buffer) = (0, Vec::new());
    while start < size {
        interrupt.check()?;
        let chunk = image.read(start, CHUNK + candidate::HEADER, &mut buffer)?;
        let end = size.min(start + CHUNK as u64);
        finder.add_chunk(chunk, start, end, size);
        finder.emit(false, &mut each)?;
        start = end;
    }
    finder.emit(true, &mut each)?;
    Ok(finder.given_up)
}

struct Finder {
    /// Of the old formats, and of v2.
    checksums: [Checksum; 2],
    /// How many possible batches that are open begin at each position.
    open: BTreeMap<u64, BatchHeader>,
    /// Valid batches that may be inside an open one, by position.
    valid: VecDeque<Found>,
    given_up: u64,
}

impl Finder {
    /// Looks at each position of `[start, end)`. `chunk` has the bytes of a header more.
    fn add_chunk(&mut self, chunk: &[u8], start: u64, end: u64, size: u64) {
        let count = usize::try_from(end - start).unwrap_or(0);
        for at in 0..count {
            let Some(bytes) = chunk.get(at..) else { break };
            let position = start + at as u64;
            let bytes = bytes.get(..4096).unwrap_or(bytes);
            if let Some(header) = candidate::header(bytes, size - position) {
                self.begin(chunk, start, position, header);
            }
        }
        for magic in [0, 1] {
            self.close_until(magic, chunk, start, end);
            if let Some(checksum) = self.checksums.get_mut(magic) {
                checksum.advance(chunk, start, end.max(checksum.position));
            }
        }
    }

    /// Opens a possible batch.
    fn begin(&mut self, chunk: &[u8], start: u64, position: u64, header: BatchHeader) {
        let open = self.open.len();
        if open >= MAX_OPEN || open >= MAX_OPEN_LARGE && header.size > LARGE {
            self.given_up += 1;
            return;
        }
        let (number, covered) = if header.magic == 2 { (1, position + 21) } else { (0, position + 16) };
        // a short batch may end before the positions of other headers
        self.close_until(number, chunk, start, covered);
        let Some(checksum) = self.checksums.get_mut(number) else { return };
        checksum.advance(chunk, start, covered);
        let end = position + u64::from(header.size);
        checksum.open.push(Reverse((end, position, checksum.running.value(), header.crc)));
        self.open.insert(position, header);
    }

    /// Decides the possible batches that end at or before a position.
    fn close_until(&mut self, number: usize, chunk: &[u8], start: u64, position: u64) {
        let Some(checksum) = self.checksums.get_mut(number) else { return };
        while let Some(Reverse((end, at, before, stored))) = checksum.open.peek().copied() {
            if end > position {
                break;
            }
            checksum.open.pop();
            checksum.advance(chunk, start, end);
            let covered = if number == 1 { at + 21 } else { at + 16 };
            let is_valid = checksum.parts.of_part(before, checksum.running.value(), end - covered) == stored;
            let Some(header) = self.open.remove(&at) else { continue };
            if is_valid {
                let found = Found { position: at, header };
                // those inside it are in its records; one that it overlaps in part was there first
                let inside = self.valid.partition_point(|known| known.position < at);
                let overlaps = inside.checked_sub(1).and_then(|before| self.valid.get(before));
                if overlaps.is_some_and(|known| known.end() > at) {
                    continue;
                }
                // batches of the other kind after it may be known already
                let later = self.valid.split_off(inside);
                self.valid.push_back(found);
                self.valid.extend(later.into_iter().filter(|later| later.position >= found.end()));
            }
        }
    }

    /// Returns the batches that no open one can contain.
    fn emit(&mut self, is_end: bool, each: &mut impl FnMut(&Found) -> Result<()>) -> Result<()> {
        let first_open = self.open.first_key_value().map_or(u64::MAX, |(position, _)| *position);
        while let Some(found) = self.valid.front().filter(|found| is_end || found.position < first_open) {
            each(found)?;
            self.valid.pop_front();
        }
        Ok(())
    }
}
