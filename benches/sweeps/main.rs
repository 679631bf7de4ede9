//! How the cost of each path grows with the size of its input: `make bench-sweeps`.
//!
//! Every answer is compared with a plain computation before anything is timed, and the sum of the answers
//! after every turn. A difference is a panic. The table has one line for each arm and size; `benches/plot.py`
//! draws them.

mod batches;
mod index;
mod records;
mod segments;
mod sweep;

use cordwood_benches::{self as support, turns};
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
