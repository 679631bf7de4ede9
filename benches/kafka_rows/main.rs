//! Every read path compared with Kafka's own classes on the same files and targets, in alternating turns:
//! `make bench-kafka`.
//!
//! All answers are compared before anything is timed, and their sum after every turn. A difference is a
//! panic. Exit code 1: with `--strict`, a floor was missed. This is not a criterion bench, because the other
//! side runs in a JVM.

mod arguments;
mod bulk;
mod columns;
mod contest;
mod data;
mod headers;
mod index;
mod log_look_ups;
mod log_targets;
mod look_up;
mod recovery;
mod segment_map;

use arguments::Arguments;
use contest::Contest;
use cordwood_benches::{kafka, random, turns};

fn main() {
    let mut contest = Contest::start(Arguments::of_command_line());
    index::run(&mut contest);
    log_look_ups::run(&mut contest);
    bulk::run(&mut contest);
    headers::run(&mut contest);
    recovery::run(&mut contest);
    columns::run(&mut contest);
    segment_map::run(&mut contest);
    if !contest.finish() {
        std::process::exit(1);
    }
}
