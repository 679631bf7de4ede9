//! The texts of `kafka-dump-log` for control records. *Source*: `DumpLogSegments.printControlRecord`.

use super::json::write_message;
use super::message::Message;
use super::readable::{DecodeError, Readable};
use super::schema::Struct;
use super::schemas::control as schemas;
use crate::record::control::ControlType;

/// What `kafka-dump-log` prints of a control record after the keys of its headers, with the space before it:
/// ` endTxnMarker: COMMIT coordinatorEpoch: 0`, ` LeaderChange: {…}`, ` SnapshotHeader {…}` and the like.
///
/// # Errors
/// [`DecodeError`] for what ends the tool with an exception, with its message.
pub fn control_record_text(key: Option<&[u8]>, value: Option<&[u8]>) -> Result<String, DecodeError> {
    let kind = ControlType::parse(key).map_err(|_| invalid_key(key.unwrap_or_default()))?;
    let prefix = match kind {
        ControlType::Abort => return transaction_marker("ABORT", value),
        ControlType::Commit => return transaction_marker("COMMIT", value),
        ControlType::Other(2) => " LeaderChange: ",
        ControlType::Other(3) => " SnapshotHeader ",
        ControlType::Other(4) => " SnapshotFooter ",
        ControlType::Other(5) => " KRaftVersion ",
        ControlType::Other(6) => " KRaftVoters ",
        ControlType::Other(id) => return Ok(format!(" controlType: UNKNOWN({id})")),
    };
    let mut text = prefix.to_owned();
    if let Some(message) = raft_message(key, value) {
        let (_, message) = message?;
        // in the version that the message names
        let version = i16::try_from(message.number("version")).unwrap_or(0);
        write_message(&mut text, &message, version);
    }
    Ok(text)
}

/// The name of a control record's type and its message, which Kafka reads in version 0; `None` for markers of
/// transactions, and for unknown types.
pub(super) fn raft_message<'a>(
    key: Option<&[u8]>,
    value: Option<&'a [u8]>,
) -> Option<Result<(&'static str, Message<'a>), DecodeError>> {
    let (name, schema): (_, &'static Struct) = match ControlType::parse(key) {
        Ok(ControlType::Other(2)) => ("LEADER_CHANGE", &schemas::LEADER_CHANGE_MESSAGE),
        Ok(ControlType::Other(3)) => ("SNAPSHOT_HEADER", &schemas::SNAPSHOT_HEADER_RECORD),
        Ok(ControlType::Other(4)) => ("SNAPSHOT_FOOTER", &schemas::SNAPSHOT_FOOTER_RECORD),
        Ok(ControlType::Other(5)) => ("KRAFT_VERSION", &schemas::KRAFT_VERSION_RECORD),
        Ok(ControlType::Other(6)) => ("KRAFT_VOTERS", &schemas::VOTERS_RECORD),
        _ => return None,
    };
    let Some(value) = value else { return Some(Err(null_value())) };
    Some(Message::read(schema, &mut Readable::new(value), 0).map(|message| (name, message)))
}

/// *Source*: `EndTransactionMarker.deserialize`.
fn transaction_marker(kind: &str, value: Option<&[u8]>) -> Result<String, DecodeError> {
    let value = value.ok_or_else(null_value)?;
    let mut input = Readable::new(value);
    if value.len() < 6 {
        return Err(DecodeError::new(format!(
            "Invalid value size found for end transaction marker. Must have at least 6 bytes, but found only {}",
            value.len()
        )));
    }
    let version = input.int16()?;
    if version < 0 {
        return Err(DecodeError::new(format!(
            "Invalid version found for end transaction marker: {version}. May indicate data corruption"
        )));
    }
    Ok(format!(" endTxnMarker: {kind} coordinatorEpoch: {}", input.int32()?))
}

fn invalid_key(key: &[u8]) -> DecodeError {
    match key.first_chunk::<4>() {
        None => DecodeError::new(format!(
            "Invalid value size found for control record key. Must have at least 4 bytes, but found only {}",
            key.len()
        )),
        Some([high, low, ..]) => {
            let version = i16::from_be_bytes([*high, *low]);
            DecodeError::new(format!(
                "Invalid version found for control record: {version}. May indicate data corruption"
            ))
        }
    }
}

fn null_value() -> DecodeError {
    DecodeError::new("the value of the control record is null")
}
