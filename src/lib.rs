//! Kafka's log as a library: opens, searches, reads and writes partition directories without a broker.
//!
//! ```
//! use cordwood::log::{Log, LogOptions, Ranges, ScanOptions, ScanStep};
//!
//! # fn main() -> cordwood::Result<()> {
//! let log = Log::open("tests/golden/01-plain/orders-0", LogOptions::default())?;
//! assert_eq!((log.log_start_offset(), log.log_end_offset()?), (0, 1500));
//!
//! // which batch holds an offset, and the first record at or after a time
//! let location = log.locate(1000)?.map(|at| (at.segment_base_offset, at.batch_base_offset, at.position));
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
pub mod cleaner;
pub mod config;
pub mod dir;
pub mod error;
pub mod fs;
pub mod index;
#[cfg(feature = "inspect")]
pub mod inspect;
pub mod log;
mod loom_shim;
#[cfg(feature = "plan")]
pub mod plan;
pub mod record;
pub mod segment;
pub mod state;
pub mod text;
pub mod types;
pub mod writer;

pub use config::LogConfig;
pub use dir::LogDir;
pub use error::{Error, Result};
pub use log::{Log, LogOptions};

/// Private items that `benches/` measures. They are not part of the API.
#[doc(hidden)]
pub mod bench {
    pub use crate::log::skip_list::{Iter, OutOfOrder, Reader, SkipList, View};

    use crate::error::{Error, Result};
    use crate::fs::Directory;
    use crate::index::due_entries::EntryRule;
    use crate::record::BatchHeader;
    use crate::segment::{SegmentAppender, SegmentLayout};

    /// The end offset of a log's last segment, and the bytes of its offset index and time index, as recovery
    /// computes them.
    ///
    /// # Errors
    /// As [`LogWriter::open`](crate::writer::LogWriter::open).
    pub fn derived_indexes(log: &crate::Log, config: &crate::LogConfig) -> Result<(i64, [Vec<u8>; 2])> {
        crate::writer::derived_indexes(log, config)
    }

    /// A segment that appends batches without validation, like Kafka's `LogSegment.append`.
    #[derive(Debug)]
    pub struct Segment(SegmentAppender);

    impl Segment {
        /// Creates an empty segment with indexes of 10 MiB.
        ///
        /// # Errors
        /// [`Error::Io`].
        pub fn create(directory: &Directory, index_interval_bytes: u64) -> Result<Self> {
            let entry_rule = EntryRule { interval_bytes: index_interval_bytes, max_index_size: 10 << 20 };
            let layout = SegmentLayout { entry_rule, initial_size: 0 };
            SegmentAppender::create(directory, 0, &layout, 0, 0).map(Self)
        }

        /// Appends one batch; only its header is parsed.
        ///
        /// # Errors
        /// [`Error::Config`], [`Error::Io`].
        pub fn append(&mut self, batch: &[u8]) -> Result<()> {
            let header = BatchHeader::parse(batch, batch.len() as u64)
                .map_err(|found| Error::config("batch", found.expected, found.found))?;
            self.0.append(batch, &[header], &[]).map_err(|(error, _)| error)
        }

        /// The size of its `.log`, bytes.
        pub fn size(&self) -> u64 {
            self.0.size()
        }

        /// Closes it.
        ///
        /// # Errors
        /// [`Error::Io`].
        pub fn seal(&mut self) -> Result<()> {
            self.0.seal()
        }
    }
}
