//! Index writers on a failing disk: the index has every entry that was accepted, and no other.

use cordwood::Result;
use cordwood::fs::mem::{Fault, FaultKind, MemoryDisk};
use cordwood::index::{OffsetIndexWriter, TimeIndexWriter};

use crate::faults::KINDS;

const NAME: &str = "00000000000000000100.index";
const BASE: i64 = 100;
const BYTES: u64 = 480;

/// A writer of either index. Entry `n` has the number n and the offset n above the base offset.
trait Writer: Sized {
    const ENTRY: usize;
    fn open(disk: &MemoryDisk) -> Self;
    fn add(&mut self, number: i32) -> Result<()>;
    fn truncate_to(&mut self, number: i32) -> Result<()>;
    fn resize(&mut self, bytes: u64) -> Result<bool>;
    fn flush(&mut self) -> Result<()>;
    fn close(self) -> Result<()>;
    fn numbers(&self) -> Result<Vec<i32>>;
    fn bytes(number: i32) -> Vec<u8>;
}

impl Writer for OffsetIndexWriter {
    const ENTRY: usize = 8;

    fn open(disk: &MemoryDisk) -> Self {
        Self::open(&disk.directory("/orders-0"), NAME, BASE, BYTES).unwrap()
    }

    fn add(&mut self, number: i32) -> Result<()> {
        self.append(BASE + i64::from(number), 7 * number)
    }

    fn truncate_to(&mut self, number: i32) -> Result<()> {
        self.truncate_to(BASE + i64::from(number))
    }

    fn resize(&mut self, bytes: u64) -> Result<bool> {
        self.resize(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.flush()
    }

    fn close(self) -> Result<()> {
        self.close()
    }

    fn numbers(&self) -> Result<Vec<i32>> {
        self.iter().map(|entry| entry.map(|entry| (entry.offset - BASE) as i32)).collect()
    }

    fn bytes(number: i32) -> Vec<u8> {
        [number.to_be_bytes(), (7 * number).to_be_bytes()].concat()
    }
}

impl Writer for TimeIndexWriter {
    const ENTRY: usize = 12;

    fn open(disk: &MemoryDisk) -> Self {
        Self::open(&disk.directory("/orders-0"), NAME, BASE, BYTES).unwrap()
    }

    fn add(&mut self, number: i32) -> Result<()> {
        self.maybe_append(i64::from(number), BASE + i64::from(number), false)
            .map(|is_added| assert!(is_added))
    }

    fn truncate_to(&mut self, number: i32) -> Result<()> {
        self.truncate_to(BASE + i64::from(number))
    }

    fn resize(&mut self, bytes: u64) -> Result<bool> {
        self.resize(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.flush()
    }

    fn close(self) -> Result<()> {
        self.close()
    }

    fn numbers(&self) -> Result<Vec<i32>> {
        self.iter().map(|entry| entry.map(|entry| (entry.offset - BASE) as i32)).collect()
    }

    fn bytes(number: i32) -> Vec<u8> {
        [&i64::from(number).to_be_bytes()[..], &number.to_be_bytes()].concat()
    }
}

fn file_contents(disk: &MemoryDisk) -> Vec<u8> {
    let files = disk.shown().files();
    files.iter().find(|(name, _)| name == NAME).unwrap().1.to_vec()
}

/// Appends, truncates, appends, resizes and closes; one of the calls fails.
fn run<W: Writer>(fault: Fault) -> bool {
    let words = format!("entries of {} bytes, {fault:?}", W::ENTRY);
    // small sectors, so that each write needs space and a half-written one is noticed
    let disk = MemoryDisk::new(4);
    let mut index = W::open(&disk);
    let mut list: Vec<i32> = Vec::new();
    let mut size = BYTES as usize / W::ENTRY * W::ENTRY;
    disk.set_fault(Some(fault));
    for number in 1..30 {
        match number {
            10 => {
                // the entries are removed, whether or not the file was changed
                let _ = index.truncate_to(6);
                list.retain(|number| *number < 6);
            }
            20 => {
                let bytes = 24 * W::ENTRY;
                if index.resize(bytes as u64).unwrap_or(false) {
                    size = bytes;
                }
            }
            25 => drop(index.flush()),
            number => {
                if index.add(number).is_ok() {
                    list.push(number);
                }
            }
        }
        assert_eq!(index.numbers().unwrap(), list, "{words}: {number}");
    }
    let is_over = disk.fault_is_over();
    disk.set_fault(None);
    // the next call that writes the file repairs an incomplete write
    index.add(30).unwrap();
    list.push(30);
    let mut expected: Vec<u8> = list.iter().flat_map(|number| W::bytes(*number)).collect();
    let length = expected.len();
    expected.resize(size, 0);
    assert_eq!(file_contents(&disk), expected, "{words}");
    index.close().unwrap();
    expected.truncate(length);
    assert_eq!(file_contents(&disk), expected, "{words}");
    is_over
}

#[test]
fn an_index_on_a_failing_disk_has_exactly_the_entries_that_were_accepted() {
    let mut faults = 0;
    for kind in KINDS {
        for forever in [false, true] {
            for run in [run::<OffsetIndexWriter>, run::<TimeIndexWriter>] {
                for at in 0.. {
                    if !run(Fault { at, kind, forever }) {
                        break;
                    }
                    faults += 1;
                }
            }
        }
    }
    assert!(faults > 300, "{faults} faults");
}

#[test]
fn an_index_without_space_for_its_length_leaves_no_file() {
    let disk = MemoryDisk::new(16);
    for at in 0..2 {
        disk.set_fault(Some(Fault { at, kind: FaultKind::InputOutput, forever: false }));
        assert!(OffsetIndexWriter::create(&disk.directory("/orders-0"), NAME, BASE, BYTES).is_err());
        assert_eq!(disk.shown().files(), []);
    }
}
