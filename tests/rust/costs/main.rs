//! What hot paths cost. A binary of its own, because it counts allocations.

use cordwood_tests::{batches, partition};

mod baseline;
mod hot_paths;
