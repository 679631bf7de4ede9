//! A stream over growing logs returns every record once, whatever its limit, and continues from every
//! position.

use std::collections::VecDeque;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cordwood::plan::{Context, LogCache, Query, Stream};
use proptest::prelude::*;
use serde_json::json;

use crate::support::batches::{BatchV2, Built, Rec};
use crate::support::fixed_seed;
use crate::support::generated::{ALL, PLAIN, batches, steps};
use crate::support::naive;
use crate::support::partition::{Indexing, PartitionBuilder, file_name};
use crate::support::planning::{COLUMNS, Row, asked, cache, naive_row, name_of, query, read_task};
use crate::support::reading::folder;

type Options<'a> = &'a [(&'a str, &'a str)];

fn stream(logs: &Arc<LogCache>, path: &Path, options: Options<'_>) -> Stream {
    let options =
        [options, &[("columns", COLUMNS), ("subscribe", "a,b"), ("cleanupPolicy", "compact")]].concat();
    Stream::new(query(&asked(path, &options)), Context::new(Arc::clone(logs))).unwrap()
}

/// The rows of a micro-batch. A stream may be another one than that which found its end.
fn rows(logs: &Arc<LogCache>, stream: &mut Stream, start: &str, end: &str) -> Vec<Row> {
    let tasks = stream.plan(start, end).unwrap();
    let query: Query = stream.query().clone();
    let mut rows = Vec::new();
    for task in &tasks {
        let (read, _, error) = read_task(logs, &query, task);
        assert!(error.is_none(), "{error:?}");
        rows.extend(read.rows);
    }
    rows
}

/// The positions from one on, up to the end of the logs, and the rows between them.
fn follow(logs: &Arc<LogCache>, stream: &mut Stream, start: &str) -> (Vec<String>, Vec<Row>) {
    let (mut positions, mut all) = (vec![start.to_owned()], Vec::new());
    let limit = stream.max_offsets_per_trigger();
    // the first micro-batch is empty
    for _ in 0..2 {
        loop {
            let start = positions.last().unwrap().clone();
            let end = stream.latest_offset(&start, limit).unwrap();
            if end == start {
                break;
            }
            assert_eq!(stream.latest_offset(&start, limit).unwrap(), end, "the same text for the same state");
            all.extend(rows(logs, stream, &start, &end));
            positions.push(end);
        }
    }
    (positions, all)
}

/// The rows of a naive reader.
fn naive_rows(dir: &Path, level: &str) -> Vec<Row> {
    let (topic, partition) = name_of(dir);
    let log = naive::read(dir).unwrap();
    let row = |record: &naive::Record| naive_row(&topic, partition.into(), record);
    if level == "read_committed" {
        log.scan_committed(0..i64::MAX, None, false).map(row).collect()
    } else {
        log.scan(0..i64::MAX, None, false).map(row).collect()
    }
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort();
    rows
}

/// A log that grows as a broker writes it: batches are appended to the last segment, and sometimes a segment
/// begins.
struct Growing {
    dir: PathBuf,
    rest: VecDeque<Built>,
    segment: PathBuf,
}

impl Growing {
    fn new(parent: &Path, name: &str, batches: Vec<Built>) -> Self {
        let mut rest: VecDeque<_> = batches.into();
        let first = rest.pop_front();
        let dir = PartitionBuilder::new(Indexing::every(100)).segment(0, first).write(parent, name);
        Self { segment: dir.join(file_name(0, "log")), dir, rest }
    }

    fn grow(&mut self, count: usize, rolls: bool) {
        for number in 0..count {
            let Some(batch) = self.rest.pop_front() else { return };
            if rolls && number == 0 {
                self.segment = self.dir.join(file_name(batch.base_offset, "log"));
            }
            let mut file = fs::OpenOptions::new().append(true).create(true).open(&self.segment).unwrap();
            file.write_all(&batch.bytes).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(fixed_seed(25))]

    #[test]
    fn every_record_is_returned_once_and_resumed_from_every_position(
        partitions in proptest::collection::vec(steps(&ALL, 12), 1..4),
        limit in proptest::option::of(1u64..40),
        level in proptest::sample::select(&["read_uncommitted", "read_committed"][..]),
    ) {
        let (logs, folder) = (cache(), folder());
        let mut wanted = Vec::new();
        for (steps, name) in partitions.iter().zip(["a-0", "a-1", "b-0"]) {
            let dir = PartitionBuilder::rolled(Indexing::every(200), 400, batches(steps)).write(folder.path(), name);
            wanted.extend(naive_rows(&dir, level));
        }
        let limit = limit.map(|limit| limit.to_string());
        let mut options = vec![("startingOffsets", "earliest"), ("isolationLevel", level)];
        options.extend(limit.as_deref().map(|limit| ("maxOffsetsPerTrigger", limit)));
        if partitions.len() < 3 {
            // b does not exist
            options.push(("failOnDataLoss", "false"));
        }
        let mut first = stream(&logs, folder.path(), &options);
        let start = first.initial_offset().unwrap();
        assert_eq!(first.latest_offset(&start, Some(1)).unwrap(), start, "the first micro-batch is empty");
        let (positions, found) = follow(&logs, &mut first, &start);
        assert_eq!(sorted(found), sorted(wanted.clone()));
        let last = positions.last().unwrap();
        for (place, position) in positions.iter().enumerate() {
            let mut resumed = stream(&logs, folder.path(), &options);
            let (again, rest) = follow(&logs, &mut resumed, position);
            assert_eq!(&again, &positions[place..], "the same positions");
            let before = rows(&logs, &mut resumed, &positions[0], position);
            assert_eq!(sorted([before, rest].concat()), sorted(wanted.clone()));
            // a repeated micro-batch
            let all = rows(&logs, &mut stream(&logs, folder.path(), &options), position, last);
            assert_eq!(sorted(all), sorted(again_rows(&logs, &mut resumed, &positions[place..])));
        }
    }

    #[test]
    fn every_plain_offset_is_a_position(steps in steps(&PLAIN, 8), limit in 1u64..20) {
        let (logs, folder) = (cache(), folder());
        let dir = PartitionBuilder::rolled(Indexing::every(200), 400, batches(&steps)).write(folder.path(), "a-0");
        let all = naive_rows(&dir, "read_uncommitted");
        let end = batches(&steps).last().unwrap().next_offset();
        let options = [("maxOffsetsPerTrigger", limit.to_string()), ("failOnDataLoss", "false".to_owned())];
        let options = options.each_ref().map(|(name, text)| (*name, text.as_str()));
        for offset in 0..=end {
            let position = json!({ "a": { "0": offset } }).to_string();
            let (_, found) = follow(&logs, &mut stream(&logs, folder.path(), &options), &position);
            let wanted: Vec<Row> = all.iter().filter(|row| row[2].int() >= offset).cloned().collect();
            assert_eq!(found, wanted, "from {offset}");
        }
    }

    #[test]
    fn records_that_are_appended_meanwhile_are_returned_once(
        partitions in proptest::collection::vec(steps(&ALL, 20), 2..3),
        growths in proptest::collection::vec((0usize..4, 0usize..4, any::<bool>()), 1..12),
        limit in proptest::option::of(1u64..30),
        is_fresh in any::<bool>(),
    ) {
        let (logs, folder) = (cache(), folder());
        let mut growing: Vec<Growing> = partitions
            .iter()
            .zip(["a-0", "b-7"])
            .map(|(steps, name)| Growing::new(folder.path(), name, batches(steps)))
            .collect();
        let limit = limit.map(|limit| limit.to_string());
        let mut options = vec![("startingOffsets", "earliest")];
        options.extend(limit.as_deref().map(|limit| ("maxOffsetsPerTrigger", limit)));
        let mut current = stream(&logs, folder.path(), &options);
        let (mut position, mut found) = (current.initial_offset().unwrap(), Vec::new());
        for (first, second, rolls) in growths {
            growing[0].grow(first, rolls);
            growing[1].grow(second, false);
            if is_fresh {
                // the query was started again
                current = stream(&logs, folder.path(), &options);
            }
            let limit = current.max_offsets_per_trigger();
            let end = current.latest_offset(&position, limit).unwrap();
            if end != position {
                found.extend(rows(&logs, &mut current, &position, &end));
                position = end;
            }
        }
        found.extend(follow(&logs, &mut current, &position).1);
        let wanted: Vec<Row> =
            growing.iter().flat_map(|log| naive_rows(&log.dir, "read_uncommitted")).collect();
        assert_eq!(sorted(found), sorted(wanted));
    }

    /// With `availableNow` a query ends where the logs ended when it began.
    #[test]
    fn an_available_stream_ends_at_its_target(
        steps in steps(&PLAIN, 20), grown in 0usize..5, limit in 1u64..30,
    ) {
        let (logs, folder) = (cache(), folder());
        let mut growing = Growing::new(folder.path(), "a-0", batches(&steps));
        growing.grow(grown, false);
        let before = naive_rows(&growing.dir, "read_uncommitted");
        let text = limit.to_string();
        let options =
            [("startingOffsets", "earliest"), ("maxOffsetsPerTrigger", text.as_str()), ("failOnDataLoss", "false")];
        let mut stream = stream(&logs, folder.path(), &options);
        stream.prepare_available_now().unwrap();
        growing.grow(100, true);
        let start = stream.initial_offset().unwrap();
        let (_, found) = follow(&logs, &mut stream, &start);
        assert_eq!(found, before);
    }
}

fn again_rows(logs: &Arc<LogCache>, stream: &mut Stream, positions: &[String]) -> Vec<Row> {
    positions.windows(2).flat_map(|pair| rows(logs, stream, &pair[0], &pair[1])).collect()
}

#[test]
fn a_micro_batch_exceeds_its_limit_by_at_most_one_offset_of_each_other_partition() {
    let (logs, folder) = (cache(), folder());
    for (name, count) in [("a-0", 60), ("a-1", 3), ("b-0", 1)] {
        let batch = |offset| BatchV2::new(offset).record(Rec::at(offset).value("value")).build();
        PartitionBuilder::new(Indexing::every(100))
            .segment(0, (0..count).map(batch))
            .write(folder.path(), name);
    }
    for limit in [1u64, 2, 3, 5, 10, 64, 100] {
        let text = limit.to_string();
        let mut stream =
            stream(&logs, folder.path(), &[("startingOffsets", "earliest"), ("maxOffsetsPerTrigger", &text)]);
        let start = stream.initial_offset().unwrap();
        let (positions, found) = follow(&logs, &mut stream, &start);
        for pair in positions.windows(2) {
            let found = rows(&logs, &mut stream, &pair[0], &pair[1]).len() as u64;
            assert!(found <= limit + 2, "{found} of {limit}");
        }
        assert_eq!(found.len(), 64);
    }
}
