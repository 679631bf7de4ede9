//! `quorum-state`, what a controller knows of the elections: its first line begins with a JSON object. Kafka:
//! `FileQuorumStateStore`, `QuorumStateDataJsonConverter`.

use serde_json::Value;

use super::finding::Finding;
use super::rule::Rule;
use crate::error::Result;
use crate::fs::Directory;
use crate::state::uuid;

/// The maximum size of the file, bytes.
const MAX_BYTES: u64 = 64 << 10;

const NAME: &str = "quorum-state";
/// The file that a broker writes, and then renames. It first removes an earlier one.
pub(super) const STAGED: &str = "quorum-state.tmp";

/// The finding about the file.
pub(super) fn check(metadata: &Directory) -> Result<Option<Finding>> {
    let text = match metadata.read_small(NAME, MAX_BYTES) {
        Ok(Some(text)) => text,
        Ok(None) => return Ok(None),
        Err(error) => {
            return super::unreadable(metadata.path(), error)
                .map(|found| Some(found.that_takes_a_directory_offline()));
        }
    };
    // Kafka reads no further than the object
    let wrong = match serde_json::Deserializer::from_slice(first_line(&text)).into_iter::<Value>().next() {
        None => Some(("a line with a JSON object", "an empty line".to_owned())),
        Some(Err(error)) => Some(("a line with a JSON object", error.to_string())),
        Some(Ok(state)) => wrong_state(&state),
    };
    Ok(wrong.map(|(expected, found)| {
        let file = metadata.path_of(NAME);
        Finding::new(Rule::QuorumStateUnreadable, metadata.path(), file, expected, found)
            .that_stops_a_broker()
    }))
}

fn first_line(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == b'\n').next().unwrap_or_default()
}

/// The type of a field.
#[derive(Clone, Copy)]
enum FieldType {
    Text,
    Int32,
    Int64,
    Uuid,
    /// Objects with an int32 `voterId`.
    Voters,
}

const VERSION_0: [(&str, FieldType); 6] = [
    ("clusterId", FieldType::Text),
    ("leaderId", FieldType::Int32),
    ("leaderEpoch", FieldType::Int32),
    ("votedId", FieldType::Int32),
    ("appliedOffset", FieldType::Int64),
    ("currentVoters", FieldType::Voters),
];
const VERSION_1: [(&str, FieldType); 4] = [
    ("leaderId", FieldType::Int32),
    ("leaderEpoch", FieldType::Int32),
    ("votedId", FieldType::Int32),
    ("votedDirectoryId", FieldType::Uuid),
];

impl FieldType {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Int32 => "a whole number of 32 bits",
            Self::Int64 => "a whole number of 64 bits",
            Self::Uuid => "a UUID of 22 letters",
            Self::Voters => "an array of voters with numbers of 32 bits",
        }
    }

    fn has(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Int32 => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
            Self::Int64 => value.as_i64().is_some(),
            Self::Uuid => value.as_str().is_some_and(|text| uuid::parse(text).is_some()),
            Self::Voters => value.as_array().is_some_and(|voters| {
                voters.iter().all(|voter| voter.get("voterId").is_some_and(|id| Self::Int32.has(id)))
            }),
        }
    }
}

/// What a broker cannot read, or what else there is in its place.
fn wrong_state(state: &Value) -> Option<(&'static str, String)> {
    let of_version: &[_] = match state.get("data_version").map(short) {
        Some(0) => &VERSION_0,
        Some(1) => &VERSION_1,
        _ => return Some(("data_version 0 or 1", shown(state.get("data_version")))),
    };
    of_version.iter().find_map(|(name, field)| match state.get(*name) {
        None => Some(("every field of its version", format!("no {name}"))),
        Some(value) if !field.has(value) => Some((field.name(), format!("{name} {value}"))),
        Some(_) => None,
    })
}

/// `JsonNode.shortValue`: the lower 16 bits of a number without its fraction; 0 for another type.
fn short(value: &Value) -> i16 {
    let number = value.as_i64().or_else(|| value.as_u64().map(u64::cast_signed));
    // a cast of a number with a fraction is one to an integer of 32 bits, which saturates
    #[expect(clippy::cast_possible_truncation, reason = "as in Java")]
    number.map_or_else(|| value.as_f64().unwrap_or(0.0) as i32 as i16, |number| number as i16)
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "none".to_owned(), ToString::to_string)
}
