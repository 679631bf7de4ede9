//! Readers of a writer that failed: once it is closed, a refresh sees the appends of the next writer.

use cordwood::config::LogConfig;
use cordwood::fs::mem::{Fault, FaultKind, MemoryDisk};
use cordwood::log::OnDamage;
use cordwood::record::NewRecord;
use cordwood::writer::{FlushMode, LogWriter, WriterOptions};
use cordwood::{Error, Log, LogOptions};

use crate::support::reading::all;

const RECORD: NewRecord<'_> = NewRecord { timestamp: 1000, key: None, value: Some(b"v"), headers: &[] };

/// The operation that fails.
type Change = fn(&mut LogWriter) -> Result<(), Error>;

fn open_writer(disk: &MemoryDisk) -> LogWriter {
    // two records a segment
    let config = LogConfig { segment_bytes: 150, segment_index_bytes: 1200, ..LogConfig::default() };
    let options =
        WriterOptions { config, flush: FlushMode::None, clock: || 1000, ..WriterOptions::default() };
    LogWriter::open_in(disk.directory("/data/orders-0"), &options).unwrap()
}

fn offsets(log: &Log) -> Vec<i64> {
    all(log, OnDamage::Raise).whole().offsets()
}

#[test]
fn a_reader_of_a_poisoned_writer_follows_the_next_writer_after_a_close() {
    let changes: [(&str, Change); 4] = [
        ("flush", LogWriter::flush),
        ("roll", LogWriter::roll),
        ("truncate_to", |writer| writer.truncate_to(2).map(drop)),
        ("delete_before", |writer| writer.delete_before(4).map(drop)),
    ];
    let mut poisoned = 0;
    for (name, change) in changes {
        for at in 0..50 {
            let disk = MemoryDisk::default();
            let mut writer = open_writer(&disk);
            for _ in 0..5 {
                writer.append(&RECORD).unwrap();
            }
            let reader = writer.reader().unwrap();
            assert_eq!(offsets(&reader), [0, 1, 2, 3, 4]);
            disk.set_fault(Some(Fault { at, kind: FaultKind::InputOutput, forever: true }));
            let failed = change(&mut writer);
            disk.set_fault(None);
            if failed.is_ok() {
                break;
            }
            if !matches!(writer.close(), Err(Error::Poisoned { .. })) {
                continue;
            }
            poisoned += 1;
            // the handle stays open, as in a program that has not dropped it yet
            let mut next = open_writer(&disk);
            for _ in 0..20 {
                next.append(&RECORD).unwrap();
            }
            let refreshed = reader.refresh().unwrap();
            let opened = Log::open_in(disk.directory("/data/orders-0"), LogOptions::default()).unwrap();
            assert_eq!(offsets(&refreshed), offsets(&opened), "{name}, operation {at} failed");
            assert_eq!(refreshed.log_end_offset().unwrap(), next.log_end_offset(), "{name}, operation {at}");
            assert!(matches!(writer.append(&RECORD), Err(Error::Poisoned { .. })));
        }
    }
    assert!(poisoned >= 4, "only {poisoned} writers were poisoned");
}
