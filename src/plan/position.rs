//! The position of a stream in a partition, with fields that detect whether the log was replaced.
//!
//! A position is stored in the offsets of a stream as
//! `{"offset":1500,"topicId":"…","leaderEpoch":4,"crc":123}`: the next offset to read, the topic id, and
//! leader epoch and checksum of the batch of the previous offset. A follower in Kafka compares topic id and
//! leader epoch with those of its leader. The checksum detects what these do not: a log that was truncated
//! and rewritten in the same epoch. Compaction changes it, too, but only of batches in which it leaves out
//! records or sets a delete horizon.
//!
//! Unknown fields are not compared: the topic id if there is no `partition.metadata`, the leader epoch in the
//! formats v0 and v1, and both epoch and checksum if the batch was removed, by retention or compaction. A
//! plain number, as in the offsets of Spark's Kafka source, is an offset without these fields.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use super::error::{PlanError, Result};
use super::partition_offsets::{Json, PartitionKey, nested, read_partition};
use crate::log::{Log, OnDamage, Ranges, ScanOptions, ScanStep};

/// The positions of a stream in all of its partitions.
pub(crate) type Positions = BTreeMap<PartitionKey, Position>;

/// The next offset to read of a partition, and fields of the batch before it; `None` where unknown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Position {
    /// The next offset to read.
    pub offset: i64,
    pub(crate) topic_id: Option<String>,
    pub(crate) leader_epoch: Option<i32>,
    pub(crate) crc: Option<u32>,
    /// Whether compaction may have made the batch: an offset of it has no record, it has a delete horizon,
    /// or its format is v0 or v1. Not stored.
    pub(crate) may_be_rewritten: bool,
}

/// How a log differs from the one that a position was taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mismatch {
    TopicId {
        then: String,
        now: String,
    },
    LeaderEpoch {
        then: i32,
        now: i32,
    },
    /// It was truncated and rewritten, or compacted.
    Crc {
        then: u32,
        now: u32,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TopicId { then, now } => {
                write!(formatter, "the topic has the id {now}, not {then}: it was deleted and created again")
            }
            Self::LeaderEpoch { then, now } => write!(
                formatter,
                "the batch before it has leader epoch {now}, not {then}: the log was truncated and rewritten"
            ),
            Self::Crc { then, now } => write!(
                formatter,
                "the batch before it has CRC {now}, not {then}: the log was truncated and rewritten"
            ),
        }
    }
}

impl Position {
    /// The position for an offset of a log as it is now. *Cost*: the header of the batch before it is read.
    pub fn of(log: &Log, offset: i64) -> crate::Result<Self> {
        let topic_id = log.topic_id().map(|id| id.to_string());
        if offset <= log.log_start_offset() {
            return Ok(Self { offset, topic_id, ..Self::default() });
        }
        let ranges = Ranges { start_offset: Some(offset - 1), end_offset: Some(offset), ..Ranges::default() };
        // damage is reported when the records are read
        let options =
            ScanOptions { ranges, on_damage: OnDamage::Skip, batches_only: true, ..ScanOptions::default() };
        let mut scan = log.scan(options)?;
        let before = match scan.next_step()? {
            Some(ScanStep::Batch(batch)) => Some(batch.header),
            _ => None,
        };
        let leader_epoch = before.map(|header| header.leader_epoch).filter(|epoch| *epoch >= 0);
        let may_be_rewritten = before.is_some_and(|header| {
            header.magic < 2 || header.is_sparse() || header.attributes.has_delete_horizon()
        });
        Ok(Self { offset, topic_id, leader_epoch, crc: before.map(|header| header.crc), may_be_rewritten })
    }

    /// How the log differs from the one that the position was taken in; `None` if it is the same. `now`: the
    /// same offset in the current log. `is_compacted` is called if only the checksum differs and
    /// compaction may have rewritten the batch.
    pub fn mismatch(
        &self,
        now: &Self,
        is_compacted: impl FnOnce() -> crate::Result<bool>,
    ) -> crate::Result<Option<Mismatch>> {
        let may_be_rewritten = now.may_be_rewritten;
        if let (Some(then), Some(now)) = (&self.topic_id, &now.topic_id)
            && then != now
        {
            return Ok(Some(Mismatch::TopicId { then: then.clone(), now: now.clone() }));
        }
        if let (Some(then), Some(now)) = (self.leader_epoch, now.leader_epoch)
            && then != now
        {
            return Ok(Some(Mismatch::LeaderEpoch { then, now }));
        }
        if let (Some(then), Some(now)) = (self.crc, now.crc)
            && then != now
            && !(may_be_rewritten && is_compacted()?)
        {
            return Ok(Some(Mismatch::Crc { then, now }));
        }
        Ok(None)
    }

    fn to_json(&self) -> String {
        let Self { offset, topic_id, leader_epoch, crc, .. } = self;
        let known = [
            topic_id.as_ref().map(|id| format!(",\"topicId\":{}", Value::from(id.as_str()))),
            leader_epoch.map(|epoch| format!(",\"leaderEpoch\":{epoch}")),
            crc.map(|crc| format!(",\"crc\":{crc}")),
        ];
        format!("{{\"offset\":{offset}{}}}", known.into_iter().flatten().collect::<String>())
    }
}

/// Positions as JSON, in a fixed order: engines compare the text.
pub(crate) fn write_positions(positions: &Positions) -> String {
    nested(positions.iter().map(|(key, position)| (key, position.to_json())))
}

/// Reads what [`write_positions`] wrote, or the plain numbers of Spark's Kafka source.
///
/// # Errors
/// [`Code::BadOption`](super::Code::BadOption) for an offset that this version cannot read.
pub(crate) fn read_positions(text: &str) -> Result<Positions> {
    let wrong = || {
        let expected = "offsets of a stream that this version of cordwood wrote, in the query's checkpoint";
        PlanError::option("checkpointLocation", expected, Value::from(text))
    };
    let Ok(Json::Object(topics)) = serde_json::from_str(text) else { return Err(wrong()) };
    let mut positions = Positions::new();
    for (topic, partitions) in topics {
        let Json::Object(partitions) = partitions else { return Err(wrong()) };
        for (partition, value) in partitions {
            let partition = read_partition(&partition).ok_or_else(wrong)?;
            let position = position_of(&value).ok_or_else(wrong)?;
            positions.insert((topic.clone(), partition), position);
        }
    }
    Ok(positions)
}

fn position_of(value: &Json) -> Option<Position> {
    let fields = match value {
        Json::Object(fields) => fields,
        Json::Other(offset) => return Some(Position { offset: offset.as_i64()?, ..Position::default() }),
        Json::Array(_) => return None,
    };
    let (mut position, mut has_offset) = (Position::default(), false);
    for (name, value) in fields {
        let Json::Other(value) = value else { return None };
        match (name.as_str(), value) {
            ("offset", value) => (position.offset, has_offset) = (value.as_i64()?, true),
            ("topicId" | "leaderEpoch" | "crc", Value::Null) => {}
            ("topicId", value) => position.topic_id = Some(value.as_str()?.to_owned()),
            ("leaderEpoch", value) => position.leader_epoch = Some(value.as_i64()?.try_into().ok()?),
            ("crc", value) => position.crc = Some(value.as_u64()?.try_into().ok()?),
            _ => return None,
        }
    }
    has_offset.then_some(position)
}
