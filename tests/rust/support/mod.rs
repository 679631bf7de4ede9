//! Support for the tests: a builder of logs, a naive reader as the oracle, and the corpus that real Kafka wrote.
#![allow(dead_code, reason = "each behaviour uses its own part")]

pub mod batches;
pub mod flips;
pub mod golden;
pub mod lz4;
pub mod naive;
pub mod partition;
pub mod reading;
mod tests;

/// A property test with a number of cases, the same in every run; a failure prints the shrunk case.
pub fn fixed_seed(cases: u32) -> proptest::test_runner::Config {
    proptest::test_runner::Config {
        cases,
        rng_seed: proptest::test_runner::RngSeed::Fixed(0x00c0_4d00_d000),
        failure_persistence: None,
        ..proptest::test_runner::Config::default()
    }
}
