//! One of the two replicas while they are compared.

use std::path::PathBuf;

use super::{DifferentField, OtherForm};
use crate::error::Result;
use crate::fs::names::{FileKind, segment_file};
use crate::log::{DamagedRange, Scan, ScanStep};
use crate::record::{BatchHeader, RecordRef};
use crate::segment::Batch;
use crate::types::TimestampType;

/// The first byte of a batch that its checksum covers: version 2, and versions 0 and 1.
const V2_CHECKED_FROM: usize = 21;
const V1_CHECKED_FROM: usize = 16;

/// Where a record is, and what it has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct RecordPlace {
    /// The `.log`.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub file: PathBuf,
    /// The position of its batch, bytes from the start of the file.
    pub position: u64,
    /// The base offset of its batch.
    pub batch_base_offset: i64,
    /// The leader epoch of its batch; `None` if it has none.
    pub leader_epoch: Option<i32>,
    /// Its timestamp, ms; −1 if it has none.
    pub timestamp: i64,
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its value.
    pub value: Option<Vec<u8>>,
}

/// A record that is kept while the other replica is read.
#[derive(Debug, PartialEq, Eq)]
struct Kept {
    offset: i64,
    is_control: bool,
    timestamp: i64,
    timestamp_type: TimestampType,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Kept {
    fn of(record: RecordRef<'_>, is_control: bool) -> Self {
        Self {
            offset: record.offset,
            is_control,
            timestamp: record.timestamp,
            timestamp_type: record.timestamp_type,
            key: record.key.map(<[u8]>::to_vec),
            value: record.value.map(<[u8]>::to_vec),
            headers: record.headers.map(|(name, value)| (name.to_vec(), value.map(<[u8]>::to_vec))).collect(),
        }
    }
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Next {
    /// The record with this offset.
    Record(i64),
    /// The batch has no more records.
    NoneInBatch,
    /// The range is read.
    End,
    /// Damage.
    Damage,
}

/// A replica.
#[derive(Debug)]
pub(super) struct Side {
    scan: Scan,
    end_offset: i64,
    batch: Option<Batch>,
    /// Whether no record of the batch was read.
    is_new: bool,
    record: Option<Kept>,
    damage: Option<DamagedRange>,
    is_at_end: bool,
}

impl Side {
    pub(super) fn new(scan: Scan, end_offset: i64) -> Self {
        Self { scan, end_offset, batch: None, is_new: false, record: None, damage: None, is_at_end: false }
    }

    /// Reads the next batch if there is none.
    pub(super) fn fill(&mut self) -> Result<()> {
        if self.batch.is_some() || self.is_at_end || self.damage.is_some() {
            return Ok(());
        }
        match self.scan.next_step()? {
            None => self.is_at_end = true,
            Some(ScanStep::Batch(batch)) => {
                self.batch = Some(batch);
                self.is_new = true;
            }
            // damage after the range, such as a torn write at the end of the log
            Some(ScanStep::DamagedRange(range)) if range.start_offset >= self.end_offset => {
                self.is_at_end = true;
            }
            Some(ScanStep::DamagedRange(range)) => self.damage = Some(range),
        }
        Ok(())
    }

    /// Whether a batch was read, and none of its records.
    pub(super) fn is_new(&self) -> bool {
        self.batch.is_some() && self.is_new
    }

    /// Whether the two batches have the same bytes.
    pub(super) fn bytes_equal(&mut self, other: &mut Self) -> Result<bool> {
        let sizes = [&self.batch, &other.batch].map(|batch| batch.as_ref().map(|batch| batch.header.size));
        let [one, two] = sizes;
        Ok(one == two && self.scan.batch_bytes()? == other.scan.batch_bytes()?)
    }

    /// Goes on after the batch.
    pub(super) fn skip(&mut self) {
        self.batch = None;
        self.record = None;
    }

    /// The next record, which stays until [`Side::take`].
    pub(super) fn next_record(&mut self) -> Result<Next> {
        if let Some(record) = &self.record {
            return Ok(Next::Record(record.offset));
        }
        if self.damage.is_some() {
            return Ok(Next::Damage);
        }
        let Some(batch) = &self.batch else { return Ok(Next::End) };
        let is_control = batch.header.is_control();
        self.is_new = false;
        let record = self.scan.next_record()?.map(|record| Kept::of(record, is_control));
        let Some(record) = record else {
            self.batch = None;
            return Ok(Next::NoneInBatch);
        };
        let offset = record.offset;
        self.record = Some(record);
        Ok(Next::Record(offset))
    }

    /// Goes on after the record.
    pub(super) fn take(&mut self) {
        self.record = None;
    }

    /// The first field in which the two records differ.
    pub(super) fn different_field(&self, other: &Self) -> Option<DifferentField> {
        let (one, other) = (self.record.as_ref()?, other.record.as_ref()?);
        let times = |record: &Kept| (record.timestamp, record.timestamp_type);
        if one.is_control != other.is_control {
            Some(DifferentField::Control)
        } else if times(one) != times(other) {
            Some(DifferentField::Timestamp)
        } else if one.key != other.key {
            Some(DifferentField::Key)
        } else if one.value != other.value {
            Some(DifferentField::Value)
        } else if one.headers != other.headers {
            Some(DifferentField::Headers)
        } else {
            None
        }
    }

    /// In what the batches of two equal records differ; `None` if in nothing.
    pub(super) fn other_form(&self, other: &Self, offset: i64) -> Option<OtherForm> {
        let (one, other) = (self.batch.as_ref()?.header, other.batch.as_ref()?.header);
        let batches = (one.base_offset, one.last_offset) != (other.base_offset, other.last_offset);
        let mut form = OtherForm {
            offset,
            batches,
            codec: one.codec().ok() != other.codec().ok(),
            leader_epoch: one.leader_epoch != other.leader_epoch,
            producer: producer(&one) != producer(&other),
            header: kind(&one) != kind(&other) || !batches && of_records(&one) != of_records(&other),
            bytes: false,
        };
        if form.batches || form.codec || form.leader_epoch || form.producer || form.header {
            return Some(form);
        }
        // the checksum covers the records
        form.bytes = (one.crc, one.size) != (other.crc, other.size);
        form.bytes.then_some(form)
    }

    /// The record, if it has this offset.
    pub(super) fn place(&self, offset: i64) -> Option<RecordPlace> {
        let (batch, record) = (self.batch.as_ref()?, self.record.as_ref()?);
        if record.offset != offset {
            return None;
        }
        let log = segment_file(self.scan.segment()?, FileKind::Log);
        Some(RecordPlace {
            file: self.scan.log().path().join(log),
            position: batch.position,
            batch_base_offset: batch.header.base_offset,
            leader_epoch: Some(batch.header.leader_epoch).filter(|epoch| *epoch >= 0),
            timestamp: record.timestamp,
            key: record.key.clone(),
            value: record.value.clone(),
        })
    }

    /// The offset at which damage begins.
    pub(super) fn damage_start(&self) -> Option<i64> {
        self.damage.as_ref().map(|damage| damage.start_offset.min(self.end_offset))
    }

    /// The damage that ended the reading.
    pub(super) fn damage(&self) -> Option<DamagedRange> {
        self.damage.clone()
    }

    /// The positions in both files of the first byte after the checksums in which the two batches differ,
    /// which is their end if one is the beginning of the other; none unless both batches begin at the
    /// same offset in the same version.
    pub(super) fn different_byte(&mut self, other: &mut Self) -> Result<Option<[u64; 2]>> {
        let (Some(one), Some(two)) = (&self.batch, &other.batch) else { return Ok(None) };
        let start = |batch: &Batch| (batch.header.base_offset, batch.header.magic);
        if start(one) != start(two) {
            return Ok(None);
        }
        let positions = [one.position, two.position];
        let checked_from = if one.header.magic == 2 { V2_CHECKED_FROM } else { V1_CHECKED_FROM };
        let pairs = self.scan.batch_bytes()?.iter().zip(other.scan.batch_bytes()?);
        let same = pairs.skip(checked_from).take_while(|(one, two)| one == two).count();
        Ok(Some(positions.map(|position| position + (checked_from + same) as u64)))
    }
}

/// What a header has of its producer. The sequence of a batch in another form may be another one.
fn producer(header: &BatchHeader) -> (i64, i16, bool) {
    (header.producer_id, header.producer_epoch, header.is_transactional())
}

/// The attributes that [`OtherForm`] has fields of its own for: the codec, and whether it is a transaction.
const CODEC_AND_TRANSACTION: i16 = 7 | 1 << 4;

/// What a header has that does not depend on the records in the batch: the format and the other attributes.
fn kind(header: &BatchHeader) -> (u8, i16) {
    (header.magic, header.attributes.0 & !CODEC_AND_TRANSACTION)
}

/// What a header says of the records in the batch.
fn of_records(header: &BatchHeader) -> (Option<i64>, i64, i32, Option<i32>) {
    (header.base_timestamp, header.max_timestamp, header.base_sequence, header.count)
}
