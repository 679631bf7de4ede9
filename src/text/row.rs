//! The values of a row, and the rows of a format.

use std::marker::PhantomData;

use super::UtcOffset;
use crate::log::{Column, DamagedRange, Origin};
use crate::record::{Codec, Headers, RecordRef};

/// The column of damaged ranges.
pub(super) const DAMAGE_COLUMN: &str = "error";

/// A value of a column.
pub(super) enum Value<'a> {
    Null,
    Integer(i64),
    Boolean(bool),
    /// Milliseconds since the epoch, 0 or more.
    Timestamp(i64),
    /// The same, and the seconds that local time is ahead of UTC.
    LocalTimestamp(i64, i32),
    Text(&'a str),
    Bytes(&'a [u8]),
    Headers(Headers<'a>),
    Damage(&'a DamagedRange),
}

/// How the cells of a row are written.
pub(super) trait Cells {
    /// The start of a row.
    const START: &[u8];
    /// The end of a row.
    const END: &[u8];

    /// The text before the value of a column.
    fn before(name: &str, is_first: bool) -> Vec<u8>;

    /// Writes a value.
    fn write(out: &mut Vec<u8>, value: Value<'_>);
}

/// Writes rows of these columns.
pub(super) struct Rows<C> {
    /// The columns, each with the text before its value.
    columns: Vec<(Column, Vec<u8>)>,
    /// The text before the value of the column `error`, if there is one.
    damage: Option<Vec<u8>>,
    utc_offset: Option<UtcOffset>,
    cells: PhantomData<C>,
}

impl<C: Cells> Rows<C> {
    pub(super) fn new(columns: &[Column], reports_damage: bool, utc_offset: Option<UtcOffset>) -> Self {
        let before = |(place, column): (usize, &Column)| (*column, C::before(column.name(), place == 0));
        let damage = reports_damage.then(|| C::before(DAMAGE_COLUMN, columns.is_empty()));
        let columns = columns.iter().enumerate().map(before).collect();
        Self { columns, damage, utc_offset, cells: PhantomData }
    }

    #[inline]
    pub(super) fn write_record(&self, out: &mut Vec<u8>, record: &RecordRef<'_>, origin: &Origin<'_>) {
        out.extend_from_slice(C::START);
        for (column, before) in &self.columns {
            out.extend_from_slice(before);
            C::write(out, self.value(*column, record, origin));
        }
        self.end(out, Value::Null);
    }

    /// Writes the row of a damaged range: its first offset, its position, and the range itself.
    pub(super) fn write_damage(&self, out: &mut Vec<u8>, range: &DamagedRange) {
        out.extend_from_slice(C::START);
        for (column, before) in &self.columns {
            out.extend_from_slice(before);
            let value = match column {
                Column::Offset => Value::Integer(range.start_offset),
                Column::Position => Value::Integer(range.start_position.cast_signed()),
                Column::Headers => Value::Headers(Headers::default()),
                _ => Value::Null,
            };
            C::write(out, value);
        }
        self.end(out, Value::Damage(range));
    }

    #[inline]
    fn end(&self, out: &mut Vec<u8>, damage: Value<'_>) {
        if let Some(before) = &self.damage {
            out.extend_from_slice(before);
            C::write(out, damage);
        }
        out.extend_from_slice(C::END);
    }

    /// The value of a record in a column.
    #[inline]
    fn value<'a>(&self, column: Column, record: &RecordRef<'a>, origin: &Origin<'a>) -> Value<'a> {
        match column {
            Column::Timestamp if record.timestamp != -1 => {
                let seconds = self.utc_offset.as_ref().and_then(|zone| zone.seconds(record.timestamp));
                seconds.map_or(Value::Timestamp(record.timestamp), |seconds| {
                    Value::LocalTimestamp(record.timestamp, seconds)
                })
            }
            column => value(column, record, origin),
        }
    }
}

/// The value of a record in a column, with times in UTC.
#[inline]
fn value<'a>(column: Column, record: &RecordRef<'a>, origin: &Origin<'a>) -> Value<'a> {
    let header = &origin.batch.header;
    let integer = |number: i32| Value::Integer(i64::from(number));
    let size = |bytes: Option<&[u8]>| {
        Value::Integer(bytes.map_or(-1, |bytes| i64::try_from(bytes.len()).unwrap_or(i64::MAX)))
    };
    match column {
        Column::Offset => Value::Integer(record.offset),
        Column::Timestamp if record.timestamp == -1 => Value::Null,
        Column::Timestamp => Value::Timestamp(record.timestamp),
        Column::TimestampType => integer(record.timestamp_type.id().into()),
        Column::Key => record.key.map_or(Value::Null, Value::Bytes),
        Column::Value => record.value.map_or(Value::Null, Value::Bytes),
        Column::Headers => Value::Headers(record.headers.clone()),
        Column::Topic => origin.topic.map_or(Value::Null, Value::Text),
        Column::Partition => origin.partition.map_or(Value::Null, integer),
        Column::LeaderEpoch => integer(header.leader_epoch),
        Column::ProducerId => Value::Integer(header.producer_id),
        Column::ProducerEpoch => integer(header.producer_epoch.into()),
        Column::Sequence => integer(record.sequence),
        Column::IsTransactional => Value::Boolean(header.is_transactional()),
        Column::IsControl => Value::Boolean(header.is_control()),
        Column::Codec => Value::Text(header.codec().map_or("unknown", Codec::name)),
        Column::Magic => integer(header.magic.cast_signed().into()),
        Column::BatchBaseOffset => Value::Integer(header.base_offset),
        Column::Position => Value::Integer(origin.batch.position.cast_signed()),
        Column::Segment => Value::Integer(origin.segment),
        Column::KeySize => size(record.key),
        Column::ValueSize => size(record.value),
    }
}
