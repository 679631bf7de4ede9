//! How Kafka reads `partition.metadata` when it opens a log.
//!
//! *Source*: `PartitionMetadataReadBuffer`, `Uuid.fromString`.

use super::disk::Disk;
use super::exception::{ExceptionKind, Step, Thrown};
use crate::fs::names::CLUSTER_METADATA_DIRECTORY;
use crate::state::java_text;
use crate::state::partition_metadata::{PARTITION_METADATA, TopicId, value};

/// `Uuid.METADATA_TOPIC_ID`
const METADATA_TOPIC_ID: &str = "AAAAAAAAAAAAAAAAAAAAAQ";

/// The largest file that is read, bytes.
const MAX_BYTES: usize = 64 << 10;

/// Returns the exception of Kafka's for a wrong text.
pub(super) fn check(disk: &Disk) -> Step<()> {
    disk.refuse_directory(PARTITION_METADATA, ExceptionKind::Storage)?;
    let Some(mut reader) = disk.reader(PARTITION_METADATA)? else { return Ok(()) };
    let text = reader.read(0, MAX_BYTES)?;
    let wrong = match TopicId::parse_file(text) {
        Ok(id)
            if disk.directory().path().ends_with(CLUSTER_METADATA_DIRECTORY)
                && id.to_string() != METADATA_TOPIC_ID =>
        {
            let reason = format!("topic id {id}, where {CLUSTER_METADATA_DIRECTORY} has {METADATA_TOPIC_ID}");
            return Err(Thrown::kafka(ExceptionKind::Kafka, PARTITION_METADATA, reason));
        }
        Ok(_) => return Ok(()),
        Err(wrong) => wrong,
    };
    match kind(text) {
        Some(kind) => Err(Thrown::kafka(kind, PARTITION_METADATA, wrong)),
        None => Ok(()),
    }
}

/// The kind of the exception for a text; `None` if Kafka accepts it.
fn kind(text: &[u8]) -> Option<ExceptionKind> {
    let Ok(text) = std::str::from_utf8(text) else { return Some(ExceptionKind::Storage) };
    let mut lines = java_text::lines(text);
    // an empty file, and one of a single line, are not expected
    let Some(version) = lines.next() else { return Some(ExceptionKind::NullPointer) };
    if !value(version).is_some_and(|version| version.parse::<i32>().is_ok_and(|version| version >= 0)) {
        return Some(ExceptionKind::Storage);
    }
    let Some(topic_id) = lines.next() else { return Some(ExceptionKind::NullPointer) };
    let Some(topic_id) = value(topic_id) else { return Some(ExceptionKind::Storage) };
    let digits = topic_id.strip_suffix("==").unwrap_or(topic_id);
    let is_digit = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'-' || letter == b'_';
    if digits.len() != 22 || !digits.bytes().all(is_digit) {
        return Some(ExceptionKind::IllegalArgument);
    }
    // of the last digit only the upper two bits count
    let is_zero = digits.bytes().take(21).all(|letter| letter == b'A')
        && digits.bytes().last().is_some_and(|letter| (b'A'..=b'P').contains(&letter));
    is_zero.then_some(ExceptionKind::Storage)
}
