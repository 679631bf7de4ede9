//! The operator's functions: what is in a partition directory, what is wrong with it, and how to mend it.
//!
//! Nothing here changes a file of the partition that it inspects, unless the function says so and its caller
//! asks for it.

mod batch_place;
pub mod carve;
pub mod copy;
pub mod count;
pub mod diff;
mod dump;
pub mod internal_topics;
pub mod kafka_load;
pub mod profile;
pub mod rebuild;
pub mod repair;
mod spark_writes;
pub mod verify;

pub use dump::{Decoder, Dump, DumpBlock, DumpOptions, OutputStream, dumped_files};
#[cfg(feature = "arrow")]
pub use dump::{DumpRanges, DumpRows};
