//! Transactions over longer times: the behaviours of Kafka's `UnifiedLogTest`, `LogLoaderTest` and
//! `ProducerStateManagerTest` on deletions, recovery without derived files, expiry and wrapping sequences,
//! and random histories compared with a model.

use std::collections::BTreeMap;
use std::fs;

use cordwood::Error;
use cordwood::config::LogConfig;
use cordwood::log::OnDamage;
use cordwood::record::NewRecord;
use cordwood::types::Io;
use cordwood::writer::{FlushMode, Transaction, TransactionVersion, WriterOptions};

use super::producers::{Log, MAX, NOW};
use crate::support::batches::{BatchV2, Rec};
use crate::support::reading::{committed, open};

const V1: TransactionVersion = TransactionVersion::V1;
const V2: TransactionVersion = TransactionVersion::V2;
const FIRST: i64 = 2_000_000_000_000_000;

const RECORD: NewRecord<'_> = NewRecord { timestamp: NOW, key: Some(b"k"), value: Some(b"v"), headers: &[] };

fn begun(log: &mut Log, id: &str, count: usize) -> Transaction {
    let mut transaction = log.writer().transaction(id, V2).unwrap();
    for _ in 0..count {
        transaction.append(&RECORD).unwrap();
    }
    transaction
}

fn visible(log: &mut Log) -> Vec<i64> {
    log.writer().flush().unwrap();
    committed(&open(&log.path(), Io::Pread), OnDamage::Raise).whole().offsets()
}

fn small_segments(log: &mut Log) {
    let config =
        LogConfig { segment_bytes: 400, index_interval_bytes: 0, retention_ms: -1, ..LogConfig::default() };
    log.options = WriterOptions { config, flush: FlushMode::None, clock: || NOW, ..WriterOptions::default() };
    log.reopen();
}

/// `testLastStableOffsetDoesNotExceedLogStartOffsetMidSegment`.
#[test]
fn the_last_stable_offset_is_not_below_the_log_start_offset() {
    let mut log = Log::new();
    let mut transaction = begun(&mut log, "billing", 8);
    assert_eq!(log.writer().last_stable_offset(), 0);
    log.writer().delete_before(5).unwrap();
    assert_eq!(log.writer().last_stable_offset(), 5);
    assert_eq!(log.writer().reader().unwrap().last_stable_offset().unwrap(), 5);
    transaction.append(&RECORD).unwrap();
    transaction.commit().unwrap();
    assert_eq!((log.writer().last_stable_offset(), visible(&mut log)), (10, vec![5, 6, 7, 8]));
}

/// `testLastStableOffsetDoesNotExceedLogStartOffsetAfterSegmentDeletion`.
#[test]
fn a_transaction_continues_after_its_first_segments_were_deleted() {
    let mut log = Log::new();
    small_segments(&mut log);
    let mut transaction = begun(&mut log, "billing", 12);
    log.writer().delete_before(8).unwrap();
    assert_eq!(log.writer().last_stable_offset(), 8);
    transaction.append(&RECORD).unwrap();
    assert_eq!((transaction.first_offset(), visible(&mut log)), (Some(0), Vec::new()));
    transaction.abort().unwrap();
    assert_eq!((log.writer().last_stable_offset(), visible(&mut log)), (14, Vec::new()));
}

/// All records of it are deleted: a reader does not wait for its end, and Kafka forgets it when it loads the
/// log.
#[test]
fn an_open_transaction_without_a_record_in_the_log_holds_nothing_back() {
    let mut log = Log::new();
    let transaction = begun(&mut log, "billing", 2);
    log.writer().delete_before(2).unwrap();
    log.crash();
    let mut next = begun(&mut log, "billing", 1);
    assert_ne!(next.producer_id(), transaction.producer_id());
    next.commit().unwrap();
    assert_eq!((log.writer().last_stable_offset(), visible(&mut log)), (4, vec![2]));
    assert_eq!(log.writer().reader().unwrap().last_stable_offset().unwrap(), 4);
}

/// `testTruncateBelowFirstUnstableOffset`.
#[test]
fn a_truncation_below_an_open_transaction_leaves_none() {
    let mut log = Log::new();
    log.writer().append(&RECORD).unwrap();
    let _open = begun(&mut log, "billing", 2);
    log.writer().truncate_to(1).unwrap();
    assert_eq!(log.writer().last_stable_offset(), 1);
    log.writer().append(&RECORD).unwrap();
    assert_eq!(visible(&mut log), [0, 1]);
}

#[test]
fn a_deletion_into_an_open_transaction_and_a_truncation_of_other_records_leave_it_open() {
    for is_continued in [false, true] {
        let mut log = Log::new();
        let mut transaction = begun(&mut log, "billing", 1);
        transaction.append(&RECORD).unwrap();
        transaction.append(&RECORD).unwrap();
        log.plain();
        log.plain();
        log.writer().delete_before(1).unwrap();
        log.writer().truncate_to(4).unwrap();
        if is_continued {
            transaction.append(&RECORD).unwrap();
            log.plain();
            log.writer().truncate_to(5).unwrap();
        }
        transaction.commit().unwrap();
        let end = if is_continued { vec![1, 2, 3, 4] } else { vec![1, 2, 3] };
        assert_eq!((log.writer().last_stable_offset(), visible(&mut log)), (end.len() as i64 + 2, end));
        // records of it are truncated
        let mut transaction = begun(&mut log, "billing", 2);
        transaction.append(&RECORD).unwrap();
        let end = log.writer().log_end_offset();
        log.writer().delete_before(end - 2).unwrap();
        log.writer().truncate_to(end - 1).unwrap();
        assert_eq!(transaction.commit().unwrap_err().argument(), Some("transaction"));
        transaction.abort().unwrap();
    }
}

/// `testProducersWithOngoingTransactionsDontExpire`.
#[test]
fn an_open_transaction_does_not_expire() {
    let mut log = Log::new();
    let _open = begun(&mut log, "billing", 1);
    log.options.clock = || NOW + 100 * 86_400_000;
    log.reopen();
    assert_eq!(log.writer().last_stable_offset(), 0);
    let next = begun(&mut log, "billing", 0);
    assert_eq!((next.producer_id(), next.producer_epoch()), (FIRST, 1));
    assert_eq!(log.writer().last_stable_offset(), 2);
}

#[test]
fn sequences_of_version_1_wrap() {
    let mut log = Log::new();
    let mut transaction = log.writer().transaction("billing", V1).unwrap();
    transaction.append(&RECORD).unwrap();
    transaction.commit().unwrap();
    let one = BatchV2::new(2).transaction(FIRST, 0, MAX - 1).records([Rec::at(NOW).value("x")]);
    log.follow(&[one]).unwrap();
    let mut next = log.writer().transaction("billing", V1).unwrap();
    assert_eq!(next.producer_epoch(), 1);
    drop(next);
    // in the same epoch
    let mut log = Log::new();
    let mut transaction = log.writer().transaction("billing", V1).unwrap();
    transaction.append(&RECORD).unwrap();
    transaction.commit().unwrap();
    log.mark(1, FIRST, 0);
    let one = BatchV2::new(3).producer(FIRST, 0, MAX - 1).records([Rec::at(NOW).value("x")]);
    log.follow(&[one]).unwrap();
    next = log.writer().transaction("billing", V1).unwrap();
    next.append_many(&[RECORD; 3]).unwrap();
    next.append(&RECORD).unwrap();
    next.commit().unwrap();
    let entry = log.producers().remove(0);
    let last = entry.last_batch().unwrap();
    assert_eq!((last.first_sequence(), last.last_sequence, entry.producer_epoch), (2, 2, 0));
}

/// `testFullTransactionIndexRecovery`, `testRecoverOnlyLastSegment`, `testRecoverLastSegmentWithNoSnapshots`.
#[test]
fn without_its_derived_files_the_log_has_the_same_transactions() {
    let mut log = Log::new();
    small_segments(&mut log);
    for round in 0..12 {
        let mut one = begun(&mut log, "a", 2);
        let mut other = begun(&mut log, "b", 3);
        one.append(&RECORD).unwrap();
        if round % 3 == 0 { other.commit() } else { other.abort() }.unwrap();
        if round % 4 != 1 {
            one.abort().unwrap();
        }
    }
    let _open = begun(&mut log, "c", 1);
    let (stable, seen) = (log.writer().last_stable_offset(), visible(&mut log));
    let of = |log: &Log, suffix: &str| -> BTreeMap<_, _> {
        log.files().into_iter().filter(|(name, _)| name.to_str().unwrap().ends_with(suffix)).collect()
    };
    log.close();
    let (indexes, snapshots) = (of(&log, ".txnindex"), of(&log, ".snapshot"));
    assert!(indexes.len() > 3 && snapshots.len() > 5);
    for removed in [&[".txnindex"][..], &[".snapshot"], &[".txnindex", ".snapshot", ".index", ".timeindex"]] {
        for name in log.files().into_keys() {
            let text = name.to_str().unwrap().to_owned();
            if removed.iter().any(|suffix| text.ends_with(suffix)) || text == ".cordwood.clean" {
                fs::remove_file(log.path().join(name)).unwrap();
            }
        }
        // as after a crash in which nothing was durable
        fs::remove_file(log.path().join(".cordwood.checkpoint")).unwrap();
        log.open();
        assert_eq!(
            (log.writer().last_stable_offset(), visible(&mut log)),
            (stable, seen.clone()),
            "{removed:?}"
        );
        log.close();
        assert_eq!(of(&log, ".txnindex"), indexes, "{removed:?}");
        assert_eq!(of(&log, ".snapshot").last_key_value(), snapshots.last_key_value(), "{removed:?}");
    }
}

/// What a client believes of a transactional id.
#[derive(Default)]
struct Model {
    /// The offsets that committed readers see, if no transaction before them is open.
    visible: Vec<i64>,
    /// The offsets of each open transaction.
    open: BTreeMap<&'static str, Vec<i64>>,
    end: i64,
}

impl Model {
    fn stable(&self) -> i64 {
        self.open.values().filter_map(|offsets| offsets.first()).min().copied().unwrap_or(self.end)
    }

    fn seen(&self) -> Vec<i64> {
        let mut seen: Vec<_> =
            self.visible.iter().copied().filter(|offset| *offset < self.stable()).collect();
        seen.sort_unstable();
        seen
    }

    /// Ends a transaction, by a marker if it has records.
    fn end(&mut self, id: &str, is_commit: bool) {
        let offsets = self.open.remove(id).unwrap_or_default();
        self.end += i64::from(!offsets.is_empty());
        if is_commit {
            self.visible.extend(offsets);
        }
    }
}

#[test]
fn random_histories_agree_with_a_model() {
    const IDS: [&str; 3] = ["a", "b", "c"];
    for seed in 1..=8_u64 {
        let mut dice = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut below = |limit: u64| {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            dice % limit
        };
        let mut log = Log::new();
        small_segments(&mut log);
        let mut model = Model::default();
        let mut handles: BTreeMap<&'static str, Transaction> = BTreeMap::new();
        for step in 0..120 {
            let id = IDS[below(3) as usize];
            match below(10) {
                0 => {
                    log.writer().append(&RECORD).unwrap();
                    model.visible.push(model.end);
                    model.end += 1;
                }
                1 | 2 => {
                    let version = if below(2) == 0 { V1 } else { V2 };
                    let new = log.writer().transaction(id, version).unwrap();
                    model.end(id, false);
                    if let Some(mut old) = handles.insert(id, new).filter(Transaction::is_open) {
                        let fenced = old.append(&RECORD);
                        assert!(matches!(fenced, Err(Error::InvalidProducerEpoch { .. })), "{fenced:?}");
                        let fenced = if below(2) == 0 { old.commit() } else { old.abort() };
                        assert!(matches!(fenced, Err(Error::InvalidProducerEpoch { .. })), "{fenced:?}");
                    }
                }
                3 if below(3) == 0 => {
                    handles.clear();
                    if below(2) == 0 {
                        log.reopen();
                    } else {
                        log.crash();
                    }
                }
                4 => log.writer().roll().unwrap(),
                5 | 6 => {
                    let Some(transaction) = handles.get_mut(id).filter(|handle| handle.is_open()) else {
                        continue;
                    };
                    let is_commit = below(3) > 0;
                    if is_commit { transaction.commit() } else { transaction.abort() }.unwrap();
                    model.end(id, is_commit);
                }
                _ => {
                    let Some(transaction) = handles.get_mut(id).filter(|handle| handle.is_open()) else {
                        continue;
                    };
                    let count = 1 + below(3) as i64;
                    transaction.append_many(&vec![RECORD; count as usize]).unwrap();
                    model.open.entry(id).or_default().extend(model.end..model.end + count);
                    model.end += count;
                }
            }
            let found = (log.writer().log_end_offset(), log.writer().last_stable_offset());
            assert_eq!(found, (model.end, model.stable()), "seed {seed}, step {step}");
            if step % 5 == 0 {
                assert_eq!(visible(&mut log), model.seen(), "seed {seed}, step {step}");
            }
        }
        assert_eq!(visible(&mut log), model.seen(), "seed {seed}");
    }
}
