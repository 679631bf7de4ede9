//! `verify`: a file for each behaviour.

mod advice;
mod batch_limits;
mod corpus;
mod flips;
mod forgotten_producers;
mod holes;
mod leader_epochs;
mod missing_offsets;
mod producer_files;
mod properties;
mod topic_ids;
mod truncated;
mod worked_example;

use std::path::Path;

use cordwood::inspect::verify::{Verification, VerifyOptions, verify};
use cordwood::types::Io;

pub fn options(io: Io) -> VerifyOptions {
    VerifyOptions { io, ..VerifyOptions::default() }
}

pub fn deep(io: Io) -> VerifyOptions {
    VerifyOptions { is_deep: true, ..options(io) }
}

pub fn verified(path: &Path, options: &VerifyOptions) -> Verification {
    verify(&[path.to_owned()], options, |_| Ok(()))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
