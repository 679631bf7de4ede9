//! The first offset of a compressed batch of an old format. Kafka decompresses the whole batch for it: one
//! that it cannot decompress ends the loading, where a reader of this crate fails only at its records.
//!
//! *Source*: `AbstractLegacyRecordBatch.baseOffset`, `AbstractLegacyRecordBatch.DeepRecordsIterator`.

use super::exception::ExceptionKind;
use crate::error::Malformed;
use crate::record::{Attributes, Codec, LOG_OVERHEAD, PREFIX, codec, i32_at, i64_at};

/// The smallest length of a message. *Source*: `LegacyRecord.RECORD_OVERHEAD_V0`.
const MIN_LENGTH: usize = 14;

/// Why there is no first offset.
#[derive(Debug)]
pub(super) enum Refusal {
    /// Kafka throws this.
    Thrown(ExceptionKind, String),
    /// The batch is above the limit: Kafka may read it.
    TooLarge(Malformed),
}

fn invalid<T>(reason: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Thrown(ExceptionKind::InvalidRecord, reason.into()))
}

/// A message in a wrapper: its offset and its codec.
struct Inner {
    offset: i64,
    attributes: Attributes,
}

/// The first offset of a batch of magic below 2, with all its bytes: the offset of the batch if it is not
/// compressed.
pub(super) fn first_offset(magic: i8, bytes: &[u8], max_batch_bytes: usize) -> Result<i64, Refusal> {
    let cut = || Refusal::Thrown(ExceptionKind::IllegalArgument, "it ends in its first message".to_owned());
    let offset = i64_at(bytes, 0).ok_or_else(cut)?;
    let attributes = Attributes(i16::from(*bytes.get(PREFIX).ok_or_else(cut)?));
    let codec = codec_of(attributes)?;
    if codec == Codec::None {
        return Ok(offset);
    }
    if !(0..=1).contains(&magic) || codec == Codec::Zstd {
        return invalid(format!("{} in magic {magic}", codec.name()));
    }
    let Some(value) = value(magic, bytes).ok_or_else(cut)? else {
        return invalid("a null value in the place of compressed messages");
    };
    let mut payload = Vec::new();
    let decompressed = codec::decompress(codec, magic.unsigned_abs(), value, max_batch_bytes, &mut payload);
    decompressed.map_err(|malformed| {
        if !malformed.is_damage() {
            return Refusal::TooLarge(malformed);
        }
        let Malformed { expected, found, .. } = malformed;
        Refusal::Thrown(ExceptionKind::Kafka, format!("expected {expected}, found {found}"))
    })?;
    let Some((first, last)) = first_and_last(&payload)? else {
        return invalid("no messages in it");
    };
    let shift = match magic {
        0 => 0,
        // some clients left it at zero, and wrote absolute offsets
        _ if offset == 0 => 0,
        _ if offset < last => return invalid(format!("offset {offset}, and {last} in it")),
        _ => offset.wrapping_sub(last),
    };
    if codec_of(first.attributes)? != Codec::None {
        return invalid("a compressed message in a compressed one");
    }
    Ok(first.offset.wrapping_add(shift))
}

fn codec_of(attributes: Attributes) -> Result<Codec, Refusal> {
    attributes
        .codec()
        .map_err(|Malformed { found, .. }| Refusal::Thrown(ExceptionKind::IllegalArgument, found))
}

/// The value of a message, `Some(None)` if it is null; `None` if the message ends before it does.
#[expect(clippy::option_option, reason = "a null value is one")]
fn value(magic: i8, bytes: &[u8]) -> Option<Option<&[u8]>> {
    let key = if magic == 0 { PREFIX + 1 } else { PREFIX + 9 };
    let key_size = usize::try_from(i32_at(bytes, key)?).unwrap_or(0);
    let at = key + 4 + key_size;
    let Ok(size) = usize::try_from(i32_at(bytes, at)?) else { return Some(None) };
    bytes.get(at + 4..)?.get(..size).map(Some)
}

/// The first message and the offset of the last one, up to a part of one, which Kafka ignores.
fn first_and_last(payload: &[u8]) -> Result<Option<(Inner, i64)>, Refusal> {
    let (mut rest, mut found) = (payload, None);
    while let (Some(offset), Some(length)) = (i64_at(rest, 0), i32_at(rest, 8)) {
        let Some(length) = usize::try_from(length).ok().filter(|length| *length >= MIN_LENGTH) else {
            let reason = format!("a message of {length} bytes in it, less than {MIN_LENGTH}");
            return Err(Refusal::Thrown(ExceptionKind::CorruptRecord, reason));
        };
        let Some((message, after)) = rest.split_at_checked(LOG_OVERHEAD + length) else { break };
        let attributes = Attributes(i16::from(message.get(PREFIX).copied().unwrap_or(0)));
        let (first, _) = found.unwrap_or((Inner { offset, attributes }, offset));
        found = Some((first, offset));
        rest = after;
    }
    Ok(found)
}
