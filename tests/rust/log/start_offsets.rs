//! Every one-bit flip of small logs, read from every offset, from every time, header by header and in splits.
//! The result is the records of the intact log, an error, or a log that ends with a warning before its last
//! batch. No batch is skipped because of an unverified header.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cordwood::log::{OnDamage, Ranges, ScanOptions};
use cordwood::{Error, Log};

use crate::support::batches::{BatchV2, Built, Codec, MessageSet, Rec};
use crate::support::naive::Record;
use crate::support::partition::{Indexing, PartitionBuilder, file_name};
use crate::support::reading::{IOS, Read, all, files, folder, options, scan, write};
use crate::support::step;

/// Some sizes differ by a power of two, so that a flipped bit of a length leads to the start of a batch.
fn value(n: i64) -> Vec<u8> {
    vec![n as u8; [7, 10, 39, 10, 3, 26][n as usize % 6]]
}

fn records(n: i64) -> impl Iterator<Item = Rec> {
    (0..=n % 3).map(move |i| Rec::at(1000 + (n * 37 + i * 11) % 90).value(value(n)))
}

/// Offsets without gaps, one batch compressed.
fn contiguous() -> Vec<Built> {
    let mut built: Vec<Built> = Vec::new();
    for n in 0..7 {
        let base = built.last().map_or(0, Built::next_offset);
        let codec = if n == 4 { Codec::Gzip } else { Codec::None };
        built.push(BatchV2::new(base).codec(codec).records(records(n)).build());
    }
    built
}

/// A compacted log: offsets are missing in and between batches, a batch ends after its last record, one is
/// empty.
fn compacted() -> Vec<Built> {
    let at = |timestamp: i64, delta| Rec::at(timestamp).value([delta as u8; 3]).delta(delta);
    vec![
        BatchV2::new(0).records([at(1010, 0), at(1001, 1)]).build(),
        BatchV2::new(4).records([at(1005, 0), at(1030, 3), at(1002, 5)]).last_offset_delta(7).build(),
        BatchV2::new(12).records([at(1020, 0), at(1008, 2)]).build(),
        BatchV2::empty(15, 2, 1040).build(),
        BatchV2::new(20).records([at(1003, 1)]).last_offset_delta(3).build(),
        BatchV2::new(24).records([at(1015, 0), at(1016, 1)]).build(),
    ]
}

/// Messages v1, including a wrapper.
fn old() -> Vec<Built> {
    let mut built: Vec<Built> = Vec::new();
    for n in 0..5 {
        let base = built.last().map_or(0, Built::next_offset);
        let codec = if n == 2 { Codec::Gzip } else { Codec::None };
        built.extend(MessageSet::v1(base).codec(codec).records(records(n)).build());
    }
    built
}

/// A way to read a log: the range, and the number of pieces.
#[derive(Debug, Clone, Copy)]
enum Way {
    Records(Ranges),
    Splits(Ranges, u64),
    /// The headers of the batches that may contain a record of the range.
    Headers(Ranges),
}

impl Way {
    fn all(end: i64) -> Vec<Self> {
        let from = |start| Ranges { start_offset: Some(start), ..Ranges::default() };
        let mut ways = vec![Self::Records(Ranges::default()), Self::Splits(Ranges::default(), 1)];
        for start in 0..end {
            ways.push(Self::Records(from(start)));
            ways.push(Self::Records(Ranges { end_offset: Some(start + 1), ..from(start) }));
            ways.push(Self::Headers(from(start)));
        }
        for (i, time) in (1000..1092).step_by(9).enumerate() {
            let start = i as i64 % end;
            ways.push(Self::Records(Ranges { start_time: Some(time), ..Ranges::default() }));
            ways.push(Self::Records(Ranges { start_time: Some(time), ..from(start) }));
        }
        ways.push(Self::Splits(from(end / 2), 200));
        ways.push(Self::Splits(Ranges { start_time: Some(1020), ..Ranges::default() }, 150));
        ways
    }

    fn read(self, log: &Log) -> Result<Vec<Record>, Error> {
        let of = |read: Read| match read.error {
            Some(error) => Err(error),
            None => Ok(read.records().cloned().collect()),
        };
        match self {
            Self::Records(ranges) => of(scan(log, ScanOptions { ranges, ..ScanOptions::default() })),
            Self::Splits(ranges, max_bytes) => {
                let whole = ScanOptions { ranges, ..ScanOptions::default() };
                let mut records = Vec::new();
                for split in log.plan(max_bytes, &whole)? {
                    records.extend(of(scan(log, ScanOptions { ranges: split.ranges(), ..whole }))?);
                }
                Ok(records)
            }
            Self::Headers(ranges) => {
                let headers = ScanOptions { ranges, batches_only: true, ..ScanOptions::default() };
                let read = scan(log, headers);
                match read.error {
                    Some(error) => Err(error),
                    // each batch as a record at its last offset
                    None => Ok(read
                        .batches
                        .iter()
                        .map(|batch| Record {
                            offset: batch.last_offset,
                            timestamp: batch.base_offset,
                            sequence: 0,
                            key: None,
                            value: None,
                            headers: Vec::new(),
                            control: None,
                        })
                        .collect()),
                }
            }
        }
    }
}

struct Case {
    name: &'static str,
    dir: PathBuf,
    /// Base offset, first byte and first byte after it, of the batches of the damaged segment.
    batches: Vec<(i64, usize, usize)>,
    segment: i64,
    is_last: bool,
    /// Flips of a stored offset that the format does not contradict: bits from the start of the file.
    unprotected: Vec<usize>,
    /// Flips of a stored offset that move a batch onto the batches after it, far from the end of the one
    /// before it: it is ambiguous which batch is damaged.
    ambiguous: Vec<usize>,
}

/// Bits of the stored offset of a batch (of a message v1, its last offset) that move it: those that leave it
/// between its neighbours, and those that move it onto the batches after it although there is a gap between.
fn moved(built: &[Built], segment: i64, next_segment: Option<i64>) -> [Vec<usize>; 2] {
    let (mut unprotected, mut ambiguous) = (Vec::new(), Vec::new());
    let mut position = 0;
    for (n, batch) in built.iter().enumerate() {
        let low = n.checked_sub(1).map_or(segment, |before| built[before].next_offset());
        let limit = next_segment.unwrap_or(i64::MAX);
        let high = built.get(n + 1).map_or(limit, |next| next.base_offset);
        let is_apart = batch.base_offset > low || batch.next_offset() < high;
        let stored = i64::from_be_bytes(batch.bytes[..8].try_into().unwrap());
        for bit in 0..64 {
            let by = (stored ^ (1i64 << (63 - bit))).wrapping_sub(stored);
            let (first, next) = (batch.base_offset.checked_add(by), batch.next_offset().checked_add(by));
            if first.is_none_or(|first| first < low) || next.is_none_or(|next| next > limit) {
                continue;
            }
            if next.is_some_and(|next| next <= high) {
                unprotected.push(position * 8 + bit);
            } else if is_apart {
                ambiguous.push(position * 8 + bit);
            }
        }
        position += batch.bytes.len();
    }
    [unprotected, ambiguous]
}

fn case(
    parent: &Path,
    name: &'static str,
    built: &[Built],
    split: Option<usize>,
    indexing: Indexing,
    damaged: usize,
) -> Case {
    let (first, second) = built.split_at(split.unwrap_or(built.len()));
    let mut builder = PartitionBuilder::new(indexing).segment(0, first.to_vec());
    if let Some(batch) = second.first() {
        builder = builder.segment(batch.base_offset, second.to_vec());
    }
    let dir = builder.write(parent, name);
    let of_segment = [first, second][damaged];
    let next = second.first().map(|batch| batch.base_offset).filter(|_| damaged == 0);
    let segment = if damaged == 0 { 0 } else { second[0].base_offset };
    let mut position = 0;
    let batches = of_segment
        .iter()
        .map(|batch| {
            position += batch.bytes.len();
            (batch.base_offset, position - batch.bytes.len(), position)
        })
        .collect();
    let [unprotected, ambiguous] = moved(of_segment, segment, next);
    Case { name, dir, batches, segment, is_last: next.is_none(), unprotected, ambiguous }
}

/// The position of the magic in a batch.
const MAGIC: usize = 16;

/// The errors in reading a log with one flipped bit; empty if there is none.
fn errors(case: &Case, dir: &Path, bit: usize, expected: &[(Way, Vec<Record>)], end: i64) -> Vec<String> {
    let log = match Log::open(dir, options(IOS[bit % 2])) {
        Ok(log) => log,
        Err(Error::Corrupt { .. }) => return Vec::new(),
        Err(error) => return vec![error.to_string()],
    };
    let mut errors = Vec::new();
    let now = log.log_end_offset().unwrap();
    let last = case.batches[case.batches.len() - 1];
    if now != end && !(case.is_last && bit / 8 >= last.1 && now <= last.0 && !log.warnings().is_empty()) {
        errors.push(format!("ends at {now}: {:?}", log.warnings()));
        return errors;
    }
    // every way with a sixth of the bits, other ones in each byte
    let is_chosen = |number: usize| (number + bit / 2).is_multiple_of(step(6));
    for (_, (way, whole)) in expected.iter().enumerate().filter(|(number, _)| is_chosen(*number)) {
        match way.read(&log) {
            Ok(records) if records.iter().eq(whole.iter().filter(|record| record.offset < now)) => {}
            Ok(records) => {
                let offsets =
                    |records: &[Record]| records.iter().map(|record| record.offset).collect::<Vec<_>>();
                errors.push(format!("{way:?}: {:?}, not {:?}", offsets(&records), offsets(whole)));
            }
            Err(Error::Corrupt { .. }) => {}
            Err(Error::OffsetOutOfRange { .. }) if now < end => {}
            // an intact batch of a later format, as far as anyone can tell: no batch of this one follows
            Err(Error::UnsupportedFormat { .. }) if case.is_last && bit / 8 == last.1 + MAGIC => {}
            Err(error) => errors.push(format!("{way:?}: {error}")),
        }
    }
    // from a start offset, a skipping scan returns only original records, and reports the missing ones
    let whole = &expected[0].1;
    for start in (0..now).filter(|start| is_chosen(*start as usize)) {
        let ranges = Ranges { start_offset: Some(start), ..Ranges::default() };
        let read = scan(&log, ScanOptions { ranges, on_damage: OnDamage::Skip, ..ScanOptions::default() });
        if let Some(error) = &read.error {
            errors.push(format!("skip from {start}: {error}"));
        }
        let returned: Vec<&Record> = read.records().collect();
        if let Some(record) = returned.iter().find(|record| !whole.contains(record)) {
            errors.push(format!("skip from {start} invents {}", record.offset));
        }
        let is_reported = |offset: i64| {
            read.gaps
                .iter()
                .any(|gap| gap.start_offset <= offset && gap.end_offset.is_none_or(|end| offset < end))
        };
        let missing =
            whole.iter().filter(|record| (start..now).contains(&record.offset) && !returned.contains(record));
        for record in missing.filter(|record| !is_reported(record.offset)) {
            errors.push(format!("skip from {start} does not report {}", record.offset));
        }
    }
    errors
}

/// Flips every bit of the `.log` of one segment, on two threads.
fn flip_every_bit(case: &Case) {
    let file = file_name(case.segment, "log");
    let log = Log::open(&case.dir, options(IOS[0])).unwrap();
    let end = log.log_end_offset().unwrap();
    let expected: Vec<(Way, Vec<Record>)> =
        Way::all(end).into_iter().map(|way| (way, way.read(&log).unwrap())).collect();
    assert!(all(&log, OnDamage::Raise).whole().records().eq(&expected[0].1));
    let files = files(&case.dir);
    let whole = &files[&file];
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let parent = folder();
                let dir = write(parent.path(), "t-0", &files);
                loop {
                    let bit = next.fetch_add(1, Ordering::Relaxed);
                    if bit >= whole.len() * 8 {
                        break;
                    }
                    let mut damaged = whole.clone();
                    damaged[bit / 8] ^= 0x80 >> (bit % 8);
                    std::fs::write(dir.join(&file), damaged).unwrap();
                    let errors = errors(case, &dir, bit, &expected, end);
                    if !errors.is_empty() {
                        found.lock().unwrap().push((bit, errors));
                    }
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_unstable();
    found.retain(|(bit, _)| !case.unprotected.contains(bit) && !case.ambiguous.contains(bit));
    let messages: Vec<_> = found
        .iter()
        .map(|(bit, errors)| {
            let batch =
                case.batches.iter().find(|(_, start, end)| (*start..*end).contains(&(bit / 8))).unwrap();
            format!("batch {} byte {} bit {}: {}", batch.0, bit / 8 - batch.1, bit % 8, errors.join("; "))
        })
        .collect();
    assert!(
        messages.is_empty(),
        "{}: {} flips: {:#?}",
        case.name,
        messages.len(),
        &messages[..messages.len().min(12)]
    );
}

fn indexed() -> Indexing {
    Indexing::every(100)
}

/// No index entries: every walk starts at the segment's start.
fn unindexed() -> Indexing {
    Indexing { has_time_index: false, ..Indexing::every(1 << 30) }
}

#[test]
fn no_flipped_bit_hides_a_record_from_a_scan_that_starts_later() {
    let parent = folder();
    let case = case(parent.path(), "t-0", &contiguous(), None, unindexed(), 0);
    let last = case.batches[case.batches.len() - 1].1;
    assert!(case.unprotected.iter().all(|bit| bit / 8 >= last), "only the last batch can move");
    assert_eq!((case.unprotected.len(), case.ambiguous.len()), (61, 0));
    flip_every_bit(&case);
}

#[test]
fn no_flipped_bit_hides_a_record_from_a_scan_that_uses_an_index() {
    let parent = folder();
    flip_every_bit(&case(parent.path(), "t-0", &contiguous(), None, indexed(), 0));
}

#[test]
fn no_flipped_bit_hides_a_record_in_a_compacted_log() {
    let parent = folder();
    flip_every_bit(&case(parent.path(), "t-0", &compacted(), None, unindexed(), 0));
    flip_every_bit(&case(parent.path(), "t-1", &compacted(), None, indexed(), 0));
}

#[test]
fn no_flipped_bit_of_a_sealed_segment_hides_a_record() {
    let parent = folder();
    flip_every_bit(&case(parent.path(), "t-0", &contiguous(), Some(4), indexed(), 0));
    flip_every_bit(&case(parent.path(), "t-1", &compacted(), Some(4), unindexed(), 0));
}

#[test]
fn no_flipped_bit_of_an_old_log_hides_a_record_from_a_scan_that_starts_later() {
    let parent = folder();
    flip_every_bit(&case(parent.path(), "t-0", &old(), None, unindexed(), 0));
}

#[test]
fn a_batch_moved_onto_another_that_fits_nowhere_else_counts_as_damaged() {
    // offsets 0 and 1 moved to 4 and to 8, 4 to 11 moved to 5 and to 6; neither 4 to 11 nor 12 to 14 fits
    // after those
    let built = compacted();
    let first = built[0].bytes.len();
    for (bit, base) in
        [(7 * 8 + 5, 0), (7 * 8 + 4, 0), (first * 8 + 7 * 8 + 7, 4), (first * 8 + 7 * 8 + 6, 4)]
    {
        let parent = folder();
        let case = case(parent.path(), "t-0", &built, None, unindexed(), 0);
        assert!(case.ambiguous.contains(&bit));
        let path = case.dir.join(file_name(0, "log"));
        let of_others: Vec<Record> = all(&Log::open(&case.dir, options(IOS[0])).unwrap(), OnDamage::Raise)
            .batches
            .into_iter()
            .filter(|batch| batch.base_offset != base)
            .flat_map(|batch| batch.records)
            .collect();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[bit / 8] ^= 0x80 >> (bit % 8);
        std::fs::write(&path, bytes).unwrap();
        for io in IOS {
            let log = Log::open(&case.dir, options(io)).unwrap();
            let read = all(&log, OnDamage::Skip).whole();
            assert!(read.records().eq(&of_others), "bit {bit}: {:?} {:?}", read.offsets(), read.gaps);
            // a range that ends at the moved batch does not end without an error
            let ranges = Ranges { end_offset: Some(base + 1), ..Ranges::default() };
            let read = scan(&log, ScanOptions { ranges, ..ScanOptions::default() });
            assert!(matches!(read.error, Some(Error::Corrupt { .. })), "bit {bit}: {:?}", read.offsets());
        }
    }
}
