//! Record batches, magic 2.

use super::bytes::{Cursor, crc32c};
use super::decompress::decompress;
use super::{Batch, Codec, Control, Record, TimestampType};

/// `bytes` are the whole batch.
pub fn read(bytes: &[u8]) -> Result<Batch, String> {
    if bytes.len() < 61 {
        return Err(format!("a batch of {} bytes", bytes.len()));
    }
    let mut rest = Cursor(bytes);
    let base_offset = rest.i64()?;
    let _size = rest.i32()?;
    let leader_epoch = rest.i32()?;
    let magic = rest.i8()? as u8;
    let crc = rest.u32()?;
    if crc != crc32c(rest.0) {
        return Err(format!("crc {crc:#x}, computed {:#x}", crc32c(rest.0)));
    }
    let attributes = rest.i16()?;
    let last_offset_delta = rest.i32()?;
    let base_timestamp = rest.i64()?;
    let max_timestamp = rest.i64()?;
    let producer_id = rest.i64()?;
    let producer_epoch = rest.i16()?;
    let base_sequence = rest.i32()?;
    let count = rest.i32()?;

    if attributes & !0x7f != 0 {
        return Err(format!("attributes {attributes:#x}"));
    }
    if base_offset < 0 || leader_epoch < -1 || last_offset_delta < 0 || count < 0 {
        return Err(format!(
            "base offset {base_offset}, leader epoch {leader_epoch}, delta {last_offset_delta}, count {count}"
        ));
    }
    let codec = Codec::from_attributes(attributes as u8)?;
    let timestamp_type =
        if attributes & 0x08 == 0 { TimestampType::CreateTime } else { TimestampType::LogAppendTime };
    let mut batch = Batch {
        segment: 0,
        position: 0,
        size: bytes.len() as u64,
        magic,
        base_offset,
        last_offset: base_offset
            .checked_add(i64::from(last_offset_delta))
            .ok_or("offsets beyond the largest")?,
        count: Some(count),
        codec,
        timestamp_type,
        base_timestamp: Some(base_timestamp),
        max_timestamp,
        leader_epoch,
        producer_id,
        producer_epoch,
        base_sequence,
        last_sequence: sequence(base_sequence, last_offset_delta),
        transactional: attributes & 0x10 != 0,
        control: attributes & 0x20 != 0,
        delete_horizon: (attributes & 0x40 != 0).then_some(base_timestamp),
        crc,
        records: Vec::new(),
    };
    if count == 0 && !rest.0.is_empty() {
        return Err(format!("no records in {} bytes", rest.0.len()));
    }
    if count > 0 {
        let plain = decompress(codec, 2, rest.0)?;
        let mut rest = Cursor(&plain);
        for _ in 0..count {
            let record = read_record(&mut rest, &batch, last_offset_delta)?;
            batch.records.push(record);
        }
        if !rest.0.is_empty() {
            return Err(format!("{} bytes after the last record", rest.0.len()));
        }
        let largest = batch.records.iter().map(|record| record.timestamp).max();
        if largest != Some(max_timestamp) {
            return Err(format!("largest timestamp {max_timestamp}, of the records {largest:?}"));
        }
    }
    Ok(batch)
}

fn read_record(rest: &mut Cursor<'_>, batch: &Batch, last_offset_delta: i32) -> Result<Record, String> {
    let length = rest.varint()?;
    let length = usize::try_from(length).map_err(|_| format!("a record of {length} bytes"))?;
    let mut body = Cursor(rest.take(length)?);
    if body.i8()? != 0 {
        return Err("record attributes".to_owned());
    }
    let timestamp_delta = body.varlong()?;
    let offset_delta = body.varint()?;
    let key = body.nullable_varint()?;
    let value = body.nullable_varint()?;
    let mut headers = Vec::new();
    let header_count = body.varint()?;
    if header_count < 0 {
        return Err(format!("{header_count} headers"));
    }
    for _ in 0..header_count {
        let name = body.nullable_varint()?.ok_or("a header without a key")?;
        headers.push((name, body.nullable_varint()?));
    }
    if !body.0.is_empty() {
        return Err(format!("{} bytes after the headers", body.0.len()));
    }
    if !(0..=last_offset_delta).contains(&offset_delta) {
        return Err(format!("offset delta {offset_delta}, that of the batch {last_offset_delta}"));
    }
    let offset = batch.base_offset + i64::from(offset_delta);
    if let Some(previous) = batch.records.last()
        && offset <= previous.offset
    {
        return Err(format!("offset {offset} after {}", previous.offset));
    }
    let base_timestamp = batch.base_timestamp.unwrap();
    let timestamp = match batch.timestamp_type {
        TimestampType::LogAppendTime => batch.max_timestamp,
        _ => base_timestamp.checked_add(timestamp_delta).ok_or("a timestamp beyond the largest")?,
    };
    let control = if batch.control { Some(read_control(key.as_deref(), value.as_deref())?) } else { None };
    let sequence = sequence(batch.base_sequence, offset_delta);
    Ok(Record { offset, timestamp, sequence, key, value, headers, control })
}

fn read_control(key: Option<&[u8]>, value: Option<&[u8]>) -> Result<Control, String> {
    let mut key = Cursor(key.ok_or("a control record without key")?);
    let (version, kind) = (key.i16()?, key.i16()?);
    if version < 0 {
        return Err(format!("control version {version}"));
    }
    if kind > 1 {
        return Ok(Control::Other { kind });
    }
    let mut value = Cursor(value.ok_or("a marker without value")?);
    let version = value.i16()?;
    let coordinator_epoch = value.i32()?;
    if version < 0 {
        return Err(format!("marker version {version}"));
    }
    match kind {
        0 => Ok(Control::Abort { coordinator_epoch }),
        1 => Ok(Control::Commit { coordinator_epoch }),
        _ => Err(format!("control type {kind}")),
    }
}

/// Sequences wrap from the largest to 0.
fn sequence(base: i32, delta: i32) -> i32 {
    if base < 0 { -1 } else { ((i64::from(base) + i64::from(delta)) % (1 << 31)) as i32 }
}
