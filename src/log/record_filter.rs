//! A test of the contents of records.

use std::fmt;
use std::sync::Arc;

use super::RecordOffsets;

/// Selects records by their key and value. Cheap to clone.
#[derive(Clone)]
pub struct RecordFilter(Arc<Predicate>);

/// Called with the offsets, the key and the value of a record; `None` is null.
type Predicate = dyn Fn(RecordOffsets, Option<&[u8]>, Option<&[u8]>) -> bool + Send + Sync;

impl RecordFilter {
    /// A filter that accepts the records for which a function of key and value returns true. The function
    /// must always return the same for the same record: [`Log::last_records`](super::Log::last_records)
    /// calls it more than once.
    ///
    /// ```
    /// let filter = cordwood::log::RecordFilter::new(|key, _| key == Some(b"k1"));
    /// assert!(filter.accepts(Some(b"k1"), None));
    /// assert!(!filter.accepts(None, Some(b"k1")));
    /// ```
    pub fn new(accepts: impl Fn(Option<&[u8]>, Option<&[u8]>) -> bool + Send + Sync + 'static) -> Self {
        Self::by_offsets(move |_, key, value| accepts(key, value))
    }

    /// A filter by offset, too.
    pub(crate) fn by_offsets(
        accepts: impl Fn(RecordOffsets, Option<&[u8]>, Option<&[u8]>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(accepts))
    }

    /// Whether a record with this key and value is accepted; `None` is null.
    pub fn accepts(&self, key: Option<&[u8]>, value: Option<&[u8]>) -> bool {
        self.accepts_at(RecordOffsets { offset: -1, last_of_batch: -1 }, key, value)
    }

    /// [`RecordFilter::accepts`] for a record with these offsets.
    pub(crate) fn accepts_at(
        &self,
        offsets: RecordOffsets,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
    ) -> bool {
        (self.0)(offsets, key, value)
    }
}

impl fmt::Debug for RecordFilter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RecordFilter")
    }
}
