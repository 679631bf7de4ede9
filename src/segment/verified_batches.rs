//! Batches whose checksums were verified, of a segment without a table: a look-up does not verify one again
//! while it is remembered. The cache has a place for about each batch at most, and a batch can take the place
//! of another one.
//!
//! A [`Log`](crate::log::Log) shows the files as they were when it was opened, so one verification is taken
//! to be enough. A batch is identified by its position and all of its header, which the caller has just read:
//! a header that has changed since was not verified. A caller that reads the records verifies them again.

use std::hash::{Hash, Hasher};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use super::lazy_table::{Budget, Share};
use super::pair_cache::{PairCache, RecentPairs};
use super::walk::Batch;

/// The positions and header hashes of verified batches, in a small cache and, if the segment cannot have a
/// table, in a large one.
#[derive(Debug, Default)]
pub(super) struct VerifiedBatches {
    recent: RecentPairs,
    many: OnceLock<Many>,
}

#[derive(Debug)]
struct Many {
    pairs: PairCache<Box<[AtomicU64]>>,
    _share: Share,
}

/// A batch in the cache: its position, and a hash of its header with its size and its checksum.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchKey {
    position: u64,
    hash: u32,
}

impl BatchKey {
    pub(super) fn of(batch: &Batch) -> Self {
        let mut mixer = Mixer(0);
        batch.header.hash(&mut mixer);
        Self { position: batch.position, hash: u32::try_from(mixer.finish() >> 32).unwrap_or(u32::MAX) }
    }
}

/// A fast hash of a few numbers, to detect changed ones. It need not resist collisions made on purpose: who
/// can write the header can also write a checksum that matches.
#[derive(Debug)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    #[inline]
    fn write_u16(&mut self, number: u16) {
        self.write_u64(u64::from(number));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    /// Both operations can be undone, so headers that differ in one number have different hashes of 64 bits.
    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

impl VerifiedBatches {
    /// The maximum number of places of the large cache: 8 MiB.
    const MAX_PLACES: u64 = 1 << 20;

    /// Whether a batch was verified.
    #[inline]
    pub(super) fn contains(&self, batch: BatchKey) -> bool {
        let BatchKey { position, hash } = batch;
        self.recent.get(position) == Some(hash)
            || self.many.get().is_some_and(|many| many.pairs.get(position) == Some(hash))
    }

    /// Whether a batch at this position was verified, which need not be there any more.
    pub(super) fn has_position(&self, position: u64) -> bool {
        self.recent.get(position).is_some()
            || self.many.get().is_some_and(|many| many.pairs.get(position).is_some())
    }

    /// Adds a batch, in the place of another one.
    pub(super) fn insert(&self, batch: BatchKey) {
        self.recent.insert(batch.position, batch.hash);
        if let Some(many) = self.many.get() {
            many.pairs.insert(batch.position, batch.hash);
        }
    }

    /// Adds the large cache for a segment of about this many batches, if there is none yet and the budget has
    /// enough memory left.
    pub(super) fn grow(&self, batches: u64, budget: &Arc<Budget>) {
        if self.many.get().is_none()
            && let Ok(count) = usize::try_from(batches.min(Self::MAX_PLACES))
            && let Some(share) = budget.take(count.saturating_mul(size_of::<AtomicU64>()))
        {
            // allocated first: another thread would wait while the cell is initialized
            let many = Many { pairs: PairCache::with_places(count), _share: share };
            self.many.get_or_init(|| many);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{BatchHeader, V2_HEADER};

    fn batch(position: u64, crc: u32) -> Batch {
        let mut bytes = [0; V2_HEADER];
        bytes[11] = 49;
        bytes[16] = 2;
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        Batch { position, header: BatchHeader::parse(&bytes, V2_HEADER as u64).unwrap() }
    }

    #[test]
    fn only_the_position_with_the_verified_header_counts() {
        let verified = VerifiedBatches::default();
        // a word of zeros would be a batch at the start of the file with checksum 0
        let contains = |batch: &Batch| verified.contains(BatchKey::of(batch));
        assert!(!contains(&batch(0, 0)));
        verified.insert(BatchKey::of(&batch(0, 0)));
        assert!(contains(&batch(0, 0)));
        for other in [batch(0, 1), batch(1, 0), batch(1 << 32, 0)] {
            assert!(!contains(&other), "{other:?}");
        }
        let of = |change: fn(&mut BatchHeader)| {
            let mut changed = batch(0, 0);
            change(&mut changed.header);
            changed
        };
        let changed = [
            of(|header| header.size += 1),
            of(|header| header.base_offset += 1),
            of(|header| header.last_offset += 1),
            of(|header| header.max_timestamp += 1),
            of(|header| header.leader_epoch += 1),
            of(|header| header.count = Some(1)),
            of(|header| header.attributes.0 ^= 1),
        ];
        assert!(changed.iter().all(|changed| !contains(changed)));
    }

    #[test]
    fn the_large_cache_holds_most_batches_and_is_within_the_budget() {
        let budget = Arc::new(Budget::default());
        let verified = VerifiedBatches::default();
        let batches: Vec<_> = (0..1000).map(|n| batch(n * 5000, 7)).collect();
        let count = |verified: &VerifiedBatches| {
            for batch in &batches {
                verified.insert(BatchKey::of(batch));
            }
            batches.iter().filter(|batch| verified.contains(BatchKey::of(batch))).count()
        };
        assert!(count(&verified) <= 8);
        let left = budget.left();
        for _ in 0..2 {
            verified.grow(1220, &budget);
            assert_eq!(left - budget.left(), 1220 * 8);
        }
        assert!(count(&verified) > 600, "{}", count(&verified));
        assert!(batches.iter().all(|found| !verified.contains(BatchKey::of(&batch(found.position, 8)))));
        let largest = VerifiedBatches::default();
        let before = budget.left();
        largest.grow(1 << 40, &budget);
        assert_eq!(before - budget.left(), 8 << 20);
        let all = budget.take(budget.left()).unwrap();
        let later = VerifiedBatches::default();
        later.grow(1220, &budget);
        assert!(count(&later) <= 8);
        drop((verified, largest, all));
        assert_eq!(budget.left(), left);
        later.grow(1220, &budget);
        assert!(count(&later) > 600);
    }
}
