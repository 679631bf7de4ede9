//! Committed reads of a log that is refreshed again and again: the same as those of a log that is opened
//! then.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use cordwood::Log;
use cordwood::log::OnDamage;
use cordwood::types::Io;
use proptest::prelude::*;

use crate::support::batches::{ABORT, BatchV2, Built, COMMIT, Rec};
use crate::support::fixed_seed;
use crate::support::partition::file_name;
use crate::support::reading::{committed, folder, open};

/// The bytes of a large value: a few batches are more than what is read again after an append.
const LARGE: usize = 24 << 10;

#[derive(Debug, Clone, Copy)]
enum Change {
    /// A batch of a producer in a transaction, with a large value or a small one.
    Data(i64, bool),
    Plain(bool),
    End(i64, i16),
    Roll,
    /// The last batches are removed, this many, and those that follow have a new leader epoch.
    Truncate(usize),
    /// The first segment is deleted.
    Delete,
    /// Compaction leaves out every other batch without a transaction of the first segment.
    Compact,
    /// Nothing is read before the next change.
    Unread,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        8 => (1i64..5, any::<bool>()).prop_map(|(producer, is_large)| Change::Data(producer, is_large)),
        3 => any::<bool>().prop_map(Change::Plain),
        3 => (1i64..5).prop_map(|producer| Change::End(producer, ABORT)),
        3 => (1i64..5).prop_map(|producer| Change::End(producer, COMMIT)),
        2 => Just(Change::Roll),
        1 => (1usize..5).prop_map(Change::Truncate),
        1 => Just(Change::Delete),
        1 => Just(Change::Compact),
        4 => Just(Change::Unread),
    ]
}

/// A partition directory, and its batches by segment.
struct Partition {
    dir: PathBuf,
    segments: Vec<(i64, Vec<(Built, bool)>)>,
    next_offset: i64,
    leader_epoch: i32,
}

impl Partition {
    fn new(parent: &Path) -> Self {
        let dir = parent.join("t-0");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join(file_name(0, "log")), []).unwrap();
        Self { dir, segments: vec![(0, Vec::new())], next_offset: 0, leader_epoch: 1 }
    }

    fn log_path(&self, base_offset: i64) -> PathBuf {
        self.dir.join(file_name(base_offset, "log"))
    }

    fn append(&mut self, batch: &BatchV2, is_plain: bool) {
        let built = batch.clone().leader_epoch(self.leader_epoch).build();
        let (base_offset, batches) = self.segments.last_mut().unwrap();
        let path = self.dir.join(file_name(*base_offset, "log"));
        fs::OpenOptions::new().append(true).open(path).unwrap().write_all(&built.bytes).unwrap();
        self.next_offset = built.next_offset();
        batches.push((built, is_plain));
    }

    fn write(&self, base_offset: i64, batches: &[(Built, bool)]) {
        // another file with the name, as after a replacement
        let staged = self.dir.join("staged");
        fs::write(&staged, batches.iter().flat_map(|(built, _)| built.bytes.clone()).collect::<Vec<_>>())
            .unwrap();
        fs::rename(staged, self.log_path(base_offset)).unwrap();
    }

    fn apply(&mut self, change: Change) {
        let base = self.next_offset;
        let value = |is_large: bool| vec![base as u8; if is_large { LARGE } else { 10 }];
        let record = |is_large| Rec::at(1000 + base).value(value(is_large));
        match change {
            Change::Data(producer, is_large) => {
                self.append(&BatchV2::new(base).transaction(producer, 0, 0).record(record(is_large)), false);
            }
            Change::Plain(is_large) => {
                self.append(&BatchV2::new(base).producer(7, 0, 0).record(record(is_large)), true);
            }
            Change::End(producer, kind) => {
                self.append(&BatchV2::marker(base, kind, producer, 0, 1000 + base), false);
            }
            Change::Roll => {
                if self.segments.last().unwrap().0 < base {
                    fs::write(self.log_path(base), []).unwrap();
                    self.segments.push((base, Vec::new()));
                }
            }
            Change::Truncate(count) => self.truncate(count),
            Change::Delete => {
                if self.segments.len() > 1 {
                    let (base_offset, _) = self.segments.remove(0);
                    fs::remove_file(self.log_path(base_offset)).unwrap();
                }
            }
            Change::Compact => self.compact(),
            Change::Unread => {}
        }
    }

    /// In place, as a broker truncates.
    fn truncate(&mut self, count: usize) {
        for _ in 0..count {
            if self.segments.len() > 1 && self.segments.last().unwrap().1.is_empty() {
                let (base_offset, _) = self.segments.pop().unwrap();
                fs::remove_file(self.log_path(base_offset)).unwrap();
            }
            let (base_offset, batches) = self.segments.last_mut().unwrap();
            let Some((removed, _)) = batches.pop() else { break };
            let file = fs::OpenOptions::new()
                .write(true)
                .open(self.dir.join(file_name(*base_offset, "log")))
                .unwrap();
            file.set_len(batches.iter().map(|(built, _)| built.bytes.len() as u64).sum()).unwrap();
            self.next_offset = removed.next_offset() - 1;
        }
        self.leader_epoch += 1;
    }

    fn compact(&mut self) {
        if self.segments.len() < 2 {
            return;
        }
        let (base_offset, batches) = &mut self.segments[0];
        let mut plain = 0;
        batches.retain(|(_, is_plain)| {
            plain += usize::from(*is_plain);
            !is_plain || plain % 2 == 0
        });
        let (base_offset, batches) = (*base_offset, batches.clone());
        self.write(base_offset, &batches);
    }
}

fn assert_same(refreshed: &Log, fresh: &Log, context: &str) {
    assert_eq!(refreshed.last_stable_offset().unwrap(), fresh.last_stable_offset().unwrap(), "{context}");
    for on_damage in [OnDamage::Raise, OnDamage::Skip] {
        let [ours, wanted] = [refreshed, fresh].map(|log| committed(log, on_damage).whole());
        assert_eq!(ours.offsets(), wanted.offsets(), "{context}");
    }
}

proptest! {
    #![proptest_config(fixed_seed(40))]

    #[test]
    fn a_refreshed_log_has_the_transactions_of_one_that_is_opened_now(
        changes in proptest::collection::vec(change(), 1..60),
    ) {
        let parent = folder();
        let mut partition = Partition::new(parent.path());
        let mut log = open(&partition.dir, Io::Auto);
        for (number, change) in changes.iter().enumerate() {
            partition.apply(*change);
            if matches!(change, Change::Unread) {
                continue;
            }
            log = log.refresh().unwrap();
            assert_same(&log, &open(&partition.dir, Io::Auto), &format!("after {number}: {:?}", &changes[..=number]));
        }
    }
}

#[test]
fn a_truncation_that_is_written_over_with_another_outcome_is_noticed() {
    let parent = folder();
    let mut partition = Partition::new(parent.path());
    let mut log = open(&partition.dir, Io::Auto);
    for kind in [ABORT, COMMIT] {
        for change in [Change::Data(1, true), Change::End(1, kind)] {
            partition.apply(change);
        }
        for _ in 0..6 {
            partition.apply(Change::Plain(true));
        }
        log = log.refresh().unwrap();
        assert_same(&log, &open(&partition.dir, Io::Auto), "before a truncation");
        assert_eq!(committed(&log, OnDamage::Raise).whole().offsets().contains(&0), kind == COMMIT);
        partition.apply(Change::Truncate(8));
    }
}
