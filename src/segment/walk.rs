//! The walk through a segment's batches, header by header. All reads and look-ups use it, and it detects
//! damage.
//!
//! Kafka's reader checks only a batch's CRC, which does not cover 17 bytes of a v2 header. Damage there shows
//! in the neighbouring batches: offsets increase, an epoch is not below those around it, a batch ends where
//! the next one starts, and the last one ends with the file. A step therefore compares three headers. If two
//! contradict each other, [`first_is_damaged`] decides which one is damaged, so that a flipped bit affects
//! only its own batch.

use std::ops::Range;

use super::damage::{Bounds, Damage, EpochsBefore, Preceding, first_is_damaged, follows};
use super::damaged_span::NewerBatch;
use super::epoch_fall::{WrongEpoch, wrong_epoch};
use super::log_file::LogFile;
#[cfg(feature = "arrow")]
use super::shared_bytes::SharedBytes;
use crate::error::{Malformed, Result};
use crate::record::{BatchHeader, V2_HEADER};

/// A batch and its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Bytes from the start of the `.log`.
    pub position: u64,
    /// Its header. For a v0 or v1 wrapper too, it has the true base offset.
    pub header: BatchHeader,
}

impl Batch {
    /// The number of records that it has beyond its offsets: an old client gave all of them the offset of the
    /// last. Brokers counted them, so that as many offsets before the batch are not missing.
    pub(crate) fn records_beyond_offsets(&self) -> u64 {
        let count = u64::try_from(self.header.count.unwrap_or(0)).unwrap_or(0);
        count.saturating_sub(self.header.offsets().unsigned_abs())
    }

    /// The position after its last byte.
    pub fn end(&self) -> u64 {
        self.position + u64::from(self.header.size)
    }

    /// Whether compaction has rewritten the batch: records are missing inside, or all of them, or it has a
    /// delete horizon.
    pub(crate) fn is_rewritten(&self) -> bool {
        self.header.is_sparse() || self.header.attributes.has_delete_horizon()
    }

    /// Whether offsets are missing before the batch, within one leader epoch. Compaction removes whole
    /// batches, and so does a loss. (A replica that truncates inside a batch continues in a new epoch.)
    pub(crate) fn is_after_gap(&self, before: Option<Preceding>) -> bool {
        let is_same_epoch = |epoch: i32| epoch < 0 || epoch == self.header.leader_epoch;
        before.is_some_and(|before| {
            self.header.base_offset > before.last_offset + 1 && is_same_epoch(before.leader_epoch)
        })
    }
}

/// The result of a step.
#[derive(Debug)]
pub(crate) enum Step {
    Batch(Batch),
    Damage(Damage),
    End,
}

/// Where a walk began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// With the first batch of the segment: it has passed all that is before its position.
    FirstBatch,
    /// At any place: what is before it is not known.
    Any,
}

/// Walks from one batch to the next.
#[derive(Debug)]
pub(crate) struct Walk {
    pub(crate) log: LogFile,
    pub(crate) bounds: Bounds,
    pub(crate) position: u64,
    /// The state before `position`; `None` after a jump.
    pub(crate) before: Option<Preceding>,
    /// The position at which a header was read last, `None` at first, and the header, or the error of one
    /// that is malformed. A step reads the header after the batch that it returns, and the next step
    /// needs it again.
    cached: (Option<u64>, std::result::Result<BatchHeader, Malformed>),
    /// Whether checksums are verified.
    check_crcs: bool,
    buffer: Vec<u8>,
    /// The remaining bytes that may be searched for the next batch after damage.
    pub(super) work_left: u64,
    /// Whether the budget was enough for the last search.
    pub(super) is_searched: bool,
    /// The first intact batch of a later format that the last search found.
    pub(super) newer: Option<NewerBatch>,
    pub(super) origin: Origin,
    /// The batches that the walk has passed have a record of each offset from this one on; `i64::MAX` if it
    /// has passed none.
    pub(super) complete_from: i64,
    /// The bytes of batches that repeat offsets, which are passed over; empty if there are none.
    pub(super) repeated: Range<u64>,
    /// For the search: whether something outside of the segment's bytes says that batches followed the
    /// damage.
    pub(super) is_continued: bool,
}

impl Walk {
    /// The budget for searches after damage, added to a multiple of the file's size. Without a budget, a file
    /// made of damage would take time quadratic in its size.
    const BASE_WORK: u64 = 64 << 20;

    /// The largest batch of which a walk that verifies no checksums loads all bytes into the caches, and not
    /// only the next header: memory is read faster one line after another than from header to header.
    /// Measured with batches of 1 KiB: 155 ns a batch, and 73.
    const STREAMED_BATCH: usize = 2048;
    /// The distance at which they are loaded.
    const STREAMED_AHEAD: u64 = 2048;

    pub(crate) fn new(log: LogFile, bounds: Bounds, position: u64, before: Option<Preceding>) -> Self {
        Self {
            log,
            bounds,
            position,
            before,
            cached: (None, Err(Malformed::new("", ""))),
            check_crcs: true,
            buffer: Vec::new(),
            work_left: bounds.end.saturating_mul(8).saturating_add(Self::BASE_WORK),
            is_searched: true,
            newer: None,
            origin: Origin::Any,
            complete_from: i64::MAX,
            repeated: 0..0,
            is_continued: false,
        }
    }

    /// Whether [`Walk::step_through`] verifies the checksums of all batches, which it does unless this is
    /// called. Otherwise it verifies those of control batches, of batches without records, and of a batch
    /// whose header contradicts the next one. The search for the next whole batch after damage verifies
    /// them always.
    pub(crate) fn set_check_crcs(&mut self, check_crcs: bool) {
        self.check_crcs = check_crcs;
        // whether the header of a wrapper is malformed depends on it
        self.cached.0 = None;
    }

    /// The next batch, by its header alone; [`Walk::verify`] checks its bytes.
    pub(crate) fn step(&mut self) -> Result<Step> {
        self.step_by(false, |_| false)
    }

    /// [`Walk::step`] that reads a batch which the caller is going to verify, and the header after it, at
    /// once.
    pub(crate) fn step_reading(&mut self, is_wanted: impl Fn(&Batch) -> bool) -> Result<Step> {
        self.step_by(false, is_wanted)
    }

    /// [`Walk::step`] that reads the whole batch before the header after it, and verifies its checksum,
    /// unless [`Walk::set_check_crcs`] says otherwise. A wrong checksum is damage.
    ///
    /// Caches and windows are fast for sequential reads. If the next header is read first, each batch costs a
    /// cache miss that overlaps with no other work, and a window is read twice when a batch crosses its
    /// end.
    #[inline]
    pub(crate) fn step_through(&mut self) -> Result<Step> {
        self.step_by(true, |_| false)
    }

    #[inline]
    fn step_by(&mut self, is_verified: bool, is_wanted: impl Fn(&Batch) -> bool) -> Result<Step> {
        if self.repeated.contains(&self.position) {
            self.position = self.repeated.end;
        }
        if self.position >= self.bounds.end {
            return Ok(Step::End);
        }
        let header = match self.header_at(self.position)? {
            Ok(header) => *header,
            Err(malformed) => {
                let malformed = malformed.clone();
                return self.unreadable(malformed).map(Step::Damage);
            }
        };
        if let Err(malformed) = self.bounds.check(&header, self.before)
            && !(self.is_intact_overlap(&header)? || self.is_after_epoch_fall(&header)?)
        {
            return Ok(Step::Damage(self.damage(malformed)));
        }
        let batch = Batch { position: self.position, header };
        if is_verified {
            // a flipped bit must not make records look like a marker, or like none
            let is_skipped = header.is_control() || header.count == Some(0);
            // one that is too large is not read, so that only its checksum tells that from a flipped bit of
            // its length
            let is_large = header.size as usize > self.log.max_batch_bytes();
            if !(self.check_crcs || is_skipped || is_large) {
                self.bytes(&batch)?;
            } else if let Err(malformed) = self.verify(&batch)? {
                return self.wrong_checksum(malformed).map(Step::Damage);
            }
        } else if header.size as usize <= self.log.max_batch_bytes() && is_wanted(&batch) {
            let size = usize::try_from(header.size).unwrap_or(usize::MAX);
            self.log.read(batch.position, size.saturating_add(V2_HEADER))?;
        }
        // the header after a far batch must agree with it, unless the batch continues the one before
        let is_doubtful = self.bounds.is_far(&header) && !self.continues(&header)?;
        // one that overlaps those before it was accepted for what follows it
        let is_overlap = self.before.is_some_and(|before| header.base_offset <= before.last_offset);
        let next = self.header_at(batch.end())?;
        let has_no_next = next.is_err();
        let contradicting = next
            .ok()
            .filter(|_| !is_overlap)
            .and_then(|next| Some((*next, follows(header.last_offset, header.leader_epoch, next).err()?)));
        if is_doubtful && has_no_next && !self.log.is_zero(batch.end(), self.bounds.end)? {
            let expected = format!(
                "offsets up to 2^31 - 1 above {}, or a whole header after it",
                self.bounds.base_offset
            );
            let found = format!("offsets {} to {}", header.base_offset, header.last_offset);
            return Ok(Step::Damage(self.damage(Malformed::new(expected, found))));
        }
        if let Some((next, contradiction)) = contradicting {
            if is_verified
                && !self.check_crcs
                && let Err(malformed) = self.verify(&batch)?
            {
                return self.wrong_checksum(malformed).map(Step::Damage);
            }
            if let Some(damage) = self.contradicted(&batch, &next, &contradiction, is_doubtful)? {
                return Ok(Step::Damage(damage));
            }
        }
        self.pass(&batch);
        Ok(Step::Batch(batch))
    }

    /// Continues after a batch.
    #[inline]
    pub(super) fn pass(&mut self, batch: &Batch) {
        let BatchHeader { base_offset, last_offset, leader_epoch, .. } = batch.header;
        if batch.header.is_sparse() {
            self.complete_from = last_offset.saturating_add(1);
        } else if self.complete_from == i64::MAX
            || self.before.is_none_or(|before| before.last_offset + 1 != base_offset)
        {
            self.complete_from = base_offset;
        }
        self.position = batch.end();
        let EpochsBefore { highest: earlier_epoch, .. } = EpochsBefore::after(self.before);
        let leader_epoch = if leader_epoch < 0 { earlier_epoch } else { leader_epoch };
        self.before = Some(Preceding { last_offset, leader_epoch, earlier_epoch });
    }

    /// The damage of the batch at the position, whose checksum is wrong, with the offset that is expected
    /// there.
    #[cold]
    fn wrong_checksum(&mut self, malformed: Malformed) -> Result<Damage> {
        if self.before.is_none() {
            self.before = self.preceding_from_start(self.position)?;
        }
        Ok(self.damage(malformed))
    }

    /// The damage of a batch that the next one cannot follow; `None` if it is the next one that is damaged.
    #[cold]
    fn contradicted(
        &mut self,
        batch: &Batch,
        next: &BatchHeader,
        contradiction: &Malformed,
        is_doubtful: bool,
    ) -> Result<Option<Damage>> {
        let header = &batch.header;
        let third = self.header_at(batch.end() + u64::from(next.size))?.ok().copied();
        if self.before.is_none() {
            self.before = self.preceding_from_start(self.position)?;
        }
        let is_first_damaged = if next.base_offset <= header.last_offset {
            if self.note_repeated(batch, self.before)? {
                return Ok(None);
            }
            first_is_damaged(self.before, header, next, third.as_ref())
        } else {
            let before = EpochsBefore::after(self.before).highest;
            let third = third.map_or(-1, |third| third.leader_epoch);
            let Some(wrong) = wrong_epoch(before, header.leader_epoch, next.leader_epoch, third) else {
                return Ok(None);
            };
            wrong == WrongEpoch::First
        };
        if !(is_doubtful && !self.bounds.is_far(next) || is_first_damaged)
            // after a jump it is not known before that the batch overlaps those before it
            || self.is_intact_overlap(header)?
        {
            return Ok(None);
        }
        let malformed = Malformed::new(
            format!("a batch that can precede the next one ({})", contradiction.found),
            format!(
                "offsets {} to {}, leader epoch {}",
                header.base_offset, header.last_offset, header.leader_epoch
            ),
        );
        Ok(Some(self.damage(malformed)))
    }

    /// Whether the batch returned last ends at a batch with the next offset, or at the end of the data: then
    /// its length and offsets are right.
    pub(crate) fn is_continued(&mut self, batch: &Batch) -> Result<bool> {
        let is_next = |next: &BatchHeader| next.base_offset == batch.header.last_offset + 1;
        Ok(batch.end() == self.bounds.end || self.header_at(batch.end())?.is_ok_and(is_next))
    }

    /// The state before a batch's position that was jumped to, from a walk from the segment's start. Needed
    /// only if two headers contradict each other, or a batch is far from the base. `None` if there is damage
    /// in between. The checksum of the last batch is verified, because the search for the next valid batch
    /// skips those with smaller offsets.
    pub(super) fn preceding_from_start(&self, position: u64) -> Result<Option<Preceding>> {
        let start = self.bounds.before_first(-1);
        let mut walk = Self::new(self.log.new_reader(), self.bounds, 0, Some(start));
        let mut last = None;
        while walk.position < position {
            let Step::Batch(batch) = walk.step()? else { return Ok(None) };
            last = Some(batch);
        }
        if let Some(last) = last
            && (walk.position > position || walk.verify(&last)?.is_err())
        {
            return Ok(None);
        }
        Ok(walk.before)
    }

    /// Whether a header starts with the offset after the batch before it: a flipped bit of a base offset does
    /// not.
    fn continues(&mut self, header: &BatchHeader) -> Result<bool> {
        if self.before.is_none() {
            self.before = self.preceding_from_start(self.position)?;
        }
        Ok(self.before.is_some_and(|before| before.last_offset + 1 == header.base_offset))
    }

    /// Checks a batch's checksum; a failure is damage at its position.
    #[inline]
    pub(crate) fn verify(&mut self, batch: &Batch) -> Result<std::result::Result<(), Malformed>> {
        self.log.verify(&batch.header, batch.position)
    }

    /// The damage of a header at the position that cannot be read.
    ///
    /// # Errors
    /// [`BatchTooLarge`](crate::Error::BatchTooLarge) if it is that of a wrapper above the limit.
    #[cold]
    fn unreadable(&self, malformed: Malformed) -> Result<Damage> {
        if malformed.is_too_large() {
            return Err(malformed.at(self.log.path(), self.position, Some(self.expected_offset())));
        }
        Ok(self.damage(malformed))
    }

    /// All bytes of a batch.
    ///
    /// # Errors
    /// [`BatchTooLarge`](crate::Error::BatchTooLarge) if it has more bytes than a reader accepts;
    /// [`Io`](crate::Error::Io); [`LogChanged`](crate::Error::LogChanged).
    #[inline]
    pub(crate) fn bytes(&mut self, batch: &Batch) -> Result<&[u8]> {
        if let Err(malformed) = batch.header.ensure_size(self.log.max_batch_bytes()) {
            return Err(malformed.at(self.log.path(), batch.position, Some(batch.header.base_offset)));
        }
        self.log.read(batch.position, usize::try_from(batch.header.size).unwrap_or(0))
    }

    /// [`Walk::bytes`], and the bytes after them that are in memory, up to the same number.
    pub(crate) fn bytes_and_next(&mut self, batch: &Batch) -> Result<(&[u8], &[u8])> {
        let size = self.bytes(batch)?.len();
        let both = self.log.in_memory(batch.position, size.saturating_mul(2));
        Ok(both.split_at_checked(size).unwrap_or((both, &[])))
    }

    /// [`Walk::bytes`], which can be kept.
    #[cfg(feature = "arrow")]
    pub(crate) fn shared(&mut self, batch: &Batch) -> Result<SharedBytes> {
        let length = self.bytes(batch)?.len();
        Ok(self.log.shared(batch.position, length))
    }

    /// Steps back to the batch returned last, whose bytes turned out to be damaged, so that [`Walk::resume`]
    /// starts there.
    pub(crate) fn reject(
        &mut self,
        batch: &Batch,
        before: Option<Preceding>,
        malformed: Malformed,
    ) -> Damage {
        self.position = batch.position;
        self.before = before;
        // they may have the records of the batch
        self.repeated = 0..0;
        self.damage(malformed)
    }

    pub(super) fn damage(&self, malformed: Malformed) -> Damage {
        Damage { position: self.position, offset: self.expected_offset(), malformed }
    }

    /// The lowest offset that the next batch may have.
    pub(crate) fn expected_offset(&self) -> i64 {
        self.before
            .map_or(self.bounds.base_offset, |before| before.last_offset + 1)
            .max(self.bounds.base_offset)
    }

    /// The header at a position; an error if it is malformed by itself.
    #[inline]
    pub(crate) fn header_at(
        &mut self,
        position: u64,
    ) -> Result<std::result::Result<&BatchHeader, &Malformed>> {
        if self.cached.0 != Some(position) {
            self.cached = (Some(position), self.read_header(position)?);
        }
        Ok(self.cached.1.as_ref())
    }

    #[inline]
    fn read_header(&mut self, position: u64) -> Result<std::result::Result<BatchHeader, Malformed>> {
        let available = self.bounds.end.saturating_sub(position);
        let wanted = usize::try_from(available).unwrap_or(V2_HEADER).min(V2_HEADER);
        let bytes = self.log.read(position, wanted)?;
        let mut header = BatchHeader::parse(bytes, available);
        if header.is_err()
            && let Some(size) = BatchHeader::size_to_prove(bytes).filter(|size| *size as u64 <= available)
        {
            let unproven = BatchHeader::parse_unproven(bytes, available);
            if size <= self.log.max_batch_bytes() {
                header = BatchHeader::parse(self.log.read(position, size)?, available);
            } else if let Ok(large) = unproven
                && self.log.verify_in_parts(&large, position)?.is_ok()
            {
                header = Ok(large);
            }
        }
        if let Ok(header) = &header {
            let size = usize::try_from(header.size).unwrap_or(usize::MAX);
            if !self.check_crcs && size <= Self::STREAMED_BATCH {
                self.log.prefetch(position + Self::STREAMED_AHEAD, size);
            } else {
                // The position of a header is in the one before it, so a walk through a mapping waits for
                // each of them. Loaded now, it arrives during the work on the batch before.
                self.log.prefetch(position + u64::from(header.size), V2_HEADER);
            }
        }
        match header {
            Ok(header) if header.is_wrapper() => self.resolved(position, header),
            header => Ok(header),
        }
    }

    /// The header of a v0 or v1 wrapper with its base offset, which is in its records.
    #[cold]
    fn resolved(
        &mut self,
        position: u64,
        mut header: BatchHeader,
    ) -> Result<std::result::Result<BatchHeader, Malformed>> {
        let max_batch_bytes = self.log.max_batch_bytes();
        if let Err(malformed) = header.ensure_size(max_batch_bytes) {
            let verified = self.log.verify_in_parts(&header, position)?;
            return Ok(Err(verified.err().unwrap_or(malformed)));
        }
        let bytes = self.log.read(position, usize::try_from(header.size).unwrap_or(0))?;
        let verified = if self.check_crcs { header.ensure_valid(bytes) } else { Ok(()) };
        let opened = verified
            .and_then(|()| header.resolve_base_offset_up_to(max_batch_bytes, bytes, &mut self.buffer));
        // a flipped magic or codec is damage, not a format that this version cannot read
        Ok(opened.map(|()| header).map_err(|malformed| header.damage_or(malformed, bytes)))
    }
}
