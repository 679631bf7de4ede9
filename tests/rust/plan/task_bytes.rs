//! Tasks as bytes: a round trip, and other bytes, which are an error or a task but nothing worse.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use cordwood::log::{PlannedSegment, Split};
use cordwood::plan::{Code, Context, PartitionDirectory, Piece, Task, TaskReader};
use proptest::prelude::*;

use crate::support::fixed_seed;
use crate::support::golden;
use crate::support::planning::{asked, cache, query, run};

fn path() -> impl Strategy<Value = PathBuf> {
    // paths need not be UTF-8
    proptest::collection::vec(any::<u8>(), 0..20).prop_map(|bytes| OsString::from_vec(bytes).into())
}

fn segment() -> impl Strategy<Value = PlannedSegment> {
    (any::<i64>(), any::<u64>(), any::<Option<u32>>(), any::<bool>()).prop_map(
        |(base_offset, size, first_batch_crc, is_last)| PlannedSegment {
            base_offset,
            size,
            first_batch_crc,
            is_last,
        },
    )
}

fn piece() -> impl Strategy<Value = Piece> {
    let place = (path(), proptest::option::of(path()), any::<Option<String>>(), any::<Option<i32>>());
    let range = (any::<[i64; 2]>(), any::<[Option<i64>; 2]>(), any::<u64>());
    let aborted = proptest::option::of(proptest::collection::vec(any::<(i64, i64, i64)>(), 0..5));
    let segments = proptest::collection::vec(segment(), 0..5);
    (place, range, aborted, segments, any::<bool>()).prop_map(
        |((path, other, topic, partition), (offsets, times, size), aborted, segments, is_first)| Piece {
            directory: PartitionDirectory { topic, partition, path: path.clone() },
            split: Split {
                path: other.unwrap_or(path),
                start_offset: offsets[0],
                end_offset: offsets[1],
                start_time: times[0],
                end_time: times[1],
                size,
                aborted,
                segments,
            },
            is_first,
        },
    )
}

fn task() -> impl Strategy<Value = Task> {
    proptest::collection::vec(piece(), 0..4).prop_map(|pieces| Task { pieces })
}

/// Reads bytes, which are not a task or another one that is written as it was read.
fn read(bytes: &[u8]) -> Option<Task> {
    match Task::from_bytes(bytes) {
        Ok(task) => {
            assert_eq!(Task::from_bytes(&task.to_bytes()).unwrap(), task);
            assert!(task.pieces.len() <= bytes.len());
            let _ = task.size();
            Some(task)
        }
        Err(error) => {
            assert_eq!(error.code, Code::BadOption);
            None
        }
    }
}

proptest! {
    #![proptest_config(fixed_seed(200))]

    #[test]
    fn a_task_is_the_same_after_a_round_trip(task in task()) {
        assert_eq!(Task::from_bytes(&task.to_bytes()).unwrap(), task);
    }

    #[test]
    fn a_part_of_a_task_is_refused(task in task()) {
        let bytes = task.to_bytes();
        for length in 0..bytes.len() {
            assert_eq!(read(&bytes[..length]), None, "{length} of {}", bytes.len());
        }
        assert_eq!(read(&[&bytes[..], &[0]].concat()), None, "one byte more");
    }

    #[test]
    fn changed_bytes_are_an_error_or_a_task(task in task(), change in 1u8..) {
        let bytes = task.to_bytes();
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= change;
            let found = read(&changed);
            assert!(place > 0 || found.is_none(), "another version");
        }
    }

    #[test]
    fn random_bytes_are_an_error_or_a_task(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        read(&bytes);
        read(&[&[1][..], &bytes].concat());
    }

    /// Lengths at any place of a task that are far above the bytes after them.
    #[test]
    fn huge_lengths_are_refused(
        task in task(),
        length in proptest::sample::select(&[i64::MAX, i64::MIN, -1, 1 << 31, 1 << 32, 1 << 40, 1 << 62][..]),
    ) {
        let bytes = task.to_bytes();
        let mut huge = Vec::new();
        crate::support::batches::put_varlong(&mut huge, length);
        for place in 1..bytes.len() {
            let inserted = [&bytes[..place], &huge, &bytes[place..]].concat();
            let replaced = [&bytes[..place], &huge, &bytes[place + 1..]].concat();
            let memory = allocation_counter::measure(|| {
                read(&inserted);
                read(&replaced);
            });
            assert!(memory.bytes_max < 1 << 20, "{} bytes at {place}", memory.bytes_max);
        }
    }
}

#[test]
fn many_empty_pieces_need_memory_in_proportion_to_the_bytes() {
    let bytes = Task { pieces: vec![Piece::of_range(bounds()); 10_000] }.to_bytes();
    let memory = allocation_counter::measure(|| drop(Task::from_bytes(&bytes).unwrap()));
    assert!(memory.bytes_max < 64 * bytes.len() as u64, "{} for {}", memory.bytes_max, bytes.len());
}

fn bounds() -> cordwood::plan::Bounds {
    let directory = PartitionDirectory { topic: None, partition: None, path: PathBuf::new() };
    cordwood::plan::Bounds { directory, start_offset: 0, end_offset: 0, continues: false }
}

/// An executor may get a damaged task that is still a task. Reading it is an error, or gives rows, but does
/// not panic or hang.
#[test]
fn changed_tasks_are_read_without_a_panic() {
    let small = golden::intact().into_iter().find(|partition| partition.case == "10-idempotent").unwrap();
    let (mut read_ones, mut refused) = (0, 0);
    for options in [
        vec![],
        vec![("isolationLevel", "read_committed"), ("mode", "PERMISSIVE")],
        vec![("table", "batches")],
        vec![("table", "segments")],
        vec![("failOnDataLoss", "false"), ("mode", "DROPMALFORMED")],
    ] {
        let logs = cache();
        let mut query = query(&asked(&small.dir, &options));
        let task = run(&logs, &query).whole().tasks.swap_remove(0);
        let bytes = task.to_bytes();
        for is_counted in [false, true] {
            if is_counted {
                query = query.counting();
            }
            // the path is at the beginning; with another one there is no log
            let path = small.dir.as_os_str().len();
            for place in path..bytes.len() {
                for change in [1, 0x02, 0x7f, 0x80, 0xff] {
                    let mut changed = bytes.clone();
                    changed[place] ^= change;
                    let Ok(task) = Task::from_bytes(&changed) else { continue };
                    let mut reader =
                        TaskReader::new(Context::new(std::sync::Arc::clone(&logs)), query.clone(), task);
                    loop {
                        match reader.next_batch() {
                            Ok(Some(_)) => {}
                            Ok(None) => break read_ones += 1,
                            Err(error) => {
                                assert_ne!(error.code, Code::Internal, "{error}");
                                break refused += 1;
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(read_ones > 100 && refused > 100, "{read_ones} {refused}");
}
