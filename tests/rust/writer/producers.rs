//! Producer ids and transactions: the behaviours of Kafka's `ProducerStateManagerTest`, and of
//! `UnifiedLogTest` and `LogLoaderTest` on producers.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use cordwood::config::LogConfig;
use cordwood::fs::names::{FileKind, SegmentFileName, segment_file};
use cordwood::index::{AbortedTransaction, TransactionIndex};
use cordwood::record::NewRecord;
use cordwood::state::producers::{ProducerEntry, ProducerSnapshot};
use cordwood::writer::{Appended, FlushMode, LogWriter, WriterOptions};
use cordwood::{Error, Result};

use crate::support::batches::{ABORT, BatchV2, COMMIT, Codec, Rec};

pub(super) const NOW: i64 = 1_700_000_000_000;
pub(super) const MAX: i32 = i32::MAX;

/// A log in a directory of its own.
pub(super) struct Log {
    folder: tempfile::TempDir,
    pub(super) options: WriterOptions,
    pub(super) writer: Option<LogWriter>,
}

impl Log {
    pub(super) fn new() -> Self {
        let config = LogConfig { retention_ms: -1, ..LogConfig::default() };
        let options =
            WriterOptions { config, flush: FlushMode::None, clock: || NOW, ..WriterOptions::default() };
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let mut log = Self { folder: folder.unwrap(), options, writer: None };
        log.open();
        log
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("orders-0")
    }

    pub(super) fn open(&mut self) {
        self.writer = Some(self.try_open().unwrap());
    }

    pub(super) fn try_open(&self) -> Result<LogWriter> {
        LogWriter::open(self.path(), &self.options)
    }

    /// The contents of all files, by name.
    pub(super) fn files(&self) -> BTreeMap<OsString, Vec<u8>> {
        let entries = fs::read_dir(self.path()).unwrap().map(std::result::Result::unwrap);
        entries.map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap())).collect()
    }

    /// Opens it again without a close.
    pub(super) fn crash(&mut self) {
        self.writer = None;
        self.open();
    }

    pub(super) fn reopen(&mut self) {
        self.close();
        self.open();
    }

    pub(super) fn close(&mut self) {
        self.writer.take().unwrap().close().unwrap();
    }

    pub(super) fn writer(&mut self) -> &mut LogWriter {
        self.writer.as_mut().unwrap()
    }

    pub(super) fn lead(&mut self, batch: &BatchV2) -> Result<Appended> {
        self.writer().append_batches(&batch.build().bytes, false)
    }

    /// Appends a producer's batch and returns its offsets.
    pub(super) fn offsets(&mut self, batch: &BatchV2) -> (i64, i64) {
        let appended = self.lead(batch).unwrap();
        (appended.first_offset, appended.last_offset)
    }

    pub(super) fn follow(&mut self, batches: &[BatchV2]) -> Result<Appended> {
        let bytes: Vec<_> = batches.iter().flat_map(|batch| batch.build().bytes).collect();
        self.writer().append_batches(&bytes, true)
    }

    /// Appends a marker at the log end offset.
    pub(super) fn mark(&mut self, kind: i16, producer_id: i64, epoch: i16) {
        let end = self.writer().log_end_offset();
        self.follow(&[BatchV2::marker(end, kind, producer_id, epoch, NOW)]).unwrap();
    }

    pub(super) fn plain(&mut self) {
        self.writer().append(&NewRecord { value: Some(b"plain"), ..NewRecord::default() }).unwrap();
    }

    pub(super) fn snapshots(&self) -> Vec<i64> {
        let names = fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let parsed = names.filter_map(|name| SegmentFileName::parse(name.to_str().unwrap()));
        let snapshots = parsed.filter(|parsed| parsed.kind == FileKind::Snapshot);
        snapshots.map(|parsed| parsed.base_offset).collect::<BTreeSet<_>>().into_iter().collect()
    }

    pub(super) fn snapshot(&self, offset: i64) -> Vec<ProducerEntry> {
        let bytes = fs::read(self.path().join(segment_file(offset, FileKind::Snapshot))).unwrap();
        ProducerSnapshot::decode(&bytes).unwrap().entries
    }

    /// The producers as of the log end offset, in the snapshot of a close.
    pub(super) fn producers(&mut self) -> Vec<ProducerEntry> {
        let end = self.writer().log_end_offset();
        self.reopen();
        let mut producers = self.snapshot(end);
        producers.sort_by_key(|entry| entry.producer_id);
        producers
    }

    pub(super) fn ids(&mut self) -> Vec<i64> {
        self.producers().iter().map(|entry| entry.producer_id).collect()
    }

    pub(super) fn aborted(&self, base_offset: i64) -> Vec<(i64, i64, i64, i64)> {
        let path = self.path().join(segment_file(base_offset, FileKind::TransactionIndex));
        let fields = |entry: AbortedTransaction| {
            (entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset)
        };
        let index = TransactionIndex::open(&path, None, false).unwrap();
        index.iter().map(|entry| fields(entry.unwrap())).collect()
    }
}

fn records(count: usize) -> impl Iterator<Item = Rec> {
    (0..count).map(|number| Rec::at(NOW).value(number.to_string()))
}

/// An idempotent batch.
pub(super) fn batch(producer_id: i64, epoch: i16, sequence: i32, count: usize) -> BatchV2 {
    BatchV2::new(0).producer(producer_id, epoch, sequence).records(records(count))
}

/// A batch of a transaction.
pub(super) fn transactional(producer_id: i64, epoch: i16, sequence: i32, count: usize) -> BatchV2 {
    BatchV2::new(0).transaction(producer_id, epoch, sequence).records(records(count))
}

pub(super) fn at(base_offset: i64, batch: BatchV2) -> BatchV2 {
    BatchV2 { base_offset, ..batch }
}

/// The expected and the found sequence of the error.
pub(super) fn out_of_order(result: Result<Appended>) -> (i32, i32) {
    match result {
        Err(Error::OutOfOrderSequence { expected, found, .. }) => (expected, found),
        other => panic!("{other:?}"),
    }
}

#[test]
fn sequences_continue_and_restart_with_a_higher_epoch() {
    let mut log = Log::new();
    assert_eq!(log.offsets(&batch(1, 0, 0, 1)), (0, 0));
    assert_eq!(log.offsets(&batch(1, 0, 1, 2)), (1, 2));
    // a gap, and a part of the last batch
    assert_eq!(out_of_order(log.lead(&batch(1, 0, 5, 1))), (3, 5));
    assert_eq!(out_of_order(log.lead(&batch(1, 0, 2, 1))), (3, 2));
    // a new epoch begins at 0
    assert_eq!(out_of_order(log.lead(&batch(1, 1, 3, 1))), (0, 3));
    assert_eq!(log.offsets(&batch(1, 1, 0, 1)), (3, 3));
    assert_eq!(log.offsets(&batch(1, 1, 1, 1)), (4, 4));
    let old = log.lead(&batch(1, 0, 3, 1)).unwrap_err();
    assert!(
        matches!(
            old,
            Error::InvalidProducerEpoch { producer_id: 1, expected: 1, found: 0, position: Some(0) }
        ),
        "{old}"
    );
    assert_eq!(
        old.to_string(),
        "raw: expected epoch 1 or above of producer 1, found 0 in the batch at position 0"
    );
    assert_eq!((old.code(), old.producer()), ("invalid_producer_epoch", Some((1, 0))));
    assert_eq!(log.writer().log_end_offset(), 5);
    assert_eq!(log.producers()[0].last_batch().unwrap().last_sequence, 1);
}

#[test]
fn an_unknown_producer_may_begin_with_any_sequence_and_epoch() {
    let mut log = Log::new();
    assert_eq!(log.offsets(&batch(1, 7, 118, 2)), (0, 1));
    assert_eq!(log.offsets(&batch(1, 7, 120, 1)), (2, 2));
    assert_eq!(out_of_order(log.lead(&batch(1, 7, 122, 1))), (121, 122));
}

#[test]
fn sequences_wrap_to_zero() {
    let mut log = Log::new();
    assert_eq!(log.offsets(&batch(1, 0, MAX, 1)), (0, 0));
    assert_eq!(out_of_order(log.lead(&batch(1, 0, 1, 1))), (0, 1));
    assert_eq!(log.offsets(&batch(1, 0, 0, 1)), (1, 1));
    // inside a batch: 11 sequences up to the largest, 10 after it
    assert_eq!(log.offsets(&batch(2, 0, MAX - 10, 21)), (2, 22));
    assert_eq!(log.offsets(&batch(2, 0, 10, 1)), (23, 23));
    let last = *log.producers()[1].last_batch().unwrap();
    assert_eq!((last.last_sequence, last.last_offset), (10, 23));
}

#[test]
fn duplicates_of_the_last_five_batches_are_answered_with_their_offsets() {
    let mut log = Log::new();
    for sequence in 0..6 {
        assert_eq!(log.offsets(&batch(1, 0, sequence, 1)), (sequence.into(), sequence.into()));
    }
    assert_eq!(log.offsets(&batch(1, 0, 6, 3)), (6, 8));
    let size = fs::metadata(log.path().join(segment_file(0, FileKind::Log)));
    assert_eq!(log.offsets(&batch(1, 0, 6, 3)), (6, 8));
    // a part of a batch is no duplicate
    assert_eq!(out_of_order(log.lead(&batch(1, 0, 7, 2))), (9, 7));
    for sequence in 2..6 {
        assert_eq!(log.offsets(&batch(1, 0, sequence, 1)), (sequence.into(), sequence.into()));
    }
    assert_eq!(out_of_order(log.lead(&batch(1, 0, 1, 1))), (9, 1));
    assert_eq!(log.writer().log_end_offset(), 9);
    assert_eq!(
        fs::metadata(log.path().join(segment_file(0, FileKind::Log))).unwrap().len(),
        size.unwrap().len()
    );
    // the result is durable as that of an append
    log.options.flush = FlushMode::Always;
    log.crash();
    assert!(log.lead(&batch(1, 0, 6, 3)).unwrap().durable);
}

#[test]
fn duplicates_and_new_batches_in_one_call_are_out_of_order() {
    let mut log = Log::new();
    let raw = |batches: &[BatchV2]| -> Vec<u8> { batches.iter().flat_map(|one| one.build().bytes).collect() };
    let (first, second, third) = (batch(1, 0, 0, 2), batch(2, 0, 5, 1), batch(1, 0, 2, 1));
    let both = raw(&[first.clone(), second.clone()]);
    let appended = log.writer().append_batches(&both, false).unwrap();
    assert_eq!((appended.first_offset, appended.last_offset), (0, 2));
    let again = log.writer().append_batches(&both, false).unwrap();
    assert_eq!((again.first_offset, again.last_offset), (0, 2));
    let mixed = raw(&[first, third.clone()]);
    let error = log.writer().append_batches(&mixed, false).unwrap_err();
    assert!(
        matches!(error, Error::OutOfOrderSequence { position: Some(0), expected: 2, found: 0, .. }),
        "{error}"
    );
    // all or nothing: the first batch of this call is valid
    let error = log.writer().append_batches(&raw(&[third, second]), false).unwrap_err();
    assert!(matches!(error, Error::OutOfOrderSequence { producer_id: 2, expected: 6, .. }), "{error}");
    assert_eq!(error.position(), Some(batch(1, 0, 2, 1).build().bytes.len() as u64));
    assert_eq!(log.writer().log_end_offset(), 3);
    assert_eq!(log.offsets(&batch(1, 0, 2, 1)), (3, 3));
}

#[test]
fn the_batches_of_one_call_continue_each_other() {
    let mut log = Log::new();
    let raw = |batches: &[BatchV2]| -> Vec<u8> { batches.iter().flat_map(|one| one.build().bytes).collect() };
    // also those of a producer that is not known yet
    let first = batch(1, 0, 7, 1);
    for second in [first.clone(), batch(1, 0, 9, 1)] {
        let found = second.base_sequence;
        let result = log.writer().append_batches(&raw(&[first.clone(), second]), false);
        assert_eq!(out_of_order(result), (8, found));
    }
    assert_eq!(log.writer().log_end_offset(), 0);
    let both = raw(&[first, batch(1, 0, 8, 1)]);
    assert_eq!(log.writer().append_batches(&both, false).unwrap().last_offset, 1);
}

#[test]
fn duplicates_in_one_call_are_answered_with_all_their_offsets() {
    let mut log = Log::new();
    log.options.flush = FlushMode::Always;
    log.reopen();
    let late = BatchV2 { records: vec![Rec::at(NOW + 9)], ..batch(2, 0, 0, 0) };
    log.offsets(&batch(1, 0, 0, 2));
    log.offsets(&late);
    log.offsets(&batch(3, 0, 0, 1));
    // in another order
    let sent = [batch(3, 0, 0, 1), late, batch(1, 0, 0, 2)];
    let raw: Vec<u8> = sent.iter().flat_map(|one| one.build().bytes).collect();
    let appended = log.writer().append_batches(&raw, false).unwrap();
    let expected = Appended {
        first_offset: 0,
        last_offset: 3,
        max_timestamp: NOW + 9,
        durable: true,
        is_duplicate: true,
    };
    assert_eq!(appended, expected);
}

#[test]
fn a_follower_checks_neither_sequences_nor_epochs() {
    let mut log = Log::new();
    log.follow(&[at(0, batch(1, 5, 0, 1)), at(1, batch(2, 5, 0, 1)), at(2, batch(1, 5, 7, 1))]).unwrap();
    log.follow(&[at(3, batch(1, 4, 3, 1)), at(4, batch(2, 5, 0, 1))]).unwrap();
    assert_eq!(log.writer().log_end_offset(), 5);
    let producers = log.producers();
    assert_eq!((producers[0].producer_epoch, producers[0].last_batch().unwrap().last_sequence), (4, 3));
    assert_eq!(producers[1].last_batch().unwrap().last_offset, 4);
}

#[test]
fn markers_create_producers_and_raise_their_epochs() {
    let mut log = Log::new();
    log.mark(COMMIT, 1, 5);
    let producers = log.producers();
    assert_eq!((producers[0].producer_epoch, producers[0].coordinator_epoch), (5, 0));
    assert_eq!((producers[0].last_batch(), producers[0].last_timestamp), (None, NOW));
    // only the epoch is known: the next sequence is 0
    assert_eq!(out_of_order(log.lead(&batch(1, 5, 3, 1))), (0, 3));
    assert!(log.lead(&batch(1, 4, 0, 1)).is_err());
    assert_eq!(log.offsets(&batch(1, 5, 0, 1)), (1, 1));
    log.mark(ABORT, 1, 6);
    assert_eq!(out_of_order(log.lead(&batch(1, 6, 1, 1))), (0, 1));
    assert_eq!(log.offsets(&batch(1, 6, 0, 1)), (3, 3));
    // markers of empty transactions are in no index
    assert!(!log.path().join(segment_file(0, FileKind::TransactionIndex)).exists());
}

#[test]
fn the_last_stable_offset_is_that_of_the_oldest_open_transaction() {
    let mut log = Log::new();
    log.plain();
    log.lead(&transactional(1, 0, 0, 2)).unwrap();
    log.lead(&transactional(2, 0, 0, 1)).unwrap();
    log.plain();
    assert_eq!(log.writer().last_stable_offset(), 1);
    log.mark(COMMIT, 1, 0);
    assert_eq!(log.writer().last_stable_offset(), 3);
    log.crash();
    assert_eq!(log.writer().last_stable_offset(), 3);
    assert_eq!(log.writer().reader().unwrap().last_stable_offset().unwrap(), 3);
    // it is at least the log start offset
    log.writer().delete_before(4).unwrap();
    assert_eq!(log.writer().last_stable_offset(), 4);
    // a reader does not wait for it: its records are deleted, although the segment still has them
    assert_eq!(log.writer().reader().unwrap().last_stable_offset().unwrap(), 6);
    log.mark(ABORT, 2, 0);
    assert_eq!(log.writer().last_stable_offset(), 7);
}

#[test]
fn a_batch_outside_its_producers_transaction_is_refused() {
    let mut log = Log::new();
    log.lead(&transactional(1, 0, 0, 1)).unwrap();
    let refused = log.lead(&batch(1, 0, 1, 1)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "raw: expected a transactional batch of producer 1, whose transaction from offset 0 is open, \
         found a batch outside a transaction at position 0"
    );
    assert_eq!(log.follow(&[at(1, batch(1, 0, 1, 1))]).unwrap_err().code(), "invalid_record");
    log.mark(COMMIT, 1, 0);
    assert_eq!(log.offsets(&batch(1, 0, 1, 1)), (2, 2));
}

#[test]
fn recompressed_batches_keep_their_producer() {
    let mut log = Log::new();
    log.options.config.compression_type = cordwood::config::CompressionType::Zstd;
    log.reopen();
    assert_eq!(log.offsets(&transactional(9, 3, 4, 2)), (0, 1));
    assert_eq!(log.offsets(&transactional(9, 3, 6, 2).codec(Codec::Gzip)), (2, 3));
    assert_eq!(log.offsets(&transactional(9, 3, 4, 2)), (0, 1));
    assert_eq!(log.writer().last_stable_offset(), 0);
    log.mark(COMMIT, 9, 3);
    let producer = &log.producers()[0];
    assert_eq!((producer.producer_epoch, producer.last_batch().unwrap().last_sequence), (3, 7));
}
