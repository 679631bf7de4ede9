//! Logs after a crash, a failed operation or a torn write: one binary, a module per behaviour.
//!
//! The writer uses an in-memory disk, `cordwood::fs::mem`, which yields every state that a crash may leave.
//! In each state the log is opened again and checked by independent code: [`model`] records what was appended
//! and acknowledged, [`found`] reads the files.

use cordwood_tests::{batches, naive, partition};

mod compactions;
mod deletions;
mod explore;
mod faults;
mod found;
mod full;
mod generations;
mod histories;
mod indexes;
mod judge;
mod killed;
mod model;
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
