//! A client that runs operations on a log and records the results in the model.

use cordwood::config::LogConfig;
use cordwood::fs::mem::{CrashPoint, MemoryDisk, Operation};
use cordwood::record::NewRecord;
use cordwood::writer::{Appended, FlushMode, LogWriter, Transaction, TransactionVersion, WriterOptions};
use cordwood::{Error, Result};

use crate::batches::{ABORT, BatchV2, COMMIT, Rec};
use crate::found::fingerprint;
use crate::model::{Effect, Expected, Model, Sent};

/// An operation of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// A batch of two records, then a batch of a transaction, or the marker that ends it.
    Append,
    /// A batch of a named producer; then an append in a transaction, which is begun, or the commit or abort
    /// of the open one.
    Transact,
    Flush,
    Roll,
    /// Raises the log start by two, then applies retention by size.
    Retain,
    /// Truncates the last two or five offsets, which may cut inside a batch; every second time removes all
    /// records.
    Truncate,
    Close,
    /// Reopens without a close, as after `kill -9`.
    Reopen,
}

impl Op {
    pub const ALL: [Self; 8] = [
        Self::Append,
        Self::Transact,
        Self::Flush,
        Self::Roll,
        Self::Retain,
        Self::Truncate,
        Self::Close,
        Self::Reopen,
    ];
}

pub const NOW: i64 = 1_700_000_000_000;

/// The writer's settings, and the log before the sequence begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    pub flush: FlushMode,
    pub sector: usize,
    pub before: Before,
}

/// The log before a sequence begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Before {
    Nothing,
    /// Segments of a log that was closed.
    Closed,
    /// Segments of a writer that was killed.
    Killed,
    /// Segments of a log that was truncated at both ends and then appended to.
    Shortened,
}

impl Setup {
    pub fn options(self) -> WriterOptions {
        let config = LogConfig {
            segment_bytes: 400,
            index_interval_bytes: 1,
            segment_index_bytes: 48,
            retention_bytes: 500,
            retention_ms: -1,
            ..LogConfig::default()
        };
        WriterOptions { config, flush: self.flush, clock: || NOW, random: 1, ..WriterOptions::default() }
    }
}

/// The name of the producer, and the transactional id.
pub const NAMED: &str = "named";
pub const TRANSACTIONAL: &str = "billing";

/// The record of a marker that the writer makes.
fn marker(kind: i16) -> Rec {
    BatchV2::marker(0, kind, 0, 0, NOW).records.remove(0)
}

/// Records of one batch, from an offset on.
fn sent(first: i64, records: &[Rec]) -> Vec<Sent> {
    let fingerprint =
        |record: &Rec| fingerprint(record.timestamp, record.key.as_deref(), record.value.as_deref(), &[]);
    let batch_end = first + records.len() as i64;
    let numbered = (first..).zip(records);
    numbered.map(|(offset, record)| Sent { offset, batch_end, fingerprint: fingerprint(record) }).collect()
}

/// A call of the writer, with its crash points.
pub struct Call {
    pub name: &'static str,
    pub effect: Effect,
    pub error: Option<Error>,
    /// The model before the call, and the model after a successful call.
    pub before: Model,
    pub after: Model,
    /// Whether it acknowledged data as durable.
    pub acknowledges: bool,
    /// The crash points before each operation except the first, and after the last, with the logs that are
    /// valid at each.
    pub points: Vec<(String, CrashPoint, Expected)>,
}

/// A log that is being written.
pub struct Client {
    pub disk: MemoryDisk,
    pub options: WriterOptions,
    pub writer: Option<LogWriter>,
    pub model: Model,
    /// Records that a failed append may have left.
    pub unsure: Vec<Sent>,
    appends: i64,
    /// The last transactional batch: its producer's id and epoch. `None`: its marker was appended.
    open: Option<(i64, i16)>,
    transaction: Option<Transaction>,
    truncations: u32,
}

impl Client {
    pub fn new(disk: MemoryDisk, options: WriterOptions) -> Self {
        Self {
            disk,
            options,
            writer: None,
            model: Model::default(),
            unsure: Vec::new(),
            appends: 0,
            open: None,
            transaction: None,
            truncations: 0,
        }
    }

    /// A client on an empty disk, or on a disk that already has a log.
    pub fn of(setup: Setup) -> Self {
        let mut client = Self::new(MemoryDisk::new(setup.sector), setup.options());
        let ops = match setup.before {
            Before::Nothing => &[][..],
            Before::Closed => &[Op::Reopen, Op::Append, Op::Append, Op::Roll, Op::Append, Op::Close],
            Before::Killed => &[Op::Reopen, Op::Append, Op::Roll, Op::Append, Op::Append],
            Before::Shortened => &[
                Op::Reopen,
                Op::Append,
                Op::Append,
                Op::Append,
                Op::Roll,
                Op::Append,
                Op::Truncate,
                Op::Retain,
                Op::Append,
            ],
        };
        for op in ops {
            client.apply(*op, &mut |_| ());
        }
        client
    }

    /// Runs an operation, and reports every call.
    pub fn apply(&mut self, op: Op, visit: &mut dyn FnMut(Call)) {
        match op {
            Op::Append => {
                visit(self.append(2));
                visit(self.produce());
            }
            Op::Transact => {
                visit(self.produce_named());
                if self.transaction.is_some() {
                    visit(self.end_transaction());
                } else {
                    visit(self.begin_transaction());
                    if self.transaction.is_some() {
                        visit(self.append_in_transaction());
                    }
                }
            }
            Op::Flush => visit(self.flush()),
            Op::Roll => visit(self.roll()),
            Op::Retain => {
                let offset = (self.model.start + 2).min(self.model.end);
                visit(self.delete_before(offset));
                visit(self.retain());
            }
            Op::Truncate => {
                self.truncations += 1;
                // its records may be truncated; the next one aborts what is left of it
                self.transaction = None;
                visit(if self.truncations.is_multiple_of(2) {
                    // in turn: above the log end, at the log start, inside the last segment, below the log
                    // start
                    let (start, end) = (self.model.start, self.model.end);
                    let offsets = [end + 3, start, end - 1, start - 1];
                    self.restart_at(offsets[self.appends as usize % 4].max(0))
                } else {
                    // into the last batches, or into an earlier segment
                    let depth = if self.model.end % 2 == 0 { 2 } else { 5 };
                    // or below the log start offset
                    self.truncate_to((self.model.end - depth).max(0))
                });
            }
            Op::Close => {
                self.transaction = None;
                let close = |writer: &mut LogWriter| writer.close();
                visit(self.call("close", Effect::Grows, close, |_| (), |_, ()| ()));
            }
            Op::Reopen => visit(self.reopen()),
        }
    }

    /// Appends a batch of several records with unique contents.
    pub fn append(&mut self, count: i64) -> Call {
        let number = self.appends + 1;
        let values: Vec<_> = (0..count)
            .map(|n| format!("{number} {n} {}", "x".repeat(9 + n as usize * 5)).into_bytes())
            .collect();
        self.append_values(&values)
    }

    /// Appends a batch of one record with this value.
    pub fn append_of(&mut self, value: &[u8]) -> Call {
        self.append_values(&[value.to_vec()])
    }

    /// Appends a transactional batch of one record, or the marker of the last one. Each has a higher epoch,
    /// because after a crash the client does not know the sequence.
    pub fn produce(&mut self) -> Call {
        let number = self.appends + 1;
        let timestamp = NOW + number * 10;
        if let Some((producer_id, epoch)) = self.open.take() {
            let kind = if number % 3 == 0 { COMMIT } else { ABORT };
            let marker = BatchV2::marker(self.model.end, kind, producer_id, epoch, timestamp);
            let record = marker.records[0].clone();
            return self.append_as(&[record], Some(&(marker.build().bytes, true)));
        }
        let producer_id = [7, 1 << 40][number as usize / 4 % 2];
        self.open = Some((producer_id, number as i16));
        let record = Rec::at(timestamp).key("key").value(format!("{number} {}", "x".repeat(9)));
        let batch = BatchV2::new(0).transaction(producer_id, number as i16, 0).records([record.clone()]);
        self.append_as(&[record], Some(&(batch.build().bytes, false)))
    }

    /// Appends a batch of a named producer.
    pub fn produce_named(&mut self) -> Call {
        let record = Rec::at(NOW + (self.appends + 1) * 10).value(format!("named {}", self.appends));
        self.append_by(&[record], |writer, records| writer.producer(Some(NAMED))?.append_many(records, None))
    }

    fn append_in_transaction(&mut self) -> Call {
        let mut transaction = self.transaction.take().unwrap();
        let record = Rec::at(NOW + (self.appends + 1) * 10).key("key").value(format!("in {}", self.appends));
        let call = self.append_by(&[record], |_, records| transaction.append_many(records));
        // without a record, its end would write nothing
        self.transaction = Some(transaction).filter(|_| call.error.is_none());
        call
    }

    /// Commits two of three transactions, and aborts the third.
    fn end_transaction(&mut self) -> Call {
        let mut transaction = self.transaction.take().unwrap();
        let kind = if self.appends % 3 == 0 { ABORT } else { COMMIT };
        self.append_by(&[marker(kind)], |_, _| {
            if kind == ABORT { transaction.abort() } else { transaction.commit() }
        })
    }

    /// Begins a transaction. It aborts the open one of the same id, which a crash, a close or a truncation
    /// has left.
    fn begin_transaction(&mut self) -> Call {
        let version = if self.appends % 2 == 0 { TransactionVersion::V1 } else { TransactionVersion::V2 };
        let next = self.model.end;
        let mut begun = None;
        let aborted = sent(next, &[marker(ABORT)]);
        let call = self.call(
            "transaction",
            Effect::Grows,
            |writer| {
                begun = Some(writer.transaction(TRANSACTIONAL, version)?);
                Ok(writer.log_end_offset())
            },
            |_| (),
            |model, end| {
                assert!(end == next || end == next + 1, "{end} after {next}");
                model.end = end;
                model.records.extend(aborted.iter().filter(|sent| sent.offset < end));
            },
        );
        self.transaction = begun;
        self.note_unsure(call.error.as_ref(), aborted);
        call
    }

    fn append_values(&mut self, values: &[Vec<u8>]) -> Call {
        let number = self.appends + 1;
        let records: Vec<_> = (0..)
            .zip(values)
            .map(|(n, value)| {
                let record = Rec::at(NOW + number * 10 - n * 7).value(value);
                if n == 0 { record.key("key") } else { record }
            })
            .collect();
        self.append_as(&records, None)
    }

    /// Appends records. `batch`: the batch that they are in, and whether it keeps its offsets; `None`: the
    /// writer builds it.
    fn append_as(&mut self, records: &[Rec], batch: Option<&(Vec<u8>, bool)>) -> Call {
        self.append_by(records, |writer, new| match batch {
            Some((batch, keeps_offsets)) => writer.append_batches(batch, *keeps_offsets),
            None => writer.append_many(new),
        })
    }

    /// Appends records as one batch by a call.
    fn append_by(
        &mut self,
        records: &[Rec],
        append: impl FnOnce(&mut LogWriter, &[NewRecord<'_>]) -> Result<Appended>,
    ) -> Call {
        let count = records.len() as i64;
        self.appends += 1;
        let new: Vec<_> = records
            .iter()
            .map(|record| NewRecord {
                timestamp: record.timestamp,
                key: record.key.as_deref(),
                value: record.value.as_deref(),
                headers: &[],
            })
            .collect();
        let next = self.model.end;
        let sent = sent(next, records);
        let call = self.call(
            "append",
            Effect::Grows,
            |writer| append(writer, &new),
            |_| (),
            |model: &mut Model, appended: Appended| {
                assert_eq!((appended.first_offset, appended.last_offset), (next, next + count - 1));
                model.end = appended.last_offset + 1;
                model.records.extend(&sent);
                if appended.durable {
                    model.durable = model.end;
                }
            },
        );
        self.note_unsure(call.error.as_ref(), sent);
        call
    }

    fn note_unsure(&mut self, error: Option<&Error>, sent: Vec<Sent>) {
        self.unsure = match error {
            // a successful append shows that the failed appends before it are not in the log: it has their
            // offset
            None => Vec::new(),
            Some(Error::Poisoned { .. }) => std::mem::take(&mut self.unsure),
            Some(_) => sent,
        };
    }

    pub fn flush(&mut self) -> Call {
        let flush = |writer: &mut LogWriter| writer.flush();
        self.call("flush", Effect::Grows, flush, |_| (), |model, ()| model.durable = model.end)
    }

    pub fn roll(&mut self) -> Call {
        self.call("roll", Effect::Grows, LogWriter::roll, |_| (), |_, ()| ())
    }

    pub fn delete_before(&mut self, offset: i64) -> Call {
        self.call(
            "delete_before",
            Effect::DeletesStart,
            |writer| writer.delete_before(offset),
            |model| model.start = model.start.max(offset),
            |_, _| (),
        )
    }

    pub fn retain(&mut self) -> Call {
        self.call(
            "apply_retention",
            Effect::DeletesStart,
            |writer| writer.apply_retention(Some(NOW)),
            // during the call, up to the log end; the plan has the actual offset
            |model| model.start = model.end,
            |model, plan| {
                model.start = plan.log_start_offset;
            },
        )
    }

    pub fn truncate_to(&mut self, offset: i64) -> Call {
        let effect = if offset < self.model.start { Effect::Restarts } else { Effect::Truncates };
        self.call(
            "truncate_to",
            effect,
            |writer| writer.truncate_to(offset),
            |model| model.truncate_to(offset),
            |_, _| (),
        )
    }

    pub fn restart_at(&mut self, offset: i64) -> Call {
        self.call(
            "truncate_fully_and_start_at",
            Effect::Restarts,
            |writer| writer.truncate_fully_and_start_at(offset),
            |model| model.restart_at(offset),
            |_, ()| (),
        )
    }

    pub fn reopen(&mut self) -> Call {
        self.transaction = None;
        self.writer = None;
        self.disk.record();
        let before = self.model.clone();
        let opened = LogWriter::open_in(self.disk.directory("/orders-0"), &self.options);
        let error = match opened {
            Ok(writer) => {
                let model = &mut self.model;
                model.end = writer.log_end_offset();
                model.durable = writer.durable_offset();
                model.start = writer.log_start_offset();
                model.records.append(&mut self.unsure);
                model.records.retain(|sent| sent.offset < model.end);
                self.writer = Some(writer);
                None
            }
            Err(error) => Some(error),
        };
        let after = self.model.clone();
        self.called("open", Effect::Grows, error, before, after)
    }

    /// Runs a call and updates the model: `update` applies its effect, `returned` its result.
    fn call<T>(
        &mut self,
        name: &'static str,
        effect: Effect,
        call: impl FnOnce(&mut LogWriter) -> Result<T>,
        update: impl FnOnce(&mut Model),
        returned: impl FnOnce(&mut Model, T),
    ) -> Call {
        let before = self.model.clone();
        let mut after = before.clone();
        update(&mut after);
        self.disk.record();
        let Some(writer) = &mut self.writer else {
            let error = Error::Poisoned { reason: "there is no writer".to_owned() };
            return self.called(name, effect, Some(error), before, after);
        };
        let error = match call(writer) {
            Ok(value) => {
                returned(&mut after, value);
                after.durable = after.durable.max(writer.durable_offset().min(after.end));
                self.model = after.clone();
                None
            }
            Err(error) => Some(error),
        };
        self.called(name, effect, error, before, after)
    }

    fn called(
        &self,
        name: &'static str,
        effect: Effect,
        error: Option<Error>,
        before: Model,
        after: Model,
    ) -> Call {
        let during = Expected::during(effect, &before, &after);
        let recorded = self.disk.recorded();
        let words = |operation: Operation| format!("{name}, before \"{operation}\"");
        let mut points: Vec<_> = recorded
            .into_iter()
            .skip(1)
            .map(|(operation, point)| (words(operation), point, during.clone()))
            .collect();
        points.push((format!("{name}, returned"), self.disk.crash_point(), Expected::after(&self.model)));
        let acknowledges = error.is_none() && after.durable > before.durable;
        Call { name, effect, error, before, after, acknowledges, points }
    }
}
