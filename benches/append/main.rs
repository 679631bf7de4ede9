//! Appends to a log and its recovery, compared with Kafka's own classes on the same batches, in alternating
//! turns: `make bench-append`.
//!
//! The written files are compared byte for byte before results are printed. Exit code 1: they differ, or with
//! `--strict` a floor was missed. This is not a criterion bench, because each turn starts with an empty log
//! and the other side runs in a JVM.

mod idempotent;
mod opening;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::time::{SystemTime, UNIX_EPOCH};

use cordwood::bench::{Segment, derived_indexes};
use cordwood::config::LogConfig;
use cordwood::fs::Directory;
use cordwood::record::{BatchBuilder, BatchOptions, Codec, NewRecord};
use cordwood::types::{Io, TimestampType};
use cordwood::writer::{Appender, FlushMode, LogWriter, WriterOptions};
use cordwood::{Log, LogOptions};
use cordwood_benches::{kafka, random, turns};
use kafka::{Kafka, TurnResult};
use random::Random;
use turns::{Clock, Pair, Spent};

const KIB: usize = 1 << 10;
/// Kafka's default `index.interval.bytes`.
const INTERVAL: u32 = 4096;
const KEY: &[u8] = b"a key of a record";
/// Untimed turns before the measurement, in which the JVM compiles hot code.
const WARM_UPS: usize = 3;

/// The command line's arguments.
#[derive(Debug)]
struct Arguments {
    rounds: usize,
    /// Parts of names; empty is all.
    only: Vec<String>,
    is_strict: bool,
    /// The path of the CSV.
    record: PathBuf,
    scratch: PathBuf,
}

impl Arguments {
    fn of_command_line() -> Self {
        let mut args = std::env::args().skip(1);
        // `target/tmp` is on the repository's disk; a temporary directory may be in memory
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-append");
        let date = Command::new("date").args(["-u", "+%F"]).output().unwrap().stdout;
        let name = format!("record/{}-append.csv", String::from_utf8(date).unwrap().trim());
        let record = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        let mut arguments = Self { rounds: 7, only: Vec::new(), is_strict: false, record, scratch };
        while let Some(word) = args.next() {
            let mut value = || args.next().expect("a value");
            match word.as_str() {
                "--bench" => {}
                "--rounds" => arguments.rounds = value().parse().unwrap(),
                "--only" => arguments.only.push(value()),
                "--strict" => arguments.is_strict = true,
                "--record" => arguments.record = value().into(),
                "--scratch" => arguments.scratch = value().into(),
                _ => panic!(
                    "{word} is unknown; the options are --rounds N, --only NAME, --strict, --record FILE, --scratch DIR"
                ),
            }
        }
        arguments
    }

    /// Whether names with this prefix may be selected.
    fn wants_any(&self, start: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only.starts_with(start))
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| name.contains(only.as_str()))
    }
}

/// Batches of one record, all of the same size, as many as fit into a core's private cache, like a batch that
/// was just received.
#[derive(Debug)]
struct Batches {
    timestamps: Vec<i64>,
    values: Vec<Vec<u8>>,
    raw: Vec<Vec<u8>>,
    file: PathBuf,
}

/// The bytes of an uncompressed batch at offset 0.
fn finish(builder: &mut BatchBuilder) -> Vec<u8> {
    let options = BatchOptions {
        base_offset: 0,
        leader_epoch: 0,
        codec: Codec::None,
        level: None,
        timestamp_type: TimestampType::CreateTime,
        log_append_time: -1,
    };
    let mut raw = Vec::new();
    builder.finish(&options, &mut raw).unwrap();
    raw
}

impl Batches {
    fn new(size: usize, scratch: &Path) -> Self {
        let now = now();
        let mut random = Random(size as u64);
        let mut batches =
            Self { timestamps: vec![], values: vec![], raw: vec![], file: scratch.join("batches") };
        let mut builder = BatchBuilder::new();
        for i in 0..256 * KIB / size {
            let mut value: Vec<u8> = (0..size).map(|_| random.below(256) as u8).collect();
            let timestamp = now + i as i64;
            // the size without the value; its length fields have the same size for the shorter value
            let whole = builder.size_with(&record(timestamp, &value));
            value.truncate(2 * size - whole);
            builder.append(&record(timestamp, &value)).unwrap();
            let raw = finish(&mut builder);
            assert_eq!(raw.len(), size);
            batches.timestamps.push(timestamp);
            batches.values.push(value);
            batches.raw.push(raw);
        }
        fs::create_dir_all(scratch).unwrap();
        fs::write(&batches.file, batches.raw.concat()).unwrap();
        batches
    }

    fn record(&self, i: usize) -> NewRecord<'_> {
        let i = i % self.raw.len();
        record(self.timestamps[i], &self.values[i])
    }
}

/// ms since the epoch.
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis().try_into().unwrap()
}

fn record(timestamp: i64, value: &[u8]) -> NewRecord<'_> {
    NewRecord { timestamp, key: Some(KEY), value: Some(value), headers: &[] }
}

fn options(flush: FlushMode, interval: u32) -> WriterOptions {
    let config = LogConfig { index_interval_bytes: interval, ..LogConfig::default() };
    WriterOptions { config, flush, ..WriterOptions::default() }
}

fn name(size: usize) -> String {
    format!("{}KiB", size / KIB)
}

/// The path of an empty directory; earlier contents are removed.
fn fresh(scratch: &Path, side: &str) -> PathBuf {
    let folder = scratch.join(side);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder.join("orders-0")
}

fn file(dir: &Path, extension: &str) -> PathBuf {
    dir.join(format!("{:020}.{extension}", 0))
}

/// `count` appends to an empty log, timed. With `keep`, it is closed and not removed.
fn ours(dir: &Path, count: usize, keep: bool, mut append: impl FnMut(&Appender, usize)) -> TurnResult {
    let mut writer = LogWriter::open(dir, &options(FlushMode::None, INTERVAL)).unwrap();
    let appender = writer.appender();
    let (spent, ()) = Spent::on(|| (0..count).for_each(|i| append(&appender, i)));
    let took = TurnResult {
        spent,
        log_end_offset: writer.log_end_offset(),
        size: file(dir, "log").metadata().unwrap().size(),
    };
    if keep {
        writer.close().unwrap();
    }
    took
}

/// `count` batches into an empty segment, as [`ours`].
fn segment(dir: &Path, count: usize, keep: bool, raw: &mut [Vec<u8>]) -> TurnResult {
    let directory = Directory::open_or_create(dir, "", |_, _| Ok(())).unwrap();
    let mut segment = Segment::create(&directory, INTERVAL.into()).unwrap();
    let (spent, ()) = Spent::on(|| (0..count).for_each(|i| segment.append(at_offset(raw, i)).unwrap()));
    if keep {
        segment.seal().unwrap();
    }
    TurnResult { spent, log_end_offset: count as i64, size: segment.size() }
}

/// The batch for an offset, with that offset.
fn at_offset(raw: &mut [Vec<u8>], offset: usize) -> &[u8] {
    let batch = offset % raw.len();
    raw[batch][..8].copy_from_slice(&(offset as i64).to_be_bytes());
    &raw[batch]
}

fn assert_same_files(dirs: [&Path; 2], name: &str) {
    for extension in ["log", "index", "timeindex"] {
        let [ours, theirs] = dirs.map(|dir| fs::read(file(dir, extension)).unwrap());
        assert!(ours.len() > 8 && ours == theirs, "{name}: the .{extension} files differ");
    }
}

/// Appends without a flush, compared with `LogSegment` and `UnifiedLog`.
fn appends(arguments: &Arguments, kafka: &mut Kafka, pairs: &mut Vec<Pair>) {
    for (size, [segment_floor, leader_floor]) in [(KIB, [1.4, 2.0]), (16 * KIB, [1.1, 1.5])] {
        let mut batches = Batches::new(size, &arguments.scratch);
        let count = 128 * KIB * KIB / size;
        for (arm, peer, floor) in [
            // only the header is parsed, as in Kafka
            ("segment", "LogSegment.append", Some(segment_floor)),
            // the same, but the library verifies each batch and its records
            ("raw", "LogSegment.append", None),
            ("follower", "UnifiedLog.appendAsFollower", None),
            ("leader", "UnifiedLog.appendAsLeader", Some(leader_floor)),
        ] {
            let name = format!("append/{arm}/{}", name(size));
            if !arguments.wants(&name) {
                continue;
            }
            let clock = Clock::Cpu;
            let mut pair =
                Pair { name, peer, floor, clock, elements: (count as u64, count as u64), turns: vec![] };
            for turn in 0..WARM_UPS + arguments.rounds {
                let keep = turn == 0;
                let dirs = ["cordwood", "kafka"].map(|side| fresh(&arguments.scratch, side));
                let raw = &mut batches.raw;
                let (timestamps, values) = (&batches.timestamps, &batches.values);
                let mut play_ours = || match arm {
                    "segment" => segment(&dirs[0], count, keep, raw),
                    "leader" => ours(&dirs[0], count, keep, |appender, i| {
                        let batch = i % values.len();
                        appender.append(&record(timestamps[batch], &values[batch])).unwrap();
                    }),
                    _ => ours(&dirs[0], count, keep, |appender, i| {
                        appender.append_batches(at_offset(raw, i), true).unwrap();
                    }),
                };
                let first = (turn % 2 == 0).then(&mut play_ours);
                let theirs = kafka.turn(&[
                    if arm == "raw" { "segment" } else { arm },
                    dirs[1].to_str().unwrap(),
                    batches.file.to_str().unwrap(),
                    &count.to_string(),
                    &INTERVAL.to_string(),
                    &keep.to_string(),
                ]);
                let ours = first.unwrap_or_else(play_ours);
                for took in [ours, theirs] {
                    let expected = (count as i64, (count * size) as u64);
                    assert_eq!((took.log_end_offset, took.size), expected, "{}", pair.name);
                }
                if keep {
                    assert_same_files([&dirs[0], &dirs[1]], &pair.name);
                }
                if turn >= WARM_UPS {
                    pair.turns.push((ours.spent, theirs.spent));
                }
            }
            println!("{}", pair.line());
            pairs.push(pair);
        }
    }
}

/// Many threads that share syncs, compared with one that syncs each append.
fn group_commit(arguments: &Arguments, pairs: &mut Vec<Pair>) {
    const THREADS: usize = 64;
    for (size, floor) in [(KIB, Some(20.0)), (16 * KIB, None)] {
        let name = format!("durable/64-threads/{}", name(size));
        if !arguments.wants(&name) {
            continue;
        }
        let batches = Batches::new(size, &arguments.scratch);
        let (each, alone) = (100, 300);
        let elements = ((THREADS * each) as u64, alone as u64);
        let peer = "an fdatasync each";
        let mut pair = Pair { name, peer, floor, clock: Clock::Wall, elements, turns: vec![] };
        for turn in 0..=arguments.rounds {
            let mut played = [1, THREADS].map(|threads| {
                let dir = fresh(&arguments.scratch, "cordwood");
                let writer = LogWriter::open(&dir, &options(FlushMode::Always, INTERVAL)).unwrap();
                let each = if threads == 1 { alone } else { each };
                let barrier = Barrier::new(threads);
                let (spent, ()) = Spent::of_process(|| {
                    std::thread::scope(|scope| {
                        for thread in 0..threads {
                            let (appender, barrier, batches) = (writer.appender(), &barrier, &batches);
                            scope.spawn(move || {
                                barrier.wait();
                                for i in 0..each {
                                    let appended = appender.append(&batches.record(thread + i)).unwrap();
                                    assert!(appended.durable);
                                }
                            });
                        }
                    });
                });
                assert_eq!(writer.log_end_offset(), (threads * each) as i64);
                assert_eq!(writer.durable_offset(), (threads * each) as i64);
                spent
            });
            if turn > 0 {
                played.reverse();
                pair.turns.push(played.into());
            }
        }
        println!("{}", pair.line());
        pairs.push(pair);
    }
}

/// Recovery of a segment of 1 GiB after a kill, compared with `LogSegment.recover`, from the disk and from
/// the page cache.
fn recoveries(arguments: &Arguments, kafka: &mut Kafka, pairs: &mut Vec<Pair>) {
    const CALL: usize = 1024;
    for (size, [disk_floor, hot_floor]) in [(KIB, [Some(2.0), Some(4.0)]), (16 * KIB, [None, None])] {
        let names = ["disk", "hot"].map(|how| format!("recover/{how}/{}", name(size)));
        if !names.iter().any(|name| arguments.wants(name)) {
            continue;
        }
        let mut batches = Batches::new(size, &arguments.scratch);
        let dirs = ["cordwood", "kafka"].map(|side| fresh(&arguments.scratch, side));
        // one append less than 1 GiB, because the last one would roll
        let count = KIB * KIB * KIB / size - CALL;
        {
            let mut writer = LogWriter::open(&dirs[0], &options(FlushMode::None, INTERVAL)).unwrap();
            for start in (0..count).step_by(CALL) {
                let raw: Vec<u8> =
                    (start..start + CALL).flat_map(|i| at_offset(&mut batches.raw, i).to_vec()).collect();
                writer.append_batches(&raw, true).unwrap();
            }
            // dirty pages cannot be dropped from the cache; then the writer is dropped, which leaves the log
            // as a kill does
            writer.flush().unwrap();
        }
        fs::create_dir_all(&dirs[1]).unwrap();
        fs::hard_link(file(&dirs[0], "log"), file(&dirs[1], "log")).unwrap();
        let config = options(FlushMode::None, INTERVAL).config;
        for (name, floor) in
            names.into_iter().zip([disk_floor, hot_floor]).filter(|(name, _)| arguments.wants(name))
        {
            let is_hot = name.contains("hot");
            let clock = if is_hot { Clock::Cpu } else { Clock::Wall };
            let elements = (count as u64, count as u64);
            let mut pair = Pair { name, peer: "LogSegment.recover", floor, clock, elements, turns: vec![] };
            for turn in 0..=arguments.rounds {
                let forget = || {
                    let log = fs::File::open(file(&dirs[0], "log")).unwrap();
                    if !is_hot {
                        rustix::fs::fadvise(&log, 0, None, rustix::fs::Advice::DontNeed).unwrap();
                    }
                };
                forget();
                let (ours, end) =
                    if is_hot { write_indexes(&dirs[0], &config) } else { open_writer(&dirs[0]) };
                forget();
                let theirs = kafka.turn(&["recover", dirs[1].to_str().unwrap(), &INTERVAL.to_string()]);
                assert_eq!((end, theirs.log_end_offset), (count as i64, count as i64), "{}", pair.name);
                assert_same_indexes(&dirs, &pair.name);
                if turn > 0 {
                    pair.turns.push((ours, theirs.spent));
                }
            }
            println!("{}", pair.line());
            pairs.push(pair);
        }
    }
}

/// Derives the indexes of a log without a writer: the time, and the log end offset.
fn write_indexes(dir: &Path, config: &LogConfig) -> (Spent, i64) {
    let log = Log::open(dir, LogOptions { io: Io::Pread, ..LogOptions::default() }).unwrap();
    Spent::on(|| {
        let (end, indexes) = derived_indexes(&log, config).unwrap();
        for (extension, bytes) in ["index", "timeindex"].into_iter().zip(indexes) {
            fs::write(file(dir, extension), bytes).unwrap();
        }
        end
    })
}

/// Opens a writer, which recovers the log: the time, and the log end offset.
fn open_writer(dir: &Path) -> (Spent, i64) {
    let (spent, writer) = Spent::on(|| LogWriter::open(dir, &options(FlushMode::None, INTERVAL)).unwrap());
    (spent, writer.log_end_offset())
}

/// # Panics
/// If an index of the first log, which may be open, has other entries than that of the second.
fn assert_same_indexes(dirs: &[PathBuf; 2], name: &str) {
    for extension in ["index", "timeindex"] {
        let [ours, theirs] = dirs.each_ref().map(|dir| fs::read(file(dir, extension)).unwrap());
        // the file of an open log is longer
        let (entries, room) = ours.split_at_checked(theirs.len()).expect("as many entries");
        let is_same = entries == theirs && room.iter().all(|byte| *byte == 0);
        assert!(theirs.len() > 8 && is_same, "{name}: the .{extension} files differ");
    }
}

/// Page faults of this thread, of both kinds.
fn page_faults() -> u64 {
    let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
    // the name in parentheses may contain spaces; then state, four ids, terminal, its group, flags
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[7].parse::<u64>().unwrap() + fields[9].parse::<u64>().unwrap()
}

/// Counts the appends with page faults among 100,000 appends that each add an entry to both indexes. Faults
/// are expected only when the next 64 KiB of an index are prepared, in one call. True if this holds.
fn index_faults(arguments: &Arguments) -> bool {
    const COUNT: usize = 100_000;
    const AHEAD: usize = 64 * KIB;
    if !arguments.wants("faults") {
        return true;
    }
    let batches = Batches::new(KIB, &arguments.scratch);
    let max = (COUNT * 8).div_ceil(AHEAD) + (COUNT * 12).div_ceil(AHEAD);
    let mut is_met = true;
    for (what, interval, max) in
        [("entries of both indexes", 0, max), ("no index entry", i32::MAX.unsigned_abs(), 0)]
    {
        let dir = fresh(&arguments.scratch, "cordwood");
        let writer = LogWriter::open(&dir, &options(FlushMode::None, interval)).unwrap();
        let appender = writer.appender();
        let (mut faults, mut appends) = (0, 0);
        for i in 0..=COUNT {
            let i = i as i64;
            let before = page_faults();
            appender.append(&record(batches.timestamps[0] + i, &batches.values[0])).unwrap();
            let new = page_faults() - before;
            // the first append touches the writer's own buffers
            if i > 0 && new > 0 {
                (faults, appends) = (faults + new, appends + 1);
            }
        }
        println!("{COUNT} appends with {what}: {faults} page faults, in {appends} of them (at most {max})");
        is_met &= appends <= max;
    }
    is_met
}

fn main() {
    let arguments = Arguments::of_command_line();
    let mut pairs = Vec::new();
    println!("{}", Pair::HEAD);
    if ["append", "recover", "open"].iter().any(|arm| arguments.wants_any(arm)) {
        let mut kafka = Kafka::start();
        println!("compared with Kafka {}", kafka.version);
        appends(&arguments, &mut kafka, &mut pairs);
        idempotent::appends(&arguments, &mut kafka, &mut pairs);
        opening::with_producers(&arguments, &mut kafka, &mut pairs);
        recoveries(&arguments, &mut kafka, &mut pairs);
    }
    group_commit(&arguments, &mut pairs);
    let is_met = index_faults(&arguments) && !pairs.iter().any(Pair::is_missed);
    Pair::record(&pairs, &arguments.record);
    println!("recorded in {}", arguments.record.display());
    let _ = fs::remove_dir_all(&arguments.scratch);
    if arguments.is_strict && !is_met {
        std::process::exit(1);
    }
}
