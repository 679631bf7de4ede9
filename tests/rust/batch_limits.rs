//! Records that are more than one batch can hold.

use std::path::Path;

use cordwood::Error;
use cordwood::config::{CompressionType, LogConfig};
use cordwood::log::{FlushMode, Log, LogOptions, LogWriter, ScanOptions, ScanStep, WriterOptions};
use cordwood::record::{MAX_BATCH_BYTES, NewRecord};

const MIB: usize = 1 << 20;

fn open(path: &Path, config: LogConfig) -> LogWriter {
    let options = WriterOptions { config, flush: FlushMode::None, ..WriterOptions::default() };
    LogWriter::open(path, &options).unwrap()
}

/// How many records each batch has, and its bytes.
fn batches(path: &Path) -> Vec<(usize, usize)> {
    let log = Log::open(path, LogOptions::default()).unwrap();
    let mut scan = log.scan(ScanOptions { batches_only: true, ..ScanOptions::default() }).unwrap();
    let mut found = Vec::new();
    while let Some(step) = scan.next_step().unwrap() {
        if let ScanStep::Batch(batch) = step {
            let header = batch.header;
            let count = usize::try_from(header.last_offset - header.base_offset + 1).unwrap();
            found.push((count, usize::try_from(header.size).unwrap()));
        }
    }
    found
}

#[test]
fn many_records_are_split_at_what_any_batch_may_hold_whatever_the_settings_allow() {
    let folder = tempfile::tempdir().unwrap();
    let value = vec![b'x'; MIB];
    let records = vec![NewRecord { value: Some(&value), ..NewRecord::default() }; 130];
    for (name, compression_type) in
        [("plain-0", CompressionType::Producer), ("packed-0", CompressionType::Snappy)]
    {
        let path = folder.path().join(name);
        let config = LogConfig {
            max_message_bytes: i32::MAX.cast_unsigned(),
            compression_type,
            ..LogConfig::default()
        };
        let mut writer = open(&path, config);
        let appended = writer.append_many(&records).unwrap();
        assert_eq!((appended.first, appended.last), (0, 129));
        writer.close().unwrap();
        let found = batches(&path);
        // 127 and not 128: each record has a few bytes besides its value
        assert_eq!(found.iter().map(|(count, _)| *count).collect::<Vec<_>>(), [127, 3]);
        assert!(found.iter().all(|(_, size)| *size <= MAX_BATCH_BYTES));
    }
}

#[test]
fn a_record_that_fits_into_no_batch_leaves_those_before_it_out_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders-0");
    let mut writer = open(&path, LogConfig { max_message_bytes: 1000, ..LogConfig::default() });
    let small = NewRecord { value: Some(&[0; 400]), ..NewRecord::default() };
    let large = NewRecord { value: Some(&[0; 1000]), ..NewRecord::default() };
    let refused = writer.append_many(&[small, small, small, large]).unwrap_err();
    assert!(matches!(refused, Error::Config { .. }), "{refused}");
    assert!(refused.to_string().contains("record 3 alone"), "{refused}");
    assert_eq!(writer.log_end_offset(), 0);
    assert_eq!(writer.append_many(&[small, small, small]).unwrap().last, 2);
}
