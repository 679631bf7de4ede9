//! `<offset>.snapshot`: the producers of a log at an offset, and their states while the log is read. Kafka:
//! `ProducerStateManager`, `ProducerAppendInfo`, `ProducerStateEntry`.
//!
//! The number in the name is exclusive: the file has the effect of all records below it. All integers are
//! big-endian, two's complement:
//!
//! ```text
//!  0         2       6        10
//! ┌─────────┬───────┬────────┬──────────────────────────────────────
//! │ version │ crc   │ count  │ count entries of 46 bytes, and no more
//! │ i16 = 1 │ u32   │ i32    │          the CRC-32C covers everything from the count (6) on
//! └─────────┴───────┴────────┴──────────────────────────────────────
//!
//! entry   0 producer id i64 │ 8 producer epoch i16 │ 10 last sequence i32 │ 14 last offset i64 │ 22 offset delta i32
//!         26 last timestamp i64 │ 34 coordinator epoch i32 │ 38 first offset of the open transaction i64        (−1: none)
//! ```
//!
//! Kafka reads the entries in any order, and writes them in that of a hash map. Here they are written by
//! ascending producer id, so files are compared as sets of entries (`have_same_entries`).

mod entry;
mod rebuild;
mod replay;
pub(crate) mod snapshot;
pub(crate) mod snapshot_files;
mod states;
mod updates;

pub use entry::{ProducerEntry, SequenceRange};
pub(crate) use rebuild::{RebuiltProducers, RebuiltSegments, SnapshotStore, WhyRemoved};
#[cfg(feature = "inspect")]
pub(crate) use replay::MalformedMarker;
pub(crate) use replay::{ProducerReplay, RefusedBatch, ReplayedBatch};
pub use snapshot::ProducerSnapshot;
pub(crate) use states::LastRecord;
pub use states::{EndedTransaction, ProducerStates};
pub(crate) use updates::{ProducerRefusal, ProducerUpdates};
