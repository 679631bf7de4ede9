//! The groups of all kinds, with their members.

use std::collections::BTreeMap;
use std::path::Path;

use super::super::fields::leading_text;
use super::super::message::{Message, Value};
use super::super::record_types::GROUP_COORDINATOR;
use super::super::records::read_key;
use super::super::schema::Kind::{Array, Int32, Int64, Struct as StructOf, Text, Time};
use super::super::schema::{Struct, field};
use super::consumer_offsets::{error_row, unless_negative};
use super::errors::LogErrors;
use super::group_replay::{GroupKind, GroupReplay, LastValue};
use super::members::{MEMBER, Member, classic_members};
use super::table::{Row, Table};
use super::topic_logs::{TableOptions, TopicLogs};
use crate::error::Result;

pub(super) static COLUMNS: Struct = Struct::shared(
    "consumer_groups",
    &[
        field("group", Text),
        field("type", Text),
        field("state", Text),
        field("protocol_type", Text),
        field("protocol", Text),
        field("epoch", Int32),
        field("assignment_epoch", Int32),
        field("leader", Text),
        field("state_time", Time),
        field("members", Array(&StructOf(&MEMBER))),
        field("coordinator_partition", Int32),
        field("record_offset", Int64),
        field("error", Text),
    ],
);

/// The groups of the `__consumer_offsets` partitions of data directories, or of some of them, sorted by name:
/// classic, consumer, share and streams groups, and groups that have only committed offsets (classic ones
/// without a protocol type). As in Kafka, such a group is there from its first commit, also one of a
/// transaction that was aborted, until its own tombstone.
///
/// `state` is the one that follows from the records: `Empty` without members; of a classic group otherwise
/// `Stable`, as after a start of its coordinator; of the others `Assigning` or `Reconciling` where the epochs
/// differ, `Stable` otherwise. `epoch` is the generation of a classic group. A record that is not decodable
/// is a row with an `error`.
///
/// *Source*: `GroupMetadataManager.replay`; `ConsumerGroup.maybeUpdateGroupState`.
///
/// # Errors
/// As [`consumer_offsets`](super::consumer_offsets()).
pub fn consumer_groups(paths: &[impl AsRef<Path>], options: &TableOptions) -> Result<Table> {
    let logs = TopicLogs::open(paths, super::CONSUMER_OFFSETS, &options.log)?;
    let mut table = Table::new(&COLUMNS);
    let mut rows = BTreeMap::new();
    let mut errors = Vec::new();
    let mut lost = LogErrors::default();
    logs.for_each(options, &mut lost, |log| {
        let (replay, damaged) = GroupReplay::read(log, options)?;
        table.add_damage(damaged);
        let partition = log.partition().map_or(Value::Null, |partition| Value::Number(partition.into()));
        let mut groups: BTreeMap<String, Group> = BTreeMap::new();
        for name in replay.committed.iter().filter_map(|name| leading_text(name)) {
            groups.entry(name.into_owned()).or_default();
        }
        for (key, value) in &replay.groups {
            let Some(name) = leading_text(key.get(2..).unwrap_or_default()) else { continue };
            let group = groups.entry(name.into_owned()).or_default();
            if let Err(wrong) = group.take(key, value) {
                group.error.get_or_insert(wrong);
            }
        }
        for (name, group) in groups {
            rows.insert(name.clone(), group.row(name, &partition));
        }
        errors.extend(replay.errors.into_iter().map(|error| error_row(&COLUMNS, &partition, &error)));
        Ok(())
    })?;
    table.extend(rows.into_values());
    table.extend(errors);
    table.extend(lost.into_iter().map(|error| error_row(&COLUMNS, &Value::Null, &error)));
    Ok(table)
}

#[derive(Debug, Default)]
struct Group {
    /// The kind, and the offset of the record that says so: the last one counts.
    kind: Option<(GroupKind, i64)>,
    /// The record on the group itself.
    metadata: Option<Message<'static>>,
    assignment_epoch: Option<i64>,
    members: BTreeMap<String, Member>,
    /// The offset of the last record.
    last_offset: Option<i64>,
    error: Option<String>,
}

impl Group {
    fn take(&mut self, key: &[u8], value: &LastValue) -> std::result::Result<(), String> {
        self.last_offset = self.last_offset.max(Some(value.offset));
        let (_, key) = read_key(GROUP_COORDINATOR, key).map_err(|wrong| wrong.to_string())?;
        let message = value.decode().map_err(|wrong| wrong.to_string())?;
        if let Some(kind) = GroupKind::of_record(value.kind.id) {
            if self.kind.is_none_or(|(_, offset)| offset < value.offset) {
                self.kind = Some((kind, value.offset));
                self.metadata = Some(message.into_owned());
            }
            return Ok(());
        }
        match value.kind.id {
            6 | 12 | 20 => self.assignment_epoch = Some(message.number("assignmentEpoch")),
            5 | 10 | 19 => self.member(&key).set_metadata(message.into_owned()),
            8 | 14 | 22 => self.member(&key).set_assignment(message.into_owned()),
            _ => {}
        }
        Ok(())
    }

    fn member(&mut self, key: &Message<'_>) -> &mut Member {
        self.members.entry(key.text("memberId").to_owned()).or_default()
    }

    fn row(&self, name: String, partition: &Value<'static>) -> Row {
        let kind = self.kind.map_or(GroupKind::Classic, |(kind, _)| kind);
        let of = |name: &str| self.metadata.as_ref().map_or(Value::Null, |metadata| metadata.value(name));
        let text = |text: &str| Value::Text(text.to_owned().into());
        let members = match (kind, &self.metadata) {
            (GroupKind::Classic, Some(metadata)) => classic_members(metadata),
            (GroupKind::Classic, None) => Vec::new(),
            _ => self.members.iter().map(|(id, member)| Value::Struct(member.row(id))).collect(),
        };
        let epoch = if kind == GroupKind::Classic { of("generation") } else { of("epoch") };
        vec![
            Value::Text(name.into()),
            text(kind.name()),
            text(self.state(kind, members.is_empty())),
            if kind == GroupKind::Classic { of("protocolType") } else { text(kind.name()) },
            if kind == GroupKind::Classic { of("protocol") } else { self.assignor() },
            epoch,
            self.assignment_epoch.map_or(Value::Null, Value::Number),
            of("leader"),
            unless_negative(of("currentStateTimestamp")),
            Value::Array(members),
            partition.clone(),
            self.last_offset.map_or(Value::Null, Value::Number),
            self.error.clone().map_or(Value::Null, |error| Value::Text(error.into())),
        ]
    }

    fn state(&self, kind: GroupKind, is_empty: bool) -> &'static str {
        let epoch = self.metadata.as_ref().map_or(0, |metadata| metadata.number("epoch"));
        let assigned = self.assignment_epoch.unwrap_or(0);
        match kind {
            _ if is_empty => "Empty",
            GroupKind::Classic | GroupKind::Share => "Stable",
            _ if epoch > assigned => "Assigning",
            _ if self.members.values().any(|member| !member.is_reconciled(assigned)) => "Reconciling",
            _ => "Stable",
        }
    }

    /// The assignor that most members ask for; null if none does.
    fn assignor(&self) -> Value<'static> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for assignor in self.members.values().filter_map(Member::assignor) {
            *counts.entry(assignor).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        most.map_or(Value::Null, |(assignor, _)| Value::Text(assignor.to_owned().into()))
    }
}
