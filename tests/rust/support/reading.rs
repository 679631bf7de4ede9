//! Reads with the crate and converts the results to the types of the naive reader for comparison.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cordwood::log::{DamagedRange, OnDamage, Ranges, Scan, ScanOptions, ScanStats, ScanStep};
use cordwood::record::RecordRef;
use cordwood::record::control::ControlType;
use cordwood::segment::Batch as OurBatch;
use cordwood::types::{Io, IsolationLevel, TimestampType as OurType};
use cordwood::{Error, Log, LogOptions, record};

use super::naive::{Batch, Codec, Control, Record, TimestampType};

pub const IOS: [Io; 2] = [Io::Mmap, Io::Pread];

/// A directory for a test's logs, in memory if there is space.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub fn options(io: Io) -> LogOptions {
    LogOptions { io, ..LogOptions::default() }
}

pub fn open(dir: &Path, io: Io) -> Log {
    Log::open(dir, options(io)).unwrap_or_else(|error| panic!("{error}"))
}

/// The same directory in both modes.
pub fn both(dir: &Path) -> [Log; 2] {
    IOS.map(|io| open(dir, io))
}

/// The results of a scan, up to its end or its error.
#[derive(Debug, Default)]
pub struct Read {
    /// Batches with their records in the range.
    pub batches: Vec<Batch>,
    /// Damaged ranges, each with the number of batches before it.
    pub steps: Vec<(usize, DamagedRange)>,
    pub gaps: Vec<DamagedRange>,
    pub stats: ScanStats,
    pub error: Option<Error>,
}

impl Read {
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.batches.iter().flat_map(|batch| &batch.records)
    }

    pub fn offsets(&self) -> Vec<i64> {
        self.records().map(|record| record.offset).collect()
    }

    /// The results of a scan that must not have failed.
    pub fn whole(self) -> Self {
        if let Some(error) = &self.error {
            panic!("{error}");
        }
        self
    }
}

pub fn scan(log: &Log, options: ScanOptions) -> Read {
    read(log.scan(options))
}

/// The results of a new scan.
pub fn read(started: Result<Scan, Error>) -> Read {
    let mut read = Read::default();
    let mut scan = match started {
        Ok(scan) => scan,
        Err(error) => return Read { error: Some(error), ..read },
    };
    'steps: loop {
        match scan.next_step() {
            Ok(None) => break,
            Ok(Some(ScanStep::DamagedRange(gap))) => read.steps.push((read.batches.len(), gap)),
            Ok(Some(ScanStep::Batch(batch))) => {
                let mut batch_read = converted(scan.segment().unwrap(), &batch);
                loop {
                    match scan.next_record() {
                        Ok(None) => break,
                        Ok(Some(record)) => batch_read.records.push(converted_record(&batch, &record)),
                        Err(error) => {
                            read.batches.push(batch_read);
                            read.error = Some(error);
                            break 'steps;
                        }
                    }
                }
                read.batches.push(batch_read);
            }
            Err(error) => {
                read.error = Some(error);
                break;
            }
        }
    }
    if read.error.is_some() {
        assert!(matches!(scan.next_step(), Ok(None)), "an error ends a scan");
        assert!(matches!(scan.next_record(), Ok(None)), "an error ends a scan");
    }
    read.gaps = scan.damaged_ranges().to_vec();
    read.stats = scan.stats();
    read
}

/// Everything, including control records, with `on_damage` as given.
pub fn all(log: &Log, on_damage: OnDamage) -> Read {
    scan(log, ScanOptions { include_control: true, on_damage, ..ScanOptions::default() })
}

/// The data records of a range.
pub fn range(log: &Log, ranges: Ranges) -> Read {
    scan(log, ScanOptions { ranges, ..ScanOptions::default() })
}

pub fn committed(log: &Log, on_damage: OnDamage) -> Read {
    let isolation_level = IsolationLevel::ReadCommitted;
    scan(log, ScanOptions { isolation_level, on_damage, ..ScanOptions::default() })
}

/// A batch header as the naive reader's type.
fn converted(segment: i64, batch: &OurBatch) -> Batch {
    let header = &batch.header;
    Batch {
        segment,
        position: batch.position,
        size: u64::from(header.size),
        magic: header.magic,
        base_offset: header.base_offset,
        last_offset: header.last_offset,
        count: header.count,
        codec: match header.codec().unwrap() {
            record::Codec::None => Codec::None,
            record::Codec::Gzip => Codec::Gzip,
            record::Codec::Snappy => Codec::Snappy,
            record::Codec::Lz4 => Codec::Lz4,
            record::Codec::Zstd => Codec::Zstd,
        },
        timestamp_type: match header.timestamp_type() {
            OurType::NoTimestampType => TimestampType::NoTimestampType,
            OurType::CreateTime => TimestampType::CreateTime,
            OurType::LogAppendTime => TimestampType::LogAppendTime,
        },
        base_timestamp: header.base_timestamp,
        max_timestamp: header.max_timestamp,
        leader_epoch: header.leader_epoch,
        producer_id: header.producer_id,
        producer_epoch: header.producer_epoch,
        base_sequence: header.base_sequence,
        last_sequence: header.last_sequence(),
        transactional: header.is_transactional(),
        control: header.is_control(),
        delete_horizon: header.delete_horizon(),
        crc: header.crc,
        records: Vec::new(),
    }
}

fn converted_record(batch: &OurBatch, record: &RecordRef<'_>) -> Record {
    let coordinator_epoch = || i32::from_be_bytes(record.value.unwrap()[2..6].try_into().unwrap());
    let control = batch.header.is_control().then(|| match ControlType::parse(record.key).unwrap() {
        ControlType::Abort => Control::Abort { coordinator_epoch: coordinator_epoch() },
        ControlType::Commit => Control::Commit { coordinator_epoch: coordinator_epoch() },
        ControlType::Other(kind) => Control::Other { kind },
    });
    assert_eq!(record.timestamp_type, batch.header.timestamp_type());
    assert_eq!(record.headers.len(), record.headers.clone().count());
    Record {
        offset: record.offset,
        timestamp: record.timestamp,
        sequence: record.sequence,
        key: record.key.map(<[u8]>::to_vec),
        value: record.value.map(<[u8]>::to_vec),
        headers: record
            .headers
            .clone()
            .map(|(key, value)| (key.to_vec(), value.map(<[u8]>::to_vec)))
            .collect(),
        control,
    }
}

/// A batch of the naive reader as a scan with `batches_only` returns it.
pub fn without_records(batch: &Batch) -> Batch {
    Batch { records: Vec::new(), ..batch.clone() }
}

/// Segment, base offset, position and size of the batch of an offset; `None` if no batch follows.
pub fn locate(log: &Log, offset: i64) -> Result<Option<(i64, i64, u64, u64)>, Error> {
    let found = log.locate(offset)?;
    Ok(found.map(|at| (at.segment_base_offset, at.batch_base_offset, at.position, u64::from(at.size))))
}

/// The result of the naive reader in the same form.
pub fn located(batch: Option<&Batch>) -> Option<(i64, i64, u64, u64)> {
    batch.map(|batch| (batch.segment, batch.base_offset, batch.position, batch.size))
}

/// Timestamp and offset.
pub fn time(log: &Log, target: i64) -> Result<Option<(i64, i64)>, Error> {
    Ok(log.offset_for_time(target)?.map(|found| (found.timestamp, found.offset)))
}

/// The result of the naive reader in the same form.
pub fn timed(record: Option<&Record>) -> Option<(i64, i64)> {
    record.map(|record| (record.timestamp, record.offset))
}

/// The files of a directory by name.
pub fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect()
}

/// A new directory with these files.
pub fn write(parent: &Path, name: &str, files: &BTreeMap<String, Vec<u8>>) -> PathBuf {
    let dir = parent.join(name);
    std::fs::create_dir(&dir).unwrap();
    for (name, bytes) in files {
        std::fs::write(dir.join(name), bytes).unwrap();
    }
    dir
}

/// A copy of a directory's files.
pub fn copy(from: &Path, parent: &Path, name: &str) -> PathBuf {
    write(parent, name, &files(from))
}
