//! Support for the benches: generated partitions, a naive reader, comparisons, and Kafka's classes in a JVM.

// the tests' builder of batches, indexes and directories, whose bytes the tests compare with Kafka's
pub use cordwood_tests::{batches, partition, random};

pub mod arguments;
pub mod columns;
pub mod contents;
pub mod entries;
pub mod kafka;
pub mod naive;
pub mod race;
pub mod turns;
pub mod walked;
pub mod written;
