//! Directories in which damage makes a committed replacement of segments contradict the segments it would
//! replace. A writer removes no whole batch, and a reader returns the batches that exist.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cordwood::config::LogConfig;
use cordwood::log::OnDamage;
use cordwood::types::Io;
use cordwood::writer::{LogWriter, WriterOptions};

use crate::support::batches::{BatchV2, Built, Rec};
use crate::support::partition::{Indexing, PartitionBuilder, file_name};
use crate::support::reading::{all, folder, open};

fn batch(offset: i64) -> Built {
    BatchV2::new(offset).record(Rec::at(1000).value(offset.to_string())).build()
}

/// A batch whose base offset is 256 too high: no checksum covers that field.
fn flipped(offset: i64) -> Built {
    let mut batch = batch(offset);
    batch.bytes[6] ^= 1;
    batch
}

/// A log whose segment with this base offset is a committed replacement that was not renamed yet.
fn write(parent: &Path, segments: &[(i64, &[Built])], replacement: i64) -> PathBuf {
    let mut builder = PartitionBuilder::new(Indexing::every(1 << 20));
    for (base_offset, batches) in segments {
        builder = builder.segment(*base_offset, batches.iter().cloned());
    }
    let dir = builder.write(parent, "t-0");
    for kind in ["log", "index", "timeindex"] {
        let name = file_name(replacement, kind);
        fs::rename(dir.join(&name), dir.join(format!("{name}.swap"))).unwrap();
    }
    dir
}

fn options() -> WriterOptions {
    WriterOptions {
        config: LogConfig { segment_index_bytes: 1200, ..LogConfig::default() },
        ..WriterOptions::default()
    }
}

fn readable(dir: &Path) -> Vec<i64> {
    all(&open(dir, Io::Pread), OnDamage::Skip).offsets()
}

/// The segments' files and their contents.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let of_segments = paths.filter(|path| !path.file_name().unwrap().to_string_lossy().starts_with('.'));
    of_segments.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Expects that the writer refuses the directory and leaves it unchanged.
fn assert_refused(dir: &Path, expected: &str) {
    let before = files(dir);
    let error = LogWriter::open(dir, &options()).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    assert_eq!(files(dir), before);
}

#[test]
fn a_segment_below_a_replacement_is_kept_unless_all_its_batches_are_in_the_replacement() {
    let parent = folder();
    let below = [batch(0), batch(1), batch(2), batch(3), flipped(4)];
    let segments: [(i64, &[Built]); 3] = [(0, &below), (5, &[batch(5), batch(6)]), (10, &[batch(10)])];
    let dir = write(parent.path(), &segments, 5);
    assert_eq!(readable(&dir), [0, 1, 2, 3, 5, 6, 10]);
    // whether or not the writer opens it, the four whole batches stay
    let _ = LogWriter::open(&dir, &options());
    assert_eq!(readable(&dir), [0, 1, 2, 3, 5, 6, 10]);
}

#[test]
fn a_replacement_that_ends_above_every_segment_that_it_would_replace_is_refused() {
    let parent = folder();
    let segments: [(i64, &[Built]); 5] = [
        (0, &[batch(0), batch(1)]),
        (5, &[batch(5), flipped(6)]),
        (10, &[batch(10), batch(11)]),
        (20, &[batch(20)]),
        (1000, &[batch(1000)]),
    ];
    let dir = write(parent.path(), &segments, 5);
    assert_refused(&dir, "offsets below 21, as in 00000000000000000020.log, which this file would replace");
    let log = open(&dir, Io::Pread);
    assert!(log.warnings().iter().any(|warning| warning.contains("found offsets up to 262")));
    for offset in [0, 1, 5, 1000] {
        assert!(readable(&dir).contains(&offset), "{offset}");
    }
}

#[test]
fn a_replacement_without_a_batch_is_refused_if_it_would_replace_batches() {
    let parent = folder();
    let segments: [(i64, &[Built]); 2] = [(0, &[batch(0), batch(1)]), (5, &[batch(5)])];
    let dir = write(parent.path(), &segments, 5);
    let swap = |kind| dir.join(format!("{}.swap", file_name(0, kind)));
    fs::rename(dir.join(format!("{}.swap", file_name(5, "log"))), dir.join(file_name(5, "log"))).unwrap();
    fs::write(swap("log"), b"").unwrap();
    assert_refused(&dir, "a batch, as in 00000000000000000000.log, which this file would replace");
    assert_eq!(readable(&dir), [0, 1, 5]);
}

#[test]
fn a_damaged_replacement_is_refused() {
    let parent = folder();
    let mut damaged = batch(6);
    *damaged.bytes.last_mut().unwrap() ^= 1;
    let segments: [(i64, &[Built]); 3] =
        [(0, &[batch(0)]), (5, &[batch(5), damaged, batch(7)]), (8, &[batch(8)])];
    let dir = write(parent.path(), &segments, 5);
    let original = [batch(5), batch(6), batch(7)].map(|batch| batch.bytes).concat();
    fs::write(dir.join(file_name(5, "log")), original).unwrap();
    assert_refused(&dir, "00000000000000000005.log.swap");
}

#[test]
fn a_segment_that_a_replacement_covers_in_part_is_kept_in_quarantine() {
    let parent = folder();
    let segments: [(i64, &[Built]); 3] =
        [(0, &[batch(0), batch(2)]), (3, &[batch(3), batch(4)]), (5, &[batch(5)])];
    let dir = write(parent.path(), &segments, 0);
    // as compaction leaves it if the last record of the last segment was removed
    let swap = dir.join(format!("{}.swap", file_name(0, "log")));
    let replacement = [batch(0), batch(2), batch(3)].map(|batch| batch.bytes).concat();
    fs::write(swap, replacement).unwrap();
    let original = fs::read(dir.join(file_name(3, "log"))).unwrap();
    LogWriter::open(&dir, &options()).unwrap();
    assert_eq!(readable(&dir), [0, 2, 3, 5]);
    let kept: Vec<_> =
        fs::read_dir(dir.join("quarantine")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(fs::read(&kept[0]).unwrap(), original);
}

/// What is left of a segment that a committed replacement replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Original {
    Missing,
    Empty,
    Shorter,
    Whole,
    Longer,
}

/// Kafka puts every committed replacement in place of the segments in its offsets. So do the writer and the
/// reader, if the replacement has all batches of segments that end below it.
#[test]
fn originals_whose_batches_are_in_a_replacement_do_not_contradict_it() {
    use Original::{Empty, Longer, Missing, Shorter, Whole};
    let states = [Missing, Empty, Shorter, Whole, Longer];
    let cases = states.iter().flat_map(|first| states.iter().map(move |second| [*first, *second]));
    for (originals, has_next) in cases.flat_map(|case| [(case, true), (case, false)]) {
        // a longer first segment would overlap the second one
        if originals[0] == Longer && originals[1] != Missing {
            continue;
        }
        let parent = folder();
        let dir = parent.path().join("t-0");
        fs::create_dir(&dir).unwrap();
        let put = |name: String, offsets: std::ops::Range<i64>| {
            fs::write(dir.join(name), offsets.map(|offset| batch(offset).bytes).collect::<Vec<_>>().concat())
                .unwrap();
        };
        for (base, original) in [0, 5].into_iter().zip(originals) {
            put(format!("{}.swap", file_name(base, "log")), base..base + 5);
            let end = match original {
                Missing => continue,
                Empty => base,
                Shorter => base + 2,
                Whole => base + 5,
                Longer => base + 7,
            };
            put(file_name(base, "log"), base..end);
        }
        if has_next {
            put(file_name(20, "log"), 20..22);
        }
        let case = format!("{originals:?}, next: {has_next}");
        let warnings = open(&dir, Io::Pread).warnings();
        let contradicts =
            warnings.iter().any(|warning| warning.contains("the segments that it would replace are read"));
        assert!(!contradicts, "{case}: {warnings:?}");
        let expected: Vec<_> = (0..10).chain(if has_next { 20..22 } else { 0..0 }).collect();
        assert_eq!(readable(&dir), expected, "{case}");
        LogWriter::open(&dir, &options()).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(readable(&dir), expected, "{case}");
    }
}
