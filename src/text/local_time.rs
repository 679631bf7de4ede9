//! Times in a zone.

use std::fmt;
use std::sync::Arc;

/// The rules of a time zone: the offset of its local time from UTC at a time. Cheap to clone.
#[derive(Clone)]
pub struct UtcOffset(Arc<dyn Fn(i64) -> Option<i32> + Send + Sync>);

impl UtcOffset {
    /// `seconds` returns for milliseconds since the epoch the seconds that local time is ahead of UTC; `None`
    /// for a time that the rules do not cover.
    ///
    /// ```
    /// let hour_ahead = cordwood::text::UtcOffset::new(|_| Some(3600));
    /// assert_eq!(hour_ahead.seconds(0), Some(3600));
    /// ```
    pub fn new(seconds: impl Fn(i64) -> Option<i32> + Send + Sync + 'static) -> Self {
        Self(Arc::new(seconds))
    }

    /// The seconds that local time is ahead of UTC; `None` for a time that the rules do not cover.
    pub fn seconds(&self, timestamp: i64) -> Option<i32> {
        (self.0)(timestamp)
    }
}

impl fmt::Debug for UtcOffset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("UtcOffset")
    }
}
