//! The native library of the Spark data source in Java, a crate above the core. Its modules name modules of
//! the core as the core itself does.

use cordwood::{inspect, log, plan, types};

#[path = "mod.rs"]
mod jvm;
