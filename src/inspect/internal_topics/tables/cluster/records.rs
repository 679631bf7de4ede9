//! The records of `__cluster_metadata` one by one.

use std::path::Path;

use super::super::super::control::raft_message;
use super::super::super::json::write_message;
use super::super::super::message::Value;
use super::super::super::record_types;
use super::super::super::records::MetadataRecord;
use super::super::super::schema::Kind::{Int16, Int32, Int64, Text, Time};
use super::super::super::schema::{Struct, field};
use super::super::table::{Row, Table};
use super::super::topic_logs::{Entry, TableOptions, TopicLogs, damage_text, for_each_offset, missing_text};
use super::{CLUSTER_METADATA, text};
use crate::error::Result;
use crate::log::OnDamage;
use crate::record::{BatchHeader, RecordRef};

pub(super) static COLUMNS: Struct = Struct::shared(
    "metadata_records",
    &[
        field("offset", Int64),
        field("leader_epoch", Int32),
        field("timestamp", Time),
        field("type", Text),
        field("version", Int16),
        field("data", Text),
        field("error", Text),
    ],
);

/// The records of a `__cluster_metadata` partition in the order of the log, control records of KRaft
/// included: `data` is the record as the JSON of `kafka-dump-log --cluster-metadata-decoder`. A record that
/// is not decodable is a row with an `error`, and so are offsets that are missing between others: the log is
/// never compacted.
///
/// # Errors
/// As [`metadata`](super::metadata()).
pub fn metadata_records(paths: &[impl AsRef<Path>], options: &TableOptions) -> Result<Table> {
    let log = TopicLogs::open(paths, CLUSTER_METADATA, &options.log)?.only()?;
    let mut table = Table::new(&COLUMNS);
    let Some(log) = log else { return Ok(table) };
    let mut rows = Vec::new();
    let (damaged, _) =
        for_each_offset(&log, options.on_damage, log.log_start_offset(), |entry| match entry {
            Entry::Record(header, record) => rows.push(row(header, &record)),
            Entry::Damage(range) if options.on_damage == OnDamage::Report => {
                rows.push(error_row(range.start_offset, &damage_text(range)));
            }
            Entry::Damage(_) => {}
            Entry::Missing { start, end } => rows.push(error_row(start, &missing_text(start, end))),
        })?;
    table.extend(rows);
    table.add_damage(damaged);
    Ok(table)
}

fn error_row(offset: i64, error: &str) -> Row {
    let mut row = vec![Value::Null; COLUMNS.fields.len()];
    set(&mut row, 0, Value::Number(offset));
    set(&mut row, COLUMNS.fields.len() - 1, text(error));
    row
}

fn set(row: &mut Row, at: usize, value: Value<'static>) {
    if let Some(place) = row.get_mut(at) {
        *place = value;
    }
}

fn row(header: &BatchHeader, record: &RecordRef<'_>) -> Row {
    let (kind, version, data, error) = match decode(header, record) {
        Ok((kind, version, data)) => (
            text(kind),
            version.map_or(Value::Null, |version| Value::Number(version.into())),
            text(&data),
            None,
        ),
        Err(wrong) => (Value::Null, Value::Null, Value::Null, Some(wrong)),
    };
    vec![
        Value::Number(record.offset),
        Value::Number(header.leader_epoch.into()),
        if record.timestamp < 0 { Value::Null } else { Value::Number(record.timestamp) },
        kind,
        version,
        data,
        error.map_or(Value::Null, |error| text(&error)),
    ]
}

fn decode(
    header: &BatchHeader,
    record: &RecordRef<'_>,
) -> std::result::Result<(&'static str, Option<i16>, String), String> {
    let mut data = String::new();
    if header.is_control() {
        return match raft_message(record.key, record.value) {
            None => Err("an unknown control record".to_owned()),
            Some(Err(wrong)) => Err(wrong.to_string()),
            Some(Ok((kind, message))) => {
                write_message(&mut data, &message, message.schema.versions().1);
                Ok((kind, None, data))
            }
        };
    }
    let record = MetadataRecord::read(record_types::CLUSTER_METADATA, record.value)
        .map_err(|wrong| wrong.to_string())?;
    write_message(&mut data, &record.message, record.version);
    Ok((record.kind.name, Some(record.version), data))
}
