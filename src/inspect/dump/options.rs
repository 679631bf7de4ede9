//! The options of a dump.

use super::Decoder;
#[cfg(feature = "arrow")]
use super::records::DumpedRecord;
#[cfg(feature = "arrow")]
use crate::error::Malformed;
use crate::inspect::internal_topics::MessageParser;
use crate::record::MAX_BATCH_BYTES;
use crate::types::Interrupt;

/// What is dumped, and how. The fields are the options of `kafka-dump-log` with the same names.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the tool, and any of them may be combined"
)]
pub struct DumpOptions {
    /// A line for each record. Implied by what prints keys and values.
    pub deep_iteration: bool,
    /// The keys and values of the records. Implied by the decoders.
    pub print_data_log: bool,
    /// Only Kafka's sanity check of offset and time indexes, which it does when it opens them.
    pub index_sanity_check: bool,
    /// Only the comparison of offset and time indexes with the `.log`: their entries are not printed.
    pub verify_index_only: bool,
    /// Bytes in which the batch of an entry of an offset index must end, 0 to 2³¹ − 1.
    pub max_message_size: u32,
    /// Bytes of a `.log` that are read, 0 to 2³¹ − 1: a batch that ends after them is not shown.
    pub max_bytes: u32,
    /// The largest batch whose records are read, bytes, as stored and decompressed. A larger one is an
    /// [`Error::BatchTooLarge`](crate::Error::BatchTooLarge).
    pub max_batch_bytes: usize,
    /// Leaves out everything but the keys and values of records.
    pub skip_record_metadata: bool,
    /// How keys are shown; `None`: as [`Decoder::String`], and keys are not shown because of it.
    pub key_decoder: Option<Decoder>,
    /// How values are shown; `None`: as for keys.
    pub value_decoder: Option<Decoder>,
    /// The decoder for the records of an internal topic, instead of the two.
    pub message_parser: Option<MessageParser>,
    /// Called from time to time; its error ends the dump.
    pub interrupt: Interrupt,
}

impl Default for DumpOptions {
    fn default() -> Self {
        Self {
            deep_iteration: false,
            print_data_log: false,
            index_sanity_check: false,
            verify_index_only: false,
            max_message_size: 5 << 20,
            max_bytes: Self::MAX_BYTES,
            max_batch_bytes: MAX_BATCH_BYTES,
            skip_record_metadata: false,
            key_decoder: None,
            value_decoder: None,
            message_parser: None,
            interrupt: Interrupt::NEVER,
        }
    }
}

impl DumpOptions {
    /// The default of [`DumpOptions::max_bytes`]: the whole file. Only then is a rest after the last batch
    /// named.
    pub const MAX_BYTES: u32 = i32::MAX as u32;

    /// Whether keys and values are shown.
    pub(super) fn prints_contents(&self) -> bool {
        self.print_data_log
            || self.key_decoder.is_some()
            || self.value_decoder.is_some()
            || self.message_parser.is_some()
    }

    /// Whether there is a line for each record.
    pub(super) fn prints_records(&self) -> bool {
        self.deep_iteration || self.prints_contents()
    }

    /// How keys and values are shown.
    pub(super) fn decoders(&self) -> (Decoder, Decoder) {
        (self.key_decoder.unwrap_or_default(), self.value_decoder.unwrap_or_default())
    }
    /// Key and value of a record as they are shown; `None` is null, or not shown by the decoder of an
    /// internal topic.
    ///
    /// # Errors
    /// [`Malformed`] where Kafka's decoder throws: for too few bytes of a number, a record of an internal
    /// topic without a key, and a message of an old format that is too short.
    #[cfg(feature = "arrow")]
    pub(super) fn contents(
        &self,
        record: &DumpedRecord<'_>,
    ) -> Result<(Option<String>, Option<String>), Malformed> {
        let (key, value) = (record.key()?, record.value()?);
        if let Some(parser) = self.message_parser {
            let parsed = parser.parse(record.offset, key, value);
            let parsed = parsed.map_err(|missing| Malformed::new("a record with a key", missing.message))?;
            return Ok((parsed.key, parsed.payload));
        }
        let (key_decoder, value_decoder) = self.decoders();
        let decoded =
            |decoder: Decoder, bytes: Option<&[u8]>| bytes.map(|bytes| decoder.decode(bytes)).transpose();
        Ok((decoded(key_decoder, key)?, decoded(value_decoder, value)?))
    }
}
