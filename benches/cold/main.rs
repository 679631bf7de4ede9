//! Look-ups in files that are not in the page cache: page faults, bytes read and time of each, `make
//! bench-cold`.
//!
//! Before each look-up all pages of the files are evicted, which is checked. Then the index or the log is
//! opened, and asked once. Every answer is compared with a plain computation.

mod index;
mod log;
mod page_cache;
mod rows;

use cordwood_benches::{self as support, turns};
use rows::Rows;
use support::arguments::Arguments;

fn main() {
    let mut rows = Rows::new(Arguments::of_command_line("cold", 100));
    index::run(&mut rows);
    log::run(&mut rows);
    rows.finish();
}
