//! The Rust tests: one binary, a module per behaviour.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::missing_errors_doc,
    reason = "a test fails by panicking"
)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "the sizes here are made by the tests themselves; overflow checks are on"
)]
#![allow(clippy::little_endian_bytes, reason = "lz4 frames are little-endian")]
#![allow(
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    missing_docs,
    unreachable_pub,
    reason = "nothing outside this binary sees it"
)]

mod batch_builder;
mod batch_limits;
mod batch_validation;
mod builder_and_oracle;
mod builder_on_golden;
mod contradicted_replacements;
mod counters;
mod damage_in_values;
mod damaged;
mod damaged_lengths;
mod damaged_markers;
mod directories;
mod exhaustive;
mod gaps_between_segments;
mod golden_log;
mod index_cases;
mod layers;
mod locks;
mod log_configs;
mod lookups_many;
mod lost_segments;
#[cfg(feature = "crash-disk")]
mod memory_disk;
mod old_wrappers;
mod openings;
mod oracle_on_golden;
mod overflowed_segments;
mod planned_splits;
#[cfg(feature = "crash-disk")]
mod poisoned_readers;
mod refresh;
mod resync_work;
mod searches;
mod start_offsets;
mod support;
mod time_indexes;
mod transactions;
mod truncated_readers;
#[cfg(feature = "crash-disk")]
mod unstable_listings;
mod vectors;
mod writer;
mod writer_corners;
mod writer_epochs;
mod writer_hints;
mod writer_indexes;
mod writer_missing;
mod writer_places;
mod writer_recovery_plan;
