//! Kafka's log as a library: partition directories opened, searched and read with no broker.

pub mod error;
pub mod fs;
pub mod index;
pub mod log;
pub mod record;
pub mod segment;
pub mod types;

pub use error::{Error, Result};
pub use log::{Log, LogOptions};
