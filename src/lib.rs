//! Kafka's log as a library: partition directories opened, searched and read with no broker.

#[cfg(feature = "arrow")]
pub mod arrow;
pub mod dir;
pub mod error;
pub mod fs;
pub mod index;
pub mod log;
#[cfg(feature = "python")]
mod python;
pub mod record;
pub mod segment;
pub mod types;

pub use dir::LogDir;
pub use error::{Error, Result};
pub use log::{Log, LogOptions};

/// What `benches/` measures though no caller can name it. No promise of this crate covers it.
#[doc(hidden)]
pub mod bench {
    pub use crate::log::skip_list::{Iter, OutOfOrder, Reader, SkipList, View};
}
