//! The native library of the Spark data source in Java, a crate above the core. Its modules name those of the core as modules of the
//! core do.

use cordwood::{inspect, log, plan, types};

#[path = "mod.rs"]
mod jvm;
