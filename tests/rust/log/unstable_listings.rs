//! A directory that changes while it is listed: `readdir` may miss an entry created meanwhile and return a
//! later one. No reader may treat a segment that a listing missed as a segment that does not exist.

use cordwood::config::LogConfig;
use cordwood::fs::mem::{ListingRace, MemoryDisk};
use cordwood::log::ScanOptions;
use cordwood::record::NewRecord;
use cordwood::writer::{FlushMode, LogWriter, WriterOptions};
use cordwood::{Error, Log, LogOptions};

use crate::support::reading::scan;

const RUNS: u64 = 400;

/// `SplitMix64`.
#[derive(Debug, Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

fn random_bit(seed: u64, number: i64) -> bool {
    Random(seed ^ number as u64).below(2) == 0
}

fn open_writer(disk: &MemoryDisk) -> LogWriter {
    // two records a segment
    let config = LogConfig { segment_bytes: 150, segment_index_bytes: 64, ..LogConfig::default() };
    let options =
        WriterOptions { config, flush: FlushMode::None, clock: || 1000, ..WriterOptions::default() };
    LogWriter::open_in(disk.directory("/data/orders-0"), &options).unwrap()
}

const RECORD: NewRecord<'_> = NewRecord { timestamp: 1000, key: None, value: Some(b"v"), headers: &[] };

/// A disk with a log of some segments.
fn new_log(random: &mut Random) -> (MemoryDisk, LogWriter) {
    let disk = MemoryDisk::default();
    let mut writer = open_writer(&disk);
    for _ in 0..random.below(20) {
        writer.append(&RECORD).unwrap();
    }
    (disk, writer)
}

/// Runs `meanwhile` during each listing.
fn disturb(disk: &MemoryDisk, seed: u64, meanwhile: impl FnMut() + Send + 'static) {
    let mut returned = Random(!seed);
    let returns = Box::new(move |_: &str| returned.below(2) == 0);
    disk.set_listing_race(Some(ListingRace { meanwhile: Box::new(meanwhile), returns }));
}

/// Checks that a log has every record from its start to its end.
fn check(log: &Log, seed: u64) -> Result<(), Error> {
    let (start, end) = (log.log_start_offset(), log.log_end_offset()?);
    let read = scan(log, ScanOptions::default());
    if let Some(error) = read.error {
        return Err(error);
    }
    assert_eq!(read.offsets(), (start..end).collect::<Vec<_>>(), "seed {seed}: {:?}", log.segments());
    let is_odd = |warning: &String| !warning.contains("hidden below the log start offset");
    assert_eq!(log.warnings().into_iter().filter(is_odd).collect::<Vec<_>>(), [""; 0], "seed {seed}");
    Ok(())
}

#[test]
fn no_segment_is_missed_by_an_opening_or_a_refresh_while_a_writer_rolls() {
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let (disk, mut writer) = new_log(&mut random);
        let appender = writer.appender();
        disturb(&disk, seed, move || {
            for _ in 0..random.below(8) {
                appender.append(&RECORD).unwrap();
            }
        });
        let mut log = Log::open_in(disk.directory("/data/orders-0"), LogOptions::default()).unwrap();
        let mut reader = writer.reader().unwrap();
        for _ in 0..5 {
            check(&log, seed).unwrap();
            check(&reader, seed).unwrap();
            // all records from before the listing are found
            let end = writer.log_end_offset();
            log = log.refresh().unwrap();
            assert!(log.log_end_offset().unwrap() >= end, "seed {seed}");
            reader = if random_bit(seed, end) { writer.reader().unwrap() } else { reader.refresh().unwrap() };
            assert!(reader.log_end_offset().unwrap() >= end, "seed {seed}");
        }
    }
}

#[test]
fn no_segment_is_missed_while_a_writer_deletes_from_both_ends() {
    let mut read = 0;
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let (disk, mut writer) = new_log(&mut random);
        disturb(&disk, seed, move || {
            for _ in 0..random.below(6) {
                writer.append(&RECORD).unwrap();
            }
            let (start, end) = (writer.log_start_offset(), writer.log_end_offset());
            match random.below(4) {
                0 => drop(writer.delete_before(start.midpoint(end)).unwrap()),
                1 => drop(writer.truncate_to((end - 1).max(0)).unwrap()),
                _ => {}
            }
        });
        for _ in 0..5 {
            let opened = Log::open_in(disk.directory("/data/orders-0"), LogOptions::default());
            match opened.and_then(|log| check(&log, seed)) {
                Ok(()) => read += 1,
                Err(error) => assert!(matches!(error, Error::LogChanged { .. }), "seed {seed}: {error}"),
            }
        }
    }
    assert!(read > RUNS, "only {read} logs were read");
}

#[test]
fn a_directory_that_changes_during_each_listing_is_a_changed_log() {
    let mut random = Random(1);
    let (disk, mut writer) = new_log(&mut random);
    writer.append(&RECORD).unwrap();
    let (shared, mut exists, mut is_returned) = (disk.clone(), false, false);
    let name = "00000000000000000000.log.cleaned";
    let meanwhile = Box::new(move || {
        exists = !exists;
        if exists { shared.put(name, b"") } else { shared.take(name) }
    });
    // present in one listing, and absent from the next
    let returns = Box::new(move |_: &str| {
        is_returned = !is_returned;
        is_returned
    });
    disk.set_listing_race(Some(ListingRace { meanwhile, returns }));
    let opened = Log::open_in(disk.directory("/data/orders-0"), LogOptions::default());
    assert!(matches!(opened, Err(Error::LogChanged { .. })), "{opened:?}");
    disk.set_listing_race(None);
    check(&Log::open_in(disk.directory("/data/orders-0"), LogOptions::default()).unwrap(), 1).unwrap();
}
