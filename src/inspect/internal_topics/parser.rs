//! The texts of `kafka-dump-log` for the records of internal topics.

use super::json::{JsonWriter, Replacement, write_message};
use super::message::{Message, Value, Version};
use super::readable::Readable;
use super::record_types::{self, CoordinatorType};
use super::records::{CoordinatorRecord, InvalidRecord, MetadataRecord};
use super::remote_log;
use super::schema::{Field, Struct};
use super::schemas::consumer_protocol::{CONSUMER_PROTOCOL_ASSIGNMENT, CONSUMER_PROTOCOL_SUBSCRIPTION};

/// How `kafka-dump-log` decodes records: one of its decoder options. *Source*:
/// `DumpLogSegments.MessageParser`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageParser {
    /// `--offsets-decoder`: `__consumer_offsets`.
    Offsets,
    /// `--transaction-log-decoder`: `__transaction_state`.
    TransactionLog,
    /// `--cluster-metadata-decoder`: `__cluster_metadata` and its snapshots.
    ClusterMetadata,
    /// `--share-group-state-decoder`: `__share_group_state`.
    ShareGroupState,
    /// `--remote-log-metadata-decoder`: `__remote_log_metadata`.
    RemoteLogMetadata,
}

/// What `kafka-dump-log` prints of a record after `key: ` and `payload: `.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedRecord {
    /// `None` if the tool prints no key.
    pub key: Option<String>,
    /// `None` if the tool prints no payload.
    pub payload: Option<String>,
}

/// The record has no key, which `kafka-dump-log` does not survive: its exception ends the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingKey {
    /// The message of the exception.
    pub message: String,
}

impl MessageParser {
    /// The parser for an internal topic; `None` for other topics.
    pub fn of_topic(topic: &str) -> Option<Self> {
        Some(match topic {
            "__consumer_offsets" => Self::Offsets,
            "__transaction_state" => Self::TransactionLog,
            "__cluster_metadata" => Self::ClusterMetadata,
            "__share_group_state" => Self::ShareGroupState,
            "__remote_log_metadata" => Self::RemoteLogMetadata,
            _ => return None,
        })
    }

    /// Decodes a record that is not in a control batch. What is not decodable becomes the tool's text for it.
    ///
    /// # Errors
    /// [`MissingKey`], for the parsers that need a key.
    ///
    /// *Cost*: in proportion to the bytes, in time and memory.
    pub fn parse(
        self,
        offset: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
    ) -> Result<ParsedRecord, MissingKey> {
        match self {
            Self::Offsets => parse_coordinator(record_types::GROUP_COORDINATOR, offset, key, value),
            Self::TransactionLog => {
                parse_coordinator(record_types::TRANSACTION_COORDINATOR, offset, key, value)
            }
            Self::ShareGroupState => parse_coordinator(record_types::SHARE_COORDINATOR, offset, key, value),
            Self::ClusterMetadata => {
                let payload = cluster_metadata(value)
                    .unwrap_or_else(|error| format!("Error at {offset}, skipping. {error}"));
                Ok(ParsedRecord { key: None, payload: Some(payload) })
            }
            Self::RemoteLogMetadata => {
                let payload = remote_log::text(value)
                    .unwrap_or_else(|error| format!("Error at offset {offset}, skipping. {error}"));
                Ok(ParsedRecord { key: None, payload: Some(payload) })
            }
        }
    }
}

/// *Source*: `DumpLogSegments.CoordinatorRecordMessageParser`.
fn parse_coordinator(
    types: &'static [CoordinatorType],
    offset: i64,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
) -> Result<ParsedRecord, MissingKey> {
    let key = key.ok_or_else(|| MissingKey {
        message: format!(
            "Failed to decode message at offset {offset} using the specified decoder (message had a missing key)"
        ),
    })?;
    Ok(match coordinator_texts(types, key, value) {
        Ok((key, payload)) => ParsedRecord { key: Some(key), payload: Some(payload) },
        Err(InvalidRecord::UnknownType(kind)) => ParsedRecord {
            key: Some(format!("Unknown record type {kind} at offset {offset}, skipping.")),
            payload: None,
        },
        Err(error) => {
            ParsedRecord { key: Some(format!("Error at offset {offset}, skipping. {error}")), payload: None }
        }
    })
}

fn coordinator_texts(
    types: &'static [CoordinatorType],
    key: &[u8],
    value: Option<&[u8]>,
) -> Result<(String, String), InvalidRecord> {
    let record = CoordinatorRecord::read(types, key, value)?;
    let mut key = format!("{{\"type\":\"{}\",\"data\":", record.kind.id);
    write_message(&mut key, &record.key, 0);
    key.push('}');
    let Some((version, message)) = record.value else {
        return Ok((key, "<DELETE>".to_owned()));
    };
    let mut payload = format!("{{\"version\":\"{version}\",\"data\":");
    let is_consumer_group = message.schema.name == "GroupMetadataValue"
        && matches!(message.get("protocolType"), Some(Value::Text(kind)) if kind == "consumer");
    let replacement = is_consumer_group.then_some(&consumer_protocol as Replacement<'_>);
    JsonWriter { version: Version::of(message.schema, version), replacement }
        .write_struct(&mut payload, &message);
    payload.push('}');
    Ok((key, payload))
}

fn cluster_metadata(value: Option<&[u8]>) -> Result<String, InvalidRecord> {
    let record = MetadataRecord::read(record_types::CLUSTER_METADATA, value)?;
    let mut json = format!("{{\"type\":\"{}\",\"version\":{},\"data\":", record.kind.name, record.version);
    write_message(&mut json, &record.message, record.version);
    json.push('}');
    Ok(json)
}

/// The subscription and the assignment of a member of a consumer group as JSON; `None` for other fields, and
/// for bytes that are not decodable, which stay bytes.
fn consumer_protocol(schema: &Struct, field: &Field, value: &Value<'_>) -> Option<String> {
    let protocol = match (schema.name, field.name) {
        ("MemberMetadata", "subscription") => &CONSUMER_PROTOCOL_SUBSCRIPTION,
        ("MemberMetadata", "assignment") => &CONSUMER_PROTOCOL_ASSIGNMENT,
        _ => return None,
    };
    let Value::Bytes(bytes) = value else { return None };
    let mut input = Readable::new(bytes);
    let version = input.int16().ok()?;
    let message = Message::read(protocol, &mut input, version).ok()?;
    let mut json = String::new();
    write_message(&mut json, &message, version);
    Some(json)
}
