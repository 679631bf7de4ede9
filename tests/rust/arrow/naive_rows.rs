//! The rows that a naive reader finds: one record after another, and the damaged ranges between them.

use cordwood::Log;
use cordwood::log::{DamagedRange, OnDamage, ScanOptions, ScanStep};
use cordwood::record::BatchHeader;

use crate::support::batches::BatchV2;

pub type Bytes = Option<Vec<u8>>;

/// A record, or with `damage` a damaged range.
pub struct Row {
    pub damage: Option<DamagedRange>,
    pub offset: i64,
    pub timestamp: i64,
    pub timestamp_type: i8,
    pub sequence: i32,
    pub key: Bytes,
    pub value: Bytes,
    pub headers: Vec<(Vec<u8>, Bytes)>,
    pub header: BatchHeader,
    pub position: i64,
    pub segment: i64,
}

impl Row {
    fn of_damage(range: &DamagedRange, header: BatchHeader) -> Self {
        Self {
            damage: Some(range.clone()),
            offset: range.start_offset,
            timestamp: -1,
            timestamp_type: -1,
            sequence: -1,
            key: None,
            value: None,
            headers: Vec::new(),
            header,
            position: range.start_position as i64,
            segment: -1,
        }
    }
}

/// The rows of a scan, and its error.
pub type Rows = (Vec<Row>, Option<String>);

pub fn rows(log: &Log, options: ScanOptions) -> Rows {
    let (mut rows, mut scan) = (Vec::new(), log.scan(options).unwrap());
    let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
    let any_header = BatchHeader::parse(&BatchV2::new(0).build().bytes, 61).unwrap();
    loop {
        let batch = match scan.next_step() {
            Ok(None) => return (rows, None),
            Ok(Some(ScanStep::DamagedRange(range))) => {
                rows.push(Row::of_damage(&range, any_header));
                continue;
            }
            Ok(Some(ScanStep::Batch(batch))) => batch,
            Err(error) => return (rows, Some(error.to_string())),
        };
        let (segment, before) = (scan.segment().unwrap(), scan.damaged_ranges().len());
        loop {
            match scan.next_record() {
                Ok(None) => break,
                Err(error) => return (rows, Some(error.to_string())),
                Ok(Some(record)) => rows.push(Row {
                    damage: None,
                    offset: record.offset,
                    timestamp: record.timestamp,
                    timestamp_type: record.timestamp_type.id(),
                    sequence: record.sequence,
                    key: owned(record.key),
                    value: owned(record.value),
                    headers: record.headers.map(|(key, value)| (key.to_vec(), owned(value))).collect(),
                    header: batch.header,
                    position: batch.position as i64,
                    segment,
                }),
            }
        }
        // the rest of a batch with a broken record
        if options.on_damage == OnDamage::Report {
            let damaged = &scan.damaged_ranges()[before..];
            rows.extend(damaged.iter().map(|range| Row::of_damage(range, any_header)));
        }
    }
}
