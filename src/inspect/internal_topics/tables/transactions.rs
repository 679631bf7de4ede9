//! The transactional ids of `__transaction_state`.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::super::message::{Message, Value};
use super::super::record_types::{CoordinatorType, TRANSACTION_COORDINATOR};
use super::super::records::{read_key, read_value};
use super::super::schema::Kind::{Array, Int16, Int32, Int64, Struct as StructOf, Text, Time};
use super::super::schema::{Struct, field};
use super::consumer_offsets::{error_row, unless_negative};
use super::errors::{LogError, LogErrors};
use super::table::{Row, Table};
use super::topic_logs::{Entry, TableOptions, TopicLogs, damage_text, for_each_record};
use crate::error::Result;
use crate::log::OnDamage;

static PARTITIONS: Struct =
    Struct::shared("partitions", &[field("topic", Text), field("partitions", Array(&Int32))]);

pub(super) static COLUMNS: Struct = Struct::shared(
    "transactions",
    &[
        field("transactional_id", Text),
        field("producer_id", Int64),
        field("producer_epoch", Int16),
        field("state", Text),
        field("timeout_ms", Int32),
        field("start_time", Time),
        field("last_update_time", Time),
        field("partitions", Array(&StructOf(&PARTITIONS))),
        field("previous_producer_id", Int64),
        field("next_producer_id", Int64),
        field("next_producer_epoch", Int16),
        field("transaction_version", Int16),
        field("coordinator_partition", Int32),
        field("record_offset", Int64),
        field("error", Text),
    ],
);

type Bytes = Box<[u8]>;

/// *Source*: `TransactionState`.
const STATES: [&str; 8] = [
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
];

/// The transactional ids of the `__transaction_state` partitions of data directories, or of some of them,
/// sorted by id, each with the state of its last transaction. A record that is not decodable is a row with an
/// `error`.
///
/// *Source*: `TransactionStateManager.loadTransactionMetadata`.
///
/// # Errors
/// [`Error::Config`](crate::Error::Config) if the path is not of `__transaction_state`; otherwise as
/// [`consumer_offsets`](super::consumer_offsets()).
pub fn transactions(paths: &[impl AsRef<Path>], options: &TableOptions) -> Result<Table> {
    let logs = TopicLogs::open(paths, super::TRANSACTION_STATE, &options.log)?;
    let mut table = Table::new(&COLUMNS);
    let mut rows = BTreeMap::new();
    let mut error_rows = Vec::new();
    let mut lost = LogErrors::default();
    logs.for_each(options, &mut lost, |log| {
        let partition = log.partition().map_or(Value::Null, |partition| Value::Number(partition.into()));
        let mut latest: HashMap<Bytes, (i64, Bytes)> = HashMap::new();
        let mut errors = LogErrors::default();
        let damaged = for_each_record(log, options.on_damage, |entry| match entry {
            Entry::Damage(range) if options.on_damage == OnDamage::Report => {
                errors.add(range.start_offset, damage_text(range));
            }
            Entry::Damage(_) | Entry::Missing { .. } => {}
            Entry::Record(header, _) if header.is_control() => {}
            Entry::Record(_, record) => match (record.key, record.value) {
                (None, _) => errors.add(record.offset, "the record has no key"),
                (Some(key), None) => drop(latest.remove(key)),
                (Some(key), Some(value)) => drop(latest.insert(key.into(), (record.offset, value.into()))),
            },
        })?;
        table.add_damage(damaged);
        for (key, (offset, value)) in &latest {
            match read_key(TRANSACTION_COORDINATOR, key) {
                Ok((_, key)) if !options.has_group(key.text("transactionalId")) => {}
                Ok((kind, key)) => {
                    let id = key.text("transactionalId").to_owned();
                    let row = row(id.clone(), kind, value, &partition, *offset);
                    rows.insert(id, row);
                }
                Err(wrong) => errors.add(*offset, wrong.to_string()),
            }
        }
        error_rows.extend(errors.into_iter().map(|error| error_row(&COLUMNS, &partition, &error)));
        Ok(())
    })?;
    table.extend(rows.into_values());
    table.extend(error_rows);
    table.extend(lost.into_iter().map(|error| error_row(&COLUMNS, &Value::Null, &error)));
    Ok(table)
}

fn row(
    id: String,
    kind: &'static CoordinatorType,
    value: &[u8],
    partition: &Value<'static>,
    offset: i64,
) -> Row {
    let id = Value::Text(id.into());
    let message = match read_value(kind, value) {
        Ok((_, message)) => message.into_owned(),
        Err(wrong) => {
            let error = LogError { offset: Some(offset), text: wrong.to_string() };
            let mut row = error_row(&COLUMNS, partition, &error);
            if let Some(first) = row.first_mut() {
                *first = id;
            }
            return row;
        }
    };
    let state = usize::try_from(message.number("transactionStatus")).ok().and_then(|at| STATES.get(at));
    let partitions = message.structs("transactionPartitions").map(|topic| {
        let values = vec![topic.value("topic"), topic.value("partitionIds")];
        Value::Struct(Message { schema: &PARTITIONS, values })
    });
    vec![
        id,
        message.value("producerId"),
        message.value("producerEpoch"),
        state.map_or(Value::Null, |state| Value::Text((*state).into())),
        message.value("transactionTimeoutMs"),
        unless_negative(message.value("transactionStartTimestampMs")),
        unless_negative(message.value("transactionLastUpdateTimestampMs")),
        Value::Array(partitions.collect()),
        unless_negative(message.value("previousProducerId")),
        unless_negative(message.value("nextProducerId")),
        unless_negative(message.value("nextProducerEpoch")),
        message.value("clientTransactionVersion"),
        partition.clone(),
        Value::Number(offset),
        match state {
            Some(_) => Value::Null,
            None => Value::Text(
                format!("Unknown transaction state id {}", message.number("transactionStatus")).into(),
            ),
        },
    ]
}
