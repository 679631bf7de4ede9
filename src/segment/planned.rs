//! The state of a segment when a scan of it was planned, for comparison with its state when the scan runs.

use std::fmt;

use super::Segment;
use super::identity::FileNow;
use crate::error::Result;

/// The state of one segment when a [`Split`](crate::log::Split) was planned.
///
/// It contains no inode and no time: another machine may read the split, from a copy or through another
/// mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct PlannedSegment {
    /// The segment's base offset.
    pub base_offset: i64,
    /// Bytes of its batches.
    pub size: u64,
    /// The checksum of its first batch; `None` if it has no batch, or the header of the first one is
    /// damaged.
    pub first_batch_crc: Option<u32>,
    /// Whether it was the last segment, which may grow.
    pub is_last: bool,
}

impl PlannedSegment {
    pub(crate) fn new(segment: &Segment) -> Result<Self> {
        Ok(Self {
            base_offset: segment.base_offset(),
            size: segment.size()?,
            first_batch_crc: segment.first_batch_crc()?,
            is_last: segment.is_last(),
        })
    }

    /// How a segment of the log differs from the plan; `None` if it does not.
    pub(crate) fn change(&self, segment: &Segment) -> Result<Option<Change>> {
        let file = match segment.file_now()? {
            FileNow::Same(file) => file,
            FileNow::Gone => return Ok(Some(Change::Gone)),
            FileNow::Another => return Ok(Some(Change::Replaced)),
        };
        // checked before any byte is read: the removed bytes may be mapped
        if file.size < self.size {
            return Ok(Some(Change::Shortened { size: file.size }));
        }
        let is_replaced = file.size > self.size && !self.is_last
            || self.first_batch_crc.map_or(Ok(false), |crc| segment.has_another_first_batch(crc))?;
        Ok(is_replaced.then_some(Change::Replaced))
    }
}

/// How a log differs from the one that a [`Split`](crate::log::Split) was planned from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The segment is gone.
    Gone,
    /// Its file is shorter than its batches were.
    Shortened {
        /// Bytes of the file now.
        size: u64,
    },
    /// It is a different file, by its size or its first batch.
    Replaced,
    /// The last segment ends below the end of the split.
    Ended {
        /// The log end offset now.
        log_end_offset: i64,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => formatter.write_str("no such segment"),
            Self::Shortened { size } => write!(formatter, "a segment shortened to {size} bytes"),
            Self::Replaced => formatter.write_str("another segment in its place"),
            Self::Ended { log_end_offset } => write!(formatter, "a log that ends at offset {log_end_offset}"),
        }
    }
}
