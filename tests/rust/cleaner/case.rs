//! A log that is written and compacted step by step, and what it has afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cordwood::cleaner::{Compaction, CompactionOptions, plan_compaction};
use cordwood::config::{CleanupPolicy, LogConfig};
use cordwood::log::{Log, LogOptions, ScanOptions, ScanStep};
use cordwood::record::BatchHeader;
use cordwood::types::IsolationLevel;
use cordwood::writer::{FlushMode, LogWriter, WriterOptions};

use crate::support::batches::{BatchV2, Built, Rec};
use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::reading::folder;

pub(super) const NOW: i64 = 1_700_000_000_000;
/// `delete.retention.ms`.
pub(super) const RETENTION_MS: i64 = 1000;
/// Memory for more keys than a test has.
pub(super) const ALL: usize = 1 << 20;

/// The memory that has room for so many keys.
pub(super) fn memory_for(keys: usize) -> usize {
    (keys * 10).div_ceil(9) * 24
}

/// A log with its writer.
pub(super) struct Case {
    folder: tempfile::TempDir,
    pub(super) options: WriterOptions,
    pub(super) writer: LogWriter,
    /// The next sequence of each producer.
    sequences: BTreeMap<i64, i32>,
}

/// A record as a reader sees it.
pub(super) struct Seen {
    pub(super) offset: i64,
    pub(super) timestamp: i64,
    pub(super) key: Option<Vec<u8>>,
    pub(super) value: Option<Vec<u8>>,
    pub(super) is_control: bool,
}

impl Case {
    pub(super) fn new(change: impl FnOnce(&mut LogConfig)) -> Self {
        Self::open(folder(), change)
    }

    /// In a data directory of Kafka's, whose `cleaner-offset-checkpoint` can be set.
    pub(super) fn in_data_directory(change: impl FnOnce(&mut LogConfig)) -> Self {
        Self::open(data_directory(), change)
    }

    /// Also in a data directory: with these segments, of which a roll by a broker left gaps between the
    /// offsets.
    pub(super) fn with_segments(segments: &[(i64, Vec<Built>)]) -> Self {
        let folder = data_directory();
        write_segments(folder.path(), segments);
        Self::open(folder, |_| ())
    }

    /// With these files of the partition.
    pub(super) fn with_files(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let folder = folder();
        fs::create_dir(folder.path().join("orders-0")).unwrap();
        for (name, bytes) in files {
            fs::write(folder.path().join("orders-0").join(name), bytes).unwrap();
        }
        Self::open(folder, |_| ())
    }

    fn open(folder: tempfile::TempDir, change: impl FnOnce(&mut LogConfig)) -> Self {
        let mut config = LogConfig {
            segment_bytes: 1 << 20,
            index_interval_bytes: 1,
            segment_index_bytes: 1 << 16,
            retention_ms: -1,
            delete_retention_ms: RETENTION_MS,
            min_cleanable_dirty_ratio: 0.0,
            cleanup_policy: CleanupPolicy { delete: false, compact: true },
            ..LogConfig::default()
        };
        change(&mut config);
        let clock = || NOW;
        let options = WriterOptions { config, flush: FlushMode::None, clock, ..WriterOptions::default() };
        let writer = LogWriter::open(folder.path().join("orders-0"), &options).unwrap();
        Self { folder, options, writer, sequences: BTreeMap::new() }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("orders-0")
    }

    pub(super) fn reopen(&mut self) {
        self.writer.close().unwrap();
        self.writer = LogWriter::open(self.path(), &self.options).unwrap();
    }

    pub(super) fn batch(&self) -> BatchV2 {
        BatchV2::new(self.writer.log_end_offset()).leader_epoch(0)
    }

    pub(super) fn put(&mut self, batch: &BatchV2) {
        self.writer.append_batches(&batch.build().bytes, true).unwrap();
    }

    /// A batch of one record for each key.
    pub(super) fn keys(&mut self, keys: &[i64]) {
        let records =
            keys.iter().map(|key| Rec::at(NOW).key(key.to_string()).value(format!("value of {key}")));
        self.put(&self.batch().records(records.collect::<Vec<_>>()));
    }

    pub(super) fn tombstone(&mut self, key: i64) {
        self.put(&self.batch().record(Rec::at(NOW).key(key.to_string())));
    }

    /// A batch of a producer's transaction.
    pub(super) fn in_transaction(&mut self, producer_id: i64, sequence: i32, keys: &[i64]) {
        self.put(&self.batch().transaction(producer_id, 0, sequence).records(keyed(keys)));
    }

    /// The next batch of a producer's transaction.
    pub(super) fn send(&mut self, producer_id: i64, keys: &[i64]) {
        let next = self.sequences.entry(producer_id).or_default();
        let sequence = *next;
        *next += keys.len() as i32;
        self.in_transaction(producer_id, sequence, keys);
    }

    pub(super) fn end(&mut self, kind: i16, producer_id: i64) {
        let marker = BatchV2::marker(self.writer.log_end_offset(), kind, producer_id, 0, NOW);
        self.put(&marker.leader_epoch(0));
    }

    pub(super) fn roll(&mut self) {
        self.writer.roll().unwrap();
    }

    pub(super) fn compact_at(&mut self, now: i64, bytes: usize) -> Compaction {
        let options =
            CompactionOptions { now: Some(now), dedupe_buffer_bytes: bytes, ..CompactionOptions::default() };
        self.writer.compact(&options).unwrap()
    }

    pub(super) fn compact(&mut self) -> Compaction {
        self.compact_at(NOW, ALL)
    }

    /// Makes the log dirty again, and compacts it at a time.
    pub(super) fn compact_again(&mut self, now: i64) -> Compaction {
        self.keys(&[99]);
        self.roll();
        self.compact_at(now, ALL)
    }

    /// Compacts the log as if it were clean only up to an offset.
    pub(super) fn compact_from(&mut self, first_dirty: i64, now: i64, bytes: usize) -> Compaction {
        self.set_checkpoint(first_dirty);
        let compaction = self.compact_at(now, bytes);
        assert_eq!(compaction.first_dirty_offset, first_dirty);
        compaction
    }

    /// Compacts the whole log twice: the first pass sets delete horizons, which are past at the second.
    pub(super) fn compact_twice(&mut self) {
        self.compact_from(0, NOW, ALL);
        self.compact_from(0, NOW + RETENTION_MS + 1, ALL);
    }

    pub(super) fn set_checkpoint(&self, first_dirty: i64) {
        fs::write(self.checkpoint_file(), format!("0\n1\norders 0 {first_dirty}\n")).unwrap();
    }

    /// The lines of the checkpoint.
    pub(super) fn checkpoint(&self) -> String {
        fs::read_to_string(self.checkpoint_file()).unwrap()
    }

    fn checkpoint_file(&self) -> PathBuf {
        self.folder.path().join("cleaner-offset-checkpoint")
    }

    pub(super) fn plan(&self) -> Compaction {
        self.plan_at(NOW)
    }

    pub(super) fn plan_at(&self, now: i64) -> Compaction {
        let options = CompactionOptions { now: Some(now), ..CompactionOptions::default() };
        plan_compaction(&self.log(), &self.options.config, &options).unwrap()
    }

    pub(super) fn log(&self) -> Log {
        Log::open(self.path(), LogOptions::default()).unwrap()
    }

    pub(super) fn segments(&self) -> Vec<i64> {
        self.log().segments().iter().map(|segment| segment.base_offset()).collect()
    }

    pub(super) fn headers(&self) -> Vec<BatchHeader> {
        let mut scan = self.log().scan(ScanOptions { batches_only: true, ..ScanOptions::default() }).unwrap();
        let mut headers = Vec::new();
        while let Some(ScanStep::Batch(batch)) = scan.next_step().unwrap() {
            headers.push(batch.header);
        }
        headers
    }

    pub(super) fn last_offsets(&self) -> Vec<i64> {
        self.headers().iter().map(|header| header.last_offset).collect()
    }

    pub(super) fn base_offsets(&self) -> Vec<i64> {
        self.headers().iter().map(|header| header.base_offset).collect()
    }

    /// The last sequence of each producer's data batches.
    pub(super) fn last_sequences(&self) -> Vec<(i64, i32)> {
        let headers = self.headers().into_iter();
        let of_producers = headers.filter(|header| header.producer_id >= 0 && !header.is_control());
        let last: BTreeMap<_, _> =
            of_producers.map(|header| (header.producer_id, header.last_sequence())).collect();
        last.into_iter().collect()
    }

    /// All records, also those of markers.
    pub(super) fn seen(&self, isolation_level: IsolationLevel) -> Vec<Seen> {
        let options = ScanOptions { isolation_level, include_control: true, ..ScanOptions::default() };
        let mut scan = self.log().scan(options).unwrap();
        let mut found = Vec::new();
        while let Some(ScanStep::Batch(batch)) = scan.next_step().unwrap() {
            let is_control = batch.header.is_control();
            while let Some(record) = scan.next_record().unwrap() {
                let (key, value) = (record.key.map(<[u8]>::to_vec), record.value.map(<[u8]>::to_vec));
                let (offset, timestamp) = (record.offset, record.timestamp);
                found.push(Seen { offset, timestamp, key, value, is_control });
            }
        }
        found
    }

    /// The keys of the records with a value. Kafka's tests: `keysInLog`.
    pub(super) fn keys_in_log(&self) -> Vec<i64> {
        let seen = self.seen(IsolationLevel::ReadUncommitted).into_iter();
        let with_value = seen.filter(|record| !record.is_control && record.value.is_some());
        let keys = with_value.filter_map(|record| record.key);
        keys.map(|key| String::from_utf8(key).unwrap().parse().unwrap()).collect()
    }

    /// The offsets of the records with a key and a value, markers included. Kafka's tests: `offsetsInLog`.
    pub(super) fn offsets_in_log(&self) -> Vec<i64> {
        let seen = self.seen(IsolationLevel::ReadUncommitted).into_iter();
        let whole = seen.filter(|record| record.key.is_some() && record.value.is_some());
        whole.map(|record| record.offset).collect()
    }

    /// Offset and key of each record but those with key 99.
    pub(super) fn read(&self, isolation_level: IsolationLevel) -> Vec<(i64, String)> {
        let seen = self.seen(isolation_level).into_iter().filter(|record| !record.is_control);
        let named = seen.map(|record| (record.offset, record.key.unwrap_or_else(|| b"none".to_vec())));
        let found = named.map(|(offset, key)| (offset, String::from_utf8_lossy(&key).into_owned()));
        found.filter(|(_, key)| key != "99").collect()
    }

    pub(super) fn keys_left(&self) -> Vec<i64> {
        let found = self.read(IsolationLevel::ReadCommitted);
        found.iter().map(|(_, key)| key.parse().unwrap()).collect()
    }

    pub(super) fn markers(&self) -> Vec<i64> {
        self.headers().iter().filter(|header| header.is_control()).map(|header| header.base_offset).collect()
    }

    /// Producer, first and last offset of each entry of the transaction indexes.
    pub(super) fn aborted(&self) -> Vec<(i64, i64, i64)> {
        let mut found = Vec::new();
        for segment in self.log().segments().iter() {
            let Some(index) = segment.transaction_index().unwrap() else { continue };
            found.extend(index.iter().map(|entry| {
                let entry = entry.unwrap();
                (entry.producer_id, entry.first_offset, entry.last_offset)
            }));
        }
        found
    }
}

/// A record for each key.
pub(super) fn keyed(keys: &[i64]) -> Vec<Rec> {
    keys.iter().map(|key| Rec::at(NOW).key(key.to_string()).value("v")).collect()
}

fn data_directory() -> tempfile::TempDir {
    let folder = folder();
    fs::write(folder.path().join("meta.properties"), "version=1\ncluster.id=c\nnode.id=1\n").unwrap();
    folder
}

/// Writes a partition `orders-0`.
pub(super) fn write_segments(parent: &Path, segments: &[(i64, Vec<Built>)]) -> PathBuf {
    let mut builder = PartitionBuilder::new(Indexing { has_time_index: false, ..Indexing::every(1 << 20) });
    for (base_offset, batches) in segments {
        builder = builder.segment(*base_offset, batches.iter().cloned());
    }
    builder.write(parent, "orders-0")
}
