//! Directories in memory, made of the bytes that a fuzzer changes.

use cordwood::fs::mem::MemoryDisk;
use cordwood::log::{Log, LogOptions};

use super::with_checksums;

/// A segment that real Kafka wrote: offsets 96 to 188.
pub(super) const INTACT_LOG: &[u8] =
    include_bytes!("../../golden/01-small/tickets-0/00000000000000000096.log");
/// Its base offset.
pub(super) const BASE: i64 = 96;

/// The names that an input can give to its files, by number.
const NAMES: [&str; 20] = [
    "00000000000000000096.log",
    "00000000000000000096.index",
    "00000000000000000096.timeindex",
    "00000000000000000096.txnindex",
    "00000000000000000096.snapshot",
    "00000000000000000189.log",
    "00000000000000000189.index",
    "00000000000000000189.timeindex",
    "00000000000000000189.txnindex",
    "00000000000000000189.snapshot",
    "00000000000000000000.log.swap",
    "00000000000000000096.log.swap",
    "00000000000000000096.index.swap",
    "00000000000000000096.log.cleaned",
    "00000000000000000096.log.deleted",
    "leader-epoch-checkpoint",
    "partition.metadata",
    ".cordwood.checkpoint",
    ".cordwood.clean",
    "notes.log",
];

/// The directory of an input: for each file the number of its name, its size in two bytes, and its contents.
pub(super) fn directory_of(mut data: &[u8]) -> MemoryDisk {
    let disk = MemoryDisk::default();
    while let Some(([name, high, low], rest)) = data.split_first_chunk() {
        let size = usize::from(*high) << 8 | usize::from(*low);
        let (contents, after) = rest.split_at(size.min(rest.len()));
        let name = NAMES[usize::from(*name) % NAMES.len()];
        let mut contents = contents.to_vec();
        if name.contains(".log") {
            with_checksums(&mut contents);
        }
        disk.put(name, &contents);
        data = after;
    }
    disk
}

/// A log of one segment with these files.
pub(super) fn with_files(files: &[(&str, &[u8])]) -> Log {
    let disk = MemoryDisk::default();
    for (suffix, contents) in files {
        disk.put(&format!("{BASE:020}{suffix}"), contents);
    }
    Log::open_in(disk.directory("/fuzz-0"), LogOptions::default()).expect("the log is intact")
}

/// The answers to look-ups by every seventh offset and by times around each record's.
pub(super) fn answers(log: &Log) -> Vec<Option<(i64, u64)>> {
    let end = log.log_end_offset().expect("the log is intact");
    let mut all = vec![Some((end, 0))];
    for offset in (BASE..end).step_by(7) {
        let found = log.locate(offset).expect("the log is intact");
        all.push(found.map(|found| (found.batch_base_offset, found.position)));
    }
    for time in (1_700_000_002_000..1_700_000_004_000).step_by(171) {
        let found = log.offset_for_time(time).expect("the log is intact");
        all.push(found.map(|found| (found.offset, found.timestamp.unsigned_abs())));
    }
    all
}
