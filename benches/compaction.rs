//! Compaction of a log, compared with Kafka's own cleaner on the same segments, in alternating turns: `make
//! bench-compaction`.
//!
//! After every turn the records of both logs are compared; of logs without compression also the files, byte
//! for byte. Exit code 1: they differ, or with `--strict` a floor was missed.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use cordwood::cleaner::{Compaction, CompactionOptions};
use cordwood::config::{CleanupPolicy, CompressionType, LogConfig};
use cordwood::log::{Scan, ScanOptions};
use cordwood::record::NewRecord;
use cordwood::writer::{FlushMode, LogWriter, WriterOptions};
use cordwood::{Log, LogOptions};
use cordwood_benches::{kafka, random, turns};
use kafka::{Kafka, TurnResult};
use random::Random;
use turns::{Clock, Pair, Spent};

/// Kafka's default `log.cleaner.dedupe.buffer.size`: the memory of both sides for the keys.
const MAP_BYTES: usize = 128 << 20;
const SEGMENT_BYTES: u32 = 1 << 30;
/// The segments of the log, without the active one.
const SEGMENTS: u64 = 4;
/// Bytes of a batch before compression.
const BATCH_BYTES: usize = 16 << 10;
/// Bytes of a record, roughly.
const RECORD_BYTES: u64 = 225;

/// The command line's arguments.
#[derive(Debug)]
struct Arguments {
    mib: u64,
    rounds: usize,
    /// Parts of names; empty is all.
    only: Vec<String>,
    is_strict: bool,
    /// The path of the CSV; `None`: a smaller log is not recorded.
    record: Option<PathBuf>,
    scratch: PathBuf,
}

impl Arguments {
    fn of_command_line() -> Self {
        let mut args = std::env::args().skip(1);
        // `target/tmp` is on the repository's disk; a temporary directory may be in memory
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-compaction");
        let mut arguments =
            Self { mib: 1024, rounds: 5, only: Vec::new(), is_strict: false, record: None, scratch };
        while let Some(word) = args.next() {
            let mut value = || args.next().expect("a value");
            match word.as_str() {
                "--bench" => {}
                "--mib" => arguments.mib = value().parse().unwrap(),
                "--rounds" => arguments.rounds = value().parse().unwrap(),
                "--only" => arguments.only.push(value()),
                "--strict" => arguments.is_strict = true,
                "--record" => arguments.record = Some(value().into()),
                "--scratch" => arguments.scratch = value().into(),
                _ => panic!(
                    "{word} is unknown; the options are --mib N, --rounds N, --only NAME, --strict, --record FILE, --scratch DIR"
                ),
            }
        }
        if arguments.record.is_none() && arguments.only.is_empty() && arguments.mib >= 1024 {
            let date = Command::new("date").args(["-u", "+%F"]).output().unwrap().stdout;
            let name = format!("record/{}-compaction.csv", String::from_utf8(date).unwrap().trim());
            arguments.record = Some(Path::new(env!("CARGO_MANIFEST_DIR")).join(name));
        }
        arguments
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| name.contains(only.as_str()))
    }
}

/// How often a key returns.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// One of 100 records remains, or fewer.
    Many,
    /// Nine of ten records remain.
    Few,
}

impl Shape {
    /// The number of keys, of which each record has a random one.
    fn keys(self, records: u64) -> i64 {
        let keys = match self {
            Self::Many => records / 100,
            Self::Few => records * 9 / 2,
        };
        i64::try_from(keys.max(1)).unwrap()
    }
}

fn options(codec: CompressionType) -> WriterOptions {
    let config = LogConfig {
        cleanup_policy: CleanupPolicy { compact: true, delete: false },
        compression_type: codec,
        segment_bytes: SEGMENT_BYTES,
        ..LogConfig::default()
    };
    WriterOptions { config, flush: FlushMode::None, ..WriterOptions::default() }
}

/// ms since the epoch.
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis().try_into().unwrap()
}

/// A record: key and value. One of 100 is a tombstone.
fn content(random: &mut Random, keys: i64) -> (String, Option<String>) {
    const WORDS: [&str; 8] = ["red", "gift", "express", "returned", "blue", "large", "second-hand", "small"];
    let key = format!("customer-{:010}", random.below(keys));
    if random.below(100) == 0 {
        return (key, None);
    }
    let (item, cents) = (random.below(1_000_000), random.below(100_000));
    let mut value = format!(
        r#"{{"customer":"{key}","item":{item},"amount":{}.{:02},"trace":"{:016x}","note":""#,
        cents / 100,
        cents % 100,
        random.below(i64::MAX)
    );
    for _ in 0..12 {
        write!(value, "{} ", WORDS[random.below(8) as usize]).unwrap();
    }
    value.push_str("\"}");
    (key, Some(value))
}

/// Writes a log of that many bytes before compression, closed in order. Returns the number of records.
fn write(dir: &Path, bytes: u64, codec: CompressionType, shape: Shape) -> u64 {
    let mut writer = LogWriter::open(dir, &options(codec)).unwrap();
    let (mut random, keys) = (Random(5), shape.keys(bytes / RECORD_BYTES));
    let timestamp = now();
    let (mut written, mut count) = (0, 0);
    for segment in 1..=SEGMENTS {
        while written < bytes * segment / SEGMENTS {
            let (mut contents, mut size) = (Vec::new(), 0);
            while size < BATCH_BYTES {
                let (key, value) = content(&mut random, keys);
                size += 10 + key.len() + value.as_ref().map_or(0, String::len);
                contents.push((key, value));
            }
            let records = contents.iter().zip(count..).map(|((key, value), number)| NewRecord {
                timestamp: timestamp + number / 1000,
                key: Some(key.as_bytes()),
                value: value.as_ref().map(String::as_bytes),
                headers: &[],
            });
            let records: Vec<_> = records.collect();
            writer.append_many(&records).unwrap();
            written += size as u64;
            count += records.len() as i64;
        }
        writer.roll().unwrap();
    }
    writer.close().unwrap();
    count as u64
}

/// The path of a log in an empty directory; earlier contents are removed.
fn fresh(scratch: &Path, side: &str) -> PathBuf {
    let folder = scratch.join(side);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder.join("orders-0")
}

/// A directory with a copy of the log. The segments are links: neither side changes a file that it replaces.
fn copied(from: &Path, scratch: &Path, side: &str) -> PathBuf {
    let dir = fresh(scratch, side);
    fs::create_dir(&dir).unwrap();
    let entries: Vec<_> = fs::read_dir(from).unwrap().map(|entry| entry.unwrap()).collect();
    for entry in entries {
        let (path, to) = (entry.path(), dir.join(entry.file_name()));
        let is_log = path.extension().is_some_and(|extension| extension == "log");
        if is_log && entry.metadata().unwrap().len() > 0 {
            fs::hard_link(path, to).unwrap();
        } else {
            fs::copy(path, to).unwrap();
        }
    }
    dir
}

fn compact(dir: &Path, codec: CompressionType, now: i64, threads: usize) -> (Spent, Compaction) {
    let mut writer = LogWriter::open(dir, &options(codec)).unwrap();
    let options = CompactionOptions { now: Some(now), dedupe_buffer_bytes: MAP_BYTES, threads };
    let (spent, compaction) = Spent::of_process(|| writer.compact(&options).unwrap());
    writer.close().unwrap();
    (spent, compaction)
}

/// # Panics
/// If the logs have different records, or `files` and different files. Returns the number of records.
fn assert_same(dirs: &[PathBuf; 2], files: bool, name: &str) -> u64 {
    let mut scans = dirs
        .each_ref()
        .map(|dir| Log::open(dir, LogOptions::default()).unwrap().scan(ScanOptions::default()).unwrap());
    let mut count = 0;
    while step(&mut scans, name) {
        loop {
            let [ours, theirs] = &mut scans;
            let found = [ours, theirs].map(next);
            assert!(found[0] == found[1], "{name}: {found:?}");
            if found[0].is_none() {
                break;
            }
            count += 1;
        }
    }
    for extension in ["log", "index", "timeindex"].into_iter().filter(|_| files) {
        let [ours, theirs] =
            dirs.each_ref().map(|dir| fs::read(dir.join(format!("{:020}.{extension}", 0))).unwrap());
        assert!(ours.len() > 8 && ours == theirs, "{name}: the .{extension} files differ");
    }
    count
}

/// Goes on to the next batch of both logs. False after the last.
fn step(scans: &mut [Scan; 2], name: &str) -> bool {
    let found = scans.each_mut().map(|scan| scan.next_step().unwrap().is_some());
    assert!(found[0] == found[1], "{name}: the logs have different numbers of batches");
    found[0]
}

type Found<'a> = (i64, i64, Option<&'a [u8]>, Option<&'a [u8]>);

fn next(scan: &mut Scan) -> Option<Found<'_>> {
    scan.next_record().unwrap().map(|record| (record.offset, record.timestamp, record.key, record.value))
}

/// The names of the directories of a turn.
const SIDES: [&str; 3] = ["one-thread", "two-threads", "kafka"];

/// Compares one thread, by CPU time, and two, by wall time: Kafka's cleaner has one for a log.
fn run(
    arguments: &Arguments,
    kafka: &mut Kafka,
    name: &str,
    codec: CompressionType,
    shape: Shape,
) -> [Pair; 2] {
    let written = fresh(&arguments.scratch, "written");
    let count = write(&written, arguments.mib << 20, codec, shape);
    let arms = [(name.to_owned(), Clock::Cpu), (format!("{name}/2-threads"), Clock::Wall)];
    let mut pairs = arms.map(|(name, clock)| Pair {
        name,
        peer: "Cleaner.doClean",
        floor: Some(3.0),
        clock,
        elements: (count, count),
        turns: vec![],
    });
    let mut remaining = 0;
    for turn in 0..=arguments.rounds {
        let dirs = SIDES.map(|side| copied(&written, &arguments.scratch, side));
        let now = now();
        let mut spent = [Spent::ZERO; 3];
        for at in 0..SIDES.len() {
            // each side is the first one in its turn
            let side = (turn + at) % SIDES.len();
            spent[side] = if side == 2 {
                let kafka: TurnResult = kafka.turn(&[
                    "compact",
                    dirs[2].to_str().unwrap(),
                    &SEGMENT_BYTES.to_string(),
                    &MAP_BYTES.to_string(),
                    &now.to_string(),
                ]);
                assert_eq!(kafka.log_end_offset, count as i64);
                kafka.spent
            } else {
                let (spent, compaction) = compact(&dirs[side], codec, now, side + 1);
                assert_eq!((compaction.is_complete(), compaction.end_offset), (true, count as i64));
                spent
            };
        }
        for ours in 0..2 {
            let sides = [dirs[ours].clone(), dirs[2].clone()];
            remaining = assert_same(&sides, codec == CompressionType::Uncompressed, name);
            if turn > 0 {
                pairs[ours].turns.push((spent[ours], spent[2]));
            }
        }
    }
    for pair in &pairs {
        println!("{}", pair.line());
    }
    assert!(remaining > 0 && remaining < count, "{name}: {remaining} of {count} records remain");
    println!("{:<24} {count} records, of which {remaining} remain", "");
    pairs
}

fn main() {
    let arguments = Arguments::of_command_line();
    let mut kafka = Kafka::start();
    println!("{}\ncompared with Kafka {}", Pair::HEAD, kafka.version);
    let mut pairs = Vec::new();
    for (codec, codec_name) in [
        (CompressionType::Uncompressed, "none"),
        (CompressionType::Lz4, "lz4"),
        (CompressionType::Zstd, "zstd"),
    ] {
        for (shape, shape_name) in [(Shape::Many, "many"), (Shape::Few, "few")] {
            let name = format!("compact/{codec_name}/{shape_name}");
            if arguments.wants(&name) {
                pairs.extend(run(&arguments, &mut kafka, &name, codec, shape));
            }
        }
    }
    let is_met = !pairs.iter().any(Pair::is_missed);
    if let Some(record) = &arguments.record {
        Pair::record(&pairs, record);
        println!("recorded in {}", record.display());
    }
    let _ = fs::remove_dir_all(&arguments.scratch);
    if arguments.is_strict && !is_met {
        std::process::exit(1);
    }
}
