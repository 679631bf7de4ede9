//! A record of an internal topic: its type, its version, and its messages.
//!
//! ```text
//! key    type i16 │ message                                                   value    version i16 │ message
//! value without a key, as unsigned varints    frame version (1) │ type │ version │ message
//! ```
//!
//! A key's message has version 0. Bytes after a key or a value with a key are ignored.

use std::fmt;

use super::message::Message;
use super::readable::{DecodeError, Readable};
use super::record_types::{CoordinatorType, MetadataType};

/// A record with a key. *Source*: `CoordinatorRecordSerde.deserialize`.
#[derive(Debug)]
pub(super) struct CoordinatorRecord<'a> {
    pub(super) kind: &'static CoordinatorType,
    pub(super) key: Message<'a>,
    /// The version and the message; `None` for a tombstone.
    pub(super) value: Option<(i16, Message<'a>)>,
}

/// A record without a key. *Source*: `AbstractApiMessageSerde.read`.
#[derive(Debug)]
pub(super) struct MetadataRecord<'a> {
    pub(super) kind: &'static MetadataType,
    pub(super) version: i16,
    pub(super) message: Message<'a>,
}

/// Why a record is not one of its topic. The text is the message of Kafka's exception.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum InvalidRecord {
    /// No record of the topic has this type.
    UnknownType(i16),
    /// Records of this type have no such version.
    UnknownVersion { kind: i16, version: i16 },
    /// The bytes are not decodable.
    Malformed(DecodeError),
}

impl From<DecodeError> for InvalidRecord {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error)
    }
}

impl fmt::Display for InvalidRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownType(kind) => write!(f, "Found an unknown record type {kind}"),
            Self::UnknownVersion { kind, version } => {
                write!(f, "Found an unknown record version {version} for {kind} type")
            }
            Self::Malformed(error) => error.fmt(f),
        }
    }
}

impl<'a> CoordinatorRecord<'a> {
    pub(super) fn read(
        types: &'static [CoordinatorType],
        key: &'a [u8],
        value: Option<&'a [u8]>,
    ) -> Result<Self, InvalidRecord> {
        let (kind, key) = read_key(types, key)?;
        let value = value.map(|value| read_value(kind, value)).transpose()?;
        Ok(Self { kind, key, value })
    }
}

/// The type and the message of a key.
pub(super) fn read_key<'a>(
    types: &'static [CoordinatorType],
    key: &'a [u8],
) -> Result<(&'static CoordinatorType, Message<'a>), InvalidRecord> {
    let mut input = Readable::new(key);
    let id = read_version(&mut input, "key")?;
    let kind = types.iter().find(|kind| kind.id == id).ok_or(InvalidRecord::UnknownType(id))?;
    let message = Message::read(kind.key, &mut input, id).map_err(|error| unreadable(id, "key", &error))?;
    Ok((kind, message))
}

/// The version and the message of a value.
pub(super) fn read_value<'a>(
    kind: &'static CoordinatorType,
    value: &'a [u8],
) -> Result<(i16, Message<'a>), InvalidRecord> {
    let mut input = Readable::new(value);
    let version = read_version(&mut input, "value")?;
    let (lowest, highest) = kind.value.versions();
    if !(lowest..=highest).contains(&version) {
        return Err(InvalidRecord::UnknownVersion { kind: kind.id, version });
    }
    let message = Message::read(kind.value, &mut input, version)
        .map_err(|error| unreadable(version, "value", &error))?;
    Ok((version, message))
}

fn read_version(input: &mut Readable<'_>, part: &str) -> Result<i16, DecodeError> {
    input.int16().map_err(|_| DecodeError::new(format!("Could not read version from {part}'s buffer.")))
}

fn unreadable(version: i16, part: &str, error: &DecodeError) -> DecodeError {
    DecodeError::new(format!(
        "Could not read record with version {version} from {part}'s buffer due to: {error}."
    ))
}

impl<'a> MetadataRecord<'a> {
    pub(super) fn read(types: &'static [MetadataType], value: Option<&'a [u8]>) -> Result<Self, DecodeError> {
        let mut input = Readable::new(value.unwrap_or_default());
        match read_small_number(&mut input, "frame version")? {
            1 => {}
            0 => {
                return Err(DecodeError::new(
                    "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview \
                     release of KRaft in 2.8 to newer versions are not supported.",
                ));
            }
            other => {
                return Err(DecodeError::new(format!(
                    "Could not deserialize metadata record due to unknown frame version {other}(only frame version 1 \
                     is supported)"
                )));
            }
        }
        let id = read_small_number(&mut input, "type")?;
        let version = read_small_number(&mut input, "version")?;
        let kind = types.iter().find(|kind| kind.id == id).ok_or(DecodeError::UnknownType(id))?;
        let message = Message::read(kind.value, &mut input, version).map_err(|error| match error {
            DecodeError::TooManyValues => error,
            _ => DecodeError::new(format!("Failed to deserialize record with type {id}")),
        })?;
        if input.remaining() > 0 {
            let garbage = input.remaining();
            return Err(DecodeError::new(format!("Found {garbage} byte(s) of garbage after {id}")));
        }
        Ok(Self { kind, version, message })
    }
}

/// An unsigned varint as an i16. Kafka refuses numbers above its range, and takes the low half of those
/// below.
fn read_small_number(input: &mut Readable<'_>, entity: &str) -> Result<i16, DecodeError> {
    let number =
        input.unsigned_varint().map_err(|_| DecodeError::new(format!("Error while reading {entity}")))?;
    if number > i16::MAX.into() {
        return Err(DecodeError::new(format!("Value for {entity} was too large.")));
    }
    let [_, _, low @ ..] = number.to_be_bytes();
    Ok(i16::from_be_bytes(low))
}
