//! Look-ups of batches that are larger than the index interval, each the first one in its batch: the entries
//! around the offset name the batch, and it is read at once. Damage to the log or to the index gives the same
//! location or an error.

use std::fs;
use std::path::Path;

use cordwood::config::LogConfig;
use cordwood::log::{Ranges, ScanOptions};
use cordwood::record::NewRecord;
use cordwood::types::Io;
use cordwood::writer::{FlushMode, LogWriter, WriterOptions};

use crate::support::batches::{BatchV2, Built, Rec};
use crate::support::naive;
use crate::support::partition::{Indexing, PartitionBuilder, file_name};
use crate::support::reading::{folder, locate, located, open, scan};
use crate::support::step;

/// As [`located`] returns it.
type Location = Option<(i64, i64, u64, u64)>;

/// Batches of three records and 5 to 12 KiB, with a gap of two offsets before the fifth.
fn batches() -> Vec<Built> {
    let batch = |n: i64| {
        let base = 3 * n + if n < 4 { 0 } else { 2 };
        let size = 1_700 + (n as usize * 7919) % 2_300;
        let records = (0..3).map(|i| Rec::at(1_000 + base + i).value(vec![(n * 3 + i) as u8; size]));
        BatchV2::new(base).leader_epoch((n / 3) as i32).records(records).build()
    };
    (0..9).map(batch).collect()
}

fn write(parent: &Path, batches: Vec<Built>) -> std::path::PathBuf {
    PartitionBuilder::new(Indexing::every(4096)).segment(0, batches).write(parent, "t-0")
}

/// The offsets of the middle records, and of one in the gap, in an order that jumps; and where they are.
/// There are too few of them for a table.
fn expected(dir: &Path) -> Vec<(i64, Location)> {
    let log = naive::read(dir).unwrap();
    let mut offsets: Vec<i64> = log.batches.iter().map(|batch| batch.base_offset + 1).collect();
    offsets.truncate(6);
    offsets.swap(0, 4);
    offsets.push(12);
    let batch_of = |offset: i64| log.batches.iter().find(|batch| batch.last_offset >= offset);
    offsets.into_iter().map(|offset| (offset, located(batch_of(offset)))).collect()
}

/// Calls `check` with each file that has one flipped bit.
fn flip_each(path: &Path, bits: impl Iterator<Item = usize>, mut check: impl FnMut(usize)) {
    let intact = fs::read(path).unwrap();
    for bit in bits {
        let mut bytes = intact.clone();
        bytes[bit / 8] ^= 128 >> (bit % 8);
        fs::write(path, bytes).unwrap();
        check(bit);
    }
    fs::write(path, intact).unwrap();
}

#[test]
fn a_flipped_bit_of_the_index_changes_no_location() {
    let parent = folder();
    let dir = write(parent.path(), batches());
    let expected = expected(&dir);
    let index = dir.join(file_name(0, "index"));
    let bits = 8 * fs::metadata(&index).unwrap().len() as usize;
    flip_each(&index, 0..bits, |bit| {
        let log = open(&dir, Io::Pread);
        for (offset, location) in &expected {
            assert_eq!(locate(&log, *offset).unwrap(), *location, "bit {bit}: {offset}");
        }
    });
}

#[test]
fn entries_that_are_exchanged_shifted_or_garbage_change_no_location() {
    let parent = folder();
    let dir = write(parent.path(), batches());
    let expected = expected(&dir);
    let index = dir.join(file_name(0, "index"));
    let intact = fs::read(&index).unwrap();
    let entries = intact.as_chunks::<8>().0;
    let mut damaged: Vec<Vec<u8>> = Vec::new();
    for first in 0..entries.len() {
        for second in 0..entries.len() {
            let mut exchanged = entries.to_vec();
            exchanged.swap(first, second);
            damaged.push(exchanged.concat());
            let mut repeated = entries.to_vec();
            repeated[first] = entries[second];
            damaged.push(repeated.concat());
            // the offset of one entry with the position of another
            let mut mixed = entries.to_vec();
            mixed[first][4..].copy_from_slice(&entries[second][4..]);
            damaged.push(mixed.concat());
        }
        damaged.push([&entries[..first], &entries[first + 1..]].concat().concat());
    }
    for (number, bytes) in damaged.iter().enumerate() {
        fs::write(&index, bytes).unwrap();
        let log = open(&dir, Io::Pread);
        for (offset, location) in &expected {
            assert_eq!(locate(&log, *offset).unwrap(), *location, "{number}: {offset}");
        }
    }
}

#[test]
fn a_flipped_bit_of_the_log_gives_the_same_location_or_an_error() {
    let parent = folder();
    let built = batches();
    let mut starts = vec![0];
    for batch in &built {
        starts.push(starts[starts.len() - 1] + 8 * batch.bytes.len());
    }
    let dir = write(parent.path(), built);
    let expected = expected(&dir);
    let (mut same, mut errors) = (0, 0);
    // all bits of the headers but those of the last batch, whose base offset nothing confirms, and some of
    // the records
    let headers = starts[..8].iter().flat_map(|start| *start..start + 8 * 61);
    let records = (8 * 61..starts[8]).step_by(4099);
    let bits = headers.chain(records).step_by(step(3));
    flip_each(&dir.join(file_name(0, "log")), bits, |bit| {
        let log = open(&dir, Io::Pread);
        for (offset, location) in &expected {
            match locate(&log, *offset) {
                Ok(found) => {
                    assert_eq!(found, *location, "bit {bit}: {offset}");
                    same += 1;
                }
                Err(error) => {
                    assert_eq!(error.code(), "corrupt", "bit {bit}: {offset}");
                    errors += 1;
                }
            }
        }
    });
    assert!(same > 1_000 && errors > 300, "{same} {errors}");
}

/// Batches of one record and 8,192 bytes, so that a flipped bit of a length leads to the start of another
/// one.
fn equal_batches() -> Vec<Built> {
    let batch = |offset: i64, size| {
        BatchV2::new(offset).record(Rec::at(1_000 + offset).value(vec![b'v'; size])).build()
    };
    let overhead = batch(0, 8_000).bytes.len() - 8_000;
    let built: Vec<Built> = (0..12).map(|offset| batch(offset, 8_192 - overhead)).collect();
    assert!(built.iter().all(|batch| batch.bytes.len() == 8_192));
    built
}

#[test]
fn a_flipped_bit_of_a_length_gives_the_same_record_for_a_time_or_an_error() {
    let parent = folder();
    let dir = write(parent.path(), equal_batches());
    let (mut same, mut errors) = (0, 0);
    // of the last batch, a wrong length makes a torn write
    let lengths = (0..11).flat_map(|batch| 8 * (8_192 * batch + 8)..8 * (8_192 * batch + 12));
    flip_each(&dir.join(file_name(0, "log")), lengths, |bit| {
        for offset in (1..11).rev() {
            let log = open(&dir, Io::Pread);
            match log.offset_for_time(1_000 + offset) {
                Ok(found) => {
                    let found = found.map(|found| (found.timestamp, found.offset));
                    assert_eq!(found, Some((1_000 + offset, offset)), "bit {bit}");
                    same += 1;
                }
                Err(_) => errors += 1,
            }
            let ranges = Ranges { start_time: Some(1_000 + offset), ..Ranges::default() };
            let read = scan(&log, ScanOptions { ranges, ..ScanOptions::default() });
            assert!(read.error.is_some() || read.offsets() == (offset..12).collect::<Vec<_>>(), "bit {bit}");
        }
    });
    assert!(same > 1_000 && errors > 300, "{same} {errors}");
}

#[test]
fn a_reader_that_was_opened_before_a_truncation_detects_it_in_a_large_batch() {
    let parent = folder();
    let dir = write(parent.path(), batches());
    let readers = [open(&dir, Io::Pread), open(&dir, Io::Auto)];
    for reader in &readers {
        locate(reader, 1).unwrap();
    }
    let config = LogConfig { index_interval_bytes: 4096, ..LogConfig::default() };
    let options =
        WriterOptions { config, flush: FlushMode::None, clock: || 1_000_000, ..WriterOptions::default() };
    let mut writer = LogWriter::open(&dir, &options).unwrap();
    for reader in &readers {
        locate(reader, 4).unwrap();
    }
    writer.truncate_to(3).unwrap();
    for _ in 0..20 {
        let value = vec![b'y'; 6_000];
        writer.append(&NewRecord { value: Some(&value), ..NewRecord::default() }).unwrap();
    }
    for reader in &readers {
        assert_eq!(reader.locate(7).unwrap_err().code(), "log_changed");
        assert_eq!(reader.offset_for_time(1_007).unwrap_err().code(), "log_changed");
    }
}
