//! Support for the tests: a builder of logs, a naive reader as the oracle, and the corpus written by real
//! Kafka.

pub mod aggregates;
pub mod batches;
pub mod filters;
pub mod flips;
pub mod generated;
pub mod golden;
pub mod lz4;
pub mod naive;
pub mod nested_logs;
pub mod partition;
pub mod planning;
pub mod random;
pub mod reading;

/// The time of the processor that this thread has used. Other tests run at the same time.
pub fn cpu_time() -> std::time::Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Whether tests try everything, as `make exhaustive` asks for. Otherwise they try a part of the
/// combinations, in which each value of each parameter occurs.
pub fn is_exhaustive() -> bool {
    std::env::var_os("CORDWOOD_EXHAUSTIVE").is_some()
}

/// One of so many cases that differ only in parameters which other tests try too, or each case if tests try
/// everything.
pub fn step(cases: usize) -> usize {
    if is_exhaustive() { 1 } else { cases }
}

/// The configuration of a property test with a fixed seed: the cases are the same in every run. Ten times as
/// many are tried if tests try everything.
pub fn fixed_seed(cases: u32) -> proptest::test_runner::Config {
    proptest::test_runner::Config {
        cases: if is_exhaustive() { 10 * cases } else { cases },
        rng_seed: proptest::test_runner::RngSeed::Fixed(0x00c0_4d00_d000),
        failure_persistence: None,
        ..proptest::test_runner::Config::default()
    }
}
