//! The state of a partition of `__consumer_offsets`: the last value of each key. Kafka:
//! `OffsetMetadataManager.replay`, `GroupMetadataManager.replay`.
//!
//! A commit of a transaction is pending until the transaction's marker, and counts from then on if it is
//! committed, and if no commit after it is there. A tombstone also removes what is pending.
//!
//! Damage may have destroyed a marker. What is pending there is undecided from then on: a marker that follows
//! may be the one of a later transaction of the same producer.
//!
//! Values are kept as bytes: most of them are replaced, and only the last ones are decoded.

use std::collections::{HashMap, HashSet};

use super::super::fields::leading_text;
use super::super::message::Message;
use super::super::readable::Readable;
use super::super::record_types::{CoordinatorType, GROUP_COORDINATOR};
use super::super::records::{InvalidRecord, read_key, read_value};
use super::super::schemas::classic_groups::OFFSET_COMMIT_KEY;
use super::TableOptions;
use super::errors::LogErrors;
use super::topic_logs::{Entry, damage_text, for_each_record};
use crate::error::Result;
use crate::log::{DamagedRange, Log, OnDamage};
use crate::record::control::ControlType;
use crate::record::{BatchHeader, RecordRef};

/// The kind of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GroupKind {
    Classic,
    Consumer,
    Share,
    Streams,
}

impl GroupKind {
    /// The kind of the group that a record of this type describes; `None` for the other types.
    pub(super) fn of_record(id: i16) -> Option<Self> {
        Some(match id {
            2 => Self::Classic,
            3 => Self::Consumer,
            11 => Self::Share,
            17 => Self::Streams,
            _ => return None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Consumer => "consumer",
            Self::Share => "share",
            Self::Streams => "streams",
        }
    }
}

/// The last value of a key.
#[derive(Debug, Clone)]
pub(super) struct LastValue {
    /// The offset of the record.
    pub(super) offset: i64,
    pub(super) kind: &'static CoordinatorType,
    bytes: Box<[u8]>,
}

impl LastValue {
    pub(super) fn decode(&self) -> std::result::Result<Message<'_>, InvalidRecord> {
        read_value(self.kind, &self.bytes).map(|(_, message)| message)
    }
}

/// The key of a commit, without its type: group, topic and partition. Types 0 and 1 differ in nothing else.
type CommitKey = Box<[u8]>;

#[derive(Debug, Default)]
pub(super) struct GroupReplay {
    pub(super) commits: HashMap<CommitKey, LastValue>,
    /// The commits of open transactions, by producer.
    pub(super) pending: HashMap<i64, HashMap<CommitKey, LastValue>>,
    /// The producers with a pending commit of a key.
    producers: HashMap<CommitKey, HashSet<i64>>,
    /// The names of groups with a commit, as in its key. A group stays when its commits are gone, until its
    /// own tombstone.
    pub(super) committed: HashSet<Box<[u8]>>,
    /// The records on groups and their members, by the whole key.
    pub(super) groups: HashMap<Box<[u8]>, LastValue>,
    /// Commits of transactions whose outcome damage may have destroyed, with the producer: the last one of
    /// each key.
    pub(super) undecided: HashMap<CommitKey, (i64, LastValue)>,
    pub(super) errors: LogErrors,
}

impl GroupReplay {
    /// Reads a partition.
    pub(super) fn read(log: &Log, options: &TableOptions) -> Result<(Self, Vec<DamagedRange>)> {
        let mut replay = Self::default();
        let damaged = for_each_record(log, options.on_damage, |entry| match entry {
            Entry::Record(header, record) => replay.take(header, &record, options),
            Entry::Damage(range) => {
                replay.leave_undecided();
                if options.on_damage == OnDamage::Report {
                    replay.errors.add(range.start_offset, damage_text(range));
                }
            }
            Entry::Missing { .. } => {}
        })?;
        Ok((replay, damaged))
    }

    /// Where markers may be missing, no open transaction has a known outcome.
    fn leave_undecided(&mut self) {
        self.producers.clear();
        for (producer_id, pending) in self.pending.drain() {
            for (key, value) in pending {
                let is_older = |(_, other): &(i64, LastValue)| other.offset < value.offset;
                if self.undecided.get(&key).is_none_or(is_older) {
                    self.undecided.insert(key, (producer_id, value));
                }
            }
        }
    }

    fn take(&mut self, header: &BatchHeader, record: &RecordRef<'_>, options: &TableOptions) {
        if header.is_control() {
            match ControlType::parse(record.key) {
                Ok(ControlType::Commit) => self.end_transaction(header.producer_id, true),
                Ok(ControlType::Abort) => self.end_transaction(header.producer_id, false),
                Ok(ControlType::Other(_)) => {}
                Err(wrong) => {
                    self.errors
                        .add(record.offset, format!("expected {}, found {}", wrong.expected, wrong.found));
                }
            }
            return;
        }
        let Some(key) = record.key else {
            self.errors.add(record.offset, "the record has no key".to_owned());
            return;
        };
        if let Some(commit) = commit_key(key) {
            self.take_commit(header.producer_id, key, commit, record, options);
        } else {
            self.take_group(key, record, options);
        }
    }

    fn take_commit(
        &mut self,
        producer_id: i64,
        key: &[u8],
        commit: &[u8],
        record: &RecordRef<'_>,
        options: &TableOptions,
    ) {
        if !is_wanted(commit, options) {
            return;
        }
        let id = i16::from(key.get(1).is_some_and(|low| *low != 0));
        let Some(kind) = GROUP_COORDINATOR.iter().find(|kind| kind.id == id) else { return };
        let Some(bytes) = record.value else {
            self.commits.remove(commit);
            self.undecided.remove(commit);
            for producer in self.producers.remove(commit).unwrap_or_default() {
                if let Some(pending) = self.pending.get_mut(&producer) {
                    pending.remove(commit);
                }
            }
            return;
        };
        let value = LastValue { offset: record.offset, kind, bytes: bytes.into() };
        if let Some(group) = leading_string(commit).filter(|group| !self.committed.contains(*group)) {
            self.committed.insert(group.into());
        }
        if producer_id < 0 {
            replace(&mut self.commits, commit, value);
        } else {
            replace(self.pending.entry(producer_id).or_default(), commit, value);
            self.producers.entry(commit.into()).or_default().insert(producer_id);
        }
    }

    fn take_group(&mut self, key: &[u8], record: &RecordRef<'_>, options: &TableOptions) {
        let kind = match read_key(GROUP_COORDINATOR, key) {
            Ok((kind, _)) => kind,
            Err(wrong) => return self.errors.add(record.offset, wrong.to_string()),
        };
        if leading_text(key.get(2..).unwrap_or_default()).is_some_and(|group| !options.has_group(&group)) {
            return;
        }
        match record.value {
            None => {
                self.groups.remove(key);
                if let Some(group) =
                    key.get(2..).filter(|_| GroupKind::of_record(kind.id).is_some()).and_then(leading_string)
                {
                    self.committed.remove(group);
                }
            }
            Some(bytes) => {
                let value = LastValue { offset: record.offset, kind, bytes: bytes.into() };
                replace(&mut self.groups, key, value);
            }
        }
    }

    fn end_transaction(&mut self, producer_id: i64, is_committed: bool) {
        for (key, value) in self.pending.remove(&producer_id).unwrap_or_default() {
            if let Some(producers) = self.producers.get_mut(&key) {
                producers.remove(&producer_id);
                if producers.is_empty() {
                    self.producers.remove(&key);
                }
            }
            let is_newer = self.commits.get(&key).is_none_or(|current| value.offset > current.offset);
            if is_committed && is_newer {
                self.commits.insert(key, value);
            }
        }
    }
}

/// Inserts a value without a copy of a key that is there.
fn replace(values: &mut HashMap<Box<[u8]>, LastValue>, key: &[u8], value: LastValue) {
    match values.get_mut(key) {
        Some(place) => *place = value,
        None => drop(values.insert(key.into(), value)),
    }
}

/// Group, topic and partition in the key of a commit; `None` for other keys, whole or not.
fn commit_key(key: &[u8]) -> Option<&[u8]> {
    let ([0, 0 | 1], fields) = key.split_first_chunk::<2>()? else { return None };
    let group = leading_string(fields)?;
    let topic = leading_string(fields.get(group.len()..)?)?;
    // bytes after the partition are not part of the key
    fields.get(..group.len() + topic.len() + size_of::<i32>())
}

/// The string at the start of these fields, with its length.
fn leading_string(fields: &[u8]) -> Option<&[u8]> {
    let length = i16::from_be_bytes(*fields.first_chunk::<2>()?);
    fields.get(..2 + usize::try_from(length).ok()?)
}

fn is_wanted(commit: &[u8], options: &TableOptions) -> bool {
    if options.groups.is_none() && options.topics.is_none() {
        return true;
    }
    decode_commit_key(commit)
        .is_some_and(|key| options.has_group(key.text("group")) && options.has_topic(key.text("topic")))
}

/// Group, topic and partition as a message.
pub(super) fn decode_commit_key(commit: &[u8]) -> Option<Message<'_>> {
    Message::read(&OFFSET_COMMIT_KEY, &mut Readable::new(commit), 0).ok()
}
