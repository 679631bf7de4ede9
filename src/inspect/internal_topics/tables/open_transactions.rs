//! The transactions that a log shows as open.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::super::message::Value;
use super::super::schema::Kind::{Int16, Int32, Int64, Text, Time};
use super::super::schema::{Struct, field};
use super::table::Table;
use super::topic_logs::TableOptions;
use crate::dir::{LogDir, PathKind, classify};
use crate::error::Result;
use crate::log::{Log, ScanOptions, ScanStep};
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
    ],
);

/// The transactions without a marker in the partitions of a data directory, or in one partition, by topic, partition and first offset. The
/// first of a partition holds back its committed readers; one whose producer is gone is a hanging transaction.
///
/// `start_time` and `last_time` are the largest timestamps of its first and of its last batch. Without filters every partition is read;
/// `options.topics` selects some, and `options.groups` has no effect.
///
/// *Cost*: walks the headers of the logs. *Source*: `ProducerStateManager`; `TransactionsCommand`.
///
/// # Errors
/// As [`Log::open`] and [`Log::scan`].
pub fn open_transactions(path: impl AsRef<Path>, options: &TableOptions) -> Result<Table> {
    let mut table = Table::new(&COLUMNS);
    if classify(path.as_ref())?.kind == PathKind::DataDirectory {
        let directory = Arc::new(LogDir::open(path, options.log.clone(), &[])?);
        for log in directory.logs(options.topics.as_deref()) {
            add_log(&mut table, &log?, options)?;
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
}

fn add_log(table: &mut Table, log: &Log, options: &TableOptions) -> Result<()> {
    let mut open: HashMap<i64, OpenTransaction> = HashMap::new();
    let scan = ScanOptions { batches_only: true, on_damage: options.on_damage, ..ScanOptions::default() };
    let mut scan = log.scan(scan)?;
    while let Some(step) = scan.next_step()? {
        let ScanStep::Batch(batch) = step else { continue };
        let header = batch.header;
        if !header.is_transactional() {
            continue;
        }
        let count = i64::from(header.count.unwrap_or(0));
        if header.is_control() {
            // compaction may have removed the marker of a control batch
            if count > 0 {
                open.remove(&header.producer_id);
            }
            continue;
        }
        let open = open.entry(header.producer_id).or_insert(OpenTransaction {
            first: header,
            last: header,
            records: 0,
        });
        open.last = header;
        open.records = open.records.saturating_add(count);
    }
    table.add_damage(scan.damaged_ranges().to_vec());
    let mut open: Vec<_> = open.into_values().collect();
    open.sort_by_key(|open| open.first.base_offset);
    for OpenTransaction { first, last, records } in open {
        let time = |time: i64| if time < 0 { Value::Null } else { Value::Number(time) };
        table.push(vec![
            log.topic().map_or(Value::Null, |topic| Value::Text(topic.to_owned().into())),
            log.partition().map_or(Value::Null, |partition| Value::Number(partition.into())),
            Value::Number(first.producer_id),
            Value::Number(last.producer_epoch.into()),
            Value::Number(first.base_offset),
            Value::Number(last.last_offset),
            Value::Number(records),
            time(first.max_timestamp),
            time(last.max_timestamp),
        ]);
    }
    Ok(())
}
