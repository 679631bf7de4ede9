//! Edge cases of the writer: interrupted changes, files that another process wrote, and limits.

use std::fs;
use std::path::{Path, PathBuf};

use cordwood::Error;
use cordwood::config::LogConfig;
use cordwood::log::{Log, LogOptions, OnDamage, Ranges, ScanOptions, ScanStep};
use cordwood::record::{BatchBuilder, BatchOptions, Codec, NewRecord};
use cordwood::types::{Io, TimestampType};
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

/// The largest relative offset that an index can store.
const MAX_RELATIVE: i64 = i32::MAX as i64;

#[test]
fn offsets_too_far_apart_for_one_segment_are_refused_in_one_append_and_roll_in_several() {
    let folder = in_memory();
    let path = folder.path().join("orders-0");
    let mut writer = LogWriter::open(&path, &options()).unwrap();
    for base in [0, 100] {
        let before = bytes_of(&path);
        let end = writer.log_end_offset();
        let both = [batch(end), batch(end + MAX_RELATIVE + 1)].concat();
        let error = writer.append_batches(&both, true).unwrap_err();
        assert!(matches!(error, Error::InvalidRecord { argument: "raw", .. }), "{error}");
        assert_eq!(bytes_of(&path), before);
        assert_eq!(writer.log_end_offset(), end);
        writer.append_batches(&batch(base), true).unwrap();
    }
    // relative to the segment's base offset, 0: the last offset that fits, and the first that does not
    writer.append_batches(&batch(MAX_RELATIVE), true).unwrap();
    assert_eq!(segments(&path), [0]);
    writer.append_batches(&batch(MAX_RELATIVE + 1), true).unwrap();
    assert_eq!(segments(&path), [0, MAX_RELATIVE + 1]);
    // far above, in a new segment
    let far = 3 * MAX_RELATIVE;
    writer.append_batches(&batch(far), true).unwrap();
    assert_eq!(segments(&path), [0, MAX_RELATIVE + 1, far]);
    drop(writer);
    for _ in 0..2 {
        let mut writer = LogWriter::open(&path, &options()).unwrap();
        assert_eq!(writer.log_end_offset(), far + 1);
        let log = writer.reader().unwrap();
        for offset in [0, 100, MAX_RELATIVE, MAX_RELATIVE + 1, far] {
            assert_eq!(log.locate(offset).unwrap().unwrap().batch_base_offset, offset);
        }
        writer.close().unwrap();
    }
}

#[test]
fn indexes_without_a_log_are_not_used_for_a_new_segment() {
    let (folder, other) = (in_memory(), in_memory());
    let [clean, with_indexes] = [&other, &folder].map(|folder| folder.path().join("orders-0"));
    fs::create_dir(&with_indexes).unwrap();
    // of a log that was lost in a crash: an index as it is during writing, and as it is after a close
    fs::write(with_indexes.join("00000000000000000000.index"), vec![0; 1024]).unwrap();
    fs::write(with_indexes.join("00000000000000000000.timeindex"), [0x7f; 1020]).unwrap();
    for path in [&clean, &with_indexes] {
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
    assert_eq!(named(&with_indexes), named(&clean));
}

#[test]
fn a_flush_interval_of_messages_is_counted_from_the_last_sync_also_after_a_truncation() {
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
fn an_emptied_log_keeps_its_new_start_if_the_lines_of_its_data_directory_were_not_rewritten() {
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
    // as after a crash between the two changes
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

/// Options with which segments are larger on disk than their data until they are sealed.
fn preallocated() -> WriterOptions {
    let config = LogConfig { segment_bytes: 4096, preallocate: true, ..options().config };
    WriterOptions { config, flush: FlushMode::None, ..options() }
}

/// The result, or `None` if the log has changed since it was opened. Any other error is a failure.
fn unless_changed<T>(result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(result) => Some(result),
        Err(Error::LogChanged { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn readers_during_rolls_of_preallocated_segments_find_no_damage() {
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
    let (mut results, mut last) = (0, 0);
    while !appending.is_finished() {
        log = log.refresh().unwrap();
        for log in [&log, &Log::open(&path, LogOptions::default()).unwrap()] {
            let Some(end) = unless_changed(log.log_end_offset()) else { continue };
            assert!(end >= last, "{end} after {last}");
            last = end;
            if let Some(at) = (end > 0).then(|| unless_changed(log.locate(end - 1))).flatten() {
                assert_eq!(at.unwrap().batch_base_offset, end - 1);
                results += 1;
                // across segments: each has about 50 batches
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
    assert!(results > 10 && segments(&path).len() > 100, "{results} results");
    writer.close().unwrap();
    assert_eq!(log.refresh().unwrap().log_end_offset().unwrap(), 20_000);
}

/// The number of batches of a log.
fn steps(log: &Log) -> Result<usize, Error> {
    let mut scan = log.scan(ScanOptions::default())?;
    let mut count = 0;
    while scan.next_step()?.is_some() {
        count += 1;
    }
    Ok(count)
}

#[test]
fn a_roll_of_a_preallocated_segment_is_no_change_for_a_reader_that_knows_its_end() {
    for io in [Io::Auto, Io::Pread] {
        let folder = in_memory();
        let path = folder.path().join("orders-0");
        let mut writer = LogWriter::open(&path, &preallocated()).unwrap();
        for number in 0..20 {
            writer.append(&record(1000 + number)).unwrap();
        }
        let options = || LogOptions { io, ..LogOptions::default() };
        let logs = [
            writer.reader().unwrap(),
            Log::open(&path, options()).unwrap(),
            // its file is open already, for more than its data
            Log::open(&path, options()).unwrap(),
        ];
        assert_eq!(logs[1].log_end_offset().unwrap(), 20);
        assert_eq!(logs[2].locate(3).unwrap().unwrap().batch_base_offset, 3);
        assert_eq!(logs[2].log_end_offset().unwrap(), 20);
        for number in 0..10 {
            writer.append(&record(2000 + number)).unwrap();
        }
        writer.roll().unwrap();
        for (number, log) in logs.iter().enumerate() {
            assert_eq!(log.log_end_offset().unwrap(), 20);
            assert_eq!(steps(log).unwrap(), 20, "{io:?} {number}");
            assert_eq!(log.locate(19).unwrap().unwrap().batch_base_offset, 19);
        }
        // a file that lost data
        let file = fs::OpenOptions::new().write(true).open(path.join("00000000000000000000.log")).unwrap();
        file.set_len(100).unwrap();
        for log in &logs[1..] {
            assert!(matches!(steps(log), Err(Error::LogChanged { .. })));
        }
    }
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
fn a_reader_of_a_preallocated_segment_does_not_see_later_appends() {
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
fn a_log_has_a_segment_at_any_time_while_all_records_are_removed() {
    let folder = in_memory();
    let path = folder.path().join("orders-0");
    let mut writer = LogWriter::open(&path, &preallocated()).unwrap();
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let reading = path.clone();
    let reader = std::thread::spawn(move || {
        let mut checks = 0;
        while is_done.try_recv().is_err() {
            let log = Log::open(&reading, LogOptions::default()).unwrap();
            if let Some(end) = unless_changed(log.log_end_offset()) {
                assert!(log.log_start_offset() <= end, "{} to {end}", log.log_start_offset());
                checks += 1;
            }
        }
        checks
    });
    for turn in 0..300 {
        for number in 0..70 {
            writer.append(&record(1000 + number)).unwrap();
        }
        // above the log end, below the log start, at it, inside the first segment, inside the last segment
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
