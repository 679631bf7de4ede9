//! A `.log` or a snapshot of the metadata log as text.

use super::DumpOptions;
use super::batch::DumpedBatch;
use super::batch_stream::BatchStream;
use super::dumped_file::DumpedFile;
use super::findings::{Check, Findings};
use super::log_entries::{LogEntries, LogOutput};
use super::records::DumpedRecord;
use super::text::Text;
use crate::error::{Malformed, Result};
use crate::inspect::batch_place::BatchPlace;
use crate::inspect::internal_topics::control_record_text;
use crate::record::java_string;

/// A file of batches that is being dumped.
#[derive(Debug)]
pub(super) struct LogDump {
    file: DumpedFile,
    entries: LogEntries,
    /// The offset of the last record; −1 before the first.
    last_offset: i64,
}

impl LogDump {
    /// Writes the line about the file's name, and opens it.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if the name has no offset; as [`LogEntries::open`].
    pub(super) fn open(file: DumpedFile, options: &DumpOptions, out: &mut Text) -> Result<Self> {
        if file.is_log() {
            let offset = file.number()?;
            out.str("Log starting offset: ").int(offset).end_line();
        } else if let Some((offset, epoch)) = file.metadata_snapshot()? {
            out.str("Snapshot end offset: ").int(offset).str(", epoch: ").int(epoch).end_line();
        } else {
            out.str("KRaft bootstrap snapshot").end_line();
        }
        let entries = LogEntries::open(file.path(), options.max_bytes)?;
        Ok(Self { file, entries, last_offset: -1 })
    }

    /// Writes lines until the buffer is full; false at the end of the file.
    ///
    /// # Errors
    /// As [`LogEntries::fill`]; the text before the error is in the buffer.
    pub(super) fn fill(
        &mut self,
        options: &DumpOptions,
        out: &mut Text,
        findings: &mut Findings,
    ) -> Result<bool> {
        let Self { file, entries, last_offset } = self;
        let has_more = entries.fill(options, &mut Lines { options, out, findings, file, last_offset })?;
        let trailing = entries.trailing_bytes();
        if !has_more && trailing > 0 && options.max_bytes == DumpOptions::MAX_BYTES {
            out.str("Found ").int(trailing).str(" invalid bytes at the end of ").str(file.name()).end_line();
        }
        Ok(has_more)
    }
}

/// A line for each batch and each record.
struct Lines<'a> {
    options: &'a DumpOptions,
    out: &'a mut Text,
    findings: &'a mut Findings,
    file: &'a DumpedFile,
    last_offset: &'a mut i64,
}

impl LogOutput for Lines<'_> {
    fn is_full(&self) -> bool {
        self.out.is_full()
    }

    fn add_batch(&mut self, stream: &mut BatchStream, place: BatchPlace) -> Result<DumpedBatch> {
        DumpedBatch::write(self.out, stream, place)
    }

    fn add_record(&mut self, batch: &DumpedBatch, record: &DumpedRecord<'_>) -> Result<(), Malformed> {
        if record.offset != self.last_offset.wrapping_add(1) {
            self.findings.add(Check::NonConsecutive, self.file, *self.last_offset, record.offset);
        }
        *self.last_offset = record.offset;
        write_record(self.out, self.options, batch, record)
    }
}

/// Writes the line of a record.
#[inline]
fn write_record(
    out: &mut Text,
    options: &DumpOptions,
    batch: &DumpedBatch,
    record: &DumpedRecord<'_>,
) -> Result<(), Malformed> {
    let mut before_contents = "| ";
    if !options.skip_record_metadata {
        write_metadata(out, batch, record)?;
        before_contents = " ";
    }
    if options.prints_contents() && !batch.is_control() {
        write_contents(out, options, record, before_contents)?;
    }
    out.end_line();
    Ok(())
}

#[inline]
fn write_metadata(out: &mut Text, batch: &DumpedBatch, record: &DumpedRecord<'_>) -> Result<(), Malformed> {
    out.str("| offset: ").int(record.offset).str(" ").str(batch.header.timestamp_type().name());
    out.str(": ").int(record.timestamp).str(" keySize: ").int(record.key_size);
    out.str(" valueSize: ").int(record.value_size);
    if batch.is_v2() {
        out.str(" sequence: ").int(record.sequence).str(" headerKeys: [");
        let mut separator = "";
        for (key, _) in record.headers.clone() {
            out.str(separator).str(&java_string(key));
            separator = ",";
        }
        out.str("]");
    }
    if let Some(message) = record.message {
        out.str(" isValid: ").bool(message.is_valid()).str(" crc: ").int(message.crc());
    }
    if batch.is_control() {
        let text = control_record_text(record.key()?, record.value()?);
        out.str(
            &text.map_err(|error| {
                Malformed::new("a control record that Kafka can decode", error.to_string())
            })?,
        );
    }
    Ok(())
}

/// Writes key and value; a null one is left out.
#[inline]
fn write_contents(
    out: &mut Text,
    options: &DumpOptions,
    record: &DumpedRecord<'_>,
    before: &str,
) -> Result<(), Malformed> {
    let (key, value) = (record.key()?, record.value()?);
    let mut before = before;
    if let Some(parser) = options.message_parser {
        let parsed = parser.parse(record.offset, key, value);
        let parsed = parsed.map_err(|missing| Malformed::new("a record with a key", missing.message))?;
        for (name, text) in [("key: ", parsed.key), ("payload: ", parsed.payload)] {
            if let Some(text) = text {
                out.str(before).str(name).str(&text);
                before = " ";
            }
        }
        return Ok(());
    }
    let (key_decoder, value_decoder) = options.decoders();
    // both are decoded before one is printed
    key.map_or(Ok(()), |key| key_decoder.check(key))?;
    value.map_or(Ok(()), |value| value_decoder.check(value))?;
    for (name, decoder, bytes) in [("key: ", key_decoder, key), ("payload: ", value_decoder, value)] {
        if let Some(bytes) = bytes {
            out.str(before).str(name);
            decoder.write(out, bytes)?;
            before = " ";
        }
    }
    Ok(())
}
