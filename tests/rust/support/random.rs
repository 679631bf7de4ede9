//! Pseudo-random numbers, the same in every run.

/// A fixed sequence (splitmix64).
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// From 0 to below `end`.
    pub fn below(&mut self, end: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        i64::try_from((z ^ (z >> 31)) >> 1).unwrap_or(0) % end
    }

    /// `count` numbers from `start` to below `end`.
    pub fn between(&mut self, start: i64, end: i64, count: usize) -> Vec<i64> {
        (0..count).map(|_| start + self.below(end - start)).collect()
    }
}
