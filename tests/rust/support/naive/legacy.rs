//! Messages v0 and v1, and the wrappers around compressed messages.

use super::bytes::{Cursor, crc32};
use super::decompress::decompress;
use super::{Batch, Codec, Record, TimestampType};

struct Message {
    offset: i64,
    crc: u32,
    magic: u8,
    codec: Codec,
    timestamp_type: TimestampType,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
}

/// `bytes` are the whole message with its offset and size.
pub fn read(bytes: &[u8]) -> Result<Batch, String> {
    let outer = read_message(bytes)?;
    let records = match outer.codec {
        Codec::None => vec![record(outer.offset, outer.timestamp, outer.key, outer.value)],
        Codec::Zstd => return Err("zstd in a message set".to_owned()),
        codec => {
            if outer.key.is_some() {
                return Err("a wrapper with a key".to_owned());
            }
            let value = outer.value.as_ref().ok_or("a wrapper without value")?;
            unwrap(&outer, &decompress(codec, outer.magic, value)?)?
        }
    };
    let largest = records.iter().map(|record| record.timestamp).max();
    if largest != Some(outer.timestamp) {
        return Err(format!("timestamp {}, largest of the records {largest:?}", outer.timestamp));
    }
    Ok(Batch {
        segment: 0,
        position: 0,
        size: bytes.len() as u64,
        magic: outer.magic,
        base_offset: records[0].offset,
        last_offset: outer.offset,
        count: None,
        codec: outer.codec,
        timestamp_type: outer.timestamp_type,
        base_timestamp: None,
        max_timestamp: outer.timestamp,
        leader_epoch: -1,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        last_sequence: -1,
        transactional: false,
        control: false,
        delete_horizon: None,
        crc: outer.crc,
        records,
    })
}

fn unwrap(outer: &Message, mut plain: &[u8]) -> Result<Vec<Record>, String> {
    let mut inner = Vec::new();
    while !plain.is_empty() {
        let size = plain.get(8..12).ok_or("an incomplete inner message")?;
        let size = i32::from_be_bytes(size.try_into().unwrap());
        let end = usize::try_from(size).map_err(|_| format!("an inner message of {size} bytes"))? + 12;
        let message = read_message(plain.get(..end).ok_or("an incomplete inner message")?)?;
        if message.magic != outer.magic || message.codec != Codec::None {
            return Err(format!("an inner message of magic {} and codec {:?}", message.magic, message.codec));
        }
        inner.push(message);
        plain = &plain[end..];
    }
    let last = inner.last().ok_or("an empty wrapper")?.offset;
    if inner.windows(2).any(|pair| pair[0].offset >= pair[1].offset) || inner[0].offset < 0 {
        return Err("inner offsets out of order".to_owned());
    }
    // v0: absolute. v1: relative, but a wrapper at offset 0 starts at 0, regardless of the offset of its last
    // entry (old librdkafka)
    let base = match (outer.magic, outer.offset) {
        (0, offset) if offset != last => return Err(format!("a wrapper at {offset} that ends at {last}")),
        (0, _) | (1, 0) => 0,
        (_, offset) if offset < last => return Err(format!("a wrapper at {offset} that contains {last}")),
        (_, offset) => offset - last,
    };
    Ok(inner
        .into_iter()
        .map(|message| {
            let timestamp = match outer.timestamp_type {
                TimestampType::LogAppendTime => outer.timestamp,
                _ => message.timestamp,
            };
            record(base + message.offset, timestamp, message.key, message.value)
        })
        .collect())
}

fn read_message(bytes: &[u8]) -> Result<Message, String> {
    let mut rest = Cursor(bytes);
    let offset = rest.i64()?;
    let _size = rest.i32()?;
    let crc = rest.u32()?;
    if crc != crc32(rest.0) {
        return Err(format!("crc {crc:#x}, computed {:#x}", crc32(rest.0)));
    }
    let magic = rest.i8()? as u8;
    let attributes = rest.i8()? as u8;
    let (timestamp, timestamp_type) = match (magic, attributes & 0x08) {
        (0, 0) => (-1, TimestampType::NoTimestampType),
        (1, 0) => (rest.i64()?, TimestampType::CreateTime),
        (1, _) => (rest.i64()?, TimestampType::LogAppendTime),
        _ => return Err(format!("magic {magic} with attributes {attributes:#x}")),
    };
    if offset < 0 || timestamp < -1 || attributes & 0xf0 != 0 {
        return Err(format!("offset {offset}, timestamp {timestamp}, attributes {attributes:#x}"));
    }
    let codec = Codec::from_attributes(attributes)?;
    let key = rest.nullable()?;
    let value = rest.nullable()?;
    if !rest.0.is_empty() {
        return Err(format!("{} bytes after the value", rest.0.len()));
    }
    Ok(Message { offset, crc, magic, codec, timestamp_type, timestamp, key, value })
}

fn record(offset: i64, timestamp: i64, key: Option<Vec<u8>>, value: Option<Vec<u8>>) -> Record {
    Record { offset, timestamp, sequence: -1, key, value, headers: Vec::new(), control: None }
}
