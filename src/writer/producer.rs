//! A producer of a writer: appends that are not written twice when they are called again. Kafka: the
//! idempotent producer.

use std::sync::{Arc, Weak};

use super::appender::Producing;
use super::partition::Partition;
use super::sessions::Holder;
use super::{Appended, Appender, LogWriter, Shared, Unflushed};
use crate::error::{Error, Result};
use crate::record::{NewRecord, sequence_after};
use crate::state::positions;
use crate::state::producer_ids::IdOwner;

/// A producer: it numbers its records, by sequences from 0 up, and an append with sequences that are in the
/// log already is not written again.
///
/// ```
/// use cordwood::record::NewRecord;
/// use cordwood::writer::{LogWriter, WriterOptions};
///
/// # fn main() -> cordwood::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("orders-0");
/// let mut writer = LogWriter::open(&path, &WriterOptions::default())?;
/// let producer = writer.producer(Some("billing"))?;
/// let record = NewRecord { timestamp: 1_700_000_000_000, value: Some(b"paid"), ..NewRecord::default() };
/// let first = producer.append(&record, Some(0))?;
/// // the caller does not know whether the call before was completed
/// let again = producer.append(&record, Some(0))?;
/// assert_eq!((again.first_offset, again.is_duplicate), (first.first_offset, true));
/// assert_eq!((producer.next_sequence()?, producer.last_offset()?), (1, Some(0)));
/// # writer.close()
/// # }
/// ```
///
/// *Concurrency*: `Send + Sync`. Calls of several threads without a sequence get one after the other.
#[derive(Debug)]
pub struct Producer {
    shared: Weak<Shared>,
    holder: Holder,
    name: Option<String>,
}

impl LogWriter {
    /// Returns a producer; see [`Appender::producer`].
    ///
    /// # Errors
    /// Those of [`Appender::producer`].
    pub fn producer(&self, name: Option<&str>) -> Result<Producer> {
        self.appender().producer(name)
    }
}

impl Appender {
    /// Returns a producer. With a name it is the same one, with its id and its sequences, whenever the log is
    /// opened again. Without a name it is a new one.
    ///
    /// If a handle of the same name is in use, it is fenced: its appends return
    /// [`Error::InvalidProducerEpoch`], and the sequences run on in the new one.
    ///
    /// *Cost*: the first call with a name writes a small file, durably.
    ///
    /// # Errors
    /// [`Error::Config`] for a name that is not one of a topic; [`Error::Corrupt`] if the file of names is
    /// damaged; [`Error::Io`]; [`Error::Poisoned`]; [`Error::Closed`].
    ///
    /// *Source*: Kafka's `enable.idempotence`; the names are ours.
    pub fn producer(&self, name: Option<&str>) -> Result<Producer> {
        if let Some(name) = name {
            positions::check_name("name", name)?;
        }
        let holder = self.shared.enter()?.producer(name)?;
        Ok(Producer { shared: Arc::downgrade(&self.shared), holder, name: name.map(str::to_owned) })
    }
}

impl Producer {
    /// Its id, unique in the log.
    pub fn producer_id(&self) -> i64 {
        self.holder.producer_id
    }

    /// Its epoch: it is higher for each handle of the same name while an earlier one is in use.
    pub fn producer_epoch(&self) -> i16 {
        self.holder.producer_epoch
    }

    /// Its name.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The sequence of the next record: the number of records that the producer has in the log. After 2³¹ − 1
    /// comes 0.
    ///
    /// # Errors
    /// [`Error::InvalidProducerEpoch`] if it is fenced; [`Error::Closed`], [`Error::Poisoned`].
    pub fn next_sequence(&self) -> Result<i32> {
        self.with(|partition| Ok(partition.next_sequence(Producing::Idempotent(&self.holder))))
    }

    /// The offset of its last record; `None` if it has none.
    ///
    /// # Errors
    /// As [`Producer::next_sequence`].
    pub fn last_offset(&self) -> Result<Option<i64>> {
        self.with(|partition| {
            let entry = partition.producers.get(self.holder.producer_id);
            Ok(entry.and_then(|entry| entry.last_batch()).map(|last| last.last_offset))
        })
    }

    /// Appends one record; see [`Producer::append_many`].
    ///
    /// # Errors
    /// As [`Producer::append_many`].
    pub fn append(&self, record: &NewRecord<'_>, sequence: Option<i32>) -> Result<Appended> {
        self.append_many(std::slice::from_ref(record), sequence)
    }

    /// Appends records as one batch, as a whole or not at all. `sequence`: of the first record; `None`: the
    /// next one.
    ///
    /// If a batch with exactly these sequences is among the last five of the producer, nothing is appended,
    /// and the result has its offsets and [`Appended::is_duplicate`]. (After an opening and a truncation
    /// only the last batch is known, as in Kafka.)
    ///
    /// # Errors
    /// Those of [`Appender::append`]; [`Error::RecordTooLarge`] for records that do not fit into one batch;
    /// [`Error::OutOfOrderSequence`] for other sequences; [`Error::InvalidProducerEpoch`] if a newer handle
    /// has the name; [`Error::Config`] for a negative sequence.
    ///
    /// *Source*: `ProducerAppendInfo.checkSequence`, `UnifiedLog.analyzeAndValidateProducerState`.
    pub fn append_many(&self, records: &[NewRecord<'_>], sequence: Option<i32>) -> Result<Appended> {
        let (shared, appended, truncations) = self.produce(records, sequence)?;
        shared.acknowledge(appended, truncations)
    }

    /// [`Producer::append_many`] without its wait for the disk, which [`Unflushed::wait`] is.
    ///
    /// # Errors
    /// Those of [`Producer::append_many`] before its flush.
    pub fn append_many_unflushed(
        &self,
        records: &[NewRecord<'_>],
        sequence: Option<i32>,
    ) -> Result<Unflushed> {
        let (shared, appended, truncations) = self.produce(records, sequence)?;
        Ok(Unflushed::acknowledged_by_mode(shared, appended, truncations))
    }

    /// Appends, and returns the number of truncations before it.
    fn produce(
        &self,
        records: &[NewRecord<'_>],
        sequence: Option<i32>,
    ) -> Result<(Arc<Shared>, Appended, u64)> {
        if let Some(sequence) = sequence.filter(|sequence| *sequence < 0) {
            return Err(Error::config("sequence", "a sequence, 0 or above", sequence.to_string()));
        }
        let shared = upgrade(&self.shared)?;
        let (appended, truncations) = {
            let mut partition = shared.enter()?;
            partition.check_holder(&self.holder)?;
            (partition.produce(&self.holder, records, sequence)?, partition.truncations)
        };
        Ok((shared, appended, truncations))
    }

    fn with<T>(&self, call: impl FnOnce(&Partition) -> Result<T>) -> Result<T> {
        let shared = upgrade(&self.shared)?;
        let partition = shared.enter()?;
        partition.check_holder(&self.holder)?;
        call(&partition)
    }
}

/// The writer of a handle. Fails once the writer is dropped.
pub(super) fn upgrade(shared: &Weak<Shared>) -> Result<Arc<Shared>> {
    shared.upgrade().ok_or(Error::Closed { handle: "LogWriter" })
}

impl Partition {
    fn producer(&mut self, name: Option<&str>) -> Result<Holder> {
        let known = match name {
            Some(name) => self.known_id(IdOwner::Producer, name)?,
            None => None,
        };
        let Some(producer_id) = known else {
            let owner = if name.is_some() { IdOwner::Producer } else { IdOwner::Transaction };
            let producer_id = self.new_id(owner, name)?;
            return Ok(self.hold(producer_id, 0));
        };
        let mut epoch = self.epoch_of(producer_id).max(0);
        if self.sessions.is_in_use(producer_id) {
            let name = name.unwrap_or_default();
            epoch = epoch.checked_add(1).ok_or_else(|| {
                let expected = "a producer that was fenced less than 32767 times: drop its other objects, and the latest one is \
                    continued";
                Error::config("name", expected, format!("{name:?} with epoch {epoch}, and an object of it in use"))
            })?;
        }
        Ok(self.hold(producer_id, epoch))
    }

    fn produce(
        &mut self,
        holder: &Holder,
        records: &[NewRecord<'_>],
        sequence: Option<i32>,
    ) -> Result<Appended> {
        let producing = Producing::Idempotent(holder);
        let expected = self.next_sequence(producing);
        if let Some(found) = sequence.filter(|sequence| *sequence != expected && !records.is_empty()) {
            let last = sequence_after(found, i32::try_from(records.len() - 1).unwrap_or(i32::MAX));
            let Holder { producer_id, producer_epoch, .. } = *holder;
            let old = self.producers.get(producer_id).and_then(|entry| entry.batch_of(found, last));
            return old.map(Appended::duplicate).ok_or(Error::OutOfOrderSequence {
                position: None,
                producer_id,
                producer_epoch,
                expected,
                found,
            });
        }
        self.append_records(records, Some(producing))
    }
}
