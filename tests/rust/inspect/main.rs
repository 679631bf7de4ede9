//! The tests of `inspect`: a file for each behaviour, and a folder for each of its modules.
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
#![allow(
    clippy::too_many_lines,
    clippy::too_many_arguments,
    reason = "the limits are for the crate; a naive decoder is one function"
)]
#![allow(
    clippy::case_sensitive_file_extension_comparisons,
    clippy::format_collect,
    clippy::format_push_string,
    reason = "names of Kafka's files are in lower case; messages of failed tests need not be fast"
)]
#![allow(clippy::little_endian_bytes, reason = "lz4 frames are little-endian")]
#![allow(
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    missing_docs,
    unreachable_pub,
    reason = "nothing outside this binary sees it"
)]

mod carve;
mod copy;
mod count;
mod diff;
mod dump;
mod fuzz_corpus;
mod internal_topics;
mod kafka_load;
mod profile;
mod rebuild;
mod repair;
#[path = "../support/mod.rs"]
mod support;
mod verify;
