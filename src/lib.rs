//! Kafka's log as a library: partition directories opened, searched and read with no broker.
//!
//! ```
//! use cordwood::log::{Log, LogOptions, Ranges, ScanOptions, ScanStep};
//!
//! # fn main() -> cordwood::Result<()> {
//! let log = Log::open("tests/golden/01-plain/orders-0", LogOptions::default())?;
//! assert_eq!((log.log_start_offset(), log.log_end_offset()?), (0, 1500));
//!
//! // which batch holds an offset, and the first record at or after a time
//! let location = log.locate(1000)?.map(|at| (at.segment, at.batch_base_offset, at.position));
//! assert_eq!(location, Some((807, 995, 29_800)));
//! assert_eq!(log.offset_for_time(1_700_000_010_000)?.map(|found| found.offset), Some(488));
//!
//! // two seconds of records
//! let ranges = Ranges { start_time: Some(1_700_000_010_000), end_time: Some(1_700_000_012_000), ..Ranges::default() };
//! let mut scan = log.scan(ScanOptions { ranges, ..ScanOptions::default() })?;
//! let mut records = 0;
//! while let Some(ScanStep::Batch(_)) = scan.next_step()? {
//!     while let Some(record) = scan.next_record()? {
//!         assert!((1_700_000_010_000..1_700_000_012_000).contains(&record.timestamp));
//!         records += 1;
//!     }
//! }
//! assert_eq!(records, 102);
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "arrow")]
pub mod arrow;
pub mod config;
pub mod dir;
pub mod error;
pub mod fs;
pub mod index;
pub mod log;
#[cfg(feature = "python")]
mod python;
pub mod record;
pub mod segment;
pub mod state;
pub mod types;

pub use config::LogConfig;
pub use dir::LogDir;
pub use error::{Error, Result};
pub use log::{Log, LogOptions};

/// What `benches/` measures though no caller can name it. No promise of this crate covers it.
#[doc(hidden)]
pub mod bench {
    pub use crate::log::skip_list::{Iter, OutOfOrder, Reader, SkipList, View};
}
