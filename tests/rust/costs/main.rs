//! What hot paths cost. A binary of its own, because the numbers are those of a build without `plan` and `inspect`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
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
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "nothing outside this binary sees it, and it uses a part of the support"
)]

mod baseline;
#[path = "../support/batches.rs"]
mod batches;
mod hot_paths;
#[path = "../support/lz4.rs"]
mod lz4;
#[path = "../support/partition.rs"]
mod partition;
