//! Look-ups in files that are not in the page cache: page faults, bytes read and time of each, `make bench-cold`.
//!
//! Before each look-up all pages of the files are evicted, which is checked. Then the index or the log is opened, and asked once.
//! Every answer is compared with a plain computation.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a bench fails by panicking, and its sizes are its own"
)]
#![allow(unreachable_pub, dead_code, reason = "nothing outside a bench sees it, and each uses its own part")]

mod index;
mod log;
mod page_cache;
mod rows;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/turns.rs"]
mod turns;

use rows::Rows;
use support::arguments::Arguments;

fn main() {
    let mut rows = Rows::new(Arguments::of_command_line("cold", 100));
    index::run(&mut rows);
    log::run(&mut rows);
    rows.finish();
}
