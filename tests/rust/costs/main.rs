//! What hot paths cost: instructions and allocations. A crate of its own, because it is optimised and the
//! other tests are not.

use cordwood_tests::{batches, partition};

mod baseline;
mod hot_paths;
