//! Batches above `max_batch_bytes`, as stored or decompressed: a limit, which is no damage and hides no
//! record silently.

use std::path::Path;

use cordwood::log::{OnDamage, ScanOptions};
use cordwood::record::MAX_BATCH_BYTES;
use cordwood::types::{Io, IsolationLevel};
use cordwood::writer::{FlushMode, LogWriter, WriterOptions};
use cordwood::{Error, Log, LogOptions};

use crate::support::batches::{BatchV2, Built, Codec, MessageSet, Rec};

use crate::support::partition::{Indexing, PartitionBuilder, file_name};
use crate::support::reading::{IOS, Read, all, folder, scan};

const CODECS: [Codec; 5] = [Codec::None, Codec::Gzip, Codec::SnappyXerial, Codec::Lz4, Codec::Zstd];
const ALL_MODES: [OnDamage; 3] = [OnDamage::Raise, OnDamage::Skip, OnDamage::Report];

fn open(dir: &Path, io: Io, max_batch_bytes: usize) -> Log {
    Log::open(dir, LogOptions { io, max_batch_bytes, ..LogOptions::default() }).unwrap()
}

fn record(offset: i64, size: usize) -> Rec {
    Rec::at(1000 + offset).value(vec![b'x'; size])
}

fn batch(magic: u8, codec: Codec, offset: i64, sizes: &[usize]) -> Built {
    let records = sizes.iter().enumerate().map(|(n, size)| record(offset + n as i64, *size));
    match magic {
        2 => BatchV2::new(offset).codec(codec).records(records).build(),
        0 => MessageSet::v0(offset).codec(codec).records(records).build().remove(0),
        _ => MessageSet::v1(offset).codec(codec).records(records).build().remove(0),
    }
}

/// Offsets 0 and 1 in a small batch, 2 to 4 in a large one, and 5 in a small one.
fn three(magic: u8, codec: Codec, large: usize) -> [Built; 3] {
    let small = |offset, sizes: &[usize]| match magic {
        2 => batch(2, Codec::None, offset, sizes),
        _ => batch(magic, Codec::Gzip, offset, sizes),
    };
    let middle = if magic < 2 && codec == Codec::None { vec![large] } else { vec![10, large, 10] };
    let middle = batch(magic, codec, 2, &middle);
    let next = middle.next_offset();
    [small(0, &[10, 10]), middle, small(next, &[10])]
}

fn ensure_too_large(read: &Read, batch: &Built, position: usize, what: &str) {
    let error = read.error.as_ref().unwrap_or_else(|| panic!("{what}: {:?}", read.offsets()));
    assert!(matches!(error, Error::BatchTooLarge { .. }), "{what}: {error}");
    assert_eq!((error.code(), error.position()), ("batch_too_large", Some(position as u64)), "{what}");
    assert_eq!(error.offset(), Some(batch.base_offset), "{what}");
    assert!(error.to_string().contains(&format!("to {}", batch.last_offset)), "{what}: {error}");
    assert!(error.to_string().contains("max_batch_bytes"), "{what}: {error}");
    assert!(read.gaps.is_empty(), "{what}");
}

#[test]
fn a_batch_above_the_limit_ends_every_scan_of_it_and_no_other() {
    let folder = folder();
    for magic in [0, 1, 2] {
        for codec in CODECS.into_iter().filter(|codec| magic == 2 || *codec != Codec::Zstd) {
            let built = three(magic, codec, 20_000);
            let [first, middle, _] = &built;
            let name = format!("m{magic}-{codec:?}-0");
            let dir = PartitionBuilder::new(Indexing::every(1))
                .segment(0, built.clone())
                .write(folder.path(), &name);
            let end = built[2].next_offset();
            for io in IOS {
                let what = format!("{name} {io:?}");
                let expected = all(&open(&dir, io, MAX_BATCH_BYTES), OnDamage::Raise).whole();
                assert_eq!(expected.offsets(), (0..end).collect::<Vec<_>>(), "{what}");
                assert_eq!(all(&open(&dir, io, 21_000), OnDamage::Raise).whole().batches, expected.batches);
                let log = open(&dir, io, 10_000);
                if magic == 2 {
                    assert_eq!(log.log_end_offset().unwrap(), end, "{what}");
                }
                for on_damage in ALL_MODES {
                    let read = all(&log, on_damage);
                    if magic == 2 || codec == Codec::None {
                        ensure_too_large(&read, middle, first.bytes.len(), &what);
                        assert_eq!(read.offsets(), [0, 1], "{what}");
                    } else {
                        // the base offset is in the records, and the end of the log is not known without it
                        let error = read.error.unwrap();
                        assert!(matches!(error, Error::BatchTooLarge { .. }), "{what}: {error}");
                        assert_eq!(error.position(), Some(first.bytes.len() as u64), "{what}");
                    }
                }
                if magic == 2 {
                    for (start, end) in [(0, 2), (5, 6)] {
                        let ranges = cordwood::log::Ranges {
                            start_offset: Some(start),
                            end_offset: Some(end),
                            ..Default::default()
                        };
                        let read = scan(&log, ScanOptions { ranges, ..ScanOptions::default() }).whole();
                        assert_eq!(read.offsets(), (start..end).collect::<Vec<_>>(), "{what}");
                    }
                    assert_eq!(log.locate(3).unwrap().unwrap().position, first.bytes.len() as u64, "{what}");
                    let found = log.offset_for_time(1003).unwrap_err();
                    assert_eq!(found.code(), "batch_too_large", "{what}");
                    assert_eq!(log.offset_for_time(1005).unwrap().unwrap().offset, 5, "{what}");
                    let committed = ScanOptions {
                        isolation_level: IsolationLevel::ReadCommitted,
                        ..ScanOptions::default()
                    };
                    ensure_too_large(&scan(&log, committed), middle, first.bytes.len(), &what);
                }
            }
        }
    }
}

#[test]
fn the_limit_is_the_exact_number_of_bytes() {
    let folder = folder();
    for codec in CODECS {
        let value = 70_000;
        let built = batch(2, codec, 0, &[value]);
        let records = batch(2, Codec::None, 0, &[value]).bytes.len() - 61;
        let size = if codec == Codec::None { built.bytes.len() } else { records };
        let name = format!("{codec:?}-0");
        let dir = PartitionBuilder::new(Indexing::every(4096))
            .segment(0, [built.clone()])
            .write(folder.path(), &name);
        for io in IOS {
            let exact = all(&open(&dir, io, size), OnDamage::Raise).whole();
            assert_eq!(exact.offsets(), [0], "{name}");
            ensure_too_large(&all(&open(&dir, io, size - 1), OnDamage::Skip), &built, 0, &name);
        }
    }
}

#[test]
fn a_flipped_bit_in_a_batch_above_the_limit_is_damage_as_below_it() {
    let folder = folder();
    for codec in [Codec::None, Codec::Gzip] {
        let built = three(2, codec, 20_000);
        let start = built[0].bytes.len();
        let size = built[1].bytes.len();
        for byte in [8, 16, 18, 21, 26, 58, 61, size / 2, size - 1] {
            let name = format!("{codec:?}{byte}-0");
            let dir = PartitionBuilder::new(Indexing::every(1))
                .segment(0, built.clone())
                .write(folder.path(), &name);
            let path = dir.join(file_name(0, "log"));
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[start + byte] ^= 4;
            std::fs::write(&path, bytes).unwrap();
            for io in IOS {
                for check_crcs in [true, false] {
                    let options = |on_damage| ScanOptions { on_damage, check_crcs, ..ScanOptions::default() };
                    let whole = open(&dir, io, MAX_BATCH_BYTES);
                    let limited = open(&dir, io, 10_000);
                    let found = scan(&limited, options(OnDamage::Skip));
                    if let Some(error) = &found.error {
                        // without the checksum a value may be anything
                        assert!(!check_crcs && codec == Codec::Gzip, "{name} {io:?}: {error}");
                        continue;
                    }
                    assert_eq!(found.offsets(), [0, 1, 5], "{name} {io:?} {check_crcs}");
                    if check_crcs {
                        let expected = scan(&whole, options(OnDamage::Skip)).whole();
                        assert_eq!(
                            (&found.offsets(), &found.gaps),
                            (&expected.offsets(), &expected.gaps),
                            "{name}"
                        );
                        let error = scan(&limited, options(OnDamage::Raise)).error.unwrap();
                        assert_eq!(error.code(), "corrupt", "{name}: {error}");
                    }
                }
            }
        }
    }
}

fn writer(dir: &Path, max_batch_bytes: usize) -> LogWriter {
    let options = WriterOptions { flush: FlushMode::None, max_batch_bytes, ..WriterOptions::default() };
    LogWriter::open(dir, &options).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_recovery_and_a_truncation_keep_a_batch_above_the_limit() {
    let folder = folder();
    for codec in CODECS {
        for last in [false, true] {
            let mut built = three(2, codec, 20_000).to_vec();
            if last {
                built.pop();
            }
            let name = format!("{codec:?}{last}-0");
            let dir = PartitionBuilder::new(Indexing::every(1))
                .segment(0, built.clone())
                .write(folder.path(), &name);
            let path = dir.join(file_name(0, "log"));
            let before = std::fs::read(&path).unwrap();
            let mut writer = writer(&dir, 10_000);
            let end = built.last().unwrap().next_offset();
            assert_eq!(writer.log_end_offset(), end, "{name}");
            assert!(writer.truncate_to(end - 1).is_ok());
            writer.close().unwrap();
            let kept = std::fs::read(&path).unwrap();
            assert!(before.starts_with(&kept) && kept.len() >= built[0].bytes.len(), "{name}");
            assert!(!dir.join("quarantine").exists(), "{name}");
        }
    }
}

#[test]
fn batches_that_are_appended_have_the_limit_of_the_writer() {
    let folder = folder();
    for codec in CODECS {
        let raw = batch(2, codec, 0, &[20_000]).bytes;
        let dir = folder.path().join(format!("{codec:?}-0"));
        let mut limited = writer(&dir, 10_000);
        let error = limited.append_batches(&raw, false).unwrap_err();
        assert!(matches!(error, Error::InvalidRecord { .. }), "{error}");
        assert!(error.to_string().contains("max_batch_bytes"), "{error}");
        limited.close().unwrap();
        let mut raised = writer(&dir, 21_000);
        assert_eq!(raised.append_batches(&raw, false).unwrap().last_offset, 0);
        raised.close().unwrap();
    }
}

#[test]
fn a_batch_stored_above_the_default_limit_is_no_damage_and_readable_with_a_higher_one() {
    let folder = folder();
    let built = [batch(2, Codec::None, 0, &[10]), batch(2, Codec::None, 1, &[MAX_BATCH_BYTES + 1])];
    let position = built[0].bytes.len();
    let dir = PartitionBuilder::new(Indexing::every(4096))
        .segment(0, built.clone())
        .write(folder.path(), "large-0");
    for io in IOS {
        let log = open(&dir, io, MAX_BATCH_BYTES);
        assert_eq!(log.log_end_offset().unwrap(), 2);
        assert!(log.warnings().is_empty(), "{:?}", log.warnings());
        ensure_too_large(&all(&log, OnDamage::Skip), &built[1], position, "default");
        assert_eq!(all(&open(&dir, io, 1 << 28), OnDamage::Raise).whole().offsets(), [0, 1]);
    }
    let mut writer = writer(&dir, MAX_BATCH_BYTES);
    assert_eq!(writer.log_end_offset(), 2);
    writer.close().unwrap();
    let path = dir.join(file_name(0, "log"));
    let mut bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len(), position + built[1].bytes.len());
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let log = open(&dir, Io::Pread, MAX_BATCH_BYTES);
    assert_eq!(log.log_end_offset().unwrap(), 1, "a torn write");
    assert_eq!(all(&log, OnDamage::Skip).whole().offsets(), [0]);
}
