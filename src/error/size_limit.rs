//! The limits on the size of a batch.

use std::fmt;

/// A limit on the size of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SizeLimit {
    /// The setting `max.message.bytes`.
    MaxMessageBytes,
    /// The setting `segment.bytes`.
    SegmentBytes,
    /// The largest batch that the crate reads; no setting raises it.
    Readable,
}

impl SizeLimit {
    /// The setting that raises the limit; `None` if there is none.
    pub fn setting(self) -> Option<&'static str> {
        match self {
            Self::MaxMessageBytes => Some("max.message.bytes"),
            Self::SegmentBytes => Some("segment.bytes"),
            Self::Readable => None,
        }
    }
}

impl fmt::Display for SizeLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.setting().unwrap_or("batch size"))
    }
}
