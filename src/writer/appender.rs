//! Appends, from any number of threads.

use std::sync::Arc;

use super::partition::Partition;
use super::sessions::Holder;
use super::{Appended, ProducerState, Shared, WriterMetrics};
use crate::config::CompressionType;
use crate::error::{Error, Result, SizeLimit};
use crate::record::control::{ControlType, EndMarker};
use crate::record::{
    Analyzed, BatchBuilder, BatchHeader, BatchOptions, BatchProducer, Codec, MAX_BATCH_BYTES, NewRecord,
    Origin, Validation, analyze,
};
use crate::state::producers::{ProducerEntry, SequenceRange};

/// The memory for the batches of a call that is kept for the next one, bytes.
const MAX_KEPT_BYTES: usize = 1 << 20;

/// A handle that appends to a log; clones append to the same log.
///
/// *Concurrency*: `Send + Sync + Clone`. Appends of many threads share one sync (group commit).
#[derive(Debug, Clone)]
pub struct Appender {
    pub(super) shared: Arc<Shared>,
}

impl Appender {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Appends one record as one batch. A timestamp of −1 means none.
    ///
    /// # Errors
    /// [`Error::RecordTooLarge`]; [`Error::InvalidRecord`] for a record that the settings refuse (its
    /// timestamp, or a missing key in a compacted log); [`Error::Config`] for a record that no log
    /// accepts; [`Error::Io`] if the write failed: the record is not in the log. If the failed write
    /// cannot be undone, and after a failed sync, later calls return [`Error::Poisoned`].
    /// [`Error::Closed`]; [`Error::Forked`] in a forked child.
    pub fn append(&self, record: &NewRecord<'_>) -> Result<Appended> {
        self.append_many(std::slice::from_ref(record))
    }

    /// Appends records: as one batch if they fit, uncompressed, into `max.message.bytes`, `segment.bytes` and
    /// [`MAX_BATCH_BYTES`], the largest batch that `Log` reads; otherwise as several. A batch is appended as
    /// a whole or not at all. If a batch fails, the batches before it stay.
    ///
    /// # Errors
    /// As [`Appender::append`]. If one of the records is refused, nothing is appended, unless the record is
    /// found to be too large only after compression.
    pub fn append_many(&self, records: &[NewRecord<'_>]) -> Result<Appended> {
        let (appended, truncations) = {
            let mut partition = self.shared.enter()?;
            (partition.append_records(records, None)?, partition.truncations)
        };
        self.shared.acknowledge(appended, truncations)
    }

    /// Appends v2 batches unchanged except for offsets and epoch. They get the next offsets and the writer's
    /// epoch, as a leader assigns them; with `keep_offsets` they keep their own, as on a follower, and
    /// gaps between offsets are allowed. Either all of them are appended or none.
    ///
    /// A leader checks the sequences and epochs of batches with a producer id. If all batches are duplicates
    /// of batches among the last five of their producers, nothing is appended, and the result has the
    /// offsets and the largest timestamp of those. (An opening and a truncation know only the last batch
    /// of each, as Kafka.) A follower checks no sequences and epochs, and accepts the markers that end
    /// transactions.
    ///
    /// # Errors
    /// As [`Appender::append`], and [`Error::InvalidRecord`] for bytes that break a rule of the format, and
    /// for a batch outside the open transaction of its producer. For a leader,
    /// [`Error::OutOfOrderSequence`] and [`Error::InvalidProducerEpoch`].
    ///
    /// *Source*: `UnifiedLog.appendAsLeader`, `appendAsFollower`.
    pub fn append_batches(&self, raw: &[u8], keep_offsets: bool) -> Result<Appended> {
        let (appended, truncations) = {
            let mut partition = self.shared.enter()?;
            (partition.append_batches(raw, keep_offsets)?, partition.truncations)
        };
        self.shared.acknowledge(appended, truncations)
    }

    /// Makes everything appended so far durable.
    ///
    /// # Errors
    /// [`Error::Io`]; every later call returns [`Error::Poisoned`].
    pub fn flush(&self) -> Result<()> {
        let (end, truncations) = {
            let partition = self.shared.enter()?;
            (partition.ends.log_end_offset(), partition.truncations)
        };
        self.shared.wait_durable(end, truncations, None)
    }

    /// Returns once the record at `offset` is durable.
    ///
    /// # Errors
    /// [`Error::Config`] for a negative offset; [`Error::OffsetOutOfRange`] if it is not appended yet;
    /// [`Error::Io`], [`Error::Poisoned`].
    pub fn wait_durable(&self, offset: i64) -> Result<()> {
        if offset < 0 {
            return Err(Error::config("offset", "an offset, 0 or above", offset.to_string()));
        }
        let truncations = {
            let partition = self.shared.enter()?;
            if offset >= partition.ends.log_end_offset() {
                return Err(partition.out_of_range(offset));
            }
            partition.truncations
        };
        self.shared.wait_durable(offset + 1, truncations, None)
    }

    /// The durable offset: every record below it survives a power loss.
    pub fn durable_offset(&self) -> i64 {
        self.shared.commit.durable()
    }

    /// The offset after the last record.
    pub fn log_end_offset(&self) -> i64 {
        self.shared.lock().ends.log_end_offset()
    }

    /// The last stable offset: [`LogWriter::last_stable_offset`](super::LogWriter::last_stable_offset).
    pub fn last_stable_offset(&self) -> i64 {
        self.shared.lock().last_stable_offset()
    }

    /// What the writer has done since it was opened.
    pub fn metrics(&self) -> WriterMetrics {
        let partition = self.shared.lock();
        WriterMetrics { segments: partition.sealed.len() as u64 + 1, ..partition.metrics }
    }

    /// What the log knows of each producer id, by the ids.
    pub fn producers(&self) -> Vec<ProducerState> {
        self.shared.lock().producers.listed()
    }
}

impl Shared {
    /// Waits as the flush mode requires. `truncations`: their number when the records were appended.
    pub(super) fn acknowledge(&self, mut appended: Appended, truncations: u64) -> Result<Appended> {
        if !appended.is_empty() {
            appended.durable = self.await_flush(&appended, truncations)?;
        }
        Ok(appended)
    }
}

/// The producer of the batches that an append builds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Producing<'a> {
    /// A producer whose call is one batch.
    Idempotent(&'a Holder),
    Transactional(&'a Holder),
}

impl Partition {
    fn validation(&self, origin: Origin, now: i64) -> Validation {
        let config = &self.config;
        Validation {
            origin,
            max_batch_bytes: self.max_batch_bytes,
            max_message_bytes: config.max_message_bytes,
            timestamp_type: config.message_timestamp_type,
            before_max_ms: config.message_timestamp_before_max_ms,
            after_max_ms: config.message_timestamp_after_max_ms,
            now,
            is_compacted: config.cleanup_policy.compact,
            codec: match config.compression_type {
                CompressionType::Producer => None,
                CompressionType::Uncompressed => Some(Codec::None),
                CompressionType::Gzip => Some(Codec::Gzip),
                CompressionType::Snappy => Some(Codec::Snappy),
                CompressionType::Lz4 => Some(Codec::Lz4),
                CompressionType::Zstd => Some(Codec::Zstd),
            },
        }
    }

    /// The options of a batch that the writer builds at the log end offset.
    fn batch_options(&self, validation: &Validation) -> BatchOptions {
        let codec = validation.codec.unwrap_or(Codec::None);
        BatchOptions {
            base_offset: self.ends.log_end_offset(),
            leader_epoch: self.leader_epoch,
            codec,
            level: self.level(codec),
            timestamp_type: validation.timestamp_type,
            log_append_time: validation.now,
        }
    }

    fn level(&self, codec: Codec) -> Option<i32> {
        match codec {
            Codec::Gzip => Some(self.config.compression_gzip_level),
            Codec::Lz4 => Some(self.config.compression_lz4_level),
            Codec::Zstd => Some(self.config.compression_zstd_level),
            Codec::None | Codec::Snappy => None,
        }
    }

    /// Appends records, as one batch or, without a producer and in a transaction, as several if they do not
    /// fit.
    pub(super) fn append_records(
        &mut self,
        records: &[NewRecord<'_>],
        producing: Option<Producing<'_>>,
    ) -> Result<Appended> {
        let validation = self.validation(Origin::Leader, (self.clock)());
        let is_compressed = !matches!(validation.codec, None | Some(Codec::None));
        // incompressible data grows by less than this under every codec
        let room = if is_compressed { MAX_BATCH_BYTES - (MAX_BATCH_BYTES >> 7) } else { MAX_BATCH_BYTES };
        let bytes = |setting| usize::try_from(setting).unwrap_or(usize::MAX);
        let (max_bytes, limit) = (bytes(validation.max_message_bytes), SizeLimit::MaxMessageBytes)
            .min((bytes(self.config.segment_bytes), SizeLimit::SegmentBytes))
            .min((room, SizeLimit::Readable));
        for (index, record) in records.iter().enumerate() {
            record.check()?;
            validation.check(record)?;
            if !is_compressed && records.len() > 1 {
                check_alone(index, record, max_bytes, limit)?;
            }
        }
        let mut total = Appended::nothing(self.ends.log_end_offset());
        // taken out of `self`: it holds the batch while `self` is changed
        let mut builder = std::mem::take(&mut self.builder);
        let mut append = |builder: &mut BatchBuilder, batch: &[NewRecord<'_>]| {
            let appended = self.append_built(builder, batch, max_bytes, &validation, producing)?;
            builder.clear();
            total = total.followed_by(appended);
            Ok(())
        };
        let (mut result, mut start) = (Ok(()), 0);
        for (index, record) in records.iter().enumerate() {
            if !builder.is_empty() && builder.size_with(record) > max_bytes {
                if let Some(Producing::Idempotent(_)) = producing {
                    result = Err(more_than_one_batch(max_bytes, limit, records.len()));
                    break;
                }
                result = append(&mut builder, records.get(start..index).unwrap_or_default());
                start = index;
            }
            result = result.and_then(|()| builder.append(record));
            if result.is_err() {
                break;
            }
        }
        if result.is_ok() && !builder.is_empty() {
            result = append(&mut builder, records.get(start..).unwrap_or_default());
        }
        builder.clear();
        self.builder = builder;
        result.map(|()| total)
    }

    /// Appends the batch that was built from `records`; if it is too large after compression, appends it in
    /// two halves.
    fn append_built(
        &mut self,
        builder: &mut BatchBuilder,
        records: &[NewRecord<'_>],
        max_bytes: usize,
        validation: &Validation,
        producing: Option<Producing<'_>>,
    ) -> Result<Appended> {
        let producer = producing.map_or(BatchProducer::NONE, |producing| self.batch_producer(producing));
        let (header, bytes) = builder.seal_of(&self.batch_options(validation), &producer)?;
        let is_whole = matches!(producing, Some(Producing::Idempotent(_))) || records.len() < 2;
        if usize::try_from(header.size).is_ok_and(|size| size <= max_bytes) || is_whole {
            check_size(&header, validation.max_message_bytes)?;
            let updates = match producing {
                Some(_) => Some(self.producers.updates_of(&header, None)?),
                None => None,
            };
            return self.append(bytes, &[header], updates, validation.now);
        }
        // incompressible records: compression made the batch larger
        let (front, back) = records.split_at(records.len() / 2);
        fill(builder, front)?;
        let front = self.append_built(builder, front, max_bytes, validation, producing)?;
        fill(builder, back)?;
        let back = self.append_built(builder, back, max_bytes, validation, producing)?;
        Ok(front.followed_by(back))
    }

    /// Appends the marker that ends a producer's transaction. `epoch`: of the marker, at least that of the
    /// producer.
    ///
    /// *Source*: `MemoryRecords.withEndTransactionMarker`; `UnifiedLog.appendAsLeader`, with
    /// `AppendOrigin.COORDINATOR`.
    pub(super) fn append_marker(
        &mut self,
        producer_id: i64,
        producer_epoch: i16,
        control_type: ControlType,
    ) -> Result<Appended> {
        let now = (self.clock)();
        let validation = self.validation(Origin::Leader, now);
        let coordinator_epoch =
            self.producers.get(producer_id).map_or(0, |entry| entry.coordinator_epoch.max(0));
        let marker = EndMarker { control_type, coordinator_epoch, timestamp: now };
        let options = BatchOptions { codec: Codec::None, level: None, ..self.batch_options(&validation) };
        let producer = BatchProducer {
            producer_id,
            producer_epoch,
            base_sequence: -1,
            is_transactional: true,
            is_control: true,
        };
        let mut builder = std::mem::take(&mut self.builder);
        let appended = marker.append_to(&mut builder).and_then(|()| {
            let (header, bytes) = builder.seal_of(&options, &producer)?;
            let updates = self.producers.updates_of(&header, Some(&marker))?;
            self.append(bytes, &[header], Some(updates), now)
        });
        builder.clear();
        self.builder = builder;
        appended
    }

    /// The producer and the sequence of its next batch.
    fn batch_producer(&self, producing: Producing<'_>) -> BatchProducer {
        let (Producing::Idempotent(holder) | Producing::Transactional(holder)) = producing;
        BatchProducer {
            producer_id: holder.producer_id,
            producer_epoch: holder.producer_epoch,
            base_sequence: self.next_sequence(producing),
            is_transactional: matches!(producing, Producing::Transactional(_)),
            is_control: false,
        }
    }

    /// The sequence of a producer's next record. The sequences of a transaction begin at 0 in a new epoch, as
    /// in Kafka; a producer's continue, so that they count its records.
    pub(super) fn next_sequence(&self, producing: Producing<'_>) -> i32 {
        let (Producing::Idempotent(holder) | Producing::Transactional(holder)) = producing;
        let entry = self.producers.get(holder.producer_id);
        let entry = entry.filter(|entry| {
            matches!(producing, Producing::Idempotent(_)) || entry.producer_epoch == holder.producer_epoch
        });
        entry.and_then(ProducerEntry::last_batch).map_or(0, SequenceRange::next_sequence)
    }

    fn append_batches(&mut self, raw: &[u8], keep_offsets: bool) -> Result<Appended> {
        let leader_epoch = self.epochs.latest().unwrap_or(-1);
        let origin = if keep_offsets {
            Origin::Follower { log_end_offset: self.ends.log_end_offset(), leader_epoch }
        } else {
            Origin::Leader
        };
        let validation = self.validation(origin, (self.clock)());
        let batches = analyze(raw, &validation)?;
        self.producers.remove_expired(validation.now, |producer_id| self.sessions.is_in_use(producer_id));
        if keep_offsets {
            let headers: Vec<_> = batches.iter().map(|batch| batch.header).collect();
            let updates = self.producers.check(&batches, &headers, raw, false)?;
            return self.append(raw, &headers, updates, validation.now);
        }
        if let Some(appended) = self.producers.duplicates_of(&batches) {
            return Ok(appended);
        }
        let mut builder = std::mem::take(&mut self.builder);
        let mut bytes = std::mem::take(&mut self.stamped);
        let appended = self.stamp(raw, &batches, &validation, &mut builder, &mut bytes).and_then(|headers| {
            let updates = self.producers.check(&batches, &headers, raw, true)?;
            self.append(&bytes, &headers, updates, validation.now)
        });
        builder.clear();
        self.builder = builder;
        bytes.clear();
        // the memory of large calls is freed
        bytes.shrink_to(MAX_KEPT_BYTES);
        self.stamped = bytes;
        appended
    }

    /// Puts a leader's batches with their offsets and epochs, recompressed if the settings require another
    /// codec, into the empty `bytes`. Returns their headers.
    fn stamp(
        &self,
        raw: &[u8],
        batches: &[Analyzed],
        validation: &Validation,
        builder: &mut BatchBuilder,
        bytes: &mut Vec<u8>,
    ) -> Result<Vec<BatchHeader>> {
        bytes.reserve(raw.len());
        let mut headers = Vec::with_capacity(batches.len());
        let mut next = self.ends.log_end_offset();
        for batch in batches {
            let source = raw.get(batch.range.clone()).unwrap_or_default();
            let header = if batch.must_rebuild() {
                let options = BatchOptions {
                    base_offset: next,
                    codec: batch.codec,
                    level: self.level(batch.codec),
                    ..self.batch_options(validation)
                };
                let header = batch.rebuild(source, builder, &options, bytes)?;
                check_size(&header, validation.max_message_bytes)?;
                header
            } else {
                let start = bytes.len();
                bytes.extend_from_slice(source);
                batch.stamp(bytes.get_mut(start..).unwrap_or_default(), next, self.leader_epoch)?
            };
            next = header.last_offset + 1;
            headers.push(header);
        }
        Ok(headers)
    }
}

/// Builds a batch from these records.
fn fill(builder: &mut BatchBuilder, records: &[NewRecord<'_>]) -> Result<()> {
    builder.clear();
    records.iter().try_for_each(|record| builder.append(record))
}

fn more_than_one_batch(max_bytes: usize, limit: SizeLimit, records: usize) -> Error {
    let found = format!(
        "{records} records that need more than one batch; a producer's call is one, and nothing was appended"
    );
    Error::RecordTooLarge { limit, max_bytes: max_bytes as u64, found }
}

/// Fails if a record does not fit into a batch even alone. Called before any batch is appended.
fn check_alone(index: usize, record: &NewRecord<'_>, max_bytes: usize, limit: SizeLimit) -> Result<()> {
    // more than the batch header and the length fields of one record
    const OVERHEAD: usize = 128;
    let length = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
    let rough = length(record.key).saturating_add(length(record.value)).saturating_add(OVERHEAD);
    if record.headers.is_empty() && rough <= max_bytes {
        return Ok(());
    }
    let size = BatchBuilder::new().size_with(record);
    if size > max_bytes {
        let found = format!("a batch of {size} bytes for record {index} alone; nothing was appended");
        return Err(Error::RecordTooLarge { limit, max_bytes: max_bytes as u64, found });
    }
    Ok(())
}

fn check_size(header: &BatchHeader, max_bytes: u32) -> Result<()> {
    if header.size > max_bytes {
        return Err(Error::RecordTooLarge {
            limit: SizeLimit::MaxMessageBytes,
            max_bytes: max_bytes.into(),
            found: format!("{} bytes", header.size),
        });
    }
    Ok(())
}
