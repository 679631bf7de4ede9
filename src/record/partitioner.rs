//! The partition of a key, as Kafka's producer chooses it.

use std::num::NonZeroI32;

/// The partition (from 0) of a record with this key in a topic with `partitions` of them.
///
/// Kafka: `BuiltInPartitioner.partitionForKey`.
pub fn partition_of_key(key: &[u8], partitions: NonZeroI32) -> i32 {
    (murmur2(key) & i32::MAX) % partitions.get().saturating_abs()
}

/// `MurmurHash2` with Kafka's seed. Kafka: `Utils.murmur2`.
#[expect(clippy::little_endian_bytes, reason = "the hash reads its words so")]
fn murmur2(bytes: &[u8]) -> i32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    const R: u32 = 24;
    // Java's length is an i32, and no key is longer
    let mut hash = SEED ^ u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let (words, rest) = bytes.as_chunks();
    for word in words {
        let mixed = u32::from_le_bytes(*word).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ (mixed ^ (mixed >> R)).wrapping_mul(M);
    }
    if !rest.is_empty() {
        for (place, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * place);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    (hash ^ (hash >> 15)).cast_signed()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroI32;

    use super::{murmur2, partition_of_key};

    #[test]
    fn hashes_are_those_of_kafka() {
        // the cases of Kafka's UtilsTest.testMurmur2
        for (key, hash) in [
            (&b"21"[..], -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            (b"abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key), hash, "{key:?}");
        }
    }

    #[test]
    fn a_partition_is_one_of_those_of_the_topic() {
        for partitions in (1..20).filter_map(NonZeroI32::new) {
            for number in 0..200_u32 {
                let partition = partition_of_key(&number.to_be_bytes(), partitions);
                assert!((0..partitions.get()).contains(&partition));
            }
        }
    }
}
