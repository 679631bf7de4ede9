//! The transactions that a log shows as open.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::super::message::Value;
use super::super::schema::Kind::{Int16, Int32, Int64, Text, Time};
use super::super::schema::{Struct, field};
use super::errors::{LogError, LogErrors};
use super::table::{Row, Table};
use super::topic_logs::{TableOptions, damage_text};
use crate::dir::{LogDir, PathKind, classify};
use crate::error::Result;
use crate::fs::names::PartitionName;
use crate::log::{Log, OnDamage, ScanOptions, ScanStep};
use crate::record::BatchHeader;

static COLUMNS: Struct = Struct::shared(
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
        field("error", Text),
    ],
);

/// The transactions without a marker in the partitions of a data directory, or in one partition, by topic, partition and first offset. The
/// first of a partition holds back its committed readers; one whose producer is gone is a hanging transaction.
///
/// `start_time` and `last_time` are the largest timestamps of its first and of its last batch. `error` says if damage after its first
/// offset may have destroyed its marker: then it may have ended, and its last records may be those of a later transaction. Without filters
/// every partition is read; `options.topics` selects some, and `options.groups` has no effect. A partition of a data directory that cannot
/// be opened or read is a row with only an error.
///
/// *Cost*: walks the headers of the logs, and does not read the records. *Source*: `ProducerStateManager`; `TransactionsCommand`.
///
/// # Errors
/// As [`Log::open`] and [`Log::scan`].
pub fn open_transactions(path: impl AsRef<Path>, options: &TableOptions) -> Result<Table> {
    let mut table = Table::new(&COLUMNS);
    if classify(path.as_ref())?.kind == PathKind::DataDirectory {
        let directory = Arc::new(LogDir::open(path, options.log.clone(), &[])?);
        for (PartitionName { topic, partition, .. }, opened) in
            directory.named_logs(options.topics.as_deref())
        {
            let unread = match opened {
                Ok(log) => match add_log(&mut table, &log, options) {
                    Ok(()) => continue,
                    Err(error) if error.is_unreadable() => error,
                    Err(error) => return Err(error),
                },
                Err(error) if error.ends_all() => return Err(error),
                Err(error) => error,
            };
            let error = LogError { offset: None, text: unread.to_string() };
            table.push(error_row(Some(&topic), Some(partition), &error));
        }
    } else {
        add_log(&mut table, &Log::open(path, options.log.clone())?, options)?;
    }
    Ok(table)
}

#[derive(Debug)]
struct OpenTransaction {
    first: BatchHeader,
    last: BatchHeader,
    records: i64,
    /// Damage that may have destroyed its marker: the first offset that may be missing.
    damage: Option<i64>,
}

fn add_log(table: &mut Table, log: &Log, options: &TableOptions) -> Result<()> {
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
            Some(ScanStep::Batch(batch)) => add_batch(&mut open, batch.header),
            Some(ScanStep::DamagedRange(_)) => {}
            None => break,
        }
    }
    table.add_damage(scan.damaged_ranges().to_vec());
    let mut open: Vec<_> = open.into_values().collect();
    open.sort_by_key(|open| open.first.base_offset);
    for OpenTransaction { first, last, records, damage } in open {
        let time = |time: i64| if time < 0 { Value::Null } else { Value::Number(time) };
        let error = damage
            .map(|offset| format!("it may have ended: its marker may be in the damage at offset {offset}"));
        table.push(vec![
            topic_value(log.topic()),
            partition_value(log.partition()),
            Value::Number(first.producer_id),
            Value::Number(last.producer_epoch.into()),
            Value::Number(first.base_offset),
            Value::Number(last.last_offset),
            Value::Number(records),
            time(first.max_timestamp),
            time(last.max_timestamp),
            error.map_or(Value::Null, |error| Value::Text(error.into())),
        ]);
    }
    table.extend(errors.into_iter().map(|error| error_row(log.topic(), log.partition(), &error)));
    Ok(())
}

fn add_batch(open: &mut HashMap<i64, OpenTransaction>, header: BatchHeader) {
    if !header.is_transactional() {
        return;
    }
    let count = i64::from(header.count.unwrap_or(0));
    if header.is_control() {
        // compaction may have removed the marker of a control batch
        if count > 0 {
            open.remove(&header.producer_id);
        }
        return;
    }
    let open = open.entry(header.producer_id).or_insert(OpenTransaction {
        first: header,
        last: header,
        records: 0,
        damage: None,
    });
    open.last = header;
    open.records = open.records.saturating_add(count);
}

fn topic_value(topic: Option<&str>) -> Value<'static> {
    topic.map_or(Value::Null, |topic| Value::Text(topic.to_owned().into()))
}

fn partition_value(partition: Option<i32>) -> Value<'static> {
    partition.map_or(Value::Null, |partition| Value::Number(partition.into()))
}

/// A row of which only the log, the first offset that is missing and the error are known.
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
