//! The extension module `cordwood._core`, a crate above the core. Its modules name modules of the core as the
//! core itself does.

use cordwood::{
    arrow, cleaner, config, dir, error, fs, index, inspect, log, plan, record, segment, state, text, types,
    writer,
};

#[path = "mod.rs"]
mod python;
