//! Offsets that no segment contains: a missing or cut segment causes a warning, and compaction does not.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cordwood::log::{OffsetGap, OnDamage, Ranges, ScanOptions};
use cordwood::types::Io;
use cordwood::{Error, Log, LogOptions};

use crate::support::batches::{BatchV2, Built, Rec};
use crate::support::partition::{Indexing, PartitionBuilder, file_name};
use crate::support::reading::{IOS, all, folder, open, scan};

fn batch(offsets: std::ops::Range<i64>) -> Built {
    let mut batch = BatchV2::new(offsets.start);
    for offset in offsets {
        batch = batch.record(Rec::at(1000 + offset).value([b'v'; 50]));
    }
    batch.build()
}

/// Batches of five records up to `end`, in a segment at `base`.
fn dense(builder: PartitionBuilder, base: i64, end: i64) -> PartitionBuilder {
    builder.segment(base, (base..end).step_by(5).map(|start| batch(start..start + 5)))
}

/// Three dense segments: 0 to 100, 100 to 200, 200 to 300.
fn three_segments(parent: &Path) -> PathBuf {
    let builder = PartitionBuilder::new(Indexing::every(300));
    let builder = [0, 100, 200].into_iter().fold(builder, |builder, base| dense(builder, base, base + 100));
    builder.write(parent, "t-0")
}

fn warnings_after_a_scan(log: &Log, on_damage: OnDamage) -> Vec<String> {
    assert!(all(log, on_damage).error.is_none());
    log.warnings()
}

#[test]
fn a_missing_segment_causes_a_warning_with_both_neighbours() {
    let parent = folder();
    let dir = three_segments(parent.path());
    for extension in ["log", "index", "timeindex"] {
        fs::remove_file(dir.join(file_name(100, extension))).unwrap();
    }
    for io in IOS {
        let expected = |log: &Log| {
            let [warning] = &log.warnings()[..] else { panic!("{:?}", log.warnings()) };
            for part in ["offsets 100 to 199", &file_name(0, "log"), &file_name(200, "log")] {
                assert!(warning.contains(part), "{warning}");
            }
        };
        let log = open(&dir, io);
        assert_eq!(warnings_after_a_scan(&log, OnDamage::Skip).len(), 1);
        expected(&log);
        // a look-up in the gap, and a range that ends in it
        let log = open(&dir, io);
        assert_eq!(log.locate(150).unwrap().unwrap().batch_base_offset, 200);
        expected(&log);
        let log = open(&dir, io);
        let ranges = Ranges { start_offset: Some(90), end_offset: Some(150), ..Ranges::default() };
        assert_eq!(
            scan(&log, ScanOptions { ranges, ..ScanOptions::default() }).offsets(),
            (90..100).collect::<Vec<_>>()
        );
        expected(&log);
        // a scan that ends before the gap does not detect it
        let log = open(&dir, io);
        let ranges = Ranges { end_offset: Some(100), ..ranges };
        scan(&log, ScanOptions { ranges, ..ScanOptions::default() }).whole();
        assert_eq!(log.warnings(), [""; 0]);
    }
}

#[test]
fn a_sealed_segment_cut_at_a_batch_boundary_causes_warnings_for_its_gap_and_its_indexes() {
    let parent = folder();
    let dir = three_segments(parent.path());
    let path = dir.join(file_name(100, "log"));
    let whole = fs::read(&path).unwrap();
    let size = whole.len() / 20;
    // every boundary but the last: the indexes may have their last entry a batch before the end
    for batches in 0..18 {
        fs::write(&path, &whole[..batches * size]).unwrap();
        let end = 100 + 5 * batches as i64;
        for io in IOS {
            let log = open(&dir, io);
            let warnings = warnings_after_a_scan(&log, OnDamage::Raise);
            let of = |part: &str| warnings.iter().filter(|warning| warning.contains(part)).count();
            assert_eq!(of(&format!("offsets {end} to 199 are missing")), 1, "{warnings:?}");
            for extension in ["index", "timeindex"] {
                assert_eq!(of(&format!("{}: the last entry", file_name(100, extension))), 1, "{warnings:?}");
            }
            assert_eq!(warnings.len(), 3, "{warnings:?}");
        }
    }
}

#[test]
fn gaps_of_compaction_cause_no_warning() {
    let sparse = || BatchV2::new(10).record(Rec::at(1000)).last_offset_delta(9).build();
    let empty = || BatchV2::new(10).last_offset_delta(4).build();
    let builder = || PartitionBuilder::new(Indexing::every(300));
    let builders = [
        // records are missing inside a batch, or all of them; also far from the gaps
        builder().segment(0, [batch(0..5), sparse()]),
        builder().segment(0, [batch(0..5), empty()]),
        builder().segment(0, [batch(0..5), sparse()]).segment(50, [batch(50..55), batch(60..65)]),
    ];
    for builder in builders {
        let parent = folder();
        let dir = dense(builder, 100, 200).write(parent.path(), "t-0");
        for io in IOS {
            let log = open(&dir, io);
            assert_eq!(warnings_after_a_scan(&log, OnDamage::Raise), [""; 0]);
            let log = open(&dir, io);
            assert_eq!(log.locate(80).unwrap().unwrap().batch_base_offset, 100);
            assert_eq!(log.warnings(), [""; 0]);
        }
    }
}

#[test]
fn gaps_are_listed_and_distinguished_from_damage_and_compaction() {
    let parent = folder();
    let dir = three_segments(parent.path());
    let gap = |start_offset, end_offset, segment_base_offset, next_base_offset| OffsetGap {
        start_offset,
        end_offset,
        segment_base_offset,
        next_base_offset,
    };
    let whole = fs::read(dir.join(file_name(100, "log"))).unwrap();
    let size = whole.len() / 20;
    let gaps = |offsets| open(&dir, Io::Pread).offset_gaps(offsets).unwrap();
    assert_eq!(gaps(0..i64::MAX), []);
    // cut between two batches
    fs::write(dir.join(file_name(100, "log")), &whole[..4 * size]).unwrap();
    assert_eq!(gaps(0..i64::MAX), [gap(120, 200, 100, 200)]);
    assert_eq!(gaps(50..130), [gap(120, 130, 100, 200)]);
    assert_eq!(gaps(150..160), [gap(150, 160, 100, 200)]);
    assert_eq!([gaps(0..120), gaps(200..300), gaps(120..120)], [[]; 3]);
    assert!(!open(&dir, Io::Pread).is_compacted().unwrap());
    // inside a batch
    fs::write(dir.join(file_name(100, "log")), &whole[..4 * size + 30]).unwrap();
    assert_eq!(gaps(0..i64::MAX), []);
    fs::remove_file(dir.join(file_name(100, "log"))).unwrap();
    assert_eq!(gaps(0..i64::MAX), [gap(100, 200, 0, 200)]);
    // a batch is missing in the segment before: that shows no compaction
    let first = fs::read(dir.join(file_name(0, "log"))).unwrap();
    fs::write(dir.join(file_name(0, "log")), [&first[..size], &first[2 * size..]].concat()).unwrap();
    assert!(!open(&dir, Io::Pread).is_compacted().unwrap());
}

#[test]
fn a_gap_after_a_change_of_the_epoch_or_after_a_truncation_is_no_lost_batch() {
    let of_epoch = |offset, epoch| BatchV2::new(offset).record(Rec::at(1000)).leader_epoch(epoch).build();
    for (epoch, truncations, lost) in [(0, None, 1), (0, Some(0), 1), (0, Some(2), 0), (1, None, 0)] {
        let parent = folder();
        let dir = PartitionBuilder::new(Indexing::every(300))
            .segment(0, [of_epoch(0, 0), of_epoch(5, epoch)])
            .write(parent.path(), "t-0");
        if let Some(count) = truncations {
            fs::write(dir.join(".cordwood.truncations"), vec![0; count]).unwrap();
        }
        let log = open(&dir, Io::Pread);
        let read = all(&log, OnDamage::Raise).whole();
        let warned =
            log.warnings().iter().filter(|warning| warning.contains("offsets 1 to 4 are missing")).count();
        assert_eq!(
            (read.stats.lost_gaps, warned as u64, read.stats.offset_gaps),
            (lost, lost, 1),
            "{epoch} {truncations:?}"
        );
    }
}

#[test]
fn a_topic_that_is_known_to_be_compacted_explains_every_gap() {
    let parent = folder();
    let dir = three_segments(parent.path());
    fs::remove_file(dir.join(file_name(100, "log"))).unwrap();
    for (is_topic_compacted, is_compacted) in
        [((|_| Some(true)) as fn(&Path) -> Option<bool>, true), (|_| Some(false), false), (|_| None, false)]
    {
        let log = Log::open(&dir, LogOptions { is_topic_compacted, ..LogOptions::default() }).unwrap();
        let warnings = warnings_after_a_scan(&log, OnDamage::Raise);
        assert_eq!((warnings.is_empty(), log.is_compacted().unwrap()), (is_compacted, is_compacted));
    }
}

#[test]
fn offsets_lost_to_damage_show_no_compaction() {
    let parent = folder();
    let dir = three_segments(parent.path());
    fs::remove_file(dir.join(file_name(100, "log"))).unwrap();
    let path = dir.join(file_name(0, "log"));
    let mut bytes = fs::read(&path).unwrap();
    let size = bytes.len() / 20;
    bytes[3 * size + 70] ^= 1;
    fs::write(&path, bytes).unwrap();
    for io in IOS {
        let log = open(&dir, io);
        let warnings = warnings_after_a_scan(&log, OnDamage::Skip);
        assert!(
            warnings.iter().any(|warning| warning.contains("offsets 100 to 199 are missing")),
            "{warnings:?}"
        );
        assert!(!log.is_compacted().unwrap());
    }
}

#[test]
fn a_log_in_the_cleaners_checkpoint_is_compacted() {
    let parent = folder();
    let dir = three_segments(parent.path());
    fs::remove_file(dir.join(file_name(100, "log"))).unwrap();
    for (text, is_compacted) in [("0\n1\nt 0 200\n", true), ("0\n1\nt 1 200\n", false), ("0\n1\nt 0", false)]
    {
        fs::write(parent.path().join("cleaner-offset-checkpoint"), text).unwrap();
        let warnings = warnings_after_a_scan(&open(&dir, Io::Auto), OnDamage::Raise);
        assert_eq!(warnings.is_empty(), is_compacted, "{text:?}: {warnings:?}");
        assert_eq!(open(&dir, Io::Auto).is_compacted().unwrap(), is_compacted);
    }
}

#[test]
fn a_segment_that_appears_in_a_gap_is_a_changed_log_and_not_a_gap() {
    let parent = folder();
    let dir = three_segments(parent.path());
    let path = dir.join(file_name(100, "log"));
    let aside = dir.join("aside");
    fs::rename(&path, &aside).unwrap();
    let log = Log::open(&dir, LogOptions::default()).unwrap();
    let other = Log::open(&dir, LogOptions::default()).unwrap();
    fs::rename(&aside, &path).unwrap();
    let read = all(&log, OnDamage::Skip);
    assert_eq!(read.offsets(), (0..100).collect::<Vec<_>>());
    let error = read.error.unwrap();
    assert!(
        matches!(error, Error::LogChanged { .. }) && error.to_string().contains(&file_name(100, "log")),
        "{error}"
    );
    assert!(matches!(other.locate(150), Err(Error::LogChanged { .. })));
    assert_eq!(all(&log.refresh().unwrap(), OnDamage::Raise).whole().offsets(), (0..300).collect::<Vec<_>>());
}

/// Sets the modification times of a directory and its files to an hour ago.
fn age(dir: &Path) {
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    for path in paths.chain([dir.to_owned()]) {
        fs::File::open(path).unwrap().set_modified(SystemTime::now() - Duration::from_hours(1)).unwrap();
    }
}

#[test]
fn a_refresh_reads_the_cleaners_checkpoint_again() {
    let parent = folder();
    let dir = three_segments(parent.path());
    fs::remove_file(dir.join(file_name(100, "log"))).unwrap();
    age(&dir);
    let mut log = open(&dir, Io::Pread);
    for (text, is_compacted) in [("0\n0\n", false), ("0\n1\nt 0 200\n", true), ("0\n0\n", false)] {
        fs::write(parent.path().join("cleaner-offset-checkpoint"), text).unwrap();
        log = log.refresh().unwrap();
        assert_eq!(log.is_compacted().unwrap(), is_compacted, "{text:?}");
    }
}

#[test]
fn a_segment_that_appeared_in_a_gap_and_was_removed_is_not_a_changed_log_after_a_refresh() {
    let parent = folder();
    let dir = three_segments(parent.path());
    let path = dir.join(file_name(100, "log"));
    let aside = dir.join("aside");
    fs::rename(&path, &aside).unwrap();
    age(&dir);
    let log = open(&dir, Io::Pread);
    fs::rename(&aside, &path).unwrap();
    assert!(matches!(log.offset_gaps(0..300), Err(Error::LogChanged { .. })));
    fs::rename(&path, &aside).unwrap();
    assert_eq!(log.refresh().unwrap().offset_gaps(0..300).unwrap().len(), 1);
}

#[test]
fn a_damaged_end_of_a_sealed_segment_is_a_damaged_range_without_a_warning() {
    let parent = folder();
    let dir = three_segments(parent.path());
    let path = dir.join(file_name(100, "log"));
    let whole = fs::read(&path).unwrap();
    let size = whole.len() / 20;
    let mut flipped = whole.clone();
    flipped[19 * size + 70] ^= 1;
    let mut second = flipped.clone();
    second[17 * size + 70] ^= 1;
    // a flipped bit in the last batch; two damaged batches, one of them the last; an end inside the last
    // batch
    for (bytes, gaps) in [(flipped, 1), (second, 2), (whole[..19 * size + 30].to_vec(), 1)] {
        fs::write(&path, bytes).unwrap();
        for io in IOS {
            for on_damage in [OnDamage::Skip, OnDamage::Report] {
                let log = open(&dir, io);
                let read = all(&log, on_damage).whole();
                assert_eq!((read.gaps.len(), read.gaps[gaps - 1].end_offset), (gaps, Some(200)));
                assert_eq!(log.warnings(), [""; 0]);
                // from the middle of the segment
                let ranges = Ranges { start_offset: Some(193), end_offset: Some(250), ..Ranges::default() };
                let log = open(&dir, io);
                scan(&log, ScanOptions { ranges, on_damage, ..ScanOptions::default() }).whole();
                assert_eq!(log.warnings(), [""; 0]);
            }
        }
    }
    // damage before the end does not hide a cut
    let mut bytes = whole[..18 * size].to_vec();
    bytes[3 * size + 70] ^= 1;
    fs::write(&path, bytes).unwrap();
    let log = open(&dir, Io::Pread);
    assert_eq!(all(&log, OnDamage::Skip).whole().gaps.len(), 1);
    assert!(log.warnings().iter().any(|warning| warning.contains("offsets 190 to 199 are missing")));
}

#[test]
fn a_segment_missed_after_a_damaged_end_is_a_changed_log() {
    let parent = folder();
    let dir = three_segments(parent.path());
    let path = dir.join(file_name(0, "log"));
    let mut bytes = fs::read(&path).unwrap();
    let size = bytes.len() / 20;
    bytes[19 * size + 70] ^= 1;
    fs::write(&path, bytes).unwrap();
    let path = dir.join(file_name(100, "log"));
    let aside = dir.join("aside");
    fs::rename(&path, &aside).unwrap();
    let log = open(&dir, Io::Pread);
    fs::rename(&aside, &path).unwrap();
    assert!(matches!(all(&log, OnDamage::Skip).error, Some(Error::LogChanged { .. })));
}

#[test]
fn a_gap_inside_a_segment_explains_no_gap() {
    // 8 and 9 are missing inside the first segment, 15 to 19 between it and the second, 40 to 99 at higher
    // offsets
    let parent = folder();
    let builder = PartitionBuilder::new(Indexing::every(300)).segment(0, [batch(0..8), batch(10..15)]);
    let dir = [(20, 30), (30, 40), (100, 110)]
        .into_iter()
        .fold(builder, |builder, (base, end)| dense(builder, base, end))
        .write(parent.path(), "t-0");
    for io in IOS {
        let log = open(&dir, io);
        assert_eq!(all(&log, OnDamage::Raise).whole().stats.lost_gaps, 1);
        assert!(!log.is_compacted().unwrap());
        let warnings = log.warnings();
        for (missing, part) in [("8 to 9", 0), ("15 to 19", 20), ("40 to 99", 100)] {
            let text = format!("offsets {missing} are missing");
            let found: Vec<_> = warnings.iter().filter(|warning| warning.contains(&text)).collect();
            assert!(
                matches!(found[..], [warning] if warning.contains(&file_name(part, "log"))),
                "{warnings:?}"
            );
        }
        assert_eq!(warnings.len(), 3);
        let log = open(&dir, io);
        for offset in [17, 50] {
            log.locate(offset).unwrap();
        }
        assert_eq!(log.warnings().len(), 2);
    }
}

#[test]
fn a_segment_that_appears_in_a_gap_is_a_changed_log_for_every_look_up() {
    let parent = folder();
    let dir = three_segments(parent.path());
    age(&dir);
    let path = dir.join(file_name(100, "log"));
    let aside = dir.join("aside");
    for io in IOS {
        let whole = open(&dir, io);
        // enough look-ups to build tables, which a refreshed log shares
        let targets: Vec<_> = (0..200_000).map(|number| number % 300).collect();
        whole.locate_many(&targets).unwrap();
        whole.offsets_for_times(&targets.iter().map(|offset| 1000 + offset).collect::<Vec<_>>()).unwrap();
        for has_tables in [false, true] {
            fs::rename(&path, &aside).unwrap();
            let log = || if has_tables { whole.refresh().unwrap() } else { open(&dir, io) };
            let logs = [log(), log(), log(), log(), log()];
            fs::rename(&aside, &path).unwrap();
            let errors = [
                logs[0].locate(150).unwrap_err(),
                logs[1].locate_many(&[150]).unwrap_err(),
                logs[2].offset_for_time(1150).unwrap_err(),
                logs[3].offsets_for_times(&[1150]).unwrap_err(),
                logs[4].offsets_for_times(&[1050, 1250]).unwrap_err(),
            ];
            assert!(errors.iter().all(|error| matches!(error, Error::LogChanged { .. })), "{errors:?}");
            for log in logs {
                assert_eq!(log.refresh().unwrap().offset_for_time(1150).unwrap().unwrap().offset, 150);
            }
        }
    }
}
