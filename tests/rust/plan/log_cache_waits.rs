//! A log that is opened slowly delays no other one; a cleared cache has no open file.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use cordwood::log::OnDamage;
use cordwood::plan::{LogAccess, LogCache};
use cordwood::types::{Interrupt, Io};
use cordwood::{Log, LogOptions};

use crate::support::batches::{BatchV2, Rec};
use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::planning::cache;
use crate::support::reading::{IOS, all, folder};

/// A partition with segments of one record.
fn write(parent: &Path, name: &str, segments: i64) -> PathBuf {
    let batch = |offset| BatchV2::new(offset).record(Rec::at(1000 + offset).value("value")).build();
    let builder = PartitionBuilder::new(Indexing::every(100));
    (0..segments).fold(builder, |builder, base| builder.segment(base, [batch(base)])).write(parent, name)
}

fn offsets(log: &Log) -> Vec<i64> {
    all(log, OnDamage::Raise).whole().offsets()
}

thread_local! {
    /// What a thread that opens a log slowly reports, and what it then waits for.
    static SLOW: RefCell<Option<(Sender<()>, Receiver<()>)>> = const { RefCell::new(None) };
}

/// Called while a log is opened whose start is in its last segment.
fn wait_if_slow() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    if let Some((opening, may_go_on)) = SLOW.take() {
        opening.send(())?;
        may_go_on.recv()?;
    }
    Ok(())
}

#[test]
fn a_log_that_opens_slowly_does_not_delay_another_one() {
    let (slow, quick) = (folder(), folder());
    let logs = LogCache::new(LogOptions { interrupt: Interrupt(wait_if_slow), ..LogOptions::default() });
    let slow_dir = write(slow.path(), "a-0", 2);
    std::fs::write(slow.path().join("log-start-offset-checkpoint"), "0\n1\na 0 2\n").unwrap();
    let quick_dir = write(quick.path(), "b-0", 3);
    let old_dir = write(quick.path(), "c-0", 4);
    logs.open(&old_dir, LogAccess::of(Io::Pread), true).unwrap();
    std::thread::scope(|scope| {
        let (opening, is_opening) = channel();
        let (go_on, may_go_on) = channel();
        let logs = &logs;
        let slow = scope.spawn(move || {
            SLOW.set(Some((opening, may_go_on)));
            offsets(&logs.open(&slow_dir, LogAccess::of(Io::Pread), true).unwrap())
        });
        is_opening.recv().unwrap();
        let (sender, opened) = channel();
        scope.spawn(move || {
            for (dir, refresh) in
                [(&quick_dir, true), (&old_dir, true), (&old_dir, false), (&quick_dir, false)]
            {
                let _ = sender.send(offsets(&logs.open(dir, LogAccess::of(Io::Pread), refresh).unwrap()));
            }
        });
        // with a cache that waits, the test fails and does not hang
        let next = || opened.recv_timeout(Duration::from_secs(30));
        let found = [next(), next(), next(), next()];
        go_on.send(()).unwrap();
        assert_eq!(slow.join().unwrap(), [0; 0]);
        let [three, four] = [vec![0, 1, 2], vec![0, 1, 2, 3]];
        assert_eq!(found, [Ok(three.clone()), Ok(four.clone()), Ok(four), Ok(three)]);
    });
    assert_eq!(logs.opened(), 3);
}

/// The number of open or mapped files of a directory.
fn files_in_use(dir: &Path) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
    let open = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let open = open.filter(|path| path.starts_with(dir)).count();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    open + maps.lines().filter(|line| line.contains(dir.to_str().unwrap())).count()
}

#[test]
fn a_cleared_cache_has_no_open_file_and_opens_logs_again() {
    for io in IOS {
        let (logs, folder) = (cache(), folder());
        let root = folder.path().canonicalize().unwrap();
        let dirs: Vec<PathBuf> = (0..5).map(|number| write(&root, &format!("a-{number}"), 3)).collect();
        for round in 1..4 {
            for dir in &dirs {
                assert_eq!(offsets(&logs.open(dir, LogAccess::of(io), true).unwrap()), [0, 1, 2]);
                logs.open(dir, LogAccess::of(io), false).unwrap();
            }
            assert_eq!(logs.opened(), round * 5);
            assert!(files_in_use(&root) >= 5, "{} files", files_in_use(&root));
            logs.clear();
            assert_eq!(files_in_use(&root), 0);
        }
        logs.clear();
        assert_eq!(logs.opened(), 15);
    }
}

#[test]
fn a_log_that_is_used_survives_a_clear() {
    for io in IOS {
        let (logs, folder) = (cache(), folder());
        let root = folder.path().canonicalize().unwrap();
        let dir = write(&root, "a-0", 3);
        let log = logs.open(&dir, LogAccess::of(io), true).unwrap();
        logs.clear();
        assert_eq!(offsets(&log), [0, 1, 2]);
        assert_eq!(log.refresh().unwrap().log_end_offset().unwrap(), 3);
        assert_eq!(offsets(&logs.open(&dir, LogAccess::of(io), false).unwrap()), [0, 1, 2]);
        assert_eq!(logs.opened(), 2);
        // the files of the removed directory stay open
        std::fs::remove_dir_all(&dir).unwrap();
        logs.clear();
        assert_eq!(offsets(&log), [0, 1, 2]);
        drop(log);
        assert_eq!(files_in_use(&root), 0);
    }
}
