//! The tests of `inspect`: a file for each behaviour, and a folder for each of its modules.

use cordwood_tests as support;

mod carve;
mod copy;
mod count;
mod diff;
mod dump;
mod fuzz_corpus;
mod internal_topics;
mod kafka_load;
mod large_snapshots;
mod profile;
mod rebuild;
mod repair;
mod verify;
