//! Support for the benches: generated partitions, a naive reader, and comparisons.
#![allow(dead_code, reason = "each bench uses its own part")]
#![allow(unreachable_pub, reason = "nothing outside a bench sees it")]
#![allow(
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    clippy::missing_panics_doc,
    clippy::missing_errors_doc,
    reason = "called by the benches only"
)]
#![allow(clippy::little_endian_bytes, reason = "lz4 frames are little-endian")]

// the tests' builder of batches, indexes and directories, whose bytes the tests compare with Kafka's
#[path = "../../tests/rust/support/batches.rs"]
pub mod batches;
#[path = "../../tests/rust/support/lz4.rs"]
mod lz4;
#[path = "../../tests/rust/support/partition.rs"]
pub mod partition;

pub mod arguments;
#[cfg(feature = "arrow")]
pub mod columns;
pub mod contents;
pub mod entries;
pub mod naive;
pub mod race;
pub mod random;
pub mod walked;
pub mod written;
