//! A partition written for a bench, with its contents.

use std::fmt::Write;
use std::path::PathBuf;

use cordwood::fs::{FileBytes, SystemFile};
use cordwood::types::Io;
use cordwood::{Log, LogOptions};
use tempfile::TempDir;

use super::batches::{BatchV2, Built, Codec, Rec};
use super::partition::{Indexing, PartitionBuilder, file_name};
use super::random::Random;

/// Kafka's default `log.index.interval.bytes`.
const INDEX_INTERVAL: usize = 4096;

/// The time of the first record, ms.
const START: i64 = 1_700_000_000_000;

/// The parameters of the partition.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Approximate size of a batch before compression, bytes.
    pub batch_bytes: usize,
    pub codec: Codec,
    /// Approximate size of the log before compression, bytes.
    pub log_bytes: usize,
    pub segment_bytes: usize,
}

/// A batch and its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    pub segment: i64,
    pub position: u64,
    pub size: u32,
    pub base_offset: i64,
    pub last_offset: i64,
    pub max_timestamp: i64,
}

/// Sums over the columns of all records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sums {
    pub records: u64,
    pub offsets: i64,
    pub timestamps: i64,
    pub null_keys: u64,
    pub null_values: u64,
    pub headers: u64,
    /// The contents of all keys, values and headers, in order: sizes, and hashes of lengths and bytes.
    pub keys: Content,
    pub values: Content,
    pub header_bytes: Content,
}

/// A number of bytes, and their FNV-1a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content(u64, u64);

impl Default for Content {
    fn default() -> Self {
        Self(0, 0xcbf2_9ce4_8422_2325)
    }
}

impl Content {
    pub fn len(self) -> u64 {
        self.0
    }

    pub fn add(&mut self, bytes: &[u8]) {
        self.0 += bytes.len() as u64;
        for byte in bytes {
            self.1 = (self.1 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        // the length is hashed, too, so that the boundaries of values count
        self.1 = (self.1 ^ bytes.len() as u64).wrapping_mul(0x0100_0000_01b3);
    }
}

impl Sums {
    pub fn add<'a>(
        &mut self,
        offset: i64,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl IntoIterator<Item = (&'a [u8], Option<&'a [u8]>)>,
    ) {
        self.records += 1;
        self.offsets = self.offsets.wrapping_add(offset);
        self.timestamps = self.timestamps.wrapping_add(timestamp);
        self.null_keys += u64::from(key.is_none());
        self.null_values += u64::from(value.is_none());
        self.keys.add(key.unwrap_or_default());
        self.values.add(value.unwrap_or_default());
        for (key, value) in headers {
            self.headers += 1;
            self.header_bytes.add(key);
            self.header_bytes.add(value.unwrap_or_default());
        }
    }
}

/// A partition directory with its expected contents.
pub struct Written {
    folder: TempDir,
    pub dir: PathBuf,
    pub batches: Vec<Batch>,
    /// The timestamp of each record, by its offset: the first is 0, and there are no gaps.
    pub times: Vec<i64>,
    /// The uncompressed size of all batches, bytes.
    pub plain_bytes: u64,
    pub sums: Sums,
}

impl Written {
    /// Writes the same bytes for the same shape.
    pub fn new(shape: Shape) -> Self {
        Self::new_in(tempfile::tempdir().unwrap(), shape)
    }

    /// [`Written::new`] in a folder, which is removed with it.
    pub fn new_in(folder: TempDir, shape: Shape) -> Self {
        let (mut written, mut random, mut built) = (Self::empty(folder), Random(7), Vec::new());
        while written.plain_bytes < shape.log_bytes as u64 {
            // three to five quarters of the size
            let full = shape.batch_bytes * 3 / 4 + random.below(shape.batch_bytes as i64 / 2) as usize;
            built.push(written.batch(shape.codec, &mut random, |bytes, _| bytes < full));
        }
        written.put(shape.segment_bytes, built)
    }

    /// Writes one segment of batches with the same number of records, without compression. The same bytes for
    /// the same numbers.
    pub fn of_records(records_per_batch: usize, batches: usize) -> Self {
        let (mut written, mut random) = (Self::empty(tempfile::tempdir().unwrap()), Random(7));
        let batch = |_| written.batch(Codec::None, &mut random, |_, records| records < records_per_batch);
        let built = (0..batches).map(batch).collect();
        written.put(usize::MAX, built)
    }

    fn empty(folder: TempDir) -> Self {
        Self {
            folder,
            dir: PathBuf::new(),
            batches: Vec::new(),
            times: Vec::new(),
            plain_bytes: 0,
            sums: Sums::default(),
        }
    }

    fn put(mut self, segment_bytes: usize, built: Vec<Built>) -> Self {
        let builder = PartitionBuilder::rolled(Indexing::every(INDEX_INTERVAL), segment_bytes, built);
        for (segment, batches) in &builder.segments {
            let mut position = 0;
            for batch in batches {
                self.batches.push(Batch {
                    segment: *segment,
                    position,
                    size: batch.bytes.len() as u32,
                    base_offset: batch.base_offset,
                    last_offset: batch.last_offset,
                    max_timestamp: batch.max_timestamp,
                });
                position += batch.bytes.len() as u64;
            }
        }
        self.dir = builder.write(self.folder.path(), "orders-0");
        self
    }

    /// The next batch. `has_room`: whether a record is added to one of so many bytes and records.
    fn batch(&mut self, codec: Codec, random: &mut Random, has_room: impl Fn(usize, usize) -> bool) -> Built {
        let base_offset = self.times.len() as i64;
        let (mut records, mut bytes) = (Vec::new(), 61);
        while has_room(bytes, records.len()) {
            let record = record(random, self.times.len() as i64);
            let (key, value) = (record.key.as_deref(), record.value.as_deref());
            let headers = record.headers.iter().map(|(key, value)| (key.as_slice(), value.as_deref()));
            self.sums.add(self.times.len() as i64, record.timestamp, key, value, headers);
            bytes +=
                9 + key.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len) + 32 * record.headers.len();
            self.times.push(record.timestamp);
            records.push(record);
        }
        self.plain_bytes += bytes as u64;
        BatchV2::new(base_offset).codec(codec).records(records).build()
    }

    /// Opens the partition.
    pub fn open(&self, io: Io) -> Log {
        Log::open(&self.dir, LogOptions { io, ..LogOptions::default() }).unwrap()
    }

    /// The `.log` of every segment, mapped.
    pub fn maps(&self) -> Vec<FileBytes> {
        let mut bases: Vec<_> = self.batches.iter().map(|batch| batch.segment).collect();
        bases.dedup();
        let map = |base| {
            let path = self.dir.join(file_name(base, "log"));
            FileBytes::new(SystemFile::open(&path).unwrap(), None, true).unwrap()
        };
        bases.into_iter().map(map).collect()
    }

    pub fn end_offset(&self) -> i64 {
        self.times.len() as i64
    }

    /// The batch that contains an offset, by a binary search over all batches.
    pub fn batch_of(&self, offset: i64) -> Batch {
        self.batches[self.batches.partition_point(|batch| batch.last_offset < offset)]
    }

    /// For each target, the first record at or after it: timestamp and offset. Reads every record.
    pub fn first_at(&self, targets: &[i64]) -> Vec<(i64, i64)> {
        let mut sorted: Vec<_> = targets.iter().copied().enumerate().collect();
        sorted.sort_by_key(|(_, target)| *target);
        let mut answers = vec![(-1, -1); targets.len()];
        let mut records = self.times.iter().copied().zip(0..).peekable();
        for (place, target) in sorted {
            // records below an earlier, smaller target are below this one, too
            while records.next_if(|(timestamp, _)| *timestamp < target).is_some() {}
            answers[place] = *records.peek().unwrap();
        }
        answers
    }
}

/// Records like those of a web shop: about 110 bytes of JSON with a short key, sometimes a header, few nulls.
fn record(random: &mut Random, number: i64) -> Rec {
    const WORDS: [&str; 8] = ["red", "gift", "express", "returned", "blue", "large", "second-hand", "small"];
    // one per millisecond, out of order by up to 20 ms
    let record = Rec::at(START + number + random.below(20));
    let user = random.below(100_000);
    let record = if random.below(16) == 0 { record } else { record.key(format!("user-{user}")) };
    if random.below(64) == 0 {
        return record;
    }
    let (item, cents) = (random.below(1_000_000), random.below(100_000));
    let mut value = format!(
        r#"{{"order":{number},"user":"user-{user}","item":{item},"amount":{}.{:02},"note":""#,
        cents / 100,
        cents % 100
    );
    for _ in 0..random.below(6) {
        let word = WORDS[random.below(8) as usize];
        write!(value, "{word} ").unwrap();
    }
    value.push_str("\"}");
    let record = record.value(value);
    if random.below(8) == 0 {
        record.header("trace", Some(format!("{:016x}", random.below(i64::MAX)).as_bytes()))
    } else {
        record
    }
}
