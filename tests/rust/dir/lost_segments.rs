//! Partitions without a segment: those that lost one, and those that never had a record or deleted all of
//! them.

use std::fs;
use std::path::Path;

use cordwood::record::NewRecord;
use cordwood::writer::{LogWriter, WriterOptions};
use cordwood::{Error, LogDir, LogOptions};

use crate::support::reading::folder;

/// Removes every file of a segment.
fn remove_segments(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with("0000") {
            fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn a_data_directory_and_a_writer_agree_whether_a_partition_without_a_segment_has_lost_records() {
    // the number of records, the new log start offset, and whether records are lost with the segments
    for (records, start, is_lost) in
        [(0, None, false), (5, None, true), (5, Some(3), true), (5, Some(5), false)]
    {
        let parent = folder();
        fs::write(parent.path().join("meta.properties"), "version=0\nbroker.id=1\n").unwrap();
        let dir = parent.path().join("t-0");
        let mut writer = LogWriter::open(&dir, &WriterOptions::default()).unwrap();
        for _ in 0..records {
            writer.append(&NewRecord { timestamp: 1, value: Some(b"v"), ..NewRecord::default() }).unwrap();
        }
        if let Some(start) = start {
            writer.delete_before(start).unwrap();
        }
        writer.close().unwrap();
        drop(writer);
        remove_segments(&dir);
        // a broker removes the partition's line after it has deleted segments
        fs::remove_file(parent.path().join("log-start-offset-checkpoint")).ok();
        let logs = LogDir::open(parent.path(), LogOptions::default(), &[]).unwrap();
        let read = logs.log("t-0").unwrap_err();
        assert_eq!(matches!(read, Error::Corrupt { .. }), is_lost, "{records} {start:?}: {read}");
        let written = LogWriter::open(&dir, &WriterOptions::default());
        assert_eq!(written.is_err(), is_lost, "{records} {start:?}: {written:?}");
    }
}
