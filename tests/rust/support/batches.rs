//! Builds the contents of a `.log`, with the same bytes as Kafka: v2 batches, v0 and v1 messages, and
//! wrappers.

use std::io::Write;

use super::lz4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    None,
    Gzip,
    /// In the frames of snappy-java, as Kafka writes it.
    SnappyXerial,
    /// One block without frame, as some clients wrote it.
    SnappyRaw,
    Lz4,
    /// v2 only.
    Zstd,
}

impl Codec {
    pub const ALL: [Self; 6] =
        [Self::None, Self::Gzip, Self::SnappyXerial, Self::SnappyRaw, Self::Lz4, Self::Zstd];

    fn id(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::SnappyXerial | Self::SnappyRaw => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    /// `magic` is that of the message that contains the stream.
    fn compress(self, magic: u8, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::None => bytes.to_vec(),
            Self::Gzip => {
                let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                gzip.write_all(bytes).unwrap();
                gzip.finish().unwrap()
            }
            Self::SnappyXerial => {
                let mut out = vec![0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1];
                for chunk in bytes.chunks(32 << 10) {
                    let block = snap::raw::Encoder::new().compress_vec(chunk).unwrap();
                    out.extend((block.len() as i32).to_be_bytes());
                    out.extend(block);
                }
                out
            }
            Self::SnappyRaw => snap::raw::Encoder::new().compress_vec(bytes).unwrap(),
            Self::Lz4 => lz4::frame(bytes, magic == 0),
            Self::Zstd => zstd::encode_all(bytes, 3).unwrap(),
        }
    }
}

/// A record to be written. Its offset is the previous record's plus one, unless [`Rec::delta`] sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rec {
    pub timestamp: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Relative to the base offset of the batch.
    pub offset_delta: Option<i32>,
}

impl Rec {
    /// Null key, null value.
    pub fn at(timestamp: i64) -> Self {
        Self { timestamp, key: None, value: None, headers: Vec::new(), offset_delta: None }
    }

    pub fn key(mut self, key: impl AsRef<[u8]>) -> Self {
        self.key = Some(key.as_ref().to_vec());
        self
    }

    pub fn value(mut self, value: impl AsRef<[u8]>) -> Self {
        self.value = Some(value.as_ref().to_vec());
        self
    }

    /// Adds a header.
    pub fn header(mut self, key: impl AsRef<[u8]>, value: Option<&[u8]>) -> Self {
        self.headers.push((key.as_ref().to_vec(), value.map(<[u8]>::to_vec)));
        self
    }

    pub fn delta(mut self, offset_delta: i32) -> Self {
        self.offset_delta = Some(offset_delta);
        self
    }
}

/// Types of control records.
pub const ABORT: i16 = 0;
pub const COMMIT: i16 = 1;
pub const LEADER_CHANGE: i16 = 2;

/// The bytes of one batch (or of several uncompressed messages), with the data for index entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    pub bytes: Vec<u8>,
    pub base_offset: i64,
    /// Inclusive.
    pub last_offset: i64,
    pub max_timestamp: i64,
    /// −1: none.
    pub producer_id: i64,
    pub is_transactional: bool,
    /// The type of the control record.
    pub control: Option<i16>,
}

impl Built {
    pub fn next_offset(&self) -> i64 {
        self.last_offset + 1
    }
}

/// A v2 batch to be built. The defaults are Kafka's: no producer, leader epoch 0, `CreateTime`, not
/// compressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchV2 {
    pub base_offset: i64,
    pub leader_epoch: i32,
    pub codec: Codec,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub is_transactional: bool,
    pub is_control: bool,
    /// The broker's time, in `maxTimestamp`, with its attribute bit; the records keep their deltas.
    pub log_append_time: Option<i64>,
    /// The delete horizon, in place of the base timestamp, with its attribute bit.
    pub delete_horizon: Option<i64>,
    pub records: Vec<Rec>,
    /// Set as after compaction that removed the last records; default: the delta of the last record.
    pub last_offset_delta: Option<i32>,
    /// Set as after compaction that removed all records; default: the largest timestamp of the records.
    pub max_timestamp: Option<i64>,
}

impl BatchV2 {
    pub fn new(base_offset: i64) -> Self {
        Self {
            base_offset,
            leader_epoch: 0,
            codec: Codec::None,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            is_transactional: false,
            is_control: false,
            log_append_time: None,
            delete_horizon: None,
            records: Vec::new(),
            last_offset_delta: None,
            max_timestamp: None,
        }
    }

    /// A transaction marker: [`COMMIT`] or [`ABORT`].
    pub fn marker(
        base_offset: i64,
        kind: i16,
        producer_id: i64,
        producer_epoch: i16,
        timestamp: i64,
    ) -> Self {
        let coordinator_epoch = 0i32;
        let value = [&0i16.to_be_bytes()[..], &coordinator_epoch.to_be_bytes()].concat();
        Self::new(base_offset).transaction(producer_id, producer_epoch, -1).control(kind, timestamp, value)
    }

    /// A batch without records, as compaction leaves it: `last_offset_delta` and `max_timestamp` are kept.
    pub fn empty(base_offset: i64, last_offset_delta: i32, max_timestamp: i64) -> Self {
        Self {
            last_offset_delta: Some(last_offset_delta),
            max_timestamp: Some(max_timestamp),
            ..Self::new(base_offset)
        }
    }

    pub fn leader_epoch(mut self, leader_epoch: i32) -> Self {
        self.leader_epoch = leader_epoch;
        self
    }

    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    pub fn producer(mut self, producer_id: i64, producer_epoch: i16, base_sequence: i32) -> Self {
        (self.producer_id, self.producer_epoch, self.base_sequence) =
            (producer_id, producer_epoch, base_sequence);
        self
    }

    pub fn transaction(mut self, producer_id: i64, producer_epoch: i16, base_sequence: i32) -> Self {
        self.is_transactional = true;
        self.producer(producer_id, producer_epoch, base_sequence)
    }

    /// Makes it a control batch with one record of this type, and writes the key.
    pub fn control(mut self, kind: i16, timestamp: i64, value: impl AsRef<[u8]>) -> Self {
        self.is_control = true;
        let key = [0i16.to_be_bytes(), kind.to_be_bytes()].concat();
        self.records = vec![Rec::at(timestamp).key(key).value(value)];
        self
    }

    pub fn log_append_time(mut self, timestamp: i64) -> Self {
        self.log_append_time = Some(timestamp);
        self
    }

    pub fn delete_horizon(mut self, timestamp: i64) -> Self {
        self.delete_horizon = Some(timestamp);
        self
    }

    pub fn record(mut self, record: Rec) -> Self {
        self.records.push(record);
        self
    }

    pub fn records(mut self, records: impl IntoIterator<Item = Rec>) -> Self {
        self.records.extend(records);
        self
    }

    pub fn last_offset_delta(mut self, delta: i32) -> Self {
        self.last_offset_delta = Some(delta);
        self
    }

    pub fn max_timestamp(mut self, timestamp: i64) -> Self {
        self.max_timestamp = Some(timestamp);
        self
    }

    pub fn build(&self) -> Built {
        let base_timestamp =
            self.delete_horizon.unwrap_or_else(|| self.records.first().map_or(-1, |record| record.timestamp));
        let mut plain = Vec::new();
        let mut delta = -1;
        for record in &self.records {
            delta = record.offset_delta.unwrap_or(delta + 1);
            put_record(&mut plain, record, delta, base_timestamp);
        }
        let last_offset_delta = self.last_offset_delta.unwrap_or(delta.max(0));
        let largest = self.records.iter().map(|record| record.timestamp).max().unwrap_or(-1);
        let max_timestamp = self.log_append_time.or(self.max_timestamp).unwrap_or(largest);
        let body = if self.records.is_empty() { Vec::new() } else { self.codec.compress(2, &plain) };

        let mut checked = Vec::new();
        checked.extend(self.attributes().to_be_bytes());
        checked.extend(last_offset_delta.to_be_bytes());
        checked.extend(base_timestamp.to_be_bytes());
        checked.extend(max_timestamp.to_be_bytes());
        checked.extend(self.producer_id.to_be_bytes());
        checked.extend(self.producer_epoch.to_be_bytes());
        checked.extend(self.base_sequence.to_be_bytes());
        checked.extend((self.records.len() as i32).to_be_bytes());
        checked.extend(body);

        let mut bytes = Vec::new();
        bytes.extend(self.base_offset.to_be_bytes());
        bytes.extend((checked.len() as i32 + 9).to_be_bytes());
        bytes.extend(self.leader_epoch.to_be_bytes());
        bytes.push(2);
        bytes.extend(crc32c(&checked).to_be_bytes());
        bytes.extend(checked);

        let control_key = self.records.first().and_then(|record| record.key.as_deref());
        Built {
            bytes,
            base_offset: self.base_offset,
            last_offset: self.base_offset + i64::from(last_offset_delta),
            max_timestamp,
            producer_id: self.producer_id,
            is_transactional: self.is_transactional,
            control: control_key
                .filter(|_| self.is_control)
                .map(|key| i16::from_be_bytes(key[2..4].try_into().unwrap())),
        }
    }

    fn attributes(&self) -> i16 {
        let codec = if self.records.is_empty() { 0 } else { i16::from(self.codec.id()) };
        codec
            | i16::from(self.log_append_time.is_some()) << 3
            | i16::from(self.is_transactional) << 4
            | i16::from(self.is_control) << 5
            | i16::from(self.delete_horizon.is_some()) << 6
    }
}

fn put_record(out: &mut Vec<u8>, record: &Rec, offset_delta: i32, base_timestamp: i64) {
    let mut body = vec![0];
    put_varlong(&mut body, record.timestamp - base_timestamp);
    put_varlong(&mut body, i64::from(offset_delta));
    put_bytes(&mut body, record.key.as_deref());
    put_bytes(&mut body, record.value.as_deref());
    put_varlong(&mut body, record.headers.len() as i64);
    for (key, value) in &record.headers {
        put_bytes(&mut body, Some(key));
        put_bytes(&mut body, value.as_deref());
    }
    put_varlong(out, body.len() as i64);
    out.extend(body);
}

fn put_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    put_varlong(out, bytes.map_or(-1, |bytes| bytes.len() as i64));
    out.extend(bytes.unwrap_or_default());
}

/// A zigzag varlong; for a number in the range of an i32 it equals the varint.
pub fn put_varlong(out: &mut Vec<u8>, n: i64) {
    let mut raw = ((n << 1) ^ (n >> 63)) as u64;
    while raw >= 0x80 {
        out.push(raw as u8 | 0x80);
        raw >>= 7;
    }
    out.push(raw as u8);
}

/// v0 or v1 messages: one for each record, or one wrapper around all if there is a codec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageSet {
    /// 0 or 1.
    pub magic: u8,
    /// The offset of the first record.
    pub base_offset: i64,
    pub codec: Codec,
    /// v1: the broker's time, in the wrapper or in each message.
    pub log_append_time: Option<i64>,
    /// v0 and v1 have no headers.
    pub records: Vec<Rec>,
    /// The wrapper's offset, if it is not that of the last record.
    pub wrapper_offset: Option<i64>,
}

impl MessageSet {
    pub fn v0(base_offset: i64) -> Self {
        let (records, log_append_time, wrapper_offset) = (Vec::new(), None, None);
        Self { magic: 0, base_offset, codec: Codec::None, log_append_time, records, wrapper_offset }
    }

    pub fn v1(base_offset: i64) -> Self {
        Self { magic: 1, ..Self::v0(base_offset) }
    }

    pub fn codec(mut self, codec: Codec) -> Self {
        assert!(codec != Codec::Zstd, "zstd requires v2");
        self.codec = codec;
        self
    }

    pub fn log_append_time(mut self, timestamp: i64) -> Self {
        assert_eq!(self.magic, 1, "v0 has no timestamps");
        self.log_append_time = Some(timestamp);
        self
    }

    pub fn record(mut self, record: Rec) -> Self {
        self.records.push(record);
        self
    }

    pub fn records(mut self, records: impl IntoIterator<Item = Rec>) -> Self {
        self.records.extend(records);
        self
    }

    pub fn wrapper_offset(mut self, offset: i64) -> Self {
        self.wrapper_offset = Some(offset);
        self
    }

    /// The entries of the log: one for each record, or one wrapper.
    pub fn build(&self) -> Vec<Built> {
        assert!(!self.records.is_empty(), "a message set has records");
        let mut delta = -1;
        let deltas: Vec<i32> = self
            .records
            .iter()
            .map(|record| {
                delta = record.offset_delta.unwrap_or(delta + 1);
                delta
            })
            .collect();
        let first = self.base_offset + i64::from(deltas[0]);
        let last = self.base_offset + i64::from(delta);
        if self.codec == Codec::None {
            return self
                .records
                .iter()
                .zip(&deltas)
                .map(|(record, &delta)| {
                    let offset = self.base_offset + i64::from(delta);
                    let timestamp = self.log_append_time.unwrap_or(record.timestamp);
                    let (key, value) = (record.key.as_deref(), record.value.as_deref());
                    let bytes = self.message(offset, Codec::None, timestamp, key, value);
                    self.built(bytes, offset, offset, timestamp)
                })
                .collect();
        }
        let mut inner = Vec::new();
        for (record, &delta) in self.records.iter().zip(&deltas) {
            let offset = if self.magic == 0 { self.base_offset + i64::from(delta) } else { i64::from(delta) };
            let plain = Self { log_append_time: None, ..self.clone() };
            let (key, value) = (record.key.as_deref(), record.value.as_deref());
            inner.extend(plain.message(offset, Codec::None, record.timestamp, key, value));
        }
        let largest = self.records.iter().map(|record| record.timestamp).max().unwrap();
        let timestamp = self.log_append_time.unwrap_or(largest);
        let value = self.codec.compress(self.magic, &inner);
        let wrapper = self.wrapper_offset.unwrap_or(last);
        let bytes = self.message(wrapper, self.codec, timestamp, None, Some(&value));
        vec![self.built(bytes, first, wrapper, timestamp)]
    }

    fn built(&self, bytes: Vec<u8>, base_offset: i64, last_offset: i64, timestamp: i64) -> Built {
        let max_timestamp = if self.magic == 0 { -1 } else { timestamp };
        let (producer_id, is_transactional, control) = (-1, false, None);
        Built { bytes, base_offset, last_offset, max_timestamp, producer_id, is_transactional, control }
    }

    fn message(
        &self,
        offset: i64,
        codec: Codec,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
    ) -> Vec<u8> {
        let mut checked = vec![self.magic, codec.id() | u8::from(self.log_append_time.is_some()) << 3];
        if self.magic == 1 {
            checked.extend(timestamp.to_be_bytes());
        }
        for bytes in [key, value] {
            checked.extend(bytes.map_or(-1, |bytes| bytes.len() as i32).to_be_bytes());
            checked.extend(bytes.unwrap_or_default());
        }
        let mut out = offset.to_be_bytes().to_vec();
        out.extend((checked.len() as i32 + 4).to_be_bytes());
        out.extend(crc32(&checked).to_be_bytes());
        out.extend(checked);
        out
    }
}

pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

pub fn crc32(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, bytes) as u32
}
