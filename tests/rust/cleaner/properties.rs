//! Random logs, compacted at random times: no last value of a key is lost, no deleted or aborted record
//! appears.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};

use cordwood::cleaner::{Compaction, CompactionOptions, plan_compaction};
use cordwood::config::{CleanupPolicy, LogConfig};
use cordwood::log::{Log, LogOptions, ScanOptions, ScanStep};
use cordwood::types::IsolationLevel;
use cordwood::writer::{FlushMode, LogWriter, WriterOptions};
use proptest::prelude::*;

use crate::support::batches::{ABORT, BatchV2, COMMIT, Codec, Rec};
use crate::support::fixed_seed;

/// Keys, of which few are used, so that most records are replaced.
const KEYS: u8 = 12;
const PRODUCERS: usize = 4;

static NOW: AtomicI64 = AtomicI64::new(1_700_000_000_000);

#[derive(Debug, Clone)]
enum Step {
    /// Records of one batch: key (none for `KEYS`) and whether it has a value. The producer: none for
    /// `PRODUCERS`.
    Append {
        producer: usize,
        records: Vec<(u8, bool)>,
        codec: usize,
    },
    End {
        producer: usize,
        commits: bool,
    },
    Roll,
    Compact {
        bytes: usize,
        later_ms: i64,
    },
    Truncate {
        part: u8,
    },
    DeleteBefore {
        part: u8,
    },
    Close,
    Crash,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let records = prop::collection::vec((0..=KEYS, prop::bool::weighted(0.75)), 1..6);
    let step = prop_oneof![
        12 => (0..=PRODUCERS, records, 0..Codec::ALL.len())
            .prop_map(|(producer, records, codec)| Step::Append { producer, records, codec }),
        3 => (0..PRODUCERS, any::<bool>()).prop_map(|(producer, commits)| Step::End { producer, commits }),
        2 => Just(Step::Roll),
        3 => (prop_oneof![Just(48_usize), Just(24 * 5), Just(24 * 20), Just(1 << 20)], 0_i64..3000)
            .prop_map(|(bytes, later_ms)| Step::Compact { bytes, later_ms }),
        1 => any::<u8>().prop_map(|part| Step::Truncate { part }),
        1 => any::<u8>().prop_map(|part| Step::DeleteBefore { part }),
        1 => Just(Step::Close),
        1 => Just(Step::Crash),
    ];
    prop::collection::vec(step, 5..80)
}

struct Run {
    folder: tempfile::TempDir,
    options: WriterOptions,
    writer: LogWriter,
    /// The next sequence of each producer, and whether its transaction is open.
    producers: [(i32, bool); PRODUCERS],
    values: u64,
}

/// Offset, key and value.
type Record = (i64, Option<Vec<u8>>, Option<Vec<u8>>);

/// The offset and the value of the last record of each key.
type Latest = BTreeMap<Vec<u8>, (i64, Option<Vec<u8>>)>;

impl Run {
    fn new() -> Self {
        let config = LogConfig {
            segment_bytes: 700,
            index_interval_bytes: 100,
            segment_index_bytes: 1024,
            retention_ms: -1,
            delete_retention_ms: 2000,
            min_cleanable_dirty_ratio: 0.0,
            cleanup_policy: CleanupPolicy { delete: false, compact: true },
            ..LogConfig::default()
        };
        let clock = || NOW.load(Ordering::Relaxed);
        let options = WriterOptions { config, flush: FlushMode::None, clock, ..WriterOptions::default() };
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let writer = LogWriter::open(folder.path().join("orders-0"), &options).unwrap();
        Self { folder, options, writer, producers: [(0, false); PRODUCERS], values: 0 }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("orders-0")
    }

    fn reopen(&mut self) {
        self.writer = LogWriter::open(self.path(), &self.options).unwrap();
    }

    fn append(&mut self, producer: usize, records: &[(u8, bool)], codec: usize) {
        let now = (self.options.clock)();
        let records = records.iter().map(|(key, has_value)| {
            self.values += 1;
            // a compacted topic wants keys of its clients, and a leader's batches may have none
            let record = Rec::at(now);
            let record = if *key == KEYS { record } else { record.key([*key]) };
            if *has_value { record.value(self.values.to_string()) } else { record }
        });
        let codec = Codec::ALL[codec];
        let end = self.writer.log_end_offset();
        let mut batch = BatchV2::new(end).codec(codec).leader_epoch(0).records(records.collect::<Vec<_>>());
        if let Some((sequence, is_open)) = self.producers.get_mut(producer) {
            let id = 100 + producer as i64;
            // the first half is transactional
            batch = if producer < PRODUCERS / 2 {
                *is_open = true;
                batch.transaction(id, 0, *sequence)
            } else {
                batch.producer(id, 0, *sequence)
            };
            *sequence += batch.records.len() as i32;
        }
        self.writer.append_batches(&batch.build().bytes, true).unwrap();
    }

    fn end(&mut self, producer: usize, commits: bool) {
        let Some((_, is_open @ true)) = self.producers.get_mut(producer) else { return };
        *is_open = false;
        let end = self.writer.log_end_offset();
        let kind = if commits { COMMIT } else { ABORT };
        let now = (self.options.clock)();
        let marker = BatchV2::marker(end, kind, 100 + producer as i64, 0, now).leader_epoch(0);
        self.writer.append_batches(&marker.build().bytes, true).unwrap();
    }

    /// What a reader of a new opening sees.
    fn read(&self, isolation_level: IsolationLevel) -> Vec<Record> {
        let log = Log::open(self.path(), LogOptions::default()).unwrap();
        let mut scan = log.scan(ScanOptions { isolation_level, ..ScanOptions::default() }).unwrap();
        let mut found = Vec::new();
        while let Some(ScanStep::Batch(_)) = scan.next_step().unwrap() {
            while let Some(record) = scan.next_record().unwrap() {
                found.push((record.offset, record.key.map(<[u8]>::to_vec), record.value.map(<[u8]>::to_vec)));
            }
        }
        found
    }

    fn latest(&self) -> Latest {
        let committed = self.read(IsolationLevel::ReadCommitted).into_iter();
        committed.filter_map(|(offset, key, value)| Some((key?, (offset, value)))).collect()
    }

    fn compact(&mut self, bytes: usize) -> Compaction {
        let now = Some((self.options.clock)());
        let options = CompactionOptions { now, dedupe_buffer_bytes: bytes, threads: 1 };
        let threaded = CompactionOptions { threads: 2, ..options };
        let before = self.latest();
        let all_before = self.read(IsolationLevel::ReadUncommitted);
        let committed_before = self.read(IsolationLevel::ReadCommitted);
        let end = self.writer.log_end_offset();
        let log = self.writer.reader().unwrap();
        let planned = plan_compaction(&log, &self.options.config, &threaded).unwrap();
        // after a truncation that removed the marker of an aborted transaction, the log may no longer show
        // where that began
        let is_known = log.last_stable_offset().unwrap() == self.writer.last_stable_offset();
        let compaction = self.writer.compact(&options).unwrap();
        if is_known {
            assert_eq!(planned, compaction);
        }
        let after = self.latest();
        assert_eq!(self.writer.log_end_offset(), end);
        for (key, (offset, value)) in &before {
            match after.get(key) {
                Some(found) => assert_eq!(found, &(*offset, value.clone()), "key {key:?}"),
                None => assert_eq!(value, &None, "key {key:?} is lost"),
            }
        }
        assert!(after.keys().all(|key| before.contains_key(key)), "a key has reappeared");
        let is_subset = |after: &[_], before: &[_]| after.iter().all(|record| before.contains(record));
        assert!(is_subset(&self.read(IsolationLevel::ReadCommitted), &committed_before));
        assert!(is_subset(&self.read(IsolationLevel::ReadUncommitted), &all_before));
        // the records of the open log are those that were there
        let mut scan = log.scan(ScanOptions::default()).unwrap();
        let mut records = 0;
        while let Some(ScanStep::Batch(_)) = scan.next_step().unwrap() {
            while scan.next_record().unwrap().is_some() {
                records += 1;
            }
        }
        assert_eq!(records, all_before.len());
        if compaction.is_due() && compaction.is_complete() {
            let log = Log::open(self.path(), LogOptions::default()).unwrap();
            let again = plan_compaction(&log, &self.options.config, &options).unwrap();
            assert_eq!(again.state.code(), "clean");
            self.check_clean(&compaction);
        }
        compaction
    }

    /// Below the end of a complete pass, each key has one record.
    fn check_clean(&self, compaction: &Compaction) {
        let mut seen = BTreeMap::new();
        for (offset, key, _) in self.read(IsolationLevel::ReadUncommitted) {
            if offset < compaction.end_offset {
                let key = key.expect("records without a key are removed");
                assert_eq!(seen.insert(key.clone(), offset), None, "two records have the key {key:?}");
            }
        }
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Append { producer, records, codec } => self.append(*producer, records, *codec),
            Step::End { producer, commits } => self.end(*producer, *commits),
            Step::Roll => self.writer.roll().unwrap(),
            Step::Compact { bytes, later_ms } => {
                NOW.fetch_add(*later_ms, Ordering::Relaxed);
                self.compact(*bytes);
            }
            Step::Truncate { part } => {
                let (start, end) = (self.writer.log_start_offset(), self.writer.log_end_offset());
                self.writer.truncate_to(end - (end - start) * i64::from(*part) / 512).unwrap();
                self.forget_open_transactions();
            }
            Step::DeleteBefore { part } => {
                let (start, end) = (self.writer.log_start_offset(), self.writer.last_stable_offset());
                self.writer.delete_before(start + (end - start) * i64::from(*part) / 1024).unwrap();
            }
            Step::Close => {
                self.writer.close().unwrap();
                self.reopen();
            }
            Step::Crash => self.reopen_unclosed(),
        }
    }

    fn reopen_unclosed(&mut self) {
        let directory = self.folder.path().join("other-0");
        // drops the locks without a close
        let other = LogWriter::open(&directory, &self.options).unwrap();
        drop(std::mem::replace(&mut self.writer, other));
        self.reopen();
    }

    /// After a truncation: which transactions are open is read from the log.
    fn forget_open_transactions(&mut self) {
        let log = Log::open(self.path(), LogOptions::default()).unwrap();
        let mut open = [false; PRODUCERS];
        let mut scan = log.scan(ScanOptions { include_control: true, ..ScanOptions::default() }).unwrap();
        while let Some(ScanStep::Batch(batch)) = scan.next_step().unwrap() {
            let header = batch.header;
            if header.is_transactional() {
                open[usize::try_from(header.producer_id - 100).unwrap()] = !header.is_control();
            }
        }
        for ((_, is_open), now) in self.producers.iter_mut().zip(open) {
            *is_open = now;
        }
    }
}

proptest! {
    #![proptest_config(fixed_seed(50))]

    #[test]
    fn compaction_keeps_the_last_value_of_each_key_and_shows_no_deleted_or_aborted_record(steps in steps()) {
        let mut run = Run::new();
        for step in &steps {
            run.apply(step);
        }
        for producer in 0..PRODUCERS {
            run.end(producer, producer % 2 == 0);
        }
        run.writer.roll().unwrap();
        run.compact(1 << 20);
    }
}
