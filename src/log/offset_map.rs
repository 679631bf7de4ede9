//! The last offset of each key, in bounded memory. Kafka: `SkimpyOffsetMap`.
//!
//! A key is represented by a hash of 128 bits, so that an entry has 24 bytes whatever the key. If two keys
//! had one hash, the last value of one of them would be removed. Kafka uses MD5, for which anyone can make
//! such keys. Here the hash depends on random numbers of the process, so that nobody can; by chance it
//! happens to one of 10²² logs with 10⁸ keys. The hash has no effect on the result otherwise.

use std::hash::{BuildHasher, RandomState};

use siphasher::sip128::SipHasher13;

use crate::error::{Error, Result};
use crate::fs::prefetch;

/// The bytes of an entry: the hash and the offset.
const ENTRY_BYTES: usize = 24;
/// Words of an entry: the hash, and the offset plus one. An entry of zeros is free.
const WORDS: usize = 3;

/// The hash of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyHash([u64; 2]);

/// `SipHash` with a random key.
#[derive(Debug)]
struct RandomHasher(SipHasher13);

impl Default for RandomHasher {
    fn default() -> Self {
        // random numbers of the standard library
        let [first, second] = [(); 2].map(|()| RandomState::new().hash_one(()));
        Self(SipHasher13::new_with_keys(first, second))
    }
}

/// A hash table with linear probing. Entries are only added.
#[derive(Debug, Default)]
pub(crate) struct OffsetMap {
    words: Vec<u64>,
    hasher: RandomHasher,
    len: usize,
    max_len: usize,
}

impl OffsetMap {
    /// A map with the capacity that Kafka's has with this memory: nine tenths of its entries are used.
    /// `max_keys`: no more keys are added, so that a small log takes little memory.
    ///
    /// # Errors
    /// [`Error::Config`] if the memory is too small for a key.
    pub(crate) fn new(bytes: usize, max_keys: u64) -> Result<Self> {
        // nine tenths as integers; Kafka's product of floating-point numbers is rounded down to the same
        let max_len = bytes / ENTRY_BYTES * 9 / 10;
        if max_len == 0 {
            let expected = format!("at least {} bytes, for one key", 2 * ENTRY_BYTES);
            return Err(Error::config("dedupe_buffer_bytes", expected, bytes.to_string()));
        }
        let needed = usize::try_from(max_keys).unwrap_or(usize::MAX).min(max_len);
        let slots = needed.saturating_mul(10).div_ceil(9) + 1;
        Ok(Self { words: vec![0; slots * WORDS], hasher: RandomHasher::default(), len: 0, max_len })
    }

    /// An empty map for [`OffsetMap::put_growing`].
    #[cfg(any(feature = "arrow", test))]
    pub(crate) fn growing() -> Self {
        Self { words: vec![0; 64 * WORDS], max_len: usize::MAX, ..Self::default() }
    }

    /// [`OffsetMap::put`] that doubles the memory if it is full.
    #[cfg(any(feature = "arrow", test))]
    pub(crate) fn put_growing(&mut self, key: &[u8], offset: i64) -> Result<()> {
        let slots = self.words.len() / WORDS;
        if (self.len + 1) * 10 > slots * 9 {
            let old = std::mem::replace(&mut self.words, vec![0; slots * 2 * WORDS]);
            for entry in old.chunks_exact(WORDS).filter_map(<[u64]>::first_chunk::<WORDS>) {
                let [low, high, offset] = *entry;
                let slot = self.slot(KeyHash([low, high]));
                if let Some(free) =
                    self.words.get_mut(slot..).and_then(<[u64]>::first_chunk_mut).filter(|_| offset != 0)
                {
                    *free = *entry;
                }
            }
        }
        self.put(key, offset).map(drop)
    }

    /// Whether no further key is accepted.
    pub(crate) fn is_full(&self) -> bool {
        self.len >= self.max_len
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The offset of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<i64> {
        let entry = self.words.get(self.slot(self.hash(key))..)?.first_chunk::<WORDS>()?;
        offset_of(*entry)
    }

    /// Sets the offset of a key, 0 or above. Returns the one before.
    ///
    /// # Errors
    /// [`Error::Config`] if the map is full, or has as many keys as were announced.
    #[cfg(any(feature = "arrow", test))]
    pub(crate) fn put(&mut self, key: &[u8], offset: i64) -> Result<Option<i64>> {
        self.put_hashed(self.hash(key), offset)
    }

    /// The hash of a key, for [`OffsetMap::put_hashed`].
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> KeyHash {
        let hash = self.hasher.0.hash(key);
        KeyHash([hash.h1, hash.h2])
    }

    /// Loads the entry of a hash into the caches. Most entries of a large map are in no cache, and several
    /// can be loaded at a time.
    #[inline]
    pub(crate) fn prefetch(&self, hash: KeyHash) {
        let start = self.home(hash);
        prefetch(self.words.get(start..start + WORDS).unwrap_or_default());
    }

    /// Sets the offset of the key with a hash, as [`OffsetMap::put`].
    pub(crate) fn put_hashed(&mut self, hash: KeyHash, offset: i64) -> Result<Option<i64>> {
        let slot = self.slot(hash);
        let is_last = (self.len + 1) * WORDS >= self.words.len();
        let entry = self.words.get_mut(slot..).and_then(<[u64]>::first_chunk_mut::<WORDS>);
        match entry {
            Some(entry) if offset_of(*entry).is_some() || !is_last => {
                let before = offset_of(*entry);
                self.len += usize::from(before.is_none());
                let KeyHash([low, high]) = hash;
                *entry = [low, high, offset.cast_unsigned().wrapping_add(1)];
                Ok(before)
            }
            _ => Err(Error::config("keys", "at most as many as the map was made for", self.len.to_string())),
        }
    }

    /// The position of the first entry that may have a hash.
    #[inline]
    fn home(&self, hash: KeyHash) -> usize {
        let slots = self.words.len() / WORDS;
        let KeyHash([low, _]) = hash;
        // a part of all slots, without the time of a division
        let slot = (u128::from(low) * slots as u128) >> 64;
        usize::try_from(slot).unwrap_or(0) * WORDS
    }

    /// The position of the entry with this hash, or of the free one where it belongs. One entry is always
    /// free.
    fn slot(&self, hash: KeyHash) -> usize {
        let mut position = self.home(hash);
        loop {
            match self.words.get(position..).and_then(<[u64]>::first_chunk::<WORDS>) {
                Some(&[low, high, offset]) if offset != 0 && KeyHash([low, high]) != hash => {
                    position += WORDS;
                    if position == self.words.len() {
                        position = 0;
                    }
                }
                _ => return position,
            }
        }
    }
}

fn offset_of([_, _, stored]: [u64; WORDS]) -> Option<i64> {
    stored.checked_sub(1).map(u64::cast_signed)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_capacity_is_that_of_kafkas_map() {
        // Kafka: (int) (memory / 24 * 0.9), and at least one
        for (bytes, max_len) in [(48, 1), (72, 2), (24 * 10, 9), (4096, 153), (128 << 20, 5_033_164)] {
            let map = OffsetMap::new(bytes, 0).unwrap();
            assert_eq!(map.max_len, max_len, "{bytes}");
        }
        for bytes in [0, 24, 47] {
            assert!(OffsetMap::new(bytes, 10).is_err(), "{bytes}");
        }
    }

    #[test]
    fn a_full_map_finds_all_its_keys_and_no_other() {
        for items in [1_usize, 10, 100, 1000, 5000] {
            let mut map = OffsetMap::new(items * 48, u64::MAX).unwrap();
            let mut count = 0_i64;
            while !map.is_full() {
                map.put(&count.to_be_bytes(), count).unwrap();
                count += 1;
            }
            assert_eq!(map.len(), items * 2 * 9 / 10);
            for key in 0..count {
                assert_eq!(map.get(&key.to_be_bytes()), Some(key));
            }
            for key in count..count + 200 {
                assert_eq!(map.get(&key.to_be_bytes()), None);
            }
        }
    }

    #[test]
    fn a_map_with_fewer_slots_than_its_memory_allows_takes_the_keys_it_was_made_for() {
        let mut map = OffsetMap::new(128 << 20, 3).unwrap();
        assert!(map.words.len() <= 6 * WORDS);
        for key in [b"a", b"b", b"c", b"a"] {
            map.put(key, 7).unwrap();
        }
        assert_eq!((map.len(), map.is_full()), (3, false));
        for key in 0_u8..9 {
            let _ = map.put(&[key], 1);
        }
        // one entry stays free, so that a look-up ends
        assert_eq!(map.get(b"other"), None);
        assert_eq!(map.get(b"a"), Some(7));
    }

    proptest! {
        #![proptest_config(crate::types::fixed_seed(300))]

        #[test]
        fn the_last_offset_of_each_key_is_found(
            puts in prop::collection::vec((prop::collection::vec(0_u8..4, 0..4), 0_i64..i64::MAX), 0..300),
        ) {
            let mut map = OffsetMap::new(1 << 20, puts.len() as u64).unwrap();
            let mut growing = OffsetMap::growing();
            let mut expected = HashMap::new();
            for (key, offset) in &puts {
                map.put(key, *offset).unwrap();
                growing.put_growing(key, *offset).unwrap();
                expected.insert(key.clone(), *offset);
            }
            prop_assert_eq!((map.len(), growing.len()), (expected.len(), expected.len()));
            for (key, offset) in expected {
                prop_assert_eq!((map.get(&key), growing.get(&key)), (Some(offset), Some(offset)));
            }
            prop_assert_eq!((map.get(b"\xff"), growing.get(b"\xff")), (None, None));
        }
    }
}
