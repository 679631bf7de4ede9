//! A `.log` or a snapshot of the metadata log as text.

use super::DumpOptions;
use super::batch::DumpedBatch;
use super::batch_stream::{BATCH_WINDOW, BatchStream};
use super::dumped_file::DumpedFile;
use super::findings::{Check, Findings};
use super::records::{BatchRecords, DumpedRecord};
use super::text::Text;
use crate::error::{Malformed, Result};
use crate::inspect::internal_topics::control_record_text;
use crate::record::java_string;

/// A file of batches that is being dumped.
#[derive(Debug)]
pub(super) struct LogDump {
    file: DumpedFile,
    stream: BatchStream,
    /// The records of the current batch.
    records: Option<BatchRecords>,
    /// The decompressed records of the current batch.
    buffer: Vec<u8>,
    /// The offset of the last record; −1 before the first.
    last_offset: i64,
}

impl LogDump {
    /// Writes the line about the file's name, and opens it.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if the name has no offset; as [`BatchStream::open`].
    pub(super) fn open(file: DumpedFile, options: &DumpOptions, out: &mut Text) -> Result<Self> {
        if file.is_log() {
            let offset = file.number()?;
            out.str("Log starting offset: ").int(offset).end_line();
        } else if let Some((offset, epoch)) = file.metadata_snapshot()? {
            out.str("Snapshot end offset: ").int(offset).str(", epoch: ").int(epoch).end_line();
        } else {
            out.str("KRaft bootstrap snapshot").end_line();
        }
        let mut stream = BatchStream::open(file.path(), BATCH_WINDOW)?;
        stream.slice(0, u64::from(options.max_bytes))?;
        Ok(Self { file, stream, records: None, buffer: Vec::new(), last_offset: -1 })
    }

    /// Writes lines until the buffer is full; false at the end of the file.
    ///
    /// # Errors
    /// Where Kafka's tool ends with an exception: [`Error::Corrupt`](crate::Error::Corrupt),
    /// [`Error::UnsupportedFormat`](crate::Error::UnsupportedFormat). The text before it is in the buffer.
    /// [`Error::LogChanged`](crate::Error::LogChanged), [`Error::Io`](crate::Error::Io),
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub(super) fn fill(
        &mut self,
        options: &DumpOptions,
        out: &mut Text,
        findings: &mut Findings,
    ) -> Result<bool> {
        options.interrupt.check()?;
        while !out.is_full() {
            if self.records.is_some() {
                self.write_records(options, out, findings)?;
                continue;
            }
            let Some(place) = self.stream.next()? else {
                self.write_trailing_bytes(options, out);
                return Ok(false);
            };
            let batch = DumpedBatch::write(out, &mut self.stream, place)?;
            if options.prints_records() {
                let max = options.max_batch_bytes;
                let bytes = self.stream.batch_up_to(max, &place)?;
                let opened = BatchRecords::open(batch, bytes, max, &mut self.buffer);
                self.records = Some(
                    opened.map_err(|wrong| self.stream.corrupt(wrong, place.position, Some(place.offset)))?,
                );
            }
        }
        Ok(true)
    }

    /// Writes records of the current batch until the buffer is full.
    fn write_records(
        &mut self,
        options: &DumpOptions,
        out: &mut Text,
        findings: &mut Findings,
    ) -> Result<()> {
        let Some(records) = &mut self.records else { return Ok(()) };
        let batch = *records.batch();
        let bytes = self.stream.batch_up_to(options.max_batch_bytes, &batch.place)?;
        let payload = records.payload().of(bytes, &self.buffer);
        let (file, last_offset) = (&self.file, &mut self.last_offset);
        let mut write = || -> Result<bool, Malformed> {
            while !out.is_full() {
                let Some(record) = records.next(payload)? else { return Ok(false) };
                if record.offset != last_offset.wrapping_add(1) {
                    findings.add(Check::NonConsecutive, file, *last_offset, record.offset);
                }
                *last_offset = record.offset;
                write_record(out, options, &batch, &record)?;
            }
            Ok(true)
        };
        match write() {
            Ok(true) => {}
            Ok(false) => self.records = None,
            Err(wrong) => {
                let offset = batch.place.offset;
                return Err(self.stream.corrupt(wrong, batch.place.position, Some(offset)));
            }
        }
        Ok(())
    }

    fn write_trailing_bytes(&self, options: &DumpOptions, out: &mut Text) {
        let trailing = self.stream.end() - self.stream.position();
        if trailing > 0 && options.max_bytes == DumpOptions::MAX_BYTES {
            out.str("Found ")
                .int(trailing)
                .str(" invalid bytes at the end of ")
                .str(self.file.name())
                .end_line();
        }
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
