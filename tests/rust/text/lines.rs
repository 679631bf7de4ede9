//! Blocks of lines: their text, as in `tests/vectors/text_lines.json`, their size, limits and errors.

use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};

use cordwood::error::{Error, Result};
use cordwood::log::{Column, Log, LogOptions, OnDamage, Progress, Ranges, ScanOptions};
use cordwood::text::{Block, Format, Lines, LinesOptions};
use cordwood::types::Interrupt;
use serde_json::Value;

use crate::support::batches::{BatchV2, Rec};
use crate::support::partition::{Indexing, PartitionBuilder};

const CASES: &str = include_str!("../../vectors/text_lines.json");
const PLAIN: &str = "../golden/01-plain/orders-0";
const DAMAGED: &str = "../golden/damaged/flip-record/tickets-0";
const FORMATS: [(&str, Format); 3] =
    [("jsonl", Format::JsonLines), ("csv", Format::Csv), ("terminal_csv", Format::TerminalCsv)];

fn opened(path: impl AsRef<Path>) -> Log {
    Log::open(path, LogOptions::default()).unwrap()
}

fn lines(log: &Log, options: LinesOptions) -> Lines {
    Lines::new(std::iter::once(Ok(log.clone())), options, Progress::default())
}

/// All blocks until the end or an error.
fn read(log: &Log, options: LinesOptions) -> (Vec<Block>, Option<Error>) {
    let mut lines = lines(log, options);
    let mut blocks = Vec::new();
    loop {
        match lines.next_block() {
            Ok(Some(block)) => blocks.push(block),
            Ok(None) => return (blocks, None),
            Err(error) => {
                assert_eq!(lines.next_block().unwrap(), None, "an error ends the lines");
                return (blocks, Some(error));
            }
        }
    }
}

fn text(blocks: &[Block]) -> String {
    String::from_utf8(blocks.iter().flat_map(|block| block.text.clone()).collect()).unwrap()
}

fn rows(blocks: &[Block]) -> usize {
    blocks.iter().map(|block| block.rows).sum()
}

fn offsets() -> LinesOptions {
    LinesOptions { columns: vec![Column::Offset], ..LinesOptions::default() }
}

#[test]
fn lines_are_those_of_pythons_json_and_of_pyarrow() {
    let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
    assert_eq!(cases.len(), 9);
    for case in cases {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("awkward-3");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("00000000000000000000.log"), bytes(case["log"].as_str().unwrap())).unwrap();
        let columns = case["columns"].as_array().unwrap();
        let columns = columns.iter().map(|name| Column::parse(name.as_str().unwrap())).collect::<Result<_>>();
        let reports = case["on_damage"] == "report";
        let scan = ScanOptions {
            include_control: true,
            on_damage: if reports { OnDamage::Report } else { OnDamage::Raise },
            ..ScanOptions::default()
        };
        let options = LinesOptions { scan, columns: columns.unwrap(), ..LinesOptions::default() };
        for (name, format) in FORMATS {
            let (blocks, error) = read(&opened(&path), LinesOptions { format, ..options.clone() });
            assert!(error.is_none(), "{error:?}");
            let wanted = case[name].as_str().unwrap().replace("{path}", path.to_str().unwrap());
            assert_eq!(text(&blocks), wanted, "{}, {name}", case["name"]);
        }
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn blocks_are_whole_lines_of_about_a_mebibyte() {
    let folder = tempfile::tempdir().unwrap();
    let record = |size: usize| Rec::at(0).value(vec![b'x'; size]);
    let batch = |base: i64, size| BatchV2::new(base).records((0..100).map(|_| record(size))).build();
    let builder = PartitionBuilder::new(Indexing::default());
    let batches = (0..40).map(|at| batch(at * 100, if at == 20 { 30_000 } else { 700 }));
    let log = opened(builder.segment(0, batches).write(folder.path(), "blocks-0"));
    let (blocks, error) = read(&log, LinesOptions::default());
    assert!(error.is_none());
    assert_eq!(rows(&blocks), 4000);
    assert!(blocks.len() > 4);
    let mut offset = 0;
    for (place, block) in blocks.iter().enumerate() {
        let text = std::str::from_utf8(&block.text).unwrap();
        assert_eq!(text.lines().count(), block.rows);
        for line in text.lines() {
            assert_eq!(serde_json::from_str::<Value>(line).unwrap()["offset"], offset);
            offset += 1;
        }
        assert!(block.text.len() < (1 << 20) + 40_000);
        assert!(block.text.len() >= 1 << 20 || place + 1 == blocks.len());
    }
}

#[test]
fn a_limit_returns_the_first_rows_and_reads_nothing_after_them() {
    let log = opened(PLAIN);
    let whole = text(&read(&log, offsets()).0);
    assert_eq!(whole.lines().count(), 1500);
    for limit in [0, 1, 7, 399, 400, 401, 1499, 1500, 1501, usize::MAX] {
        let progress = Progress::default();
        let options = LinesOptions { limit: Some(limit), ..offsets() };
        let mut lines = Lines::new(std::iter::once(Ok(log.clone())), options, progress.clone());
        let blocks: Vec<_> = std::iter::from_fn(|| lines.next_block().unwrap()).collect();
        let wanted: String = whole.split_inclusive('\n').take(limit).collect();
        assert_eq!(text(&blocks), wanted);
        assert_eq!(rows(&blocks), limit.min(1500));
        assert_eq!(progress.stats().records, limit.min(1500) as u64);
        assert!(limit > 3 || progress.stats().batches <= 1);
    }
}

#[test]
fn a_limit_counts_damaged_ranges_and_ends_before_the_damage_that_follows() {
    let log = opened(DAMAGED);
    let scan = ScanOptions { on_damage: OnDamage::Report, ..ScanOptions::default() };
    let options = |limit| LinesOptions { scan, limit, ..offsets() };
    let whole = text(&read(&log, options(None)).0);
    let damaged = whole.lines().position(|line| !line.contains("\"error\": null")).unwrap();
    for limit in [damaged, damaged + 1, damaged + 2] {
        let (blocks, error) = read(&log, options(Some(limit)));
        assert!(error.is_none());
        assert_eq!(text(&blocks), whole.split_inclusive('\n').take(limit).collect::<String>());
    }
    // with `Raise` the damage is not reached
    let (blocks, error) = read(&log, LinesOptions { limit: Some(damaged), ..offsets() });
    assert!(error.is_none());
    assert_eq!(rows(&blocks), damaged);
}

#[test]
fn the_rows_before_an_error_are_returned_first() {
    let log = opened(DAMAGED);
    for (name, format) in FORMATS {
        let (blocks, error) = read(&log, LinesOptions { format, ..offsets() });
        let error = error.unwrap();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        let damaged = error.offset().unwrap();
        assert!(damaged > 100);
        let line = |offset: i64| match format {
            Format::JsonLines => format!("{{\"offset\": {offset}}}\n"),
            _ => format!("{offset}\n"),
        };
        let headings = if format == Format::JsonLines { "" } else { "\"offset\"\n" };
        let wanted: String = std::iter::once(headings.to_owned()).chain((0..damaged).map(line)).collect();
        assert_eq!(text(&blocks), wanted, "{name}");
        assert_eq!(rows(&blocks) as i64, damaged, "{name}");
    }
    let from = |start_offset| {
        let ranges = Ranges { start_offset: Some(start_offset), ..Ranges::default() };
        ScanOptions { ranges, ..ScanOptions::default() }
    };
    // an error of the range: nothing but the headings
    let (blocks, error) = read(&log, LinesOptions { scan: from(1 << 40), format: Format::Csv, ..offsets() });
    assert!(matches!(error, Some(Error::OffsetOutOfRange { .. })), "{error:?}");
    assert_eq!(text(&blocks), "\"offset\"\n");
    let (blocks, error) = read(&log, LinesOptions { scan: from(1 << 40), ..offsets() });
    assert!(blocks.is_empty() && error.is_some());
}

#[test]
fn rows_without_columns_are_empty_objects() {
    let log = opened(DAMAGED);
    let scan = ScanOptions { on_damage: OnDamage::Report, ..ScanOptions::default() };
    let reported = LinesOptions { scan, columns: Vec::new(), ..LinesOptions::default() };
    let (blocks, _) = read(&log, LinesOptions { limit: Some(2), ..reported.clone() });
    assert_eq!(text(&blocks), "{\"error\": null}\n{\"error\": null}\n");
    let found = text(&read(&log, reported).0);
    assert_eq!(found.lines().filter(|line| line.starts_with("{\"error\": {\"file\": ")).count(), 1);
    let options = LinesOptions { columns: Vec::new(), limit: Some(2), ..LinesOptions::default() };
    assert_eq!(text(&read(&log, options.clone()).0), "{}\n{}\n");
    assert_eq!(text(&read(&log, LinesOptions { format: Format::Csv, ..options }).0), "\n\n\n");
}

/// 40 batches of 1 MiB, of which the first, the 31st and the last have records at the time 9.
fn sparse(parent: &Path) -> std::path::PathBuf {
    let batch = |base: i64| {
        let time = if [0, 30, 39].contains(&base) { 9 } else { 5 };
        BatchV2::new(base).record(Rec::at(time).value(vec![b'x'; 1 << 20])).build()
    };
    PartitionBuilder::new(Indexing::every(1 << 30)).segment(0, (0..40).map(batch)).write(parent, "sparse-0")
}

#[test]
fn few_rows_in_a_large_range_are_returned_after_16_mebibytes() {
    let folder = tempfile::tempdir().unwrap();
    let log = opened(sparse(folder.path()));
    for (start_time, format, wanted) in [
        (9, Format::JsonLines, vec![1, 1, 1]),
        // the headings are text
        (9, Format::Csv, vec![1, 1, 1]),
        (10, Format::Csv, vec![0]),
        (0, Format::JsonLines, vec![16, 16, 8]),
    ] {
        let ranges = Ranges { start_time: Some(start_time), ..Ranges::default() };
        let options =
            LinesOptions { scan: ScanOptions { ranges, ..ScanOptions::default() }, format, ..offsets() };
        let progress = Progress::default();
        let mut lines = Lines::new(std::iter::once(Ok(log.clone())), options, progress.clone());
        let mut found = Vec::new();
        while let Some(block) = lines.next_block().unwrap() {
            found.push(block.rows);
            assert!(progress.stats().bytes_read <= (found.len() as u64 * 18) << 20);
        }
        assert_eq!(found, wanted, "{start_time} {format:?}");
    }
}

#[test]
fn an_interrupt_is_returned_after_the_rows_before_it() {
    static CHECKS_LEFT: AtomicI32 = AtomicI32::new(i32::MAX);
    let folder = tempfile::tempdir().unwrap();
    let interrupt = Interrupt(|| match CHECKS_LEFT.fetch_sub(1, Ordering::Relaxed) {
        1.. => Ok(()),
        _ => Err("stop".into()),
    });
    let log = Log::open(sparse(folder.path()), LogOptions { interrupt, ..LogOptions::default() }).unwrap();
    log.log_end_offset().unwrap();
    CHECKS_LEFT.store(4, Ordering::Relaxed);
    let (blocks, error) = read(&log, offsets());
    assert!(matches!(error, Some(Error::Interrupted(_))), "{error:?}");
    assert!((1..=4).contains(&rows(&blocks)), "{}", rows(&blocks));
}

#[test]
fn csv_without_a_row_has_its_headings() {
    let log = opened(PLAIN);
    for limit in [None, Some(0)] {
        let ranges = Ranges { start_offset: Some(1500), ..Ranges::default() };
        let scan = ScanOptions { ranges, ..ScanOptions::default() };
        let options = LinesOptions { scan, format: Format::Csv, limit, ..LinesOptions::default() };
        let (blocks, _) = read(&log, options);
        assert_eq!(
            text(&blocks),
            "\"offset\",\"timestamp\",\"timestamp_type\",\"key\",\"value\",\"headers\"\n"
        );
        assert_eq!(rows(&blocks), 0);
    }
}

#[test]
fn several_logs_are_read_one_after_another() {
    let log = opened(PLAIN);
    let progress = Progress::default();
    let options = LinesOptions { columns: vec![Column::Topic, Column::Offset], ..LinesOptions::default() };
    let logs = [opened("../golden/01-small/tickets-0"), log].into_iter().map(Ok);
    let mut lines = Lines::new(logs, LinesOptions { limit: Some(380), ..options }, progress.clone());
    let blocks: Vec<_> = std::iter::from_fn(|| lines.next_block().unwrap()).collect();
    assert_eq!(rows(&blocks), 380);
    assert_eq!(progress.stats().records, 380);
    assert!(text(&blocks).ends_with("\"offset\": 9}\n"));
}
