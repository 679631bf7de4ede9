//! A full disk: what a call that fails for want of space has changed, which is nothing, and that space is all it needs.

use cordwood::fs::mem::{Fault, FaultKind, MemoryDisk};
use cordwood::log::{LogWriter, WriterOptions};

use crate::script::{Before, Setup};

fn options() -> WriterOptions {
    Setup { flush: cordwood::log::FlushMode::Always, sector: 16, before: Before::Nothing }.options()
}

fn open(disk: &MemoryDisk) -> cordwood::Result<LogWriter> {
    LogWriter::open_in(disk.directory("/orders-0"), &options())
}

fn is_full(error: &cordwood::Error) -> bool {
    matches!(error, cordwood::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull)
}

/// No space from this operation on.
fn from(at: u64) -> Option<Fault> {
    Some(Fault { at, kind: FaultKind::NoSpace, forever: true })
}

#[test]
fn a_first_opening_that_has_no_room_leaves_the_directory_as_it_was() {
    let held: [&[(&str, &[u8])]; 2] = [
        &[],
        &[("partition.metadata", b"version: 0\ntopic_id: aFsHoJ8mSkaI5w7rWQb5Qg"), ("notes.txt", b"kept")],
    ];
    for held in held {
        let mut refused = 0;
        for at in 0.. {
            let disk = MemoryDisk::new(16);
            for (name, bytes) in held {
                disk.put(name, bytes);
            }
            let before = disk.shown().files();
            disk.set_fault(from(at));
            let opened = open(&disk);
            disk.set_fault(None);
            match opened {
                Ok(_) => break,
                Err(error) => assert!(is_full(&error), "{at}: {error}"),
            }
            assert_eq!(disk.shown().files(), before, "{at}");
            assert_eq!(open(&disk).unwrap().log_end_offset(), 0, "{at}");
            refused += 1;
        }
        assert!(refused > 5, "{refused}");
    }
}
