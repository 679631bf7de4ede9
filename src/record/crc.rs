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
}
