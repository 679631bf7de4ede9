//! The damaged cases of the corpus: damaged hints lose no records, and damage to the log loses only the
//! batches that have it.
//!
//! The damaged batches are derived from the recipe and the intact source, not from the results of the crate.

use std::path::Path;

use cordwood::log::{OnDamage, Ranges, ScanOptions};
use cordwood::{Error, Log, LogOptions};
use serde_json::Value;

use crate::support::golden::{self, Damaged, number, text};
use crate::support::naive::{self, Batch, Record};
use crate::support::reading::{IOS, Read, all, committed, locate, time, timed};

/// The effect of a recipe on the records.
#[derive(Debug, Default)]
struct Harm {
    /// Base offsets of the source's damaged batches.
    hit: Vec<i64>,
    /// The file and the positions of which a reader must report one; `None` if the log is still legal.
    place: Option<(String, Vec<u64>)>,
}

fn is_log(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|extension| extension == "log")
}

/// `None` if the recipe changes only hints.
fn harm(case: &Damaged, source: &naive::Log) -> Option<Harm> {
    let [recipe] = &case.recipe[..] else {
        assert!(case.recipe.iter().all(|step| !is_log(&text(&step["file"]))), "{}", case.case);
        return None;
    };
    let file = recipe["file"].as_str().unwrap_or_default().to_owned();
    let is_log = is_log(&file);
    let of_file = |batch: &&Batch| file == format!("{:020}.log", batch.segment);
    let batch_at = |position: u64| {
        let holds = |batch: &&Batch| (batch.position..batch.position + batch.size).contains(&position);
        source.batches.iter().filter(of_file).find(holds).unwrap()
    };
    let base_of = |batches: &[&Batch]| batches.iter().map(|batch| batch.base_offset).collect::<Vec<_>>();
    let position = || recipe["position"].as_u64().unwrap();
    Some(match recipe["do"].as_str().unwrap() {
        "flip a bit" | "set batchLength" if is_log => {
            let batch = batch_at(position());
            Harm { hit: base_of(&[batch]), place: Some((file, vec![batch.position])) }
        }
        "truncate" if is_log => {
            let to = recipe["to"].as_u64().unwrap();
            let lost: Vec<_> =
                source.batches.iter().filter(of_file).filter(|b| b.position + b.size > to).collect();
            Harm { hit: base_of(&lost), place: Some((file, vec![lost[0].position])) }
        }
        "append zeros" => {
            let last = source.batches.iter().rfind(of_file).unwrap();
            Harm { hit: Vec::new(), place: Some((file, vec![last.position + last.size])) }
        }
        "repeat a batch after itself" => {
            let after = position() + recipe["size"].as_u64().unwrap();
            Harm { hit: Vec::new(), place: Some((file, vec![after])) }
        }
        "swap two neighbouring batches" => {
            let positions: Vec<u64> =
                recipe["positions"].as_array().unwrap().iter().map(|p| p.as_u64().unwrap()).collect();
            let batches = [batch_at(positions[0]), batch_at(positions[1])];
            // the new position of the second one
            let after = batches[0].position + batches[1].size;
            Harm { hit: base_of(&batches), place: Some((file, vec![positions[0], after])) }
        }
        "remove a batch" => Harm { hit: base_of(&[batch_at(position())]), place: None },
        "delete" => {
            let files: Vec<String> = recipe["files"].as_array().into_iter().flatten().map(text).collect();
            let is_gone = |batch: &&Batch| files.contains(&format!("{:020}.log", batch.segment));
            let lost: Vec<_> = source.batches.iter().filter(is_gone).collect();
            if lost.is_empty() {
                return None;
            }
            Harm { hit: base_of(&lost), place: None }
        }
        _ => {
            assert!(!is_log, "{} {recipe}", case.case);
            return None;
        }
    })
}

fn open(case: &Damaged, io: cordwood::types::Io) -> Log {
    let start = |step: &Value| step["do"] == "open with log start offset";
    let log_start_offset = case.recipe.iter().find(|step| start(step)).map(|step| number(&step["offset"]));
    let options = LogOptions { io, log_start_offset, ..LogOptions::default() };
    Log::open(&case.dir, options).unwrap_or_else(|error| panic!("{}: {error}", case.case))
}

fn is_in_last_segment(log: &Log, file: &str) -> bool {
    log.segments().last().unwrap().path().ends_with(file)
}

/// The source's records without those of some batches.
fn without<'a>(source: &'a naive::Log, hit: &[i64]) -> Vec<&'a Record> {
    let is_left = |batch: &&Batch| !hit.contains(&batch.base_offset);
    source.batches.iter().filter(is_left).flat_map(|batch| &batch.records).collect()
}

#[test]
fn a_damaged_hint_loses_nothing() {
    let mut cases = 0;
    for case in golden::damaged() {
        let source = naive::read(&case.from.dir).unwrap();
        if harm(&case, &source).is_some() {
            continue;
        }
        cases += 1;
        for io in IOS {
            let log = open(&case, io);
            assert_eq!(
                (log.log_start_offset(), log.log_end_offset().unwrap()),
                (0, source.end_offset()),
                "{}",
                case.case
            );
            for on_damage in [OnDamage::Raise, OnDamage::Skip, OnDamage::Report] {
                let read = all(&log, on_damage).whole();
                assert!(read.records().eq(source.records()), "{}", case.case);
                assert_eq!((read.gaps.len(), read.steps.len()), (0, 0), "{}", case.case);
                let read = committed(&log, on_damage).whole();
                assert!(read.records().eq(source.scan_committed(0..i64::MAX, None, false)), "{}", case.case);
            }
            for offset in 0..source.end_offset() {
                let (_, base, position, size) = locate(&log, offset).unwrap().unwrap();
                let batch = source.locate(offset).unwrap();
                assert_eq!(
                    (base, position, size),
                    (batch.base_offset, batch.position, batch.size),
                    "{}",
                    case.case
                );
            }
            for target in times(&source) {
                assert_eq!(
                    time(&log, target).unwrap(),
                    timed(source.offset_for_time(0, target)),
                    "{}",
                    case.case
                );
            }
        }
    }
    assert_eq!(cases, 29);
}

fn times(source: &naive::Log) -> Vec<i64> {
    let around = |record: &Record| [record.timestamp - 1, record.timestamp, record.timestamp + 1];
    let mut times: Vec<i64> = source.records().flat_map(around).filter(|&time| time >= 0).collect();
    times.sort_unstable();
    times.dedup();
    times
}

#[test]
fn a_damaged_hint_that_a_look_up_reads_causes_a_warning() {
    let mut warned = Vec::new();
    for case in golden::damaged() {
        let source = naive::read(&case.from.dir).unwrap();
        if harm(&case, &source).is_some() {
            continue;
        }
        let log = open(&case, IOS[0]);
        for offset in log.log_start_offset()..source.end_offset() {
            log.locate(offset).unwrap();
        }
        for target in times(&source) {
            log.offset_for_time(target).unwrap();
        }
        if !log.warnings().is_empty() {
            warned.push(case.case.trim_start_matches("damaged/").to_owned());
        }
    }
    // no result can depend on a hint that is missing, short or not read at its damaged part
    let indexes = ["index-garbage", "index-positions-beyond-end", "index-wrong-position"];
    let others = ["start-beyond-end", "swap-complete", "swap-originals-gone"];
    let time_indexes = ["timeindex-disorder", "timeindex-future"];
    assert_eq!(warned, [&indexes[..], &others, &time_indexes].concat());
}

#[test]
fn skipping_loses_only_damaged_batches_and_reports_each_gap() {
    let mut cases = 0;
    for case in golden::damaged() {
        let source = naive::read(&case.from.dir).unwrap();
        let Some(harm) = harm(&case, &source) else { continue };
        cases += 1;
        for io in IOS {
            let log = open(&case, io);
            let read = all(&log, OnDamage::Skip).whole();
            let mut hit = harm.hit.clone();
            if case.case == "damaged/batches-swapped" {
                // only one of the two is out of place, and only one is lost
                let got: Vec<i64> = read.batches.iter().map(|batch| batch.base_offset).collect();
                hit.retain(|base| !got.contains(base));
                assert_eq!(hit.len(), 1);
            }
            let ours: Vec<_> = read.records().collect();
            assert_eq!(ours, without(&source, &hit), "{}", case.case);
            assert_gaps(&case, &log, &read, &harm, &source, &hit);
            let reported = all(&log, OnDamage::Report).whole();
            assert_eq!(reported.gaps, read.gaps, "{}", case.case);
            let steps: Vec<_> = reported.steps.iter().map(|(_, gap)| gap.clone()).collect();
            assert_eq!(steps, read.gaps, "{}", case.case);
            assert!(reported.records().eq(read.records()), "{}", case.case);
            for (before, gap) in &reported.steps {
                let last = before.checked_sub(1).map_or(-1, |i| reported.batches[i].last_offset);
                assert!(last < gap.start_offset.max(1), "{}: {gap:?} is reported at its position", case.case);
            }
        }
    }
    assert_eq!(cases, 33);
}

fn assert_gaps(case: &Damaged, log: &Log, read: &Read, harm: &Harm, source: &naive::Log, hit: &[i64]) {
    let Some((file, positions)) = &harm.place else {
        assert_eq!(read.gaps, [], "{}: a legal log", case.case);
        assert!(read.stats.offset_gaps > 0, "{}", case.case);
        return;
    };
    let is_zeros = case.recipe[0]["do"] == "append zeros";
    if is_zeros && is_in_last_segment(log, file) {
        assert_eq!(read.gaps, [], "{}: zeros at the end are not data", case.case);
        assert_eq!(log.warnings().len(), 1, "{}", case.case);
        return;
    }
    let [gap] = &read.gaps[..] else { panic!("{}: {:#?}", case.case, read.gaps) };
    assert!(gap.file.ends_with(file), "{}: {gap:?}", case.case);
    assert!(positions.contains(&gap.start_position), "{}: {gap:?}", case.case);
    assert!(
        gap.end_position > gap.start_position
            && gap.end_position <= std::fs::metadata(&gap.file).unwrap().len()
    );
    if case.case == "damaged/batches-swapped" {
        // the batch that is out of place is between two others; its offsets are missing at an undamaged
        // position
        assert_eq!((gap.start_offset, gap.end_offset, read.stats.offset_gaps), (308, Some(308), 1));
        return;
    }
    let lost = source.batches.iter().filter(|batch| hit.contains(&batch.base_offset));
    for batch in lost {
        let end = gap.end_offset.unwrap_or(i64::MAX);
        assert!(gap.start_offset <= batch.base_offset && batch.last_offset < end, "{}: {gap:?}", case.case);
    }
    assert!(!gap.reason.is_empty());
}

fn is_of_a_gap(warnings: &[&String]) -> bool {
    matches!(warnings, [warning] if warning.contains("are missing"))
}

#[test]
fn raising_reports_the_position_or_ends_with_a_warning_at_the_tail() {
    let (mut raised, mut ended, mut legal) = (0, 0, 0);
    for case in golden::damaged() {
        let source = naive::read(&case.from.dir).unwrap();
        let Some(harm) = harm(&case, &source) else { continue };
        for io in IOS {
            let log = open(&case, io);
            let read = all(&log, OnDamage::Raise);
            let left = without(&source, &harm.hit);
            let Some((file, positions)) = &harm.place else {
                assert!(read.whole().records().eq(left), "{}", case.case);
                // positions changed, and the index entries for them did not
                let warnings = log.warnings();
                let (of_indexes, others): (Vec<_>, Vec<_>) =
                    warnings.iter().partition(|warning| warning.contains(".index: "));
                if case.case == "damaged/segment-removed" {
                    assert!(of_indexes.is_empty() && is_of_a_gap(&others), "{warnings:?}");
                } else if case.case == "damaged/batch-removed" {
                    let is_gap = |warning: &&String| warning.contains("missing before position");
                    assert!(others.len() == 1 && others.iter().all(is_gap), "{warnings:?}");
                } else {
                    assert!(others.is_empty(), "{}: {warnings:?}", case.case);
                }
                legal += 1;
                continue;
            };
            let what = case.recipe[0]["do"].as_str().unwrap();
            if matches!(what, "truncate" | "append zeros") && is_in_last_segment(&log, file) {
                assert!(read.whole().records().eq(left), "{}", case.case);
                // an index may refer to the torn batch, which causes a warning
                let warnings: Vec<_> =
                    log.warnings().into_iter().filter(|warning| !warning.contains(".index: ")).collect();
                let [warning] = &warnings[..] else { panic!("{}: {warnings:?}", case.case) };
                assert!(warning.contains(file) && warning.contains(&positions[0].to_string()), "{warning}");
                ended += 1;
                continue;
            }
            match &read.error {
                Some(error @ Error::Corrupt { .. }) => {
                    assert!(error.file().unwrap().ends_with(file), "{}: {error}", case.case);
                    assert!(positions.contains(&error.position().unwrap()), "{}: {error}", case.case);
                }
                other => panic!("{}: {other:?}", case.case),
            }
            // all records before the damage, and no others
            let is_swapped = case.case == "damaged/batches-swapped";
            let before = source.records().filter(|record| !is_swapped || record.offset != 302);
            let ours: Vec<_> = read.records().collect();
            assert!(ours.len() < source.records().count(), "{}", case.case);
            assert!(before.take(ours.len()).eq(ours), "{}", case.case);
            raised += 1;
        }
    }
    assert_eq!((raised, ended, legal), (2 * 23, 2 * 8, 2 * 2));
}

#[test]
fn look_ups_in_a_damaged_log_return_the_sources_result_or_an_error() {
    let mut errors = [0, 0];
    for case in golden::damaged() {
        let source = naive::read(&case.from.dir).unwrap();
        let Some(harm) = harm(&case, &source) else { continue };
        let is_legal = harm.place.is_none();
        let is_hit = |batch: &Batch| harm.hit.contains(&batch.base_offset);
        let left = naive::Log {
            batches: source.batches.iter().filter(|batch| !is_hit(batch)).cloned().collect(),
            segments: source.segments.clone(),
        };
        for io in IOS {
            let log = open(&case, io);
            for offset in 0..source.end_offset() {
                let batch = source.locate(offset).unwrap();
                match locate(&log, offset) {
                    Ok(found) => {
                        let expected = if is_legal { left.locate(offset) } else { Some(batch) };
                        assert_eq!(
                            found.map(|found| found.1),
                            expected.map(|b| b.base_offset),
                            "{} {offset}",
                            case.case
                        );
                    }
                    Err(Error::Corrupt { .. }) => errors[0] += 1,
                    Err(Error::OffsetOutOfRange { .. }) => {
                        assert!(is_hit(batch) && offset >= left.end_offset(), "{} {offset}", case.case);
                    }
                    Err(error) => panic!("{}: {error}", case.case),
                }
            }
            for target in times(&source) {
                let (whole, left) = (source.offset_for_time(0, target), left.offset_for_time(0, target));
                match time(&log, target) {
                    Ok(found) => {
                        let is_torn = log.log_end_offset().unwrap() < source.end_offset();
                        let expected = if is_legal || is_torn { left } else { whole };
                        assert_eq!(found, timed(expected), "{} {target}", case.case);
                    }
                    Err(Error::Corrupt { .. }) => errors[1] += 1,
                    Err(error) => panic!("{}: {error}", case.case),
                }
            }
        }
    }
    assert!(errors[0] > 0 && errors[1] > 0, "{errors:?}");
}

#[test]
fn splits_of_a_damaged_log_report_each_gap_once_and_raise_like_a_scan_of_the_whole_log() {
    for case in golden::damaged() {
        let log = open(&case, cordwood::types::Io::Pread);
        let options = |ranges, on_damage| ScanOptions { ranges, on_damage, ..ScanOptions::default() };
        let gaps = |ranges| {
            let mut scan = log.scan(options(ranges, OnDamage::Skip)).unwrap();
            while scan.next_step().unwrap().is_some() {
                while scan.next_record().unwrap().is_some() {}
            }
            scan.damaged_ranges().iter().map(|gap| (gap.file.clone(), gap.start_position)).collect::<Vec<_>>()
        };
        let is_refused = |ranges| {
            let mut scan = log.scan(options(ranges, OnDamage::Raise)).unwrap();
            loop {
                match scan.next_step() {
                    Ok(Some(_)) => while scan.next_record().unwrap().is_some() {},
                    Ok(None) => return false,
                    Err(error) => return matches!(error, Error::Corrupt { .. }),
                }
            }
        };
        let whole = gaps(Ranges::default());
        for max_bytes in [1, 700, 5000, u64::MAX] {
            let splits = log.plan(max_bytes, &ScanOptions::default()).unwrap();
            let named: Vec<_> = splits.iter().flat_map(|split| gaps(split.ranges())).collect();
            assert_eq!(named, whole, "{} {max_bytes}", case.case);
            let any_refused = splits.iter().any(|split| is_refused(split.ranges()));
            assert_eq!(any_refused, is_refused(Ranges::default()), "{} {max_bytes}", case.case);
        }
    }
}
