//! The seam to the disk. Everything that asks the system for a file passes here, and nothing here writes.

pub mod names;
mod os;

pub use os::{Directory, FileBytes, FileIdentity, SystemFile};
pub use rustix::fs::FileType;
