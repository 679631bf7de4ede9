//! Checksums: CRC-32C (Castagnoli) of v2 batches, CRC-32 (IEEE) of v0 and v1 entries.

use crc_fast::CrcAlgorithm;

/// CRC-32C: reflected polynomial 0x82F63B78, initial and final xor 0xFFFFFFFF. Kafka: `Crc32C`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    low_half(crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes))
}

/// CRC-32 as in zlib. Kafka: `java.util.zip.CRC32`.
pub fn crc32(bytes: &[u8]) -> u32 {
    low_half(crc_fast::checksum(CrcAlgorithm::Crc32IsoHdlc, bytes))
}

/// A checksum computed incrementally.
pub(crate) struct Running(crc_fast::Digest);

impl Running {
    /// The checksum of no bytes: CRC-32C for magic 2, CRC-32 for magic 0 and 1.
    pub(crate) fn new(magic: u8) -> Self {
        let algorithm = if magic == 2 { CrcAlgorithm::Crc32Iscsi } else { CrcAlgorithm::Crc32IsoHdlc };
        Self(crc_fast::Digest::new(algorithm))
    }

    /// Adds bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum so far.
    pub(crate) fn value(&self) -> u32 {
        low_half(self.0.finalize())
    }
}

/// Computes checksums of parts of a stream from checksums of its beginnings, in a time that does not depend
/// on the size of the part.
#[cfg(feature = "inspect")]
pub(crate) struct PartChecksums {
    /// For each power of two of bytes: the checksums after as many zeros, by the value of each byte of the
    /// checksum before.
    shifts: Vec<[[u32; 256]; 4]>,
}

#[cfg(feature = "inspect")]
impl PartChecksums {
    /// For parts below 2^`bits` bytes. `magic` selects the polynomial, as in [`Running::new`].
    pub(crate) fn new(magic: u8, bits: u32) -> Self {
        let algorithm = if magic == 2 { CrcAlgorithm::Crc32Iscsi } else { CrcAlgorithm::Crc32IsoHdlc };
        let shifts = (0..bits).map(|power| {
            let mut tables = [[0; 256]; 4];
            for (table, first_bit) in tables.iter_mut().zip([0, 8, 16, 24]) {
                let of_bit = |bit: u32| {
                    let before = 1_u64 << (first_bit + bit);
                    low_half(crc_fast::checksum_combine(algorithm, before, 0, 1_u64 << power))
                };
                let of_bits = [0, 1, 2, 3, 4, 5, 6, 7].map(of_bit);
                for (value, entry) in table.iter_mut().enumerate() {
                    // the function is linear
                    let set = of_bits.iter().enumerate().filter(|(bit, _)| value >> bit & 1 == 1);
                    *entry = set.fold(0, |sum, (_, of_bit)| sum ^ of_bit);
                }
            }
            tables
        });
        Self { shifts: shifts.collect() }
    }

    /// The checksum of the last `length` bytes of a stream. `before`: the checksum of the bytes before them;
    /// `after`: that of the whole stream.
    pub(crate) fn of_part(&self, before: u32, after: u32, length: u64) -> u32 {
        let mut shifted = before;
        for (power, tables) in self.shifts.iter().enumerate() {
            if length >> power & 1 == 1 {
                // the first table is for the lowest byte
                let bytes = shifted.to_be_bytes();
                shifted = tables.iter().rev().zip(bytes).fold(0, |sum, (table, byte)| {
                    sum ^ table.get(usize::from(byte)).copied().unwrap_or_default()
                });
            }
        }
        after ^ shifted
    }
}

/// The library returns a checksum of any width in 64 bits.
fn low_half(wide: u64) -> u32 {
    u32::try_from(wide & 0xffff_ffff).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_values_of_the_two_polynomials() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(b"Some String"), 608_512_271);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[cfg(feature = "inspect")]
    #[test]
    fn the_checksum_of_a_part_is_that_of_its_bytes() {
        let bytes: Vec<u8> =
            (0..5000_u32).map(|number| u8::try_from(number * number % 251).unwrap()).collect();
        for magic in [1, 2] {
            let checksum = if magic == 2 { crc32c } else { crc32 };
            let parts = PartChecksums::new(magic, 13);
            for (start, end) in [(0, 0), (0, 1), (1, 2), (17, 4096), (255, 5000), (4999, 5000)] {
                let of_part =
                    parts.of_part(checksum(&bytes[..start]), checksum(&bytes[..end]), (end - start) as u64);
                assert_eq!(of_part, checksum(&bytes[start..end]), "{start} to {end}, magic {magic}");
            }
        }
    }
}
