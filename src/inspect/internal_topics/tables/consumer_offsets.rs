//! The committed offsets of groups.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use super::super::message::{Message, Value};
use super::super::schema::Kind::{Int32, Int64, Text, Time, Uuid};
use super::super::schema::{Struct, field};
use super::errors::{LogError, LogErrors};
use super::group_replay::{GroupReplay, LastValue, decode_commit_key};
use super::table::{Row, Table};
use super::topic_logs::{TableOptions, TopicLogs};
use crate::dir::LogDir;
use crate::error::{Error, NotFound, Result};
use crate::log::Log;

pub(super) static COLUMNS: Struct = Struct::shared(
    "consumer_offsets",
    &[
        field("group", Text),
        field("topic", Text),
        field("partition", Int32),
        field("offset", Int64),
        field("leader_epoch", Int32),
        field("metadata", Text),
        field("commit_time", Time),
        field("expire_time", Time),
        field("topic_id", Uuid),
        field("pending_offset", Int64),
        field("pending_producer_id", Int64),
        field("log_start_offset", Int64),
        field("log_end_offset", Int64),
        field("lag", Int64),
        field("coordinator_partition", Int32),
        field("record_offset", Int64),
        field("error", Text),
    ],
);

/// The offsets that groups have committed, from the `__consumer_offsets` partitions of data directories, or
/// some of them; sorted by group, topic and partition. `paths`: such as all data directories of a broker.
///
/// `lag` is the log end offset of the partition in these data directories minus the committed offset; null if
/// the partition is not there, or cannot be read, which is then an `error`. An offset that a transaction
/// commits counts when the transaction is committed; until then it is the `pending_offset`, the last one if
/// there are several. If damage may have destroyed the transaction's marker, it stays pending, and `error`
/// says so. A record that is not decodable is a row with an `error`.
///
/// *Cost*: reads the partitions, and opens the logs of the topics. *Memory*: in proportion to the number of
/// keys.
///
/// *Source*: `OffsetMetadataManager.replay`.
///
/// # Errors
/// [`Error::Config`] if the path is not of `__consumer_offsets`; [`Error::Corrupt`] with
/// [`OnDamage::Raise`](crate::log::OnDamage::Raise); [`Error::Io`].
pub fn consumer_offsets(paths: &[impl AsRef<Path>], options: &TableOptions) -> Result<Table> {
    let logs = TopicLogs::open(paths, super::CONSUMER_OFFSETS, &options.log)?;
    let mut ends = LogEnds { directories: logs.directories.clone(), known: HashMap::new() };
    let mut rows = BTreeMap::new();
    let mut table = Table::new(&COLUMNS);
    let mut errors = Vec::new();
    let mut lost = LogErrors::default();
    logs.for_each(options, &mut lost, |log| {
        let (replay, damaged) = GroupReplay::read(log, options)?;
        table.add_damage(damaged);
        let partition = log.partition().map_or(Value::Null, |partition| Value::Number(partition.into()));
        let mut commits: HashMap<&[u8], Commit<'_>> = HashMap::new();
        for (key, value) in &replay.commits {
            commits.entry(key).or_default().committed = Some(value);
        }
        for (producer_id, pending) in &replay.pending {
            for (key, value) in pending {
                commits.entry(key).or_default().add_pending(*producer_id, value);
            }
        }
        for (key, (producer_id, value)) in &replay.undecided {
            commits.entry(key).or_default().add_undecided(*producer_id, value);
        }
        for (key, commit) in commits {
            let Some(key) = decode_commit_key(key) else { continue };
            let row = commit.row(&key, &partition, &mut ends)?;
            let key = (key.text("group").to_owned(), key.text("topic").to_owned(), key.number("partition"));
            rows.entry(key).or_insert_with(Vec::new).push(row);
        }
        errors.extend(replay.errors.into_iter().map(|error| error_row(&COLUMNS, &partition, &error)));
        Ok(())
    })?;
    table.extend(rows.into_values().flatten());
    table.extend(errors);
    table.extend(lost.into_iter().map(|error| error_row(&COLUMNS, &Value::Null, &error)));
    Ok(table)
}

/// A row that has only the place of the record and the error.
pub(super) fn error_row(columns: &Struct, partition: &Value<'static>, error: &LogError) -> Row {
    let value = |name| match name {
        "coordinator_partition" => partition.clone(),
        "record_offset" => error.offset.map_or(Value::Null, Value::Number),
        "error" => Value::Text(error.text.clone().into()),
        _ => Value::Null,
    };
    columns.fields.iter().map(|field| value(field.name)).collect()
}

/// What was committed of a partition.
#[derive(Debug, Default)]
struct Commit<'a> {
    committed: Option<&'a LastValue>,
    /// The last one that a transaction has not committed, and its producer.
    pending: Option<(i64, &'a LastValue)>,
    /// The producer of the last one whose transaction has no known outcome.
    undecided: Option<i64>,
}

impl<'a> Commit<'a> {
    fn add_pending(&mut self, producer_id: i64, value: &'a LastValue) {
        if self.pending.is_none_or(|(_, other)| other.offset < value.offset) {
            self.pending = Some((producer_id, value));
        }
    }

    /// After the committed one: a commit before it no longer matters.
    fn add_undecided(&mut self, producer_id: i64, value: &'a LastValue) {
        if self.committed.is_none_or(|committed| committed.offset < value.offset) {
            self.undecided = Some(producer_id);
            self.add_pending(producer_id, value);
        }
    }

    fn row(&self, key: &Message<'_>, partition: &Value<'static>, ends: &mut LogEnds) -> Result<Row> {
        let mut errors = Vec::new();
        let mut decode = |value: &LastValue| match value.decode() {
            Ok(message) => Some(message.into_owned()),
            Err(wrong) => {
                errors.push(wrong.to_string());
                None
            }
        };
        let committed = self.committed.and_then(&mut decode);
        let pending = self.pending.and_then(|(producer_id, value)| Some((producer_id, decode(value)?)));
        if let Some(producer_id) = self.undecided {
            errors.push(format!(
                "a transaction of producer {producer_id} has no known outcome: its marker may be in damage after it"
            ));
        }
        let ends = match ends.find(key.text("topic"), key.number("partition"))? {
            Ok(ends) => ends,
            Err(unknown) => {
                errors.push(format!("the lag is not known: {unknown}"));
                None
            }
        };
        let of = |name: &str| committed.as_ref().map_or(Value::Null, |value| value.value(name));
        let number = |number: Option<i64>| number.map_or(Value::Null, Value::Number);
        let offset = committed.as_ref().map(|value| value.number("offset"));
        let lag = offset.zip(ends).and_then(|(offset, (_, end))| end.checked_sub(offset));
        Ok(vec![
            Value::Text(key.text("group").to_owned().into()),
            Value::Text(key.text("topic").to_owned().into()),
            key.value("partition").into_owned(),
            number(offset),
            unless_negative(of("leaderEpoch")),
            of("metadata"),
            unless_negative(of("commitTimestamp")),
            unless_negative(of("expireTimestamp")),
            unless_zero(of("topicId")),
            number(pending.as_ref().map(|(_, value)| value.number("offset"))),
            number(pending.as_ref().map(|(producer_id, _)| *producer_id)),
            number(ends.map(|(start, _)| start)),
            number(ends.map(|(_, end)| end)),
            number(lag),
            partition.clone(),
            number(self.committed.or(self.pending.map(|(_, value)| value)).map(|value| value.offset)),
            if errors.is_empty() { Value::Null } else { Value::Text(errors.join("; ").into()) },
        ])
    }
}

/// −1 means none.
pub(super) fn unless_negative(value: Value<'static>) -> Value<'static> {
    if matches!(value, Value::Number(number) if number < 0) { Value::Null } else { value }
}

/// The zero UUID means none.
pub(super) fn unless_zero(value: Value<'static>) -> Value<'static> {
    if value == Value::Uuid([0; 16]) { Value::Null } else { value }
}

/// The log start offset and the log end offset of a partition. `None` if it is not there; `Err`, with the
/// cause, if it cannot be read.
type Ends = std::result::Result<Option<(i64, i64)>, String>;

/// The ends of the logs of data directories.
struct LogEnds {
    directories: Vec<Arc<LogDir>>,
    known: HashMap<String, Ends>,
}

impl LogEnds {
    /// The ends in the first directory that has the partition.
    fn find(&mut self, topic: &str, partition: i64) -> Result<Ends> {
        let name = format!("{topic}-{partition}");
        if let Some(known) = self.known.get(&name) {
            return Ok(known.clone());
        }
        let mut ends = Ok(None);
        for directory in &self.directories {
            ends = ends_in(directory, &name)?;
            if !matches!(ends, Ok(None)) {
                break;
            }
        }
        self.known.insert(name, ends.clone());
        Ok(ends)
    }
}

fn ends_in(directory: &Arc<LogDir>, name: &str) -> Result<Ends> {
    let read = |log: Log| Ok((log.log_start_offset(), log.log_end_offset()?));
    match directory.log(name).and_then(|log| log.map(read).transpose()) {
        Ok(ends) => Ok(Ok(ends)),
        // a log that is being deleted, or that has no segment yet
        Err(Error::LogNotFound { found: NotFound::NoSegment | NotFound::NoDirectory, .. }) => Ok(Ok(None)),
        Err(interrupted @ Error::Interrupted(_)) => Err(interrupted),
        // the offsets of the groups refer to another log, which is whole
        Err(wrong) => Ok(Err(wrong.to_string())),
    }
}
