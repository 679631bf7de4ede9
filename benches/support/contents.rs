//! Keys of an index of several kinds, on most of which a search by interpolation fails.

/// Keys that increase, from above 0 to below 2³¹.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Distances of about the same size.
    Even,
    /// Distances that grow to 3,000.
    Drift,
    /// Adjacent keys, and few gaps of very different sizes, as after compaction.
    Gaps,
    /// 1,400 adjacent keys, then 100 far from each other, and so on.
    Bursts,
}

impl Content {
    pub const ALL: [Self; 4] = [Self::Even, Self::Drift, Self::Gaps, Self::Bursts];

    pub fn name(self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Drift => "drift",
            Self::Gaps => "gaps",
            Self::Bursts => "bursts",
        }
    }

    /// `count` keys, at most 1.4 million.
    pub fn keys(self, count: usize) -> Vec<i64> {
        let count = count as i64;
        let mut key = 0;
        let keys = (0..count).map(|n| {
            key += match self {
                Self::Even => 40 + noise(n) % 9,
                Self::Drift => 1 + n * n / (count * count / 3_000).max(1) + noise(n) % 5,
                Self::Gaps if noise(n) < 3 => 1 << (noise(n + 7) % 17),
                Self::Bursts if n % 1_500 >= 1_400 => 3_000,
                Self::Gaps | Self::Bursts => 1,
            };
            key
        });
        keys.collect()
    }
}

/// A number below 1,000 that looks random.
fn noise(n: i64) -> i64 {
    n.wrapping_mul(0x5851_F42D_4C95_7F2D).rotate_left(23).rem_euclid(1000)
}
