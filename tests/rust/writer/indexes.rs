//! The index files of the active segment during writing: how far they lag behind the log, and their final
//! contents.

use std::path::Path;

use cordwood::LogConfig;
use cordwood::record::NewRecord;
use cordwood::writer::{FlushMode, LogWriter, WriterOptions};

const INTERVAL: u64 = 4096;
const INDEX_BYTES: usize = 64 << 10;

fn open(path: &Path) -> LogWriter {
    let config = LogConfig {
        segment_index_bytes: INDEX_BYTES as u32,
        index_interval_bytes: INTERVAL as u32,
        ..LogConfig::default()
    };
    let options = WriterOptions { config, flush: FlushMode::None, ..WriterOptions::default() };
    LogWriter::open(path, &options).unwrap()
}

/// A naive model of the entries that Kafka writes to both indexes: offset and position, timestamp and offset.
#[derive(Default)]
struct Naive {
    size: u64,
    since: u64,
    offsets: Vec<u8>,
    times: Vec<u8>,
}

impl Naive {
    fn append(&mut self, offset: i32, timestamp: i64, size: u64) {
        if self.since > INTERVAL {
            self.offsets.extend([offset.to_be_bytes(), (self.size as i32).to_be_bytes()].concat());
            self.times.extend([&timestamp.to_be_bytes()[..], &offset.to_be_bytes()].concat());
            self.since = 0;
        }
        self.size += size;
        self.since += size;
    }
}

/// The entries of a preallocated file, without the zeros after them.
fn entries(path: &Path, extension: &str, entry: usize) -> Vec<u8> {
    let mut bytes = std::fs::read(path.join(format!("{:020}.{extension}", 0))).unwrap();
    assert_eq!(bytes.len(), INDEX_BYTES / entry * entry, "the file has its full length while it is written");
    let end = bytes.chunks(entry).position(|slot| slot.iter().all(|byte| *byte == 0));
    let end = end.map_or(bytes.len(), |slot| slot * entry);
    assert!(bytes.drain(end..).all(|byte| byte == 0), "only zeros follow the entries");
    bytes
}

/// A value with which a batch has `batch` bytes.
fn value(batch: u64) -> Vec<u8> {
    // minus the batch header and the other fields of the record
    vec![b'v'; batch as usize - 61 - 10]
}

#[test]
fn the_files_of_both_indexes_lag_by_a_bounded_part_of_the_log_and_finally_equal_kafkas() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders-0");
    let mut writer = open(&path);
    let mut naive = Naive::default();
    let mut log = 0;
    let mut largest_lag = 0;
    for number in 0..2_500 {
        // small batches, several per entry, then batches with one entry each, then batches without an entry
        let value = value(if (2_000..2_490).contains(&number) { 5_000 } else { 700 });
        let timestamp = 1_700_000_000_000 + i64::from(number);
        writer.append(&NewRecord { timestamp, key: None, value: Some(&value), headers: &[] }).unwrap();
        let size = std::fs::metadata(path.join(format!("{:020}.log", 0))).unwrap().len();
        naive.append(number, timestamp, size - log);
        log = size;
        let (offsets, times) = (entries(&path, "index", 8), entries(&path, "timeindex", 12));
        assert!(naive.offsets.starts_with(&offsets) && naive.times.starts_with(&times), "{number}");
        let indexed = offsets.last_chunk::<4>().map_or(0, |position| u32::from_be_bytes(*position));
        largest_lag = largest_lag.max(size - u64::from(indexed));
        if number % 500 == 250 {
            // `reader()` and a sync write all entries
            if number < 1000 {
                writer.reader().unwrap();
            } else {
                writer.flush().unwrap();
            }
            assert_eq!(entries(&path, "index", 8), naive.offsets, "{number}");
            assert_eq!(entries(&path, "timeindex", 12), naive.times, "{number}");
        }
    }
    // the entries are written in groups of bounded size
    assert!(largest_lag > 20 * INTERVAL && largest_lag < (256 << 10) + 3 * INTERVAL, "{largest_lag}");
    writer.close().unwrap();
    let file = |extension: &str| std::fs::read(path.join(format!("{:020}.{extension}", 0))).unwrap();
    assert_eq!(file("index"), naive.offsets);
    naive.times.extend((1_700_000_000_000 + 2_499_i64).to_be_bytes());
    naive.times.extend(2_499_i32.to_be_bytes());
    assert_eq!(file("timeindex"), naive.times);
}
