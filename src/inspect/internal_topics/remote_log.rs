//! The records of `__remote_log_metadata` as text. *Source*: `RemoteLogMetadataSerde.deserialize`, and the
//! `toString` of what it returns.

use std::collections::BTreeMap;

use super::json::uuid_text;
use super::message::{Message, Value};
use super::readable::DecodeError;
use super::record_types::REMOTE_LOG_METADATA;
use super::records::MetadataRecord;

/// *Source*: `RemoteLogSegmentState`.
const SEGMENT_STATES: [&str; 4] =
    ["COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED"];
/// *Source*: `RemotePartitionDeleteState`.
const DELETE_STATES: [&str; 3] =
    ["DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED"];

/// The text of a record's value.
///
/// # Errors
/// [`DecodeError`] with the message of Kafka's exception.
pub(super) fn text(value: Option<&[u8]>) -> Result<String, DecodeError> {
    let value = value.ok_or_else(|| {
        DecodeError::new(
            "Cannot invoke \"java.nio.ByteBuffer.remaining()\" because the return value of \
             \"org.apache.kafka.common.record.internal.Record.value()\" is null",
        )
    })?;
    let record = MetadataRecord::read(REMOTE_LOG_METADATA, Some(value))?;
    let message = &record.message;
    match message.schema.name {
        "RemoteLogSegmentMetadataRecord" => segment(message),
        "RemoteLogSegmentMetadataUpdateRecord" => update(message),
        "RemotePartitionDeleteMetadataRecord" => partition_delete(message),
        _ => snapshot(message),
    }
}

fn segment(message: &Message<'_>) -> Result<String, DecodeError> {
    let epochs = leader_epochs(message);
    // Kafka checks the offsets and the epochs before the state
    check_offsets(message)?;
    let epochs = epochs?;
    let state = state(message, "remoteLogSegmentState", &SEGMENT_STATES)
        .ok_or_else(|| DecodeError::new("state can not be null"))?;
    Ok(format!(
        "RemoteLogSegmentMetadata{{remoteLogSegmentId={}, startOffset={}, endOffset={}, brokerId={}, maxTimestampMs={}, \
         eventTimestampMs={}, segmentLeaderEpochs={epochs}, segmentSizeInBytes={}, customMetadata={}, state={state}, \
         txnIdxEmpty={}}}",
        segment_id(message),
        message.number("startOffset"),
        message.number("endOffset"),
        message.number("brokerId"),
        message.number("maxTimestampMs"),
        message.number("eventTimestampMs"),
        message.number("segmentSizeInBytes"),
        custom_metadata(message),
        message.is_true("txnIndexEmpty"),
    ))
}

fn update(message: &Message<'_>) -> Result<String, DecodeError> {
    let state = state(message, "remoteLogSegmentState", &SEGMENT_STATES)
        .ok_or_else(|| DecodeError::new("state can not be null"))?;
    Ok(format!(
        "RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={}, customMetadata={}, state={state}, eventTimestampMs={}, \
         brokerId={}}}",
        segment_id(message),
        custom_metadata(message),
        message.number("eventTimestampMs"),
        message.number("brokerId"),
    ))
}

fn partition_delete(message: &Message<'_>) -> Result<String, DecodeError> {
    let state = state(message, "remotePartitionDeleteState", &DELETE_STATES).ok_or(DecodeError::Underflow)?;
    Ok(format!(
        "RemotePartitionDeleteMetadata{{topicPartition={}, state={state}, eventTimestampMs={}, brokerId={}}}",
        topic_partition(message),
        message.number("eventTimestampMs"),
        message.number("brokerId"),
    ))
}

fn snapshot(message: &Message<'_>) -> Result<String, DecodeError> {
    let state = state(message, "remoteLogSegmentState", &SEGMENT_STATES)
        .ok_or_else(|| DecodeError::new("state can not be null"))?;
    let epochs = leader_epochs(message)?;
    Ok(format!(
        "RemoteLogSegmentMetadataSnapshot{{segmentId={}, startOffset={}, endOffset={}, maxTimestampMs={}, \
         segmentLeaderEpochs={epochs}, segmentSizeInBytes={}, customMetadata={}, state={state}, txnIdxEmpty={}}}",
        uuid_text(message.uuid("segmentId")),
        message.number("startOffset"),
        message.number("endOffset"),
        message.number("maxTimestampMs"),
        message.number("segmentSizeInBytes"),
        custom_metadata(message),
        message.is_true("txnIndexEmpty"),
    ))
}

fn check_offsets(message: &Message<'_>) -> Result<(), DecodeError> {
    let (start, end) = (message.number("startOffset"), message.number("endOffset"));
    if start < 0 {
        return Err(DecodeError::new(format!(
            "Unexpected start offset = {start}. StartOffset for a remote segment cannot be negative"
        )));
    }
    if end < start {
        return Err(DecodeError::new(format!(
            "Unexpected end offset = {end}. EndOffset for a remote segment cannot be less than startOffset = {start}"
        )));
    }
    Ok(())
}

/// In the order of the epochs; of two entries of an epoch the later.
fn leader_epochs(message: &Message<'_>) -> Result<String, DecodeError> {
    let mut epochs = BTreeMap::new();
    for entry in message.structs("segmentLeaderEpochs") {
        epochs.insert(entry.number("leaderEpoch"), entry.number("offset"));
    }
    if epochs.is_empty() {
        return Err(DecodeError::new("segmentLeaderEpochs can not be null or empty"));
    }
    let entries: Vec<_> = epochs.iter().map(|(epoch, offset)| format!("{epoch}={offset}")).collect();
    Ok(format!("{{{}}}", entries.join(", ")))
}

fn state(message: &Message<'_>, field: &str, names: &[&'static str]) -> Option<&'static str> {
    names.get(usize::try_from(message.number(field)).ok()?).copied()
}

fn segment_id(message: &Message<'_>) -> String {
    let Some(Value::Struct(id)) = message.get("remoteLogSegmentId") else { return String::new() };
    format!("RemoteLogSegmentId{{topicIdPartition={}, id={}}}", topic_partition(id), uuid_text(id.uuid("id")))
}

fn topic_partition(message: &Message<'_>) -> String {
    let Some(Value::Struct(topic)) = message.get("topicIdPartition") else { return String::new() };
    format!("{}:{}-{}", uuid_text(topic.uuid("id")), topic.text("name"), topic.number("partition"))
}

fn custom_metadata(message: &Message<'_>) -> String {
    match message.get("customMetadata") {
        Some(Value::Bytes(bytes)) => format!("Optional[CustomMetadata{{{} bytes}}]", bytes.len()),
        _ => "Optional.empty".to_owned(),
    }
}
