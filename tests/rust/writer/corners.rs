//! Corners of the writer in which only a part of what it does has happened, or what is there is not what it made.

use std::fs;
use std::path::{Path, PathBuf};

use cordwood::Error;
use cordwood::config::LogConfig;
use cordwood::log::{Log, LogOptions, OnDamage, Ranges, ScanOptions, ScanStep};
use cordwood::record::{BatchBuilder, BatchOptions, Codec, NewRecord};
use cordwood::types::TimestampType;
use cordwood::writer::{FlushMode, LogWriter, WriterOptions};

use crate::support::reading::all;

fn options() -> WriterOptions {
    let config = LogConfig {
        index_interval_bytes: 1,
        segment_index_bytes: 1024,
        message_timestamp_after_max_ms: i64::MAX,
        ..LogConfig::default()
    };
    WriterOptions { config, clock: || 1_000_000, ..WriterOptions::default() }
}

fn in_memory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

fn record(timestamp: i64) -> NewRecord<'static> {
    NewRecord { timestamp, key: None, value: Some(b"value"), headers: &[] }
}

/// A batch of one record.
fn batch(base_offset: i64) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    builder.append(&record(1000)).unwrap();
    let options = BatchOptions {
        base_offset,
        leader_epoch: 0,
        codec: Codec::None,
        level: None,
        timestamp_type: TimestampType::CreateTime,
        log_append_time: -1,
    };
    let mut bytes = Vec::new();
    builder.finish(&options, &mut bytes).unwrap();
    bytes
}

fn segments(path: &Path) -> Vec<i64> {
    let log = Log::open(path, LogOptions::default()).unwrap();
    log.segments().iter().map(|segment| segment.base_offset()).collect()
}

fn bytes_of(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

/// The largest relative offset that an index has room for.
const FARTHEST: i64 = i32::MAX as i64;

#[test]
fn offsets_too_far_apart_for_one_segment_are_refused_together_and_roll_one_after_another() {
    let folder = in_memory();
    let path = folder.path().join("orders-0");
    let mut writer = LogWriter::open(&path, &options()).unwrap();
    for base in [0, 100] {
        let before = bytes_of(&path);
        let end = writer.log_end_offset();
        let both = [batch(end), batch(end + FARTHEST + 1)].concat();
        let error = writer.append_batches(&both, true).unwrap_err();
        assert!(matches!(error, Error::InvalidRecord { argument: "raw", .. }), "{error}");
        assert_eq!(bytes_of(&path), before);
        assert_eq!(writer.log_end_offset(), end);
        writer.append_batches(&batch(base), true).unwrap();
    }
    // relative to the segment's base offset, 0: the last one that fits, and the first one that does not
    writer.append_batches(&batch(FARTHEST), true).unwrap();
    assert_eq!(segments(&path), [0]);
    writer.append_batches(&batch(FARTHEST + 1), true).unwrap();
    assert_eq!(segments(&path), [0, FARTHEST + 1]);
    // far ahead, in a segment of its own
    let far = 3 * FARTHEST;
    writer.append_batches(&batch(far), true).unwrap();
    assert_eq!(segments(&path), [0, FARTHEST + 1, far]);
    drop(writer);
    for _ in 0..2 {
        let mut writer = LogWriter::open(&path, &options()).unwrap();
        assert_eq!(writer.log_end_offset(), far + 1);
        let log = writer.reader().unwrap();
        for offset in [0, 100, FARTHEST, FARTHEST + 1, far] {
            assert_eq!(log.locate(offset).unwrap().unwrap().batch_base_offset, offset);
        }
        writer.close().unwrap();
    }
}

#[test]
fn indexes_without_their_log_are_not_taken_for_those_of_a_new_segment() {
    let (folder, other) = (in_memory(), in_memory());
    let [clean, littered] = [&other, &folder].map(|folder| folder.path().join("orders-0"));
    fs::create_dir(&littered).unwrap();
    // of a log that a crash took, as they are while it is written, and once it is closed
    fs::write(littered.join("00000000000000000000.index"), vec![0; 1024]).unwrap();
    fs::write(littered.join("00000000000000000000.timeindex"), [0x7f; 1020]).unwrap();
    for path in [&clean, &littered] {
        let mut writer = LogWriter::open(path, &options()).unwrap();
        for number in 0..5 {
            writer.append(&record(1000 + number)).unwrap();
        }
        writer.roll().unwrap();
        writer.append(&record(2000)).unwrap();
        writer.close().unwrap();
    }
    let named = |path: &Path| -> Vec<_> {
        let files = bytes_of(path).into_iter();
        files.map(|(path, bytes)| (path.file_name().unwrap().to_owned(), bytes)).collect()
    };
    assert_eq!(named(&littered), named(&clean));
}

#[test]
fn an_interval_of_messages_is_counted_from_the_last_sync_also_behind_a_truncation() {
    let folder = in_memory();
    let path = folder.path().join("orders-0");
    let flush = FlushMode::Interval { messages: Some(3), ms: None };
    let mut writer = LogWriter::open(&path, &WriterOptions { flush, ..options() }).unwrap();
    let mut durable = Vec::new();
    for number in 0..5 {
        writer.append(&record(1000 + number)).unwrap();
        durable.push(writer.durable_offset());
    }
    assert_eq!(durable, [0, 0, 3, 3, 3]);
    writer.truncate_to(1).unwrap();
    assert_eq!(writer.durable_offset(), 1);
    durable.clear();
    for number in 0..7 {
        writer.append(&record(1000 + number)).unwrap();
        durable.push(writer.durable_offset());
    }
    assert_eq!(durable, [1, 1, 4, 4, 4, 7, 7]);
}

#[test]
fn a_log_that_was_emptied_while_the_lines_of_its_data_directory_were_not_rewritten_starts_where_it_was_told()
{
    let folder = in_memory();
    let path = folder.path().join("orders-0");
    fs::create_dir(&path).unwrap();
    fs::write(folder.path().join("meta.properties"), "version=1\nbroker.id=0\ncluster.id=x\n").unwrap();
    let lines = folder.path().join("log-start-offset-checkpoint");
    fs::write(&lines, "0\n0\n").unwrap();
    let mut writer = LogWriter::open(&path, &options()).unwrap();
    for number in 0..600 {
        writer.append(&record(1000 + number)).unwrap();
    }
    writer.delete_before(500).unwrap();
    let before = fs::read_to_string(&lines).unwrap();
    assert!(before.contains("orders 0 500"), "{before}");
    writer.truncate_fully_and_start_at(0).unwrap();
    drop(writer);
    // as if the crash had come between the two
    fs::write(&lines, before).unwrap();
    let mut writer = LogWriter::open(&path, &options()).unwrap();
    assert_eq!((writer.log_start_offset(), writer.log_end_offset()), (0, 0));
    for number in 0..600 {
        writer.append(&record(1000 + number)).unwrap();
    }
    writer.close().unwrap();
    let log = Log::open(&path, LogOptions::default()).unwrap();
    assert_eq!((log.log_start_offset(), log.log_end_offset().unwrap()), (0, 600));
    let writer = LogWriter::open(&path, &options()).unwrap();
    assert_eq!(writer.log_start_offset(), 0);
}

/// Segments that are larger on disk than what they hold, until they are sealed.
fn preallocated() -> WriterOptions {
    let config = LogConfig { segment_bytes: 4096, preallocate: true, ..options().config };
    WriterOptions { config, flush: FlushMode::None, ..options() }
}

/// The answer, if the log is still what it was when it was opened; no other error will do.
fn unless_changed<T>(answer: Result<T, Error>) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        Err(Error::LogChanged { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn readers_beside_rolls_of_preallocated_segments_find_no_damage() {
    let folder = in_memory();
    let path = folder.path().join("orders-0");
    let mut writer = LogWriter::open(&path, &preallocated()).unwrap();
    let appender = writer.appender();
    let appending = std::thread::spawn(move || {
        for number in 0..20_000 {
            appender.append(&record(1000 + number)).unwrap();
        }
    });
    let mut log = Log::open(&path, LogOptions::default()).unwrap();
    let (mut answers, mut last) = (0, 0);
    while !appending.is_finished() {
        log = log.refresh().unwrap();
        for log in [&log, &Log::open(&path, LogOptions::default()).unwrap()] {
            let Some(end) = unless_changed(log.log_end_offset()) else { continue };
            assert!(end >= last, "{end} after {last}");
            last = end;
            if let Some(at) = (end > 0).then(|| unless_changed(log.locate(end - 1))).flatten() {
                assert_eq!(at.unwrap().batch_base_offset, end - 1);
                answers += 1;
                // across the ends of segments: one holds about 50 batches
                let ranges = Ranges {
                    start_offset: Some((end - 120).max(0)),
                    end_offset: Some(end),
                    ..Ranges::default()
                };
                let mut scan = log.scan(ScanOptions { ranges, ..ScanOptions::default() }).unwrap();
                let mut next = (end - 120).max(0);
                while let Some(step) = unless_changed(scan.next_step()) {
                    let Some(step) = step else {
                        assert_eq!(next, end);
                        break;
                    };
                    assert!(
                        matches!(step, ScanStep::Batch(batch) if batch.header.base_offset == next),
                        "{next}"
                    );
                    next += 1;
                }
            }
        }
    }
    appending.join().unwrap();
    assert!(answers > 10 && segments(&path).len() > 100, "{answers} answers");
    writer.close().unwrap();
    assert_eq!(log.refresh().unwrap().log_end_offset().unwrap(), 20_000);
}

#[test]
fn retention_by_size_counts_the_data_of_a_preallocated_segment() {
    let folder = in_memory();
    let path = folder.path().join("orders-0");
    let config = LogConfig { retention_bytes: 4096, retention_ms: -1, ..preallocated().config };
    let mut writer = LogWriter::open(&path, &WriterOptions { config, ..preallocated() }).unwrap();
    while writer.log_end_offset() < 60 {
        writer.append(&record(1000)).unwrap();
    }
    assert_eq!(segments(&path).len(), 2);
    // 60 batches of less than 80 bytes: a little more than a segment, in two files of 4,096 bytes
    assert_eq!(writer.apply_retention(None).unwrap().segments, [0; 0]);
}

#[test]
fn a_reader_of_a_preallocated_segment_stays_as_it_was() {
    let folder = in_memory();
    let mut writer = LogWriter::open(folder.path().join("orders-0"), &preallocated()).unwrap();
    for offset in 1..20 {
        writer.append(&record(1000)).unwrap();
        let reader = writer.reader().unwrap();
        writer.append_many(&[record(1001)]).unwrap();
        assert_eq!(reader.log_end_offset().unwrap(), 2 * offset - 1);
        assert_eq!(all(&reader, OnDamage::Raise).records().count() as i64, 2 * offset - 1);
        assert_eq!(
            reader.offset_for_time(1001).unwrap().map(|found| found.offset),
            (offset > 1).then_some(1)
        );
        assert_eq!(reader.locate(2 * offset - 1).unwrap_err().code(), "offset_out_of_range");
    }
}

#[test]
fn a_log_is_never_without_a_segment_while_it_is_started_anew() {
    let folder = in_memory();
    let path = folder.path().join("orders-0");
    let mut writer = LogWriter::open(&path, &preallocated()).unwrap();
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let reading = path.clone();
    let reader = std::thread::spawn(move || {
        let mut looked = 0;
        while is_done.try_recv().is_err() {
            let log = Log::open(&reading, LogOptions::default()).unwrap();
            if let Some(end) = unless_changed(log.log_end_offset()) {
                assert!(log.log_start_offset() <= end, "{} to {end}", log.log_start_offset());
                looked += 1;
            }
        }
        looked
    });
    for turn in 0..300 {
        for number in 0..70 {
            writer.append(&record(1000 + number)).unwrap();
        }
        // beyond the log's end, below its start, at it, inside its first segment, inside its last one
        let (start, end) = (writer.log_start_offset(), writer.log_end_offset());
        let offset = [end + 1, end + 3, start - 1, start, start + 1, end - 1][turn % 6];
        writer.truncate_fully_and_start_at(offset).unwrap();
        assert_eq!((writer.log_start_offset(), writer.log_end_offset()), (offset, offset));
        let names = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
        assert_eq!(names.filter(|name| name.extension().is_some_and(|kind| kind == "log")).count(), 1);
    }
    done.send(()).unwrap();
    assert!(reader.join().unwrap() > 10);
}
