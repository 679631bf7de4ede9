//! Logs after a crash, a failed operation or a torn write: one binary, a module per behaviour.
//!
//! The writer uses an in-memory disk, `cordwood::fs::mem`, which yields every state that a crash may leave. In each state the log
//! is opened again and checked by independent code: [`model`] records what was appended and acknowledged, [`found`] reads the
//! files.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "a test fails by panicking"
)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "the sizes here are made by the tests themselves; overflow checks are on"
)]
#![allow(clippy::case_sensitive_file_extension_comparisons, reason = "Kafka's names have one case")]
#![allow(
    clippy::too_many_lines,
    clippy::too_many_arguments,
    reason = "the limits are for the crate; a naive decoder is one function"
)]
#![allow(clippy::little_endian_bytes, reason = "lz4 frames are little-endian")]
#![allow(
    clippy::must_use_candidate,
    missing_docs,
    unreachable_pub,
    dead_code,
    unused_imports,
    reason = "nothing outside this binary sees it; the naive reader has more than is used here"
)]

#[path = "../support/batches.rs"]
mod batches;
mod compactions;
mod explore;
mod faults;
mod found;
mod full;
mod generations;
mod histories;
mod indexes;
mod judge;
mod killed;
#[path = "../support/lz4.rs"]
mod lz4;
mod model;
#[path = "../support/naive/mod.rs"]
mod naive;
mod named_producers;
mod nested;
mod positions;
mod producers;
mod script;
mod seeded_bugs;
mod shortened;
mod spare;
mod split;
mod tails;
mod transactions;
mod waiting;
