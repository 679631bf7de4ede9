//! The Rust tests: one binary with the modules of `src`, each with a file per behaviour. `tests/rust/crash`
//! is another binary.

mod arrow {
    mod long_batches;
    mod naive_rows;
    mod raw_batches;
    mod rows;
    mod threads;
    mod views;
}
mod cleaner {
    mod batches;
    mod case;
    mod files;
    mod properties;
    mod ranges;
    mod rules;
    mod threads;
    mod transactions;
}
mod config {
    mod log_config;
}
mod dir {
    mod lost_segments;
}
mod fs {
    mod contract;
    mod lock;
    mod memory_disk;
}
mod index {
    mod cases;
    mod time_index;
}
mod layers;
mod log {
    mod batch_limits;
    mod contradicted_replacements;
    mod counters;
    mod damaged;
    mod damaged_markers;
    mod damaged_starts;
    mod directories;
    mod exhaustive;
    #[cfg(target_os = "linux")]
    mod first_lookups;
    mod gaps_between_segments;
    mod golden;
    mod index_checks;
    mod interrupted_lookups;
    mod last_records;
    mod lookup_many;
    mod named_batches;
    mod openings;
    mod planned_splits;
    mod plans_beside_gaps;
    mod poisoned_readers;
    mod positions;
    mod refresh;
    mod refreshed_transactions;
    mod searches;
    mod start_offsets;
    mod time_index_checks;
    mod transactions;
    mod truncated_readers;
    mod unstable_listings;
    mod unverified;
    mod verified_once;
}
mod plan {
    mod aggregate_runs;
    mod aggregate_times;
    mod aggregate_work;
    mod aggregates;
    mod aggregates_of_committed_damage;
    mod aggregates_of_damaged_logs;
    mod consumer_settings;
    mod error_texts;
    mod filters;
    mod filters_of_damaged_logs;
    mod filters_of_odd_logs;
    mod filters_of_tables;
    mod gaps_beside_skipped_segments;
    mod globs;
    mod limits;
    mod log_cache;
    mod log_cache_waits;
    mod many_partitions;
    mod option_errors;
    mod option_texts;
    mod schemas;
    mod splits;
    mod stream_growth;
    mod stream_offsets;
    mod task_bytes;
    mod too_large_batches;
    mod topic_patterns;
    mod unplanned_pieces;
}
mod record {
    mod builder;
    mod old_wrappers;
    mod validation;
}
mod segment {
    mod damage_before_a_torn_end;
    mod damage_in_values;
    mod damaged_lengths;
    mod moved_batches;
    mod overflowed;
    mod resync_work;
    mod values_that_are_logs;
}
mod state {
    mod leader_epochs;
    mod producers;
}
mod support {
    mod tests;
    pub use cordwood_tests::*;
}
mod text {
    mod lines;
}
mod writer {
    mod batch_limits;
    mod corners;
    mod hints;
    mod indexes;
    mod log_writer;
    mod missing;
    mod named_producers;
    mod places;
    mod producer_entries;
    mod producer_histories;
    mod producer_snapshots;
    mod producers;
    mod recovery_plan;
    mod snapshot_files;
    mod transaction_histories;
    mod transaction_indexes;
    mod transactions;
}
