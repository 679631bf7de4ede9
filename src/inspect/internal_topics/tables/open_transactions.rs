//! The transactions that a log shows as open.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::super::message::Value;
use super::super::schema::Kind::{Bool, Int16, Int32, Int64, Text, Time};
use super::super::schema::{Struct, field};
use super::coordinator_states::CoordinatorStates;
use super::errors::{LogError, LogErrors};
use super::table::{Row, Table};
use super::topic_logs::{TableOptions, damage_text, directory_of, distinct};
use crate::dir::{LogDir, PathKind, classify};
use crate::error::Result;
use crate::fs::names::PartitionName;
use crate::log::{Log, OnDamage, Scan, ScanOptions, ScanStep};
use crate::record::BatchHeader;
use crate::record::control::ControlType;
use crate::state::producer_ids::{IdOwner, ProducerIds};

pub(super) static COLUMNS: Struct = Struct::shared(
    "open_transactions",
    &[
        field("topic", Text),
        field("partition", Int32),
        field("producer_id", Int64),
        field("producer_epoch", Int16),
        field("first_offset", Int64),
        field("last_offset", Int64),
        field("records", Int64),
        field("start_time", Time),
        field("last_time", Time),
        field("last_stable_offset", Int64),
        field("records_behind", Int64),
        field("transactional_id", Text),
        field("state", Text),
        field("timeout_ms", Int32),
        field("is_hanging", Bool),
        field("error", Text),
    ],
);

/// The transactions without a marker in the partitions of data directories, or in single partitions, by
/// topic, partition and first offset.
///
/// `start_time` and `last_time` are the largest timestamps of its first and of its last batch. The first one
/// of a partition holds back its committed readers: `last_stable_offset` is its first offset, and
/// `records_behind` are the records at or after it, which they do not get.
///
/// `transactional_id`, `state` and `timeout_ms` are those of its producer in `__transaction_state` of the
/// same directories, and the id that a [`LogWriter`](crate::writer::LogWriter) has given it; null if it has
/// none there. `is_hanging`: it is older than its timeout (15 minutes if that is not known), and its
/// coordinator does not know that it is open in this partition, so that no marker will come. Null if it is
/// not known: not all partitions of `__transaction_state` are there.
///
/// `error` says if damage after its first offset may have destroyed its marker: then it may have ended, and
/// its last records may be those of a later transaction. Without filters every partition is read;
/// `options.topics` selects some, and `options.groups` has no effect. A partition of a data directory that
/// cannot be opened or read is a row with only an error.
///
/// *Cost*: walks the headers of the logs, and does not read the records; reads `__transaction_state`.
/// *Source*: `ProducerStateManager`; `TransactionsCommand`.
///
/// # Errors
/// As [`Log::open`] and [`Log::scan`].
pub fn open_transactions(paths: &[impl AsRef<Path>], options: &TableOptions) -> Result<Table> {
    let mut found = OpenTransactions { table: Table::new(&COLUMNS), logs: Vec::new() };
    let mut directories = Vec::new();
    for path in distinct(paths) {
        if classify(&path)?.kind == PathKind::DataDirectory {
            let directory = Arc::new(LogDir::open(path, options.log.clone(), &[])?);
            found.add_directory(Arc::clone(&directory), options)?;
            directories.push(directory);
        } else {
            let log = Log::open(path, options.log.clone())?;
            directories.extend(directory_of(&log, &options.log));
            found.add_log(&log, options)?;
        }
    }
    if found.logs.iter().any(|log| !log.open.is_empty()) {
        found.join(&CoordinatorStates::read(&directories, options)?);
    }
    Ok(found.table)
}

/// The open transactions of the logs so far.
struct OpenTransactions {
    /// Damage, and rows that have only an error.
    table: Table,
    logs: Vec<OfLog>,
}

/// The open transactions of a log, by their first offset.
struct OfLog {
    topic: Option<String>,
    partition: Option<i32>,
    open: Vec<OpenTransaction>,
    /// The producer ids of transactional ids that a writer has given out.
    ids: ProducerIds,
}

impl OpenTransactions {
    fn add_directory(&mut self, directory: Arc<LogDir>, options: &TableOptions) -> Result<()> {
        for (PartitionName { topic, partition, .. }, opened) in
            directory.named_logs(options.topics.as_deref())
        {
            let unread = match opened {
                Ok(log) => match self.add_log(&log, options) {
                    Ok(()) => continue,
                    Err(error) if error.is_unreadable() => error,
                    Err(error) => return Err(error),
                },
                Err(error) if error.ends_all() => return Err(error),
                Err(error) => error,
            };
            let error = LogError { offset: None, text: unread.to_string() };
            self.table.push(error_row(Some(&topic), Some(partition), &error));
        }
        Ok(())
    }

    /// Adds the rows of the transactions, before the rows of errors.
    fn join(&mut self, states: &CoordinatorStates) {
        let mut table = Table::new(&COLUMNS);
        let now = system_time();
        self.logs.sort_by(|one, other| (&one.topic, one.partition).cmp(&(&other.topic, other.partition)));
        for log in &self.logs {
            table.extend(log.open.iter().map(|open| log.row(open, states, now)));
        }
        table.append(std::mem::replace(&mut self.table, Table::new(&COLUMNS)));
        self.table = table;
    }
}

#[derive(Debug)]
struct OpenTransaction {
    first: BatchHeader,
    last: BatchHeader,
    records: i64,
    /// The records of all producers from its first one on.
    behind: i64,
    /// Damage that may have destroyed its marker: the first offset that may be missing.
    damage: Option<i64>,
}

impl OpenTransactions {
    fn add_log(&mut self, log: &Log, options: &TableOptions) -> Result<()> {
        let mut open: HashMap<i64, OpenTransaction> = HashMap::new();
        let mut errors = LogErrors::default();
        let scan = ScanOptions { batches_only: true, on_damage: options.on_damage, ..ScanOptions::default() };
        let mut known = 0;
        let mut scan = log.scan(scan)?;
        loop {
            let step = scan.next_step()?;
            for range in scan.damaged_ranges().iter().skip(known) {
                for open in open.values_mut() {
                    open.damage = Some(range.start_offset);
                }
                if options.on_damage == OnDamage::Report {
                    errors.add(range.start_offset, damage_text(range));
                }
            }
            known = scan.damaged_ranges().len();
            match step {
                Some(ScanStep::Batch(batch)) => add_batch(&mut open, batch.header, &mut scan)?,
                Some(ScanStep::DamagedRange(_)) => {}
                None => break,
            }
        }
        self.table.add_damage(scan.damaged_ranges().to_vec());
        let mut open: Vec<_> = open.into_values().collect();
        open.sort_by_key(|open| open.first.base_offset);
        self.table.extend(errors.into_iter().map(|error| error_row(log.topic(), log.partition(), &error)));
        // a damaged file of names hides no transaction
        let ids = ProducerIds::read(log.directory()).unwrap_or_default();
        self.logs.push(OfLog {
            topic: log.topic().map(str::to_owned),
            partition: log.partition(),
            open,
            ids,
        });
        Ok(())
    }
}

impl OfLog {
    /// The transactional id that a writer has given the producer of a batch.
    fn own_id(&self, header: &BatchHeader) -> Value<'static> {
        let mut names = self.ids.of(IdOwner::Transaction);
        let name = names.find_map(|(name, id)| (id == header.producer_id).then(|| name.to_owned()));
        name.map_or(Value::Null, |name| Value::Text(name.into()))
    }

    fn row(&self, open: &OpenTransaction, states: &CoordinatorStates, now: i64) -> Row {
        let OpenTransaction { first, last, records, damage, .. } = open;
        let time = |time: i64| if time < 0 { Value::Null } else { Value::Number(time) };
        let holding = self.open.first();
        let state = states.of(first.producer_id);
        let of_state = |name| state.and_then(|state| state.get(name)).cloned().unwrap_or(Value::Null);
        let is_hanging = match (&self.topic, self.partition, damage) {
            (Some(topic), Some(partition), None) if last.max_timestamp >= 0 => states.is_hanging(
                first.producer_id,
                topic,
                partition.into(),
                now.saturating_sub(last.max_timestamp),
            ),
            _ => None,
        };
        let error = damage
            .map(|offset| format!("it may have ended: its marker may be in the damage at offset {offset}"));
        vec![
            topic_value(self.topic.as_deref()),
            partition_value(self.partition),
            Value::Number(first.producer_id),
            Value::Number(last.producer_epoch.into()),
            Value::Number(first.base_offset),
            Value::Number(last.last_offset),
            Value::Number(*records),
            time(first.max_timestamp),
            time(last.max_timestamp),
            holding.map_or(Value::Null, |holding| Value::Number(holding.first.base_offset)),
            holding.map_or(Value::Null, |holding| Value::Number(holding.behind)),
            Some(of_state("transactional_id"))
                .filter(|id| *id != Value::Null)
                .unwrap_or_else(|| self.own_id(first)),
            of_state("state"),
            of_state("timeout_ms"),
            is_hanging.map_or(Value::Null, Value::Bool),
            error.map_or(Value::Null, |error| Value::Text(error.into())),
        ]
    }
}

/// The time of the system clock, ms since the epoch.
fn system_time() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Adds the batch that the scan is at.
fn add_batch(open: &mut HashMap<i64, OpenTransaction>, header: BatchHeader, scan: &mut Scan) -> Result<()> {
    let count = i64::from(header.count.unwrap_or(0));
    if !header.is_control() {
        for open in open.values_mut() {
            open.behind = open.behind.saturating_add(count);
        }
    }
    if !header.is_transactional() {
        return Ok(());
    }
    if header.is_control() {
        let Some(of_producer) = open.get_mut(&header.producer_id) else { return Ok(()) };
        match ControlType::outcome(header, scan.batch_bytes()?, &mut Vec::new()) {
            Ok(Some(_)) => drop(open.remove(&header.producer_id)),
            // compaction has removed the marker, or it is a record of another type, which ends nothing
            Ok(None) => {}
            Err(_) => of_producer.damage = Some(header.base_offset),
        }
        return Ok(());
    }
    let open = open.entry(header.producer_id).or_insert(OpenTransaction {
        first: header,
        last: header,
        records: 0,
        behind: 0,
        damage: None,
    });
    if open.records == 0 {
        open.behind = count;
    }
    open.last = header;
    open.records = open.records.saturating_add(count);
    Ok(())
}

fn topic_value(topic: Option<&str>) -> Value<'static> {
    topic.map_or(Value::Null, |topic| Value::Text(topic.to_owned().into()))
}

fn partition_value(partition: Option<i32>) -> Value<'static> {
    partition.map_or(Value::Null, |partition| Value::Number(partition.into()))
}

/// A row that has only the log, the first offset that is missing and the error.
fn error_row(topic: Option<&str>, partition: Option<i32>, error: &LogError) -> Row {
    let value = |name| match name {
        "topic" => topic_value(topic),
        "partition" => partition_value(partition),
        "first_offset" => error.offset.map_or(Value::Null, Value::Number),
        "error" => Value::Text(error.text.clone().into()),
        _ => Value::Null,
    };
    COLUMNS.fields.iter().map(|field| value(field.name)).collect()
}
