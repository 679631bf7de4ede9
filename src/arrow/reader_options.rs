//! The options of a reader.

use arrow_schema::{SchemaRef, TimeUnit};

use super::{ByteType, Column, HeaderKeys, InvalidText, batches, schema};
use crate::log::{OnDamage, RecordFilter, ScanOptions};

/// The limit of `max_bytes`: binary columns have 31-bit offsets, and after this limit one more batch must
/// fit.
const MAX_BYTES: usize = 1 << 30;

/// Options of a [`Reader`](super::Reader).
#[derive(Debug, Clone)]
pub struct ReaderOptions {
    /// What to read. With `batches_only` the rows are batches, and `columns` is ignored.
    pub scan: ScanOptions,
    /// The columns, in this order.
    pub columns: Vec<Column>,
    /// The type of keys.
    pub key_type: ByteType,
    /// The type of values.
    pub value_type: ByteType,
    /// What a column of text has for keys or values that are not UTF-8.
    pub invalid_text: InvalidText,
    /// The type of header names.
    pub header_keys: HeaderKeys,
    /// The unit of timestamps: milliseconds or microseconds.
    pub timestamp_unit: TimeUnit,
    /// The maximum number of rows in a record batch.
    pub max_rows: usize,
    /// The approximate maximum size of a record batch, bytes; at most 1 GiB. One record may be larger. With
    /// views it also limits the memory that a record batch keeps, apart from one block or decompressed
    /// batch. The memory of the last two record batches is also kept, for the next ones. Two of the
    /// default size fit into the cache of a processor.
    pub max_bytes: usize,
    /// The number of threads that decompress and decode concurrently, at most 256. They end with the call
    /// that starts them. For each, two parts of the log are read, and two times `max_bytes` and one
    /// record batch are in memory. A record batch has rows of one part, about a quarter of `max_bytes`
    /// or fewer. What a part has found is added to the [`Progress`](super::Progress) after its last row
    /// was returned.
    pub threads: usize,
    /// The maximum total number of rows. With a limit only one thread reads, so that nothing after the last
    /// row is read.
    pub limit: Option<usize>,
    /// Of each log only its last records, this many.
    pub last: Option<usize>,
    /// Only the records that it accepts, which are also those that `limit` and `last` count.
    pub filter: Option<RecordFilter>,
    /// Only the last record of each key in the range, if it has a value; instead of `filter`. Each log is
    /// read twice, and its keys take up to 80 bytes each.
    pub latest: bool,
    /// With `latest`, also last records without a value.
    pub include_tombstones: bool,
}

impl Default for ReaderOptions {
    fn default() -> Self {
        Self {
            scan: ScanOptions::default(),
            columns: Column::DEFAULT.to_vec(),
            key_type: ByteType::Binary,
            value_type: ByteType::Binary,
            invalid_text: InvalidText::Raise,
            header_keys: HeaderKeys::Utf8,
            timestamp_unit: TimeUnit::Millisecond,
            max_rows: 65_536,
            max_bytes: 4 << 20,
            threads: 1,
            limit: None,
            last: None,
            filter: None,
            latest: false,
            include_tombstones: false,
        }
    }
}

impl ReaderOptions {
    pub(super) fn reports(&self) -> bool {
        self.scan.on_damage == OnDamage::Report
    }

    /// The size at which a record batch is full, bytes.
    pub(super) fn byte_limit(&self) -> usize {
        self.max_bytes.min(MAX_BYTES)
    }

    /// The schema of a reader with these options.
    pub fn schema(&self) -> SchemaRef {
        if self.scan.batches_only { batches::schema(self.reports()) } else { schema(self) }
    }
}
