//! Files that make a search for the next whole batch as expensive as possible: the work stays proportional to
//! the file's size.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cordwood::log::OnDamage;
use cordwood::types::{Interrupt, Io};
use cordwood::{Error, Log, LogOptions};

use crate::support::batches::{BatchV2, crc32c};
use crate::support::partition::{file_name, offset_entry};
use crate::support::reading::{all, folder, options, write};
use crate::support::{cpu_time, is_exhaustive};

/// The header of a batch of `size` bytes with a wrong checksum.
fn false_header(offset: i64, size: usize) -> Vec<u8> {
    let mut bytes = BatchV2::empty(offset, 0, 1).build().bytes;
    bytes[8..12].copy_from_slice(&(size as i32 - 12).to_be_bytes());
    bytes[17..21].copy_from_slice(&0xdead_beef_u32.to_be_bytes());
    assert_eq!(bytes.len(), 61);
    bytes
}

/// False headers, each with a length up to the end of the file minus `short` bytes, alternating with valid
/// batches without records.
fn hostile(size: usize, short: usize) -> Vec<u8> {
    let units = size / 122;
    let mut bytes = Vec::with_capacity(units * 122);
    for n in 0..units {
        let left = units * 122 - bytes.len();
        bytes.extend(false_header(2 * n as i64, (left - short).max(61)));
        let empty = BatchV2::empty(2 * n as i64 + 1, 0, 1).build().bytes;
        assert_eq!(crc32c(&empty[21..]).to_be_bytes(), empty[17..21]);
        bytes.extend(empty);
    }
    bytes
}

/// The CPU time to open the log and to read it past all damage.
fn time_to_read(dir: &Path, io: Io) -> Duration {
    let start = cpu_time();
    let log = Log::open(dir, options(io)).unwrap();
    all(&log, OnDamage::Skip);
    cpu_time().saturating_sub(start)
}

#[test]
fn false_headers_that_claim_the_rest_of_the_file_do_not_make_a_search_quadratic() {
    for (number, short) in [0, 1, 122].into_iter().enumerate() {
        let parent = folder();
        for (megabytes, limit) in [(1, 3), (2, 5)] {
            let files = BTreeMap::from([(file_name(0, "log"), hostile(megabytes << 20, short))]);
            let dir = write(parent.path(), &format!("t-{megabytes}"), &files);
            let other = [Io::Mmap, Io::Pread].into_iter().cycle().skip(number + megabytes);
            for io in other.take(if is_exhaustive() { 2 } else { 1 }) {
                let took = time_to_read(&dir, io);
                assert!(
                    took < Duration::from_secs(limit),
                    "{megabytes} MiB, {short} short, {io:?}: {took:?}"
                );
            }
        }
    }
}

#[test]
fn false_headers_in_a_sealed_segment_do_not_make_a_search_quadratic() {
    let parent = folder();
    let bytes = hostile(2 << 20, 1);
    let end = (bytes.len() / 61) as i64;
    let last = BatchV2::empty(end, 0, 1).build().bytes;
    let files = BTreeMap::from([(file_name(0, "log"), bytes), (file_name(end, "log"), last)]);
    let dir = write(parent.path(), "t-0", &files);
    for io in [Io::Mmap, Io::Pread] {
        let took = time_to_read(&dir, io);
        assert!(took < Duration::from_secs(5), "{io:?}: {took:?}");
    }
}

/// Only its checksum shows whether a batch has more records than offsets.
#[test]
fn false_headers_with_more_records_than_offsets_do_not_make_a_search_quadratic() {
    let size = 10 << 20;
    let mut bytes = vec![0xff; 30];
    while bytes.len() + 200 < size {
        let mut header = false_header(5, size - bytes.len() - 100);
        header[57..61].copy_from_slice(&2_i32.to_be_bytes());
        bytes.extend(header);
    }
    bytes.resize(size, 0xff);
    let parent = folder();
    let dir = write(parent.path(), "t-0", &BTreeMap::from([(file_name(0, "log"), bytes)]));
    for io in [Io::Mmap, Io::Pread] {
        let took = time_to_read(&dir, io);
        assert!(took < Duration::from_secs(5), "{io:?}: {took:?}");
    }
}

#[test]
fn index_entries_that_all_point_to_one_large_false_batch_are_not_each_checked_in_full() {
    // 32 MiB with a wrong checksum, after thirty bytes that are not a batch
    let size = 32usize << 20;
    let mut log = vec![0xff; 30];
    log.extend(false_header(5, size - 30 - 200));
    log.resize(size, 0);
    let entries: Vec<u8> = (0..20_000).flat_map(|n| offset_entry(0, 5 + n, 30)).collect();
    let files = BTreeMap::from([(file_name(0, "log"), log), (file_name(0, "index"), entries)]);
    let parent = folder();
    let dir = write(parent.path(), "t-0", &files);
    for io in [Io::Mmap, Io::Pread] {
        let took = time_to_read(&dir, io);
        assert!(took < Duration::from_secs(5), "{io:?}: {took:?}");
    }
}

/// The number of interrupt checks; the fifth one stops the work.
static CHECKS: AtomicUsize = AtomicUsize::new(0);

fn stop_at_the_fifth_check() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    if CHECKS.fetch_add(1, Ordering::Relaxed) < 4 { Ok(()) } else { Err("stop".into()) }
}

#[test]
fn a_search_through_a_long_tail_of_zeros_can_be_interrupted() {
    let size = 128 << 20;
    for io in [Io::Mmap, Io::Pread] {
        let parent = folder();
        let first = BatchV2::empty(0, 0, 1).build().bytes;
        let dir = write(parent.path(), "t-0", &BTreeMap::from([(file_name(0, "log"), first)]));
        let mut log = std::fs::OpenOptions::new().append(true).open(dir.join(file_name(0, "log"))).unwrap();
        // written zeros: a hole is passed over at once
        log.write_all(&vec![0; size]).unwrap();
        CHECKS.store(0, Ordering::Relaxed);
        let interrupt = Interrupt(stop_at_the_fifth_check);
        let log = Log::open(&dir, LogOptions { io, interrupt, ..LogOptions::default() }).unwrap();
        let end = log.log_end_offset();
        let checks = CHECKS.load(Ordering::Relaxed);
        assert!(matches!(end, Err(Error::Interrupted(_))), "{io:?}: {checks} checks in {size} bytes");
    }
}
