//! An estimate of the number of different keys.

use datasketches::common::NumStdDev;
use datasketches::hll::{HllSketch, HllType};

use super::KeyEstimate;

/// A `HyperLogLog` sketch with 2^14 registers: a standard error below 1 %, in 16 KiB.
///
/// *Source*: Flajolet et al., `HyperLogLog`: the analysis of a near-optimal cardinality estimation algorithm,
/// 2007.
#[derive(Debug)]
pub(super) struct KeySketch(Option<HllSketch>);

impl KeySketch {
    const LOG2_REGISTERS: u8 = 14;

    pub(super) fn new() -> Self {
        Self(HllSketch::new(Self::LOG2_REGISTERS, HllType::Hll8).ok())
    }

    pub(super) fn add(&mut self, key: &[u8]) {
        if let Some(sketch) = &mut self.0 {
            sketch.update(key);
        }
    }

    pub(super) fn estimate(&self) -> KeyEstimate {
        self.0.as_ref().map_or(KeyEstimate::default(), |sketch| KeyEstimate {
            keys: rounded(sketch.estimate()),
            lower: rounded(sketch.lower_bound(NumStdDev::Two)),
            upper: rounded(sketch.upper_bound(NumStdDev::Two)),
        })
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate is positive and below 2^63"
)]
fn rounded(estimate: f64) -> u64 {
    estimate.round().max(0.0) as u64
}
