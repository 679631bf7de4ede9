//! The paths whose cost is recorded, each as a pass over a small log.

use std::hint::black_box;
use std::path::{Path, PathBuf};

use cordwood::arrow::{ByteType, Column, Progress, Reader, ReaderOptions};
use cordwood::index::{Method, OffsetIndex, TimeIndex};
use cordwood::log::{ScanOptions, ScanStep};
use cordwood::text::{Format, Lines, LinesOptions};
use cordwood::types::Io;
use cordwood::{Log, LogOptions};

use crate::batches::{BatchV2, Rec};
use crate::partition::{Indexing, PartitionBuilder, file_name};

const BATCHES: i64 = 256;
const RECORDS: i64 = 50;
/// The look-ups of a pass.
const LOOK_UPS: i64 = 1000;

/// A path, and the number of look-ups, batches or records of a pass.
pub struct HotPath {
    pub name: &'static str,
    pub elements: i32,
    prepare: fn(&Path) -> Pass,
}

/// Runs once. The work before the first one is not measured.
pub type Pass = Box<dyn FnMut()>;

impl HotPath {
    /// Opens a log that [`write`] has written, and makes passes until the tables and caches are built.
    pub fn warmed_up(&self, dir: &Path) -> Pass {
        let mut pass = (self.prepare)(dir);
        for _ in 0..3 {
            pass();
        }
        pass
    }
}

pub const ALL: [HotPath; 8] = [
    HotPath { name: "OffsetIndex::lookup", elements: LOOK_UPS as i32, prepare: offset_index },
    HotPath { name: "TimeIndex::lookup", elements: LOOK_UPS as i32, prepare: time_index },
    HotPath { name: "Log::locate", elements: LOOK_UPS as i32, prepare: locate },
    HotPath { name: "Log::offset_for_time", elements: LOOK_UPS as i32, prepare: offset_for_time },
    HotPath { name: "batch headers", elements: BATCHES as i32, prepare: headers },
    HotPath {
        name: "columns",
        elements: (BATCHES * RECORDS) as i32,
        prepare: |dir| columns(dir, ByteType::Binary),
    },
    HotPath {
        name: "columns of views",
        elements: (BATCHES * RECORDS) as i32,
        prepare: |dir| columns(dir, ByteType::BinaryView),
    },
    HotPath { name: "JSON lines", elements: (BATCHES * RECORDS) as i32, prepare: lines },
];

/// Writes the log of all paths.
pub fn write(parent: &Path) -> PathBuf {
    let record = |offset: i64| {
        let value = format!(
            "{{\"order\":{offset},\"user\":\"user-{}\",\"total\":\"12.50 EUR\",\"items\":[1,2,3]}}",
            offset % 97
        );
        Rec::at(1_700_000_000_000 + 10 * offset).key(format!("user-{}", offset % 97)).value(value)
    };
    let batch =
        |n: i64| BatchV2::new(n * RECORDS).records((n * RECORDS..(n + 1) * RECORDS).map(record)).build();
    PartitionBuilder::new(Indexing::every(4096)).segment(0, (0..BATCHES).map(batch)).write(parent, "orders-0")
}

/// Targets in an order that no search expects, below `end`.
fn targets(end: i64) -> impl Iterator<Item = i64> {
    (0..LOOK_UPS).map(move |n| (n * 7919) % end)
}

fn log(dir: &Path) -> Log {
    open(dir, Io::Mmap)
}

fn offset_index(dir: &Path) -> Pass {
    let index = OffsetIndex::open(&dir.join(file_name(0, "index")), None, true).unwrap();
    Box::new(move || {
        for target in targets(BATCHES * RECORDS) {
            black_box(index.lookup(target, Method::default()).unwrap());
        }
    })
}

fn time_index(dir: &Path) -> Pass {
    let index = TimeIndex::open(&dir.join(file_name(0, "timeindex")), None, true).unwrap();
    Box::new(move || {
        for target in targets(10 * BATCHES * RECORDS) {
            black_box(index.lookup(1_700_000_000_000 + target, Method::default()).unwrap());
        }
    })
}

fn locate(dir: &Path) -> Pass {
    let log = log(dir);
    Box::new(move || {
        for target in targets(BATCHES * RECORDS) {
            black_box(log.locate(target).unwrap().unwrap());
        }
    })
}

fn offset_for_time(dir: &Path) -> Pass {
    let log = log(dir);
    Box::new(move || {
        for target in targets(10 * BATCHES * RECORDS - 10) {
            black_box(log.offset_for_time(1_700_000_000_000 + target).unwrap().unwrap());
        }
    })
}

fn headers(dir: &Path) -> Pass {
    let log = log(dir);
    Box::new(move || {
        let options = ScanOptions { batches_only: true, check_crcs: false, ..ScanOptions::default() };
        let mut scan = log.scan(options).unwrap();
        let mut batches = 0;
        while let Some(ScanStep::Batch(batch)) = scan.next_step().unwrap() {
            black_box(batch);
            batches += 1;
        }
        assert_eq!(batches, BATCHES);
    })
}

fn columns(dir: &Path, byte_type: ByteType) -> Pass {
    let log = log(dir);
    let options = ReaderOptions {
        columns: vec![Column::Offset, Column::Timestamp, Column::Key, Column::Value],
        key_type: byte_type,
        value_type: byte_type,
        ..ReaderOptions::default()
    };
    Box::new(move || {
        let mut reader = Reader::new(std::iter::once(Ok(log.clone())), options.clone(), Progress::default());
        let mut rows = 0;
        while let Some(batch) = reader.next_batch().unwrap() {
            rows += batch.num_rows();
            black_box(batch);
        }
        assert_eq!(rows as i64, BATCHES * RECORDS);
    })
}

fn lines(dir: &Path) -> Pass {
    let log = log(dir);
    Box::new(move || {
        let options = LinesOptions { format: Format::JsonLines, ..LinesOptions::default() };
        let mut lines = Lines::new(std::iter::once(Ok(log.clone())), options, Progress::default());
        let mut rows = 0;
        while let Some(block) = lines.next_block().unwrap() {
            rows += block.rows;
            black_box(block);
        }
        assert_eq!(rows as i64, BATCHES * RECORDS);
    })
}

fn open(dir: &Path, io: Io) -> Log {
    Log::open(dir, LogOptions { io, ..LogOptions::default() }).unwrap()
}
