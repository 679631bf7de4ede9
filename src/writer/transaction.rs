//! Transactions of a writer: records that become visible to committed readers together, or not at all. Kafka:
//! the transactional producer, and the part of the transaction coordinator that writes markers.

use std::sync::{Arc, Weak};

use super::appender::Producing;
use super::partition::Partition;
use super::producer::upgrade;
use super::sessions::Holder;
use super::{Appended, Appender, LogWriter, Shared, Unflushed};
use crate::error::{Error, Result};
use crate::record::NewRecord;
use crate::record::control::ControlType;
use crate::state::positions;
use crate::state::producer_ids::IdOwner;

/// The protocol by which a transaction ends. Kafka: the feature `transaction.version`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TransactionVersion {
    /// The marker has the epoch of the transaction, and so has the next transaction, whose sequences run on.
    V1,
    /// The marker has the next epoch, in which the next transaction begins at sequence 0 (KIP-890).
    #[default]
    V2,
}

/// A transaction. One that is neither committed nor aborted stays open, also when this is dropped and the log
/// is closed: committed readers stop before it until the next transaction with the same transactional id, or
/// [`LogWriter::abort_transaction`], aborts it.
///
/// ```
/// use cordwood::record::NewRecord;
/// use cordwood::writer::{LogWriter, TransactionVersion, WriterOptions};
///
/// # fn main() -> cordwood::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("orders-0");
/// let mut writer = LogWriter::open(&path, &WriterOptions::default())?;
/// let mut transaction = writer.transaction("billing", TransactionVersion::V2)?;
/// for value in [b"paid", b"sent"] {
///     let record = NewRecord { timestamp: 1_700_000_000_000, value: Some(value), ..NewRecord::default() };
///     transaction.append(&record)?;
/// }
/// assert_eq!(writer.last_stable_offset(), 0);
/// let marker = transaction.commit()?;
/// assert_eq!((marker.first_offset, marker.durable, writer.last_stable_offset()), (2, true, 3));
/// # writer.close()
/// # }
/// ```
#[derive(Debug)]
#[must_use]
pub struct Transaction {
    shared: Weak<Shared>,
    producer_id: i64,
    producer_epoch: i16,
    transactional_id: String,
    version: TransactionVersion,
    /// `None` once it has ended.
    holder: Option<Holder>,
    written: Option<Written>,
}

/// What a transaction has in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Written {
    first_offset: i64,
    last_offset: i64,
}

impl LogWriter {
    /// Begins a transaction; see [`Appender::transaction`].
    ///
    /// # Errors
    /// Those of [`Appender::transaction`].
    pub fn transaction(&self, transactional_id: &str, version: TransactionVersion) -> Result<Transaction> {
        self.appender().transaction(transactional_id, version)
    }

    /// Aborts the open transaction of a producer; see [`Appender::abort_transaction`].
    ///
    /// # Errors
    /// Those of [`Appender::abort_transaction`].
    pub fn abort_transaction(&mut self, producer_id: i64) -> Result<Appended> {
        self.appender().abort_transaction(producer_id)
    }
}

impl Appender {
    /// Begins a transaction. The open transaction of the same transactional id, of this writer or of one
    /// before, is aborted, and its handle is fenced: its calls return [`Error::InvalidProducerEpoch`].
    ///
    /// *Cost*: the first transaction of an id writes a small file, durably.
    ///
    /// # Errors
    /// [`Error::Config`] for a transactional id that is not a name of a topic; [`Error::Corrupt`] if the file
    /// of the ids is damaged; [`Error::Io`]; [`Error::Poisoned`]; [`Error::Closed`].
    ///
    /// *Source*: `KafkaProducer.initTransactions`, `beginTransaction`;
    /// `TransactionCoordinator.handleInitProducerId`.
    pub fn transaction(&self, transactional_id: &str, version: TransactionVersion) -> Result<Transaction> {
        positions::check_name("transactional_id", transactional_id)?;
        let holder = self.shared.enter()?.begin_transaction(transactional_id)?;
        let Holder { producer_id, producer_epoch, .. } = holder;
        Ok(Transaction {
            shared: Arc::downgrade(&self.shared),
            producer_id,
            producer_epoch,
            transactional_id: transactional_id.to_owned(),
            version,
            holder: Some(holder),
            written: None,
        })
    }

    /// Aborts the open transaction of a producer, whose handle is fenced if this writer has given it out. The
    /// result is the offset of the marker.
    ///
    /// A producer of another writer, such as a Kafka client, keeps its epoch.
    ///
    /// # Errors
    /// [`Error::Config`] if the producer has no open transaction; the errors of an append.
    ///
    /// *Source*: `kafka-transactions.sh abort`.
    pub fn abort_transaction(&self, producer_id: i64) -> Result<Appended> {
        let (appended, truncations) = {
            let mut partition = self.shared.enter()?;
            (partition.abort_open(producer_id)?, partition.truncations)
        };
        self.shared.acknowledge(appended, truncations)
    }
}

impl Transaction {
    /// Its transactional id.
    pub fn transactional_id(&self) -> &str {
        &self.transactional_id
    }

    /// The id of its producer.
    pub fn producer_id(&self) -> i64 {
        self.producer_id
    }

    /// The epoch of its batches.
    pub fn producer_epoch(&self) -> i16 {
        self.producer_epoch
    }

    /// The offset of its first record; `None` before the first append.
    pub fn first_offset(&self) -> Option<i64> {
        self.written.map(|written| written.first_offset)
    }

    /// Whether it was neither committed nor aborted.
    pub fn is_open(&self) -> bool {
        self.holder.is_some()
    }

    /// Appends one record; see [`Transaction::append_many`].
    ///
    /// # Errors
    /// As [`Transaction::append_many`].
    pub fn append(&mut self, record: &NewRecord<'_>) -> Result<Appended> {
        self.append_many(std::slice::from_ref(record))
    }

    /// Appends records, as one batch if they fit, else as several. It does not wait for the disk: the commit
    /// makes all records of the transaction durable.
    ///
    /// # Errors
    /// Those of [`Appender::append_many`]; [`Error::InvalidProducerEpoch`] if the transaction is fenced;
    /// [`Error::Config`] if records of it were truncated; [`Error::Closed`] if it has ended.
    pub fn append_many(&mut self, records: &[NewRecord<'_>]) -> Result<Appended> {
        self.append_many_unflushed(records)?.appended()
    }

    /// [`Transaction::append_many`] with its result later. Nothing waits for the disk.
    ///
    /// # Errors
    /// Those of [`Transaction::append_many`].
    pub fn append_many_unflushed(&mut self, records: &[NewRecord<'_>]) -> Result<Unflushed> {
        let (shared, holder) = self.open()?;
        let mut partition = shared.enter()?;
        partition.check_transaction(holder, self.written)?;
        let (before, producer_id) = (self.written, holder.producer_id);
        let appended = partition.append_records(records, Some(Producing::Transactional(holder)));
        // also after an error: the batches before the one that failed are in the log
        let (written, truncations) = (partition.written_by(producer_id), partition.truncations);
        drop(partition);
        self.written = written.or(before);
        Ok(Unflushed::acknowledged(shared, appended?, truncations))
    }

    /// Commits: committed readers see the records. The result is the offset of the marker, and whether the
    /// marker and all records before it are durable; it waits as an append does. Nothing is written for a
    /// transaction without records.
    ///
    /// # Errors
    /// As [`Transaction::append_many`]. After [`Error::Io`] the transaction is open, unless later calls
    /// return [`Error::Poisoned`].
    pub fn commit(&mut self) -> Result<Appended> {
        self.end(ControlType::Commit)
    }

    /// Aborts: committed readers skip the records. Otherwise as [`Transaction::commit`]. What is left of a
    /// transaction whose records were truncated can be aborted.
    ///
    /// # Errors
    /// As [`Transaction::commit`], but records may have been truncated.
    pub fn abort(&mut self) -> Result<Appended> {
        self.end(ControlType::Abort)
    }

    /// Begins it again if it has no records, and another one of the same transactional id has begun since,
    /// which is fenced then.
    #[cfg(feature = "binding")]
    #[doc(hidden)]
    pub fn renew(&mut self) -> Result<()> {
        let (shared, holder) = self.open()?;
        let is_fenced = shared.enter()?.check_holder(holder).is_err();
        if is_fenced && self.written.is_none() {
            *self = Appender::new(shared).transaction(&self.transactional_id, self.version)?;
        }
        Ok(())
    }

    fn open(&self) -> Result<(Arc<Shared>, &Holder)> {
        let holder = self.holder.as_ref().ok_or(Error::Closed { handle: "Transaction" })?;
        Ok((upgrade(&self.shared)?, holder))
    }

    fn end(&mut self, control_type: ControlType) -> Result<Appended> {
        self.write_end(control_type)?.acknowledge()
    }

    /// Writes the marker, and does not wait for the disk.
    #[doc(hidden)]
    pub fn write_end(&mut self, control_type: ControlType) -> Result<Ended> {
        let (shared, holder) = self.open()?;
        let (appended, truncations) = {
            let mut partition = shared.enter()?;
            if control_type == ControlType::Commit {
                partition.check_transaction(holder, self.written)?;
            } else {
                partition.check_holder(holder)?;
            }
            (partition.end_transaction(holder, self.version, control_type)?, partition.truncations)
        };
        self.holder = None;
        Ok(Ended { shared, appended, truncations })
    }
}

/// The end of a transaction, before it is acknowledged.
#[must_use]
#[derive(Debug)]
pub struct Ended {
    shared: Arc<Shared>,
    appended: Appended,
    truncations: u64,
}

impl Ended {
    /// Leaves the wait for the disk to the caller.
    #[cfg(feature = "binding")]
    pub fn unflushed(self) -> Unflushed {
        Unflushed::acknowledged_by_mode(self.shared, self.appended, self.truncations)
    }

    /// Waits as the flush mode requires.
    pub fn acknowledge(self) -> Result<Appended> {
        self.shared.acknowledge(self.appended, self.truncations)
    }
}

impl Partition {
    fn begin_transaction(&mut self, transactional_id: &str) -> Result<Holder> {
        if let Some(producer_id) = self.known_id(IdOwner::Transaction, transactional_id)? {
            if self.is_transaction_open(producer_id) {
                self.abort_open(producer_id)?;
            } else if self.sessions.is_in_use(producer_id) {
                self.set_epoch(producer_id, next_epoch(self.epoch_of(producer_id)));
            }
            let epoch = self.epoch_of(producer_id).max(0);
            // its marker needs a higher one
            if epoch < i16::MAX {
                return Ok(self.hold(producer_id, epoch));
            }
        }
        let producer_id = self.transaction_producer(transactional_id)?;
        let epoch = self.epoch_of(producer_id).max(0);
        Ok(self.hold(producer_id, epoch))
    }

    fn is_transaction_open(&self, producer_id: i64) -> bool {
        self.producers.get(producer_id).is_some_and(|entry| entry.open_transaction.is_some())
    }

    /// Aborts the open transaction of a producer. If the id is one that a writer gave out, handles of it are
    /// fenced.
    fn abort_open(&mut self, producer_id: i64) -> Result<Appended> {
        if !self.is_transaction_open(producer_id) {
            let expected = "the id of a producer with an open transaction in this log";
            return Err(Error::config("producer_id", expected, producer_id.to_string()));
        }
        let is_ours =
            [IdOwner::Producer, IdOwner::Transaction].iter().any(|owner| owner.ids().contains(&producer_id));
        let epoch = self.epoch_of(producer_id);
        let epoch = if is_ours { next_epoch(epoch) } else { epoch };
        self.append_marker(producer_id, epoch, ControlType::Abort)
    }

    /// What a producer has of its open transaction.
    fn written_by(&self, producer_id: i64) -> Option<Written> {
        let entry = self.producers.get(producer_id)?;
        let last_offset = entry.last_batch()?.last_offset;
        Some(Written { first_offset: entry.open_transaction?, last_offset })
    }

    /// Fails if the handle is fenced, or the log does not have the records of the transaction: they were
    /// truncated.
    fn check_transaction(&self, holder: &Holder, written: Option<Written>) -> Result<()> {
        self.check_holder(holder)?;
        let present = self.written_by(holder.producer_id);
        let is_same = match (present, written) {
            // if records of it were deleted from the log start, a truncation of later ones finds the first
            // that is left, as an opening does
            (Some(present), Some(written)) => {
                present.last_offset == written.last_offset
                    && (present.first_offset == written.first_offset
                        || written.first_offset < self.ends.log_start_offset())
            }
            _ => present == written,
        };
        if is_same {
            return Ok(());
        }
        let words = |written: Option<Written>| match written {
            Some(Written { first_offset, last_offset }) => {
                format!("records of the transaction from offset {first_offset} to {last_offset}")
            }
            None => "no record of the transaction".to_owned(),
        };
        let found = format!("{}: others were truncated; abort it, and begin another one", words(present));
        Err(Error::config("transaction", words(written), found))
    }

    fn end_transaction(
        &mut self,
        holder: &Holder,
        version: TransactionVersion,
        control_type: ControlType,
    ) -> Result<Appended> {
        let Holder { producer_id, producer_epoch, .. } = *holder;
        if !self.is_transaction_open(producer_id) {
            return Ok(Appended::nothing(self.ends.log_end_offset()));
        }
        let epoch = match version {
            TransactionVersion::V1 => producer_epoch,
            TransactionVersion::V2 => next_epoch(producer_epoch),
        };
        self.append_marker(producer_id, epoch, control_type)
    }
}

/// The epoch after one. The highest stays: no transaction begins with it.
fn next_epoch(epoch: i16) -> i16 {
    epoch.saturating_add(1)
}
