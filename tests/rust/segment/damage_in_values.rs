//! Batches inside values, decompression bombs, and records with wrong lengths: a scan never returns anything
//! that is not a batch of the log.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use cordwood::Error;
use cordwood::log::{OnDamage, ScanOptions};
use cordwood::types::Io;
use proptest::prelude::*;

use crate::support::batches::{BatchV2, Built, Codec, MessageSet, Rec, crc32, crc32c, put_varlong};
use crate::support::naive::{self, Record};
use crate::support::partition::{Indexing, PartitionBuilder, file_name, segment_files};
use crate::support::reading::{IOS, all, both, folder, locate, open, scan, time};
use crate::support::{fixed_seed, is_exhaustive, step};

const NESTED: &[u8] = b"nested";

/// Batches v2 without their last byte, a zero: the byte after them, which ends the record around them,
/// completes them.
const CUT: u8 = 3;

fn plain(base: i64, value: &[u8]) -> Built {
    BatchV2::new(base).records([Rec::at(base).value(value), Rec::at(base + 1).value(value)]).build()
}

/// Consecutive whole batches whose offsets continue from `base`.
fn nested(base: i64, magic: u8, count: i64) -> Vec<u8> {
    let batch = |base| match magic {
        2 | CUT => vec![BatchV2::new(base).record(Rec::at(base).value(NESTED)).build()],
        0 => MessageSet::v0(base).record(Rec::at(base).value(NESTED)).build(),
        _ => MessageSet::v1(base).record(Rec::at(base).value(NESTED)).build(),
    };
    let mut bytes: Vec<u8> = (base..base + count).flat_map(batch).flat_map(|built| built.bytes).collect();
    if magic == CUT {
        assert_eq!(bytes.pop(), Some(0));
    }
    bytes
}

/// Batches around one whose value contains batches; and the index of that one.
fn with_nested(outer: u8, inner: u8, after: i64) -> (Vec<Built>, usize) {
    let mut built: Vec<Built> = (0..3).map(|n| plain(n * 2, b"before")).collect();
    let value = nested(6, inner, 4);
    let index = built.len();
    let record = Rec::at(6).value(value);
    built.push(if outer == 2 {
        BatchV2::new(6).record(record).last_offset_delta(3).build()
    } else {
        MessageSet::v1(6).record(record).build().remove(0)
    });
    let next = built[index].next_offset();
    built.extend((0..after).map(|n| plain(next + n * 2, b"behind")));
    (built, index)
}

fn write(
    parent: &Path,
    name: &str,
    built: &[Built],
    interval_bytes: usize,
    has_index: bool,
) -> std::path::PathBuf {
    let dir = parent.join(name);
    std::fs::create_dir(&dir).unwrap();
    let files = segment_files(0, built, Indexing::every(interval_bytes));
    std::fs::write(dir.join(file_name(0, "log")), files.log).unwrap();
    if has_index {
        std::fs::write(dir.join(file_name(0, "index")), files.index).unwrap();
        std::fs::write(dir.join(file_name(0, "timeindex")), files.time_index).unwrap();
    }
    dir
}

fn position(built: &[Built], n: usize) -> usize {
    built[..n].iter().map(|batch| batch.bytes.len()).sum()
}

#[test]
fn a_batch_in_a_value_is_never_returned_whatever_is_damaged_around_it() {
    let (mut flips, mut logs) = (0, 0);
    for (outer, inner) in [(2, 2), (2, 1), (2, 0), (2, CUT), (1, 1), (1, 2)] {
        for after in [0, 1, 4] {
            let (built, index) = with_nested(outer, inner, after);
            let (start, size) = (position(&built, index), built[index].bytes.len());
            for (interval_bytes, has_index) in [(0, true), (300, true), (0, false)] {
                let parent = folder();
                let dir = write(parent.path(), "t-0", &built, interval_bytes, has_index);
                let path = dir.join(file_name(0, "log"));
                let whole = std::fs::read(&path).unwrap();
                let source: Vec<Record> = naive::read(&dir).unwrap().records().cloned().collect();
                // every bit of the header, one bit of each byte after it, and the length of the record: each
                // with one of the three indexes
                let header_bits = 72 * 8;
                let bits = (0..header_bits).chain((72..size).map(|byte| byte * 8 + byte % 8));
                logs += 1;
                for bit in bits.skip(logs % step(3)).step_by(step(3)) {
                    let mut damaged = whole.clone();
                    damaged[start + bit / 8] ^= 0x80 >> (bit % 8);
                    std::fs::write(&path, &damaged).unwrap();
                    let log = open(&dir, IOS[bit % 2]);
                    let read = all(&log, OnDamage::Skip).whole();
                    let of_batch = built[index].base_offset..=built[index].last_offset;
                    let context =
                        || format!("magic {outer} around {inner}, {after} after, bit {bit}, {:?}", read.gaps);
                    for record in read.records() {
                        let known = source.iter().find(|known| known.value == record.value);
                        assert!(known.is_some() && record.value.as_deref() != Some(NESTED), "{}", context());
                    }
                    // and no other batch is lost
                    let others: Vec<_> =
                        source.iter().filter(|record| !of_batch.contains(&record.offset)).collect();
                    let ours: Vec<_> =
                        read.records().filter(|r| r.value.as_ref().is_some_and(|v| v.len() == 6)).collect();
                    assert_eq!(ours, others, "{}", context());
                    flips += 1;
                }
            }
        }
    }
    assert_eq!(flips, if is_exhaustive() { 42_363 } else { 14_121 });
}

#[test]
fn two_damaged_batches_in_one_index_interval_lose_only_two_batches() {
    let built: Vec<Built> = (0..12).map(|n| plain(n * 2, b"value")).collect();
    let parent = folder();
    let mut tried = 0;
    for (interval_bytes, has_index) in [(400, true), (10_000, true), (0, true), (0, false)] {
        let dir = write(parent.path(), &format!("t-{tried}"), &built, interval_bytes, has_index);
        let path = dir.join(file_name(0, "log"));
        let whole = std::fs::read(&path).unwrap();
        let source = naive::read(&dir).unwrap();
        for (first, second) in (0..12).flat_map(|first| (first + 1..11).map(move |second| (first, second))) {
            // base offset, length, magic, CRC, payload
            for (a, b) in [(3, 10), (10, 10), (16, 18), (70, 9), (70, 71), (11, 16)] {
                let mut damaged = whole.clone();
                damaged[position(&built, first) + a] ^= 0x40;
                damaged[position(&built, second) + b] ^= 0x40;
                std::fs::write(&path, &damaged).unwrap();
                for log in both(&dir) {
                    let read = all(&log, OnDamage::Skip).whole();
                    let hit = [built[first].base_offset, built[second].base_offset];
                    let is_left = |batch: &&naive::Batch| !hit.contains(&batch.base_offset);
                    let expected: Vec<_> =
                        source.batches.iter().filter(is_left).flat_map(|batch| &batch.records).collect();
                    let ours: Vec<_> = read.records().collect();
                    assert_eq!(
                        ours, expected,
                        "{first}+{a} {second}+{b} {interval_bytes} {has_index} {:#?}",
                        read.gaps
                    );
                    assert!((1..=2).contains(&read.gaps.len()));
                    tried += 1;
                }
            }
        }
    }
    assert_eq!(tried, 2640);
}

proptest! {
    #![proptest_config(fixed_seed(150))]

    /// Random bytes overwritten anywhere: every record returned was in the log, in order, with and without an
    /// index.
    #[test]
    fn after_any_overwrite_only_original_records_are_returned(
        sizes in proptest::collection::vec((0usize..120, 0usize..3, 1usize..4), 4..20),
        overwrites in proptest::collection::vec((any::<proptest::sample::Index>(), 1usize..60, any::<u8>()), 1..4),
        interval_bytes in 0usize..600,
        has_index in any::<bool>(),
    ) {
        let mut built: Vec<Built> = Vec::new();
        for (size, codec, count) in sizes {
            let base = built.last().map_or(0, Built::next_offset);
            let codec = [Codec::None, Codec::Gzip, Codec::Zstd][codec];
            let records = (0..count).map(|n| Rec::at(base + n as i64).key([size as u8]).value(vec![n as u8; size]));
            built.push(BatchV2::new(base).codec(codec).records(records).build());
        }
        let parent = folder();
        let dir = write(parent.path(), "t-0", &built, interval_bytes, has_index);
        let source: BTreeMap<i64, Record> =
            naive::read(&dir).unwrap().records().map(|record| (record.offset, record.clone())).collect();
        let path = dir.join(file_name(0, "log"));
        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - built.last().map_or(0, |batch| batch.bytes.len());
        for (start, length, mask) in overwrites {
            let at = start.index(bytes.len());
            let end = (at + length).min(bytes.len());
            // nothing protects the base offset of a log's last batch
            prop_assume!(at >= last + 8 || end <= last);
            for byte in &mut bytes[at..end] {
                *byte = byte.wrapping_add(mask | 1);
            }
        }
        std::fs::write(&path, &bytes).unwrap();
        let mut returned = Vec::new();
        for log in both(&dir) {
            let read = all(&log, OnDamage::Skip).whole();
            let mut previous = -1;
            for record in read.records() {
                prop_assert!(record.offset > previous);
                previous = record.offset;
                prop_assert_eq!(Some(record), source.get(&record.offset));
            }
            returned.push(read.offsets());
            for offset in 0..log.log_end_offset().unwrap() {
                if let Ok(Some((_, base, ..))) = locate(&log, offset) {
                    prop_assert!(base <= offset && built.iter().any(|b| b.base_offset == base && b.last_offset >= offset), "{} {}", offset, base);
                }
                if let Ok(Some((timestamp, offset))) = time(&log, offset) {
                    prop_assert_eq!(source[&offset].timestamp, timestamp);
                }
            }
        }
        prop_assert_eq!(&returned[0], &returned[1]);
    }
}

/// A batch v2 with these bytes after its header, with a matching CRC.
fn raw(base: i64, last_delta: i32, count: i32, codec: u8, payload: &[u8]) -> Built {
    let records = (0..=last_delta).map(|_| Rec::at(5));
    let mut built = BatchV2::new(base).records(records).build();
    built.bytes.truncate(61);
    built.bytes[22] = codec;
    built.bytes[57..61].copy_from_slice(&count.to_be_bytes());
    built.bytes.extend(payload);
    let length = built.bytes.len() as i32 - 12;
    built.bytes[8..12].copy_from_slice(&length.to_be_bytes());
    let crc = crc32c(&built.bytes[21..]);
    built.bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    built
}

/// A message v1 with a compressed value of these bytes.
fn raw_wrapper(offset: i64, codec: u8, value: &[u8]) -> Built {
    let mut built = MessageSet::v1(offset).record(Rec::at(5).value(value)).build().remove(0);
    built.bytes[17] |= codec;
    let crc = crc32(&built.bytes[16..]);
    built.bytes[12..16].copy_from_slice(&crc.to_be_bytes());
    built
}

/// Expects, for `between` between two plain batches, an error with its position, and a gap between the
/// others.
fn assert_refused(between: &Built, name: &str) {
    let before = plain(0, b"before");
    let after = plain(between.next_offset(), b"behind");
    let position = before.bytes.len() as u64;
    let built = [before, between.clone(), after];
    let parent = folder();
    let dir = write(parent.path(), "t-0", &built, 0, true);
    for log in both(&dir) {
        match all(&log, OnDamage::Raise).error {
            Some(error @ (Error::Corrupt { .. } | Error::UnsupportedFormat { .. })) => {
                assert_eq!(error.position(), Some(position), "{name}: {error}");
            }
            other => panic!("{name}: {other:?}"),
        }
        let read = all(&log, OnDamage::Skip).whole();
        let next = between.next_offset();
        let is_around = |offset: &i64| *offset < 2 || *offset >= next;
        assert_eq!(
            read.offsets().into_iter().filter(is_around).collect::<Vec<_>>(),
            [0, 1, next, next + 1],
            "{name}"
        );
        let [gap] = &read.gaps[..] else { panic!("{name}: {:?}", read.gaps) };
        assert_eq!((gap.start_position, gap.end_offset), (position, Some(next)), "{name}");
        assert!(gap.end_position == position + between.bytes.len() as u64, "{name}: {gap:?}");
        // the time of the batch between is 5, those of its neighbours are their offsets; a record before the
        // damage counts
        if let Ok(found) = log.offset_for_time(4) {
            let returned = read.records().find(|record| record.timestamp == 5).map(|record| record.offset);
            assert_eq!(found.map(|found| found.offset), returned, "{name}");
            assert!(returned.is_some(), "{name}");
        }
        // the result is before the damage; an error is allowed, because the search may depend on the damaged
        // batch
        if let Ok(found) = log.offset_for_time(1) {
            assert_eq!(found.unwrap().offset, 1, "{name}");
        }
    }
}

fn write_zeros(mut encoder: impl Write, bytes: usize) {
    let zeros = vec![0; 1 << 20];
    for _ in 0..bytes >> 20 {
        encoder.write_all(&zeros).unwrap();
    }
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// Expects that a batch above the limit is an error, which is no damage: it is not left out either.
fn assert_too_large(io: Io, between: &Built, name: &str) {
    let before = plain(0, b"before");
    let position = before.bytes.len() as u64;
    let built = [before, between.clone(), plain(between.next_offset(), b"behind")];
    let parent = folder();
    let log = open(&write(parent.path(), "t-0", &built, 0, true), io);
    for on_damage in [OnDamage::Raise, OnDamage::Skip] {
        let read = all(&log, on_damage);
        assert_eq!((read.offsets(), read.gaps.len()), (vec![0, 1], 0), "{name}");
        match read.error {
            Some(error @ Error::BatchTooLarge { .. }) => {
                assert_eq!(error.position(), Some(position), "{name}: {error}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn a_decompression_bomb_is_refused_within_bounded_memory() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    write_zeros(&mut gzip, 160 << 20);
    let gzip = gzip.finish().unwrap();
    let mut zstd = zstd::Encoder::new(Vec::new(), 1).unwrap();
    write_zeros(&mut zstd, 1 << 30);
    let zstd = zstd.finish().unwrap();
    // blocks that declare their size: just below four gigabytes
    let snappy = [&[0xff, 0xff, 0xff, 0xff, 0x0f][..], &[0; 40]].concat();
    let xerial =
        [&[0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 45][..], &snappy]
            .concat();
    // decompression takes long, and does not depend on how a file is read
    let payloads = [("gzip", 1, &gzip), ("zstd", 4, &zstd), ("snappy", 2, &snappy), ("xerial", 2, &xerial)];
    for (io, (name, codec, payload)) in IOS.iter().cycle().zip(payloads) {
        assert_too_large(*io, &raw(2, 0, 1, codec, payload), name);
    }
    for (io, name, codec, value) in
        [(Io::Pread, "wrapper of gzip", 1, &gzip), (Io::Mmap, "wrapper of snappy", 2, &snappy)]
    {
        assert_too_large(io, &raw_wrapper(2, codec, value), name);
    }
    let peak = resident_bytes();
    assert!(peak < 900 << 20, "{peak} bytes resident");
}

/// A record of these fields, with a correct length.
fn record(fields: &[&[u8]]) -> Vec<u8> {
    let body = fields.concat();
    let mut out = Vec::new();
    put_varlong(&mut out, body.len() as i64);
    out.extend(body);
    out
}

fn varint(n: i64) -> Vec<u8> {
    let mut out = Vec::new();
    put_varlong(&mut out, n);
    out
}

#[test]
fn records_with_wrong_lengths_or_counts_are_refused() {
    let huge = varint(i64::from(i32::MAX));
    let good = record(&[&[0, 0, 0, 1, 1, 0]]);
    let endless = [0xff; 11];
    let cases: Vec<(&str, i32, i32, Vec<u8>)> = vec![
        ("a record's length beyond the batch", 0, 1, [&huge[..], &[0; 9]].concat()),
        ("a record's length below zero", 0, 1, [&varint(-2)[..], &[0; 9]].concat()),
        ("a record of no bytes", 0, 1, vec![0]),
        ("a varint that does not end", 0, 1, endless.to_vec()),
        ("a varlong that does not end", 0, 1, record(&[&[0], &endless, &[0, 1, 1, 0]])),
        ("a key beyond the record", 0, 1, record(&[&[0, 0, 0], &huge, &[1, 0]])),
        ("a value beyond the record", 0, 1, record(&[&[0, 0, 0, 1], &huge, &[0]])),
        ("a negative number of headers", 0, 1, record(&[&[0, 0, 0, 1, 1], &varint(-1)])),
        ("more headers than bytes", 0, 1, record(&[&[0, 0, 0, 1, 1], &huge])),
        ("a header with a null key", 0, 1, record(&[&[0, 0, 0, 1, 1, 2, 1, 1]])),
        ("a header's value beyond the record", 0, 1, record(&[&[0, 0, 0, 1, 1, 2, 0], &huge])),
        ("bytes after the headers", 0, 1, record(&[&[0, 0, 0, 1, 1, 0, 9]])),
        ("bytes after the last record", 0, 1, [&good[..], &[7]].concat()),
        ("fewer records than counted", 1, 2, good.clone()),
        ("more records than counted", 1, 1, [&good[..], &record(&[&[0, 0, 2, 1, 1, 0]])].concat()),
    ];
    for (name, last_delta, count, payload) in cases {
        assert_refused(&raw(2, last_delta, count, 0, &payload), name);
        assert_refused(&raw(2, last_delta, count, 4, &zstd::encode_all(&payload[..], 1).unwrap()), name);
    }
    for count in [-1, i32::MIN, 3] {
        assert_refused(&raw(2, 0, count, 0, &good), "a count that the records do not have");
    }
}

/// Of each batch with a right checksum, the records that a consumer of Kafka 4.3.1 returns: those above the
/// one before them.
#[test]
fn records_out_of_place_in_a_batch_with_a_right_checksum_are_read_as_a_consumer_reads_them() {
    let at = |delta: u8| record(&[&[0, 0, 2 * delta, 1, 1, 0]]);
    let below = || record(&[&[0, 0, 1, 1, 1, 0]]);
    let cases = [
        (
            "three records, and one offset, as an old client wrote them",
            0,
            3,
            [at(0), at(1), at(2)].concat(),
            &[2, 3, 4][..],
        ),
        ("an offset beyond the batch", 0, 1, at(1), &[3]),
        ("an offset below the batch", 1, 2, [below(), at(0)].concat(), &[2]),
        ("the same offset twice", 1, 2, [at(0), at(0)].concat(), &[2]),
        ("descending", 1, 2, [at(1), at(0)].concat(), &[3]),
        ("wide", 1, 2, [at(0), at(9)].concat(), &[2, 11]),
    ];
    for (name, last_delta, count, payload, expected) in cases {
        for (codec, payload) in [(0, payload.clone()), (4, zstd::encode_all(&payload[..], 1).unwrap())] {
            let between = raw(2, last_delta, count, codec, &payload);
            // with an offset left free, so that the offset of the batch behind is not that of a record
            let built = [plain(0, b"before"), between, plain(20, b"behind")];
            let parent = folder();
            let dir = write(parent.path(), "t-0", &built, 0, true);
            for log in both(&dir) {
                let read = all(&log, OnDamage::Raise).whole();
                assert_eq!(
                    read.offsets(),
                    [&[0, 1][..], expected, &[20, 21]].concat(),
                    "{name}, codec {codec}"
                );
                assert!(read.gaps.is_empty(), "{name}");
            }
            let parent = folder();
            let dir = write(parent.path(), "t-0", &built[..2], 0, true);
            for log in both(&dir) {
                assert_eq!(log.log_end_offset().unwrap(), 3 + i64::from(last_delta), "{name}");
                assert_eq!(
                    all(&log, OnDamage::Raise).whole().offsets(),
                    [&[0, 1][..], expected].concat(),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn an_unknown_codec_is_an_error_with_every_setting_of_on_damage() {
    let unknown = raw(2, 0, 1, 5, &[]);
    let built = [plain(0, b"before"), unknown.clone(), plain(unknown.next_offset(), b"behind")];
    let parent = folder();
    let dir = write(parent.path(), "t-0", &built, 0, true);
    for log in both(&dir) {
        for on_damage in [OnDamage::Raise, OnDamage::Skip, OnDamage::Report] {
            let error = all(&log, on_damage).error;
            assert!(matches!(error, Some(Error::UnsupportedFormat { .. })), "{on_damage:?}: {error:?}");
        }
    }
}

#[test]
fn a_batch_without_records_is_a_batch() {
    let built = [plain(0, b"before"), BatchV2::empty(2, 4, 9).build(), plain(7, b"behind")];
    let parent = folder();
    let dir =
        PartitionBuilder::new(Indexing::default()).segment(0, built.to_vec()).write(parent.path(), "t-0");
    for log in both(&dir) {
        assert_eq!(all(&log, OnDamage::Raise).whole().offsets(), [0, 1, 7, 8]);
        let headers = scan(&log, ScanOptions { batches_only: true, ..ScanOptions::default() }).whole();
        assert_eq!(headers.batches.iter().map(|batch| batch.count.unwrap()).collect::<Vec<_>>(), [2, 0, 2]);
        for offset in 2..7 {
            assert_eq!(locate(&log, offset).unwrap().unwrap().1, 2);
        }
        // its largest timestamp is that of removed records
        assert_eq!(time(&log, 9).unwrap(), None);
        assert_eq!(time(&log, 8).unwrap(), Some((8, 8)));
        assert_eq!(log.warnings(), [""; 0]);
    }
}
