//! The writers: each refusal, and the file after each change.

use super::*;
use crate::error::{Error, Result};
use crate::fs::Directory;
use crate::index::{AbortedTransaction, OffsetIndexWriter, TimeIndexWriter, TransactionIndexWriter};

/// A temporary directory, which is removed with it.
pub(super) struct Folder {
    pub(super) directory: Directory,
    folder: tempfile::TempDir,
}

impl Folder {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { directory: Directory::open(folder.path(), "").unwrap(), folder }
    }

    pub(super) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.path().join(name)).unwrap()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.folder.path().join(name), bytes).unwrap();
    }

    fn names(&self) -> Vec<String> {
        self.directory.entries().unwrap().into_iter().map(|(name, _)| name).collect()
    }

    /// The number of bytes of the file that have blocks.
    fn allocated(&self, name: &str) -> u64 {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(self.folder.path().join(name)).unwrap().blocks() * 512
    }
}

/// The argument that an error names.
fn refused<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result {
        Err(Error::Config { argument, .. }) => argument,
        other => panic!("not refused: {other:?}"),
    }
}

fn aborted(producer_id: i64, first_offset: i64, last_offset: i64) -> AbortedTransaction {
    AbortedTransaction { producer_id, first_offset, last_offset, last_stable_offset: first_offset }
}

#[test]
fn sizes_are_rounded_down_to_whole_entries() {
    let folder = Folder::new();
    let offsets = OffsetIndexWriter::create(&folder.directory, "i", 0, 67).unwrap();
    assert_eq!((offsets.max_entries(), offsets.max_index_size(), offsets.entries()), (8, 64, 0));
    let times = TimeIndexWriter::create(&folder.directory, "t", 0, 67).unwrap();
    assert_eq!((times.max_entries(), times.max_index_size(), times.entries()), (5, 60, 0));
    assert_eq!((folder.bytes("i"), folder.bytes("t")), (vec![0; 64], vec![0; 60]));
}

#[test]
fn a_size_without_room_for_one_entry_is_refused_and_creates_no_file() {
    let folder = Folder::new();
    for size in [0, 4, 7] {
        let refusal = refused(OffsetIndexWriter::create(&folder.directory, "i", 0, size));
        assert_eq!(refusal, "max_index_size");
        assert_eq!(refused(OffsetIndexWriter::open(&folder.directory, "i", 0, size)), "max_index_size");
    }
    assert_eq!(refused(TimeIndexWriter::create(&folder.directory, "t", 0, 11)), "max_index_size");
    assert_eq!(refused(OffsetIndexWriter::create(&folder.directory, "i", -1, 64)), "base_offset");
    assert!(folder.names().is_empty());
}

#[test]
fn an_existing_name_is_not_created_again() {
    let folder = Folder::new();
    folder.write("i", b"entries!");
    assert!(matches!(OffsetIndexWriter::create(&folder.directory, "i", 0, 64), Err(Error::Io { .. })));
    assert_eq!(folder.bytes("i"), b"entries!");
}

#[test]
fn an_index_has_blocks_only_for_its_entries() {
    let folder = Folder::new();
    let mut index = OffsetIndexWriter::create(&folder.directory, "i", 0, 10 << 20).unwrap();
    assert_eq!((folder.bytes("i").len(), folder.allocated("i")), (10 << 20, 0));
    assert!(index.resize(20 << 20).unwrap());
    index.append(1, 1).unwrap();
    index.flush().unwrap();
    assert!(folder.allocated("i") <= 64 << 10, "{}", folder.allocated("i"));
    assert_eq!(folder.bytes("i").len(), 20 << 20);
    // a sparse file without blocks, as Kafka leaves it
    std::fs::File::create(folder.folder.path().join("holes")).unwrap().set_len(1 << 20).unwrap();
    let opened = OffsetIndexWriter::open(&folder.directory, "holes", 0, 1 << 20).unwrap();
    assert_eq!((opened.entries(), folder.allocated("holes")), (131_072, 0));
}

#[test]
fn an_entry_holds_the_offset_relative_to_the_base() {
    let folder = Folder::new();
    let mut index = OffsetIndexWriter::create(&folder.directory, "i", 32, 67).unwrap();
    assert_eq!((index.last_offset(), index.last_entry()), (32, at(32, 0)));
    index.append(35, 700).unwrap();
    assert_eq!((index.last_offset(), index.last_entry(), index.entries()), (35, at(35, 700), 1));
    index.close().unwrap();
    assert_eq!(folder.bytes("i"), [0, 0, 0, 3, 0, 0, 2, 188]);
    let mut times = TimeIndexWriter::create(&folder.directory, "t", 45, 67).unwrap();
    assert!(times.maybe_append(1000, 51, false).unwrap());
    times.close().unwrap();
    assert_eq!(folder.bytes("t"), hex("00000000000003e800000006"));
}

#[test]
fn a_full_offset_index_takes_no_entry() {
    let folder = Folder::new();
    let mut index = OffsetIndexWriter::create(&folder.directory, "i", 0, 16).unwrap();
    index.append(0, 0).unwrap();
    assert!(!index.is_full());
    index.append(1, 10).unwrap();
    assert!(index.is_full());
    assert_eq!(refused(index.append(2, 20)), "entries");
    // a full index is the first error, whatever else is wrong
    assert_eq!(refused(index.append(-5, 20)), "entries");
    assert_eq!((index.entries(), index.last_entry()), (2, at(1, 10)));
}

#[test]
fn an_offset_that_is_not_above_the_last_is_refused() {
    let folder = Folder::new();
    let mut index = OffsetIndexWriter::create(&folder.directory, "i", 45, 80).unwrap();
    index.append(45, 0).unwrap();
    index.append(51, 100).unwrap();
    for offset in [51, 50, 45, 0, i64::MIN] {
        assert_eq!(refused(index.append(offset, 200)), "offset");
    }
    assert_eq!(index.entries(), 2);
    assert_eq!(folder.bytes("i")[16..], [0; 64]);
}

#[test]
fn a_relative_offset_outside_31_bits_is_refused_before_a_byte_is_written() {
    let folder = Folder::new();
    let (base, max) = (1_000, i64::from(i32::MAX));
    let mut offsets = OffsetIndexWriter::create(&folder.directory, "i", base, 80).unwrap();
    let mut times = TimeIndexWriter::create(&folder.directory, "t", base, 120).unwrap();
    for offset in [base - 1, base + max + 1, i64::MAX, i64::MIN] {
        assert_eq!(refused(offsets.append(offset, 7)), "offset");
        assert_eq!(refused(times.maybe_append(77, offset, false)), "offset");
    }
    assert_eq!((offsets.entries(), times.entries()), (0, 0));
    assert_eq!((folder.bytes("i"), folder.bytes("t")), (vec![0; 80], vec![0; 120]));
    offsets.append(base + max, 7).unwrap();
    assert!(times.maybe_append(77, base + max, false).unwrap());
    assert_eq!(folder.bytes("i")[..8], [0x7f, 255, 255, 255, 0, 0, 0, 7]);
}

#[test]
fn a_time_index_is_full_at_its_last_slot_but_one() {
    let folder = Folder::new();
    let mut index = TimeIndexWriter::create(&folder.directory, "t", 0, 36).unwrap();
    assert!(index.maybe_append(10, 1, false).unwrap());
    assert!(!index.is_full());
    assert!(index.maybe_append(20, 2, false).unwrap());
    assert!(index.is_full());
    assert_eq!(refused(index.maybe_append(30, 3, false)), "entries");
    // even if nothing would be added
    assert_eq!(refused(index.maybe_append(20, 2, false)), "entries");
    assert!(index.maybe_append(30, 3, true).unwrap());
    assert!(!index.maybe_append(30, 4, true).unwrap());
    assert_eq!(refused(index.maybe_append(40, 5, true)), "entries");
    assert_eq!((index.entries(), index.last_entry()), (3, when(30, 3)));
}

#[test]
fn a_time_index_of_one_slot_is_always_full() {
    let folder = Folder::new();
    let mut index = TimeIndexWriter::create(&folder.directory, "t", 0, 23).unwrap();
    assert!(index.is_full());
    assert_eq!(refused(index.maybe_append(10, 1, false)), "entries");
    assert!(index.maybe_append(10, 1, true).unwrap());
}

#[test]
fn a_time_entry_whose_offset_is_below_the_last_is_refused() {
    let folder = Folder::new();
    let mut index = TimeIndexWriter::create(&folder.directory, "t", 0, 120).unwrap();
    index.maybe_append(10, 5, false).unwrap();
    assert_eq!(refused(index.maybe_append(20, 4, false)), "offset");
    assert_eq!(refused(index.maybe_append(5, 4, false)), "offset");
    assert!(index.maybe_append(20, 5, false).unwrap());
}

#[test]
fn a_timestamp_below_the_last_is_refused() {
    let folder = Folder::new();
    let mut index = TimeIndexWriter::create(&folder.directory, "t", 0, 120).unwrap();
    index.maybe_append(10, 5, false).unwrap();
    for timestamp in [9, 0, -1, i64::MIN] {
        assert_eq!(refused(index.maybe_append(timestamp, 6, false)), "timestamp");
    }
    assert_eq!(index.entries(), 1);
}

#[test]
fn a_timestamp_that_does_not_increase_adds_nothing() {
    let folder = Folder::new();
    let mut index = TimeIndexWriter::create(&folder.directory, "t", 0, 120).unwrap();
    // no record had a timestamp
    assert!(!index.maybe_append(-1, 5, false).unwrap());
    assert!(!index.maybe_append(-7, -7, false).unwrap());
    assert_eq!((index.entries(), index.last_entry()), (0, when(-1, 0)));
    assert!(index.maybe_append(0, 5, false).unwrap());
    for offset in [5, 6, i64::MAX] {
        assert!(!index.maybe_append(0, offset, false).unwrap());
    }
    assert_eq!((index.entries(), index.last_entry()), (1, when(0, 5)));
}

#[test]
fn a_truncation_leaves_zeros_and_keeps_the_file_size() {
    let folder = Folder::new();
    let mut index = OffsetIndexWriter::create(&folder.directory, "i", 0, 64).unwrap();
    for n in 1..=6 {
        index.append(10 * n, i32::try_from(n).unwrap()).unwrap();
    }
    index.truncate_to(61).unwrap();
    assert_eq!(index.entries(), 6);
    index.truncate_to(60).unwrap();
    assert_eq!((index.entries(), index.last_entry()), (5, at(50, 5)));
    index.truncate_to(25).unwrap();
    assert_eq!((index.entries(), index.last_offset()), (2, 20));
    assert_eq!(folder.bytes("i"), [offset_bytes(0, &[(10, 1), (20, 2)]), vec![0; 48]].concat());
    // a concurrent reader finds the end
    let reader = OffsetIndex::open(&folder.directory.path_of("i"), Some(0), false).unwrap();
    assert_eq!(reader.entries(), 2);
    index.append(21, 9).unwrap();
    index.truncate_to(10).unwrap();
    assert_eq!((index.entries(), index.last_entry()), (0, at(0, 0)));
    assert_eq!(index.lookup(50, Method::Warm).unwrap(), at(0, 0));
    assert_eq!(folder.bytes("i"), vec![0; 64]);
}

#[test]
fn a_truncation_drops_every_time_entry_at_its_offset() {
    let folder = Folder::new();
    let mut index = TimeIndexWriter::create(&folder.directory, "t", 0, 1200).unwrap();
    for (timestamp, offset) in [(1, 1), (2, 5), (3, 5), (4, 5), (5, 5), (6, 9)] {
        index.maybe_append(timestamp, offset, false).unwrap();
    }
    index.truncate_to(9).unwrap();
    assert_eq!(index.last_entry(), when(5, 5));
    index.truncate_to(5).unwrap();
    assert_eq!((index.entries(), index.last_entry()), (1, when(1, 1)));
    index.truncate().unwrap();
    assert_eq!((index.entries(), index.last_entry()), (0, when(-1, 0)));
}

#[test]
fn resizing_keeps_the_entries_or_is_refused() {
    let folder = Folder::new();
    let mut index = OffsetIndexWriter::create(&folder.directory, "i", 0, 64).unwrap();
    for n in 1..=3 {
        index.append(n, 1).unwrap();
    }
    assert!(!index.resize(71).unwrap());
    assert_eq!(refused(index.resize(23)), "max_index_size");
    assert!(index.resize(8200).unwrap());
    assert_eq!((index.max_entries(), index.entries(), folder.bytes("i").len()), (1025, 3, 8200));
    for n in 4..=1025 {
        index.append(n, 1).unwrap();
    }
    assert!(index.is_full());
    index.truncate_to(4).unwrap();
    assert!(index.trim().unwrap());
    assert!(!index.trim().unwrap());
    assert_eq!(folder.bytes("i").len(), 24);
    assert_eq!(index.lookup(3, Method::Binary).unwrap(), at(3, 1));
    assert_eq!(refused(index.append(9, 9)), "entries");
    index.reset().unwrap();
    assert_eq!((index.entries(), index.max_entries()), (0, 8));
    assert!(index.trim().unwrap());
    assert_eq!((index.max_entries(), folder.bytes("i").len()), (0, 0));
    assert!(index.is_full());
    index.flush().unwrap();
    assert!(index.resize(16).unwrap());
    index.append(4, 4).unwrap();
    index.flush().unwrap();
    index.append(5, 5).unwrap();
    index.close().unwrap();
    assert_eq!(folder.bytes("i"), offset_bytes(0, &[(4, 4), (5, 5)]));
}

#[test]
fn an_existing_file_has_an_entry_in_every_whole_slot() {
    let folder = Folder::new();
    folder.write("i", &[&offset_bytes(0, &[(1, 1), (2, 2)])[..], &[7, 7, 7]].concat());
    let mut index = OffsetIndexWriter::open(&folder.directory, "i", 0, 64).unwrap();
    assert_eq!((index.entries(), index.max_entries(), index.last_entry()), (2, 2, at(2, 2)));
    assert!(index.is_full());
    assert!(index.resize(64).unwrap());
    index.append(3, 3).unwrap();
    index.close().unwrap();
    assert_eq!(folder.bytes("i"), offset_bytes(0, &[(1, 1), (2, 2), (3, 3)]));
    // zeros that a crash left are entries, too, unlike in a reader
    folder.write("t", &[time_bytes(0, &[(5, 5)]), vec![0; 24]].concat());
    let mut index = TimeIndexWriter::open(&folder.directory, "t", 0, 60).unwrap();
    assert_eq!((index.entries(), index.last_entry()), (3, when(0, 0)));
    index.reset().unwrap();
    assert_eq!((index.entries(), folder.bytes("t")), (0, vec![0; 60]));
}

#[test]
fn trim_removes_a_fragment_after_the_last_entry() {
    let folder = Folder::new();
    folder.write("t", &[&time_bytes(0, &[(5, 5)])[..], &[7; 11]].concat());
    let mut index = TimeIndexWriter::open(&folder.directory, "t", 0, 60).unwrap();
    assert!(index.sanity_check().is_err());
    assert!(index.trim().unwrap());
    index.sanity_check().unwrap();
    folder.write("f", &[7; 5]);
    let index = TimeIndexWriter::open(&folder.directory, "f", 0, 60).unwrap();
    assert_eq!((index.entries(), index.max_entries()), (0, 0));
    index.close().unwrap();
    assert_eq!(folder.bytes("f"), b"");
}

#[test]
fn without_close_the_file_keeps_its_size_and_readers_find_the_last_entry() {
    let folder = Folder::new();
    let mut index = TimeIndexWriter::create(&folder.directory, "t", 7, 12_000).unwrap();
    for n in 0..700 {
        index.maybe_append(1_000 + n, 7 + n, false).unwrap();
    }
    drop(index);
    assert_eq!(folder.bytes("t").len(), 12_000);
    let reader = TimeIndex::open(&folder.directory.path_of("t"), Some(7), true).unwrap();
    assert_eq!((reader.entries(), reader.last_entry()), (700, when(1_699, 706)));
}

#[test]
fn the_first_entry_creates_a_transaction_index() {
    let folder = Folder::new();
    let mut index = TransactionIndexWriter::open(&folder.directory, "x", 0).unwrap();
    assert_eq!((index.entries(), index.last_entry().unwrap()), (0, None));
    index.flush().unwrap();
    index.reset().unwrap();
    index.truncate_to(0).unwrap();
    assert!(folder.names().is_empty());
    let entry =
        AbortedTransaction { producer_id: 1, first_offset: 0, last_offset: 29, last_stable_offset: 8 };
    index.append(entry).unwrap();
    index.flush().unwrap();
    assert_eq!(
        folder.bytes("x"),
        hex("000000000000000000010000000000000000000000000000001d0000000000000008")
    );
    assert_eq!(index.last_entry().unwrap(), Some(entry));
    assert_eq!(index.collect_aborted(0, 5).unwrap(), (vec![entry], true));
}

#[test]
fn the_last_offset_of_a_transaction_must_exceed_the_one_before() {
    let folder = Folder::new();
    let mut index = TransactionIndexWriter::open(&folder.directory, "x", 0).unwrap();
    index.append(aborted(1, 5, 10)).unwrap();
    for last in [10, 9, -1] {
        assert_eq!(refused(index.append(aborted(2, 6, last))), "last_offset");
    }
    index.append(aborted(2, 6, 11)).unwrap();
    drop(index);
    let mut index = TransactionIndexWriter::open(&folder.directory, "x", 0).unwrap();
    assert_eq!(refused(index.append(aborted(3, 7, 11))), "last_offset");
    index.truncate_to(11).unwrap();
    index.append(aborted(3, 7, 11)).unwrap();
    index.reset().unwrap();
    assert_eq!(folder.bytes("x"), b"");
    index.append(aborted(3, 7, 8)).unwrap();
    assert_eq!(folder.bytes("x"), transaction_bytes(&[[3, 7, 8, 7]]));
}

#[test]
fn a_transaction_index_is_cut_at_the_first_entry_that_ends_at_or_above() {
    let folder = Folder::new();
    let mut index = TransactionIndexWriter::open(&folder.directory, "x", 0).unwrap();
    for n in 1..=5 {
        index.append(aborted(n, 10 * n, 10 * n + 5)).unwrap();
    }
    index.truncate_to(56).unwrap();
    assert_eq!(index.entries(), 5);
    index.truncate_to(36).unwrap();
    assert_eq!((index.entries(), folder.bytes("x").len()), (3, 102));
    index.truncate_to(35).unwrap();
    assert_eq!(index.last_entry().unwrap(), Some(aborted(2, 20, 25)));
}

#[test]
fn a_torn_transaction_entry_is_replaced_by_the_next() {
    let folder = Folder::new();
    folder.write("x", &[&transaction_bytes(&[[1, 2, 3, 2]])[..], &[9; 20]].concat());
    let mut index = TransactionIndexWriter::open(&folder.directory, "x", 0).unwrap();
    assert_eq!(index.entries(), 1);
    index.append(aborted(2, 4, 6)).unwrap();
    assert_eq!(folder.bytes("x"), transaction_bytes(&[[1, 2, 3, 2], [2, 4, 6, 4]]));
}

/// The number of reads of this thread.
fn reads() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("syscr: ")).unwrap();
    line.parse().unwrap()
}

#[test]
fn all_entries_of_a_transaction_index_are_read_in_few_blocks() {
    const ENTRIES: i64 = 10_000;
    let folder = Folder::new();
    let entry =
        |n| AbortedTransaction { producer_id: n, first_offset: n, last_offset: n, last_stable_offset: n };
    let bytes: Vec<u8> = (0..ENTRIES).flat_map(|n| super::super::encode_aborted(entry(n))).collect();
    folder.write("t", &bytes);
    let mut writer = TransactionIndexWriter::open(&folder.directory, "t", 0).unwrap();
    let opened = TransactionIndex::from_bytes(
        crate::fs::FileBytes::new(folder.directory.open_file("t").unwrap(), None, false).unwrap(),
        0,
    );
    let before = reads();
    opened.sanity_check().unwrap();
    writer.sanity_check().unwrap();
    let mut seen = 0;
    writer
        .visit(|n, found| {
            assert_eq!(found, entry(i64::try_from(n).unwrap()));
            seen += 1;
            Ok(true)
        })
        .unwrap();
    writer.truncate_to(ENTRIES - 1).unwrap();
    let read = reads() - before;
    assert!(read < 30, "{read}");
    assert_eq!((seen, writer.entries()), (ENTRIES, 9_999));
    // the same errors as of each entry by itself
    folder.write("t", &[&bytes[..34 * 5000], &[0, 1][..], &bytes[..100]].concat());
    let writer = TransactionIndexWriter::open(&folder.directory, "t", 0).unwrap();
    let wanted = writer.iter().find_map(Result::err).unwrap().to_string();
    assert_eq!(writer.sanity_check().unwrap_err().to_string(), wanted);
}
