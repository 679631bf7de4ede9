//! How the cost of each path grows with the size of its input: `make bench-sweeps`.
//!
//! Every answer is compared with a plain computation before anything is timed, and the sum of the answers after every turn. A
//! difference is a panic. The table has one line for each arm and size; `benches/plot.py` draws them.
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

mod batches;
mod index;
mod records;
mod segments;
#[path = "../support/mod.rs"]
mod support;
mod sweep;
#[path = "../support/turns.rs"]
mod turns;

use support::arguments::Arguments;
use sweep::Sweeps;

fn main() {
    let mut sweeps = Sweeps::new(Arguments::of_command_line("sweeps", 7));
    segments::run(&mut sweeps);
    index::run(&mut sweeps);
    batches::run(&mut sweeps);
    records::run(&mut sweeps);
    sweeps.finish();
}
