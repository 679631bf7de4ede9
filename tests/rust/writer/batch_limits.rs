//! Records that do not fit into one batch.

use std::path::Path;

use cordwood::Error;
use cordwood::config::{CompressionType, LogConfig};
use cordwood::log::{Log, LogOptions, ScanOptions, ScanStep};
use cordwood::record::{MAX_BATCH_BYTES, NewRecord};
use cordwood::writer::{FlushMode, LogWriter, WriterOptions};

use crate::support::is_exhaustive;
use crate::support::reading::folder;

const MIB: usize = 1 << 20;

fn open(path: &Path, config: LogConfig) -> LogWriter {
    let options = WriterOptions { config, flush: FlushMode::None, ..WriterOptions::default() };
    LogWriter::open(path, &options).unwrap()
}

/// The number of records and the size of each batch.
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
fn many_records_are_split_at_the_largest_readable_batch_even_if_the_settings_allow_more() {
    let folder = tempfile::tempdir().unwrap();
    let value = vec![b'x'; MIB];
    let records = vec![NewRecord { value: Some(&value), ..NewRecord::default() }; 130];
    // 127 and not 128: each record has a few bytes besides its value, and a codec may add some
    for (name, compression_type, counts) in
        [("plain-0", CompressionType::Producer, [127, 3]), ("packed-0", CompressionType::Snappy, [126, 4])]
    {
        let path = folder.path().join(name);
        let config = LogConfig {
            max_message_bytes: i32::MAX.cast_unsigned(),
            compression_type,
            ..LogConfig::default()
        };
        let mut writer = open(&path, config);
        let appended = writer.append_many(&records).unwrap();
        assert_eq!((appended.first_offset, appended.last_offset), (0, 129));
        writer.close().unwrap();
        let found = batches(&path);
        assert_eq!(found.iter().map(|(count, _)| *count).collect::<Vec<_>>(), counts);
        assert!(found.iter().all(|(_, size)| *size <= MAX_BATCH_BYTES));
    }
}

#[test]
fn a_record_too_large_for_a_batch_prevents_the_append_of_the_records_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders-0");
    let mut writer = open(&path, LogConfig { max_message_bytes: 1000, ..LogConfig::default() });
    let small = NewRecord { value: Some(&[0; 400]), ..NewRecord::default() };
    let large = NewRecord { value: Some(&[0; 1000]), ..NewRecord::default() };
    let refused = writer.append_many(&[small, small, small, large]).unwrap_err();
    assert!(matches!(refused, Error::RecordTooLarge { max_bytes: 1000, .. }), "{refused}");
    assert!(refused.to_string().contains("record 3 alone"), "{refused}");
    assert_eq!(writer.log_end_offset(), 0);
    assert_eq!(writer.append_many(&[small, small, small]).unwrap().last_offset, 2);
}

#[test]
fn records_that_compression_makes_larger_are_split_again() {
    let mut state = 1_u64;
    let mut noise = |length: usize| -> Vec<u8> {
        let mut bytes = vec![0; length.next_multiple_of(4)];
        for four in bytes.chunks_exact_mut(4) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            four.copy_from_slice(&((state >> 32) as u32).to_be_bytes());
        }
        bytes.truncate(length);
        bytes
    };
    let cases = [
        (1_048_588, 1000, 2000),
        (10_000, 100, 1000),
        (1_048_588, 174_000, 60),
        (i32::MAX.cast_unsigned(), MIB - 21, 128),
    ];
    for (limit, length, count) in cases {
        let values: Vec<_> = (0..count).map(|_| noise(length)).collect();
        let records: Vec<_> =
            values.iter().map(|value| NewRecord { value: Some(value), ..NewRecord::default() }).collect();
        // the limit of a batch's size is one for all codecs: the fastest of them is enough for batches of
        // that size
        let codecs =
            [CompressionType::Snappy, CompressionType::Gzip, CompressionType::Lz4, CompressionType::Zstd];
        let is_largest = count as usize * length > 100 * MIB;
        for compression_type in codecs.into_iter().take(if is_largest && !is_exhaustive() { 1 } else { 4 }) {
            let folder = folder();
            let path = folder.path().join("orders-0");
            let config = LogConfig { max_message_bytes: limit, compression_type, ..LogConfig::default() };
            let mut writer = open(&path, config);
            let appended = writer.append_many(&records).unwrap();
            assert_eq!((appended.first_offset, appended.last_offset), (0, count - 1));
            writer.close().unwrap();
            let found = batches(&path);
            assert_eq!(found.iter().map(|(count, _)| *count as i64).sum::<i64>(), count);
            assert!(found.iter().all(|(_, size)| *size <= limit as usize));
            let mut scan =
                Log::open(&path, LogOptions::default()).unwrap().scan(ScanOptions::default()).unwrap();
            let mut next = values.iter();
            while let Some(ScanStep::Batch(_)) = scan.next_step().unwrap() {
                while let Some(record) = scan.next_record().unwrap() {
                    assert_eq!(record.value, next.next().map(Vec::as_slice));
                }
            }
            assert_eq!(next.next(), None);
        }
    }
}
