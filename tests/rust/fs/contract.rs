//! The contract of the disk access layer, on which readers and the writer rely. Each rule is tested on the
//! system's files and on the in-memory disk, and random sequences of changes have the same results on both.

use std::io::ErrorKind;

use cordwood::Error;
use cordwood::fs::mem::MemoryDisk;
use cordwood::fs::{Directory, FileBytes, FileType, WritableFile};
use proptest::prelude::*;

use crate::support::fixed_seed;

/// A test of each rule on each kind of disk.
macro_rules! on_both_disks {
    ($($rule:ident)*) => {
        mod on_the_system {
            $(#[test]
            fn $rule() {
                let folder = tempfile::tempdir().unwrap();
                super::$rule(&super::system(&folder));
            })*
        }
        mod in_memory {
            $(#[test]
            fn $rule() {
                super::$rule(&super::MemoryDisk::default().directory("/log"));
            })*
        }
    };
}

on_both_disks! {
    a_new_file_is_empty_listed_and_can_be_opened
    creating_an_existing_file_is_an_error_and_keeps_the_file
    a_missing_file_is_a_not_found_error_or_none
    bytes_are_read_at_the_position_of_the_write_and_gaps_are_zeros
    a_truncated_file_is_extended_by_zeros
    allocating_adds_zeros_and_never_truncates
    a_read_beyond_the_end_is_an_error
    every_handle_of_a_file_sees_each_write
    the_size_of_a_file_opened_for_reading_is_fixed
    a_rename_replaces_another_file_which_stays_open
    a_removed_file_stays_open_and_its_name_can_be_reused
    a_link_is_a_second_name_of_the_file
    a_folder_is_created_once_and_is_not_a_file
    a_folder_with_a_file_is_not_removed
    an_identity_belongs_to_the_file_and_not_to_its_name
    a_replacement_is_complete_or_leaves_no_file
}

fn system(folder: &tempfile::TempDir) -> Directory {
    Directory::open(folder.path(), "").unwrap()
}

fn kind<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorKind {
    match result {
        Err(Error::Io { source, .. }) => source.kind(),
        other => panic!("expected Error::Io, found {other:?}"),
    }
}

fn make(directory: &Directory, name: &str, contents: &[u8]) -> WritableFile {
    let file = directory.create(name).unwrap();
    file.write_all_at(contents, 0).unwrap();
    file
}

fn contents(directory: &Directory, name: &str) -> Option<Vec<u8>> {
    directory.read_small(name, 1 << 20).unwrap()
}

/// The entries in the order of their names.
fn entries(directory: &Directory) -> Vec<(String, FileType)> {
    let mut entries = directory.entries().unwrap();
    entries.sort_by(|(left, _), (right, _)| left.cmp(right));
    entries
}

fn names(directory: &Directory) -> Vec<String> {
    entries(directory).into_iter().map(|(name, _)| name).collect()
}

fn a_new_file_is_empty_listed_and_can_be_opened(directory: &Directory) {
    assert_eq!(entries(directory), []);
    let file = directory.create("a").unwrap();
    assert_eq!(file.identity().unwrap().size, 0);
    assert_eq!(file.path(), directory.path_of("a"));
    assert_eq!(entries(directory), [("a".to_owned(), FileType::RegularFile)]);
    assert_eq!(directory.open_file("a").unwrap().size(), 0);
    file.sync().unwrap();
    directory.sync().unwrap();
    assert_eq!(contents(directory, "a").unwrap(), b"");
}

fn creating_an_existing_file_is_an_error_and_keeps_the_file(directory: &Directory) {
    make(directory, "a", b"first");
    assert_eq!(kind(directory.create("a")), ErrorKind::AlreadyExists);
    assert_eq!(contents(directory, "a").unwrap(), b"first");
}

fn a_missing_file_is_a_not_found_error_or_none(directory: &Directory) {
    assert_eq!(kind(directory.open_file("a")), ErrorKind::NotFound);
    assert_eq!(kind(directory.open_writable("a")), ErrorKind::NotFound);
    assert_eq!(kind(directory.rename("a", "b")), ErrorKind::NotFound);
    assert_eq!(contents(directory, "a"), None);
    assert_eq!(directory.identity_of("a").unwrap(), None);
    directory.remove("a").unwrap();
    assert_eq!(entries(directory), []);
}

fn bytes_are_read_at_the_position_of_the_write_and_gaps_are_zeros(directory: &Directory) {
    let file = make(directory, "a", b"0123");
    file.write_all_at(b"xy", 2).unwrap();
    file.write_all_at(b"end", 7).unwrap();
    file.write_all_at(b"", 99).unwrap();
    assert_eq!(contents(directory, "a").unwrap(), b"01xy\0\0\0end");
    assert_eq!(file.identity().unwrap().size, 10);
    assert_eq!(kind(directory.read_small("a", 9)), ErrorKind::Other, "it is larger than the limit");
}

fn a_truncated_file_is_extended_by_zeros(directory: &Directory) {
    let file = make(directory, "a", b"0123456789");
    file.set_size(4).unwrap();
    assert_eq!(contents(directory, "a").unwrap(), b"0123");
    file.set_size(6).unwrap();
    assert_eq!(contents(directory, "a").unwrap(), b"0123\0\0");
    file.set_size(2).unwrap();
    file.write_all_at(b"x", 5).unwrap();
    assert_eq!(contents(directory, "a").unwrap(), b"01\0\0\0x");
}

fn allocating_adds_zeros_and_never_truncates(directory: &Directory) {
    let file = make(directory, "a", b"0123");
    file.allocate(6).unwrap();
    assert_eq!(contents(directory, "a").unwrap(), b"0123\0\0");
    file.allocate(2).unwrap();
    assert_eq!(contents(directory, "a").unwrap(), b"0123\0\0");
    file.reserve(6, 100);
    assert_eq!(contents(directory, "a").unwrap(), b"0123\0\0", "a reservation does not change the size");
}

fn a_read_beyond_the_end_is_an_error(directory: &Directory) {
    let file = make(directory, "a", b"0123");
    assert_eq!(kind(file.read_exact_at(&mut [0; 2], 3)), ErrorKind::UnexpectedEof);
    assert_eq!(kind(file.read_exact_at(&mut [0; 1], 1 << 40)), ErrorKind::UnexpectedEof);
    let bytes = FileBytes::new(directory.open_file("a").unwrap(), None, false).unwrap();
    let mut buffer = Vec::new();
    assert_eq!(bytes.read(3, 9, &mut buffer).unwrap(), b"3");
    assert_eq!(bytes.read(9, 9, &mut buffer).unwrap(), b"");
}

fn every_handle_of_a_file_sees_each_write(directory: &Directory) {
    let file = make(directory, "a", b"0123");
    let (clone, other) = (file.clone(), directory.open_writable("a").unwrap());
    let reader = directory.open_file("a").unwrap();
    other.write_all_at(b"xy", 1).unwrap();
    let mut bytes = [0; 4];
    for handle in [&file, &clone, &other] {
        handle.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"0xy3");
    }
    reader.read_exact_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"0xy3");
}

fn the_size_of_a_file_opened_for_reading_is_fixed(directory: &Directory) {
    let file = make(directory, "a", b"0123");
    let reader = directory.open_file("a").unwrap();
    file.write_all_at(b"4567", 4).unwrap();
    assert_eq!((reader.size(), reader.size_now().unwrap()), (4, 8));
    file.set_size(2).unwrap();
    assert_eq!((reader.size(), reader.size_now().unwrap()), (4, 2));
    let read = reader.read_exact_at(0, &mut [0; 4]);
    assert!(matches!(read, Err(Error::LogChanged { .. })), "{read:?}");
}

fn a_rename_replaces_another_file_which_stays_open(directory: &Directory) {
    let (first, second) = (make(directory, "a", b"first"), make(directory, "b", b"second"));
    let reader = directory.open_file("b").unwrap();
    directory.rename("a", "b").unwrap();
    assert_eq!(names(directory), ["b"]);
    assert_eq!(contents(directory, "b").unwrap(), b"first");
    second.write_all_at(b"S", 0).unwrap();
    let mut bytes = [0; 6];
    reader.read_exact_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"Second");
    first.write_all_at(b"F", 0).unwrap();
    assert_eq!(contents(directory, "b").unwrap(), b"First");
    // a data directory renames the folders of its partitions
    make(&directory.folder("c").unwrap(), "d", b"inside");
    directory.rename("c", "e").unwrap();
    assert_eq!(names(directory), ["b", "e"]);
    assert_eq!(contents(&directory.folder("e").unwrap(), "d").unwrap(), b"inside");
}

fn a_removed_file_stays_open_and_its_name_can_be_reused(directory: &Directory) {
    let file = make(directory, "a", b"first");
    let reader = directory.open_file("a").unwrap();
    directory.remove("a").unwrap();
    assert_eq!(entries(directory), []);
    make(directory, "a", b"second");
    file.write_all_at(b"F", 0).unwrap();
    file.sync().unwrap();
    let mut bytes = [0; 5];
    reader.read_exact_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"First");
    assert_eq!(contents(directory, "a").unwrap(), b"second");
}

fn a_link_is_a_second_name_of_the_file(directory: &Directory) {
    let folder = directory.folder("f").unwrap();
    let file = make(directory, "a", b"first");
    assert!(directory.link("a", &folder, "b").unwrap());
    file.write_all_at(b"F", 0).unwrap();
    assert_eq!(contents(&folder, "b").unwrap(), b"First");
    let inode = |directory: &Directory, name| directory.identity_of(name).unwrap().map(|found| found.inode);
    assert_eq!(inode(&folder, "b"), inode(directory, "a"));
    // a new file with the first name is not the second one
    directory.replace("a", b"second").unwrap();
    assert_eq!(contents(&folder, "b").unwrap(), b"First");
    assert_eq!(kind(directory.link("a", &folder, "b")), ErrorKind::AlreadyExists);
    assert_eq!(kind(directory.link("missing", &folder, "c")), ErrorKind::NotFound);
    folder.remove("b").unwrap();
    assert_eq!(contents(directory, "a").unwrap(), b"second");
    // never to another disk
    assert!(!directory.link("a", &MemoryDisk::default().directory("/other"), "a").unwrap());
}

fn a_folder_is_created_once_and_is_not_a_file(directory: &Directory) {
    make(&directory.folder("f").unwrap(), "a", b"inside");
    let again = directory.folder("f").unwrap();
    assert_eq!(again.path(), directory.path_of("f"));
    assert_eq!(contents(&again, "a").unwrap(), b"inside");
    assert_eq!(entries(directory), [("f".to_owned(), FileType::Directory)]);
    assert_eq!(kind(directory.open_file("f")), ErrorKind::Other);
    assert_eq!(kind(directory.remove("f")), ErrorKind::IsADirectory);
    assert_eq!(kind(directory.create("f")), ErrorKind::AlreadyExists);
    make(directory, "a", b"beside");
    assert_eq!(kind(directory.folder("a")), ErrorKind::NotADirectory);
    assert_eq!(contents(&again, "a").unwrap(), b"inside");
}

fn a_folder_with_a_file_is_not_removed(directory: &Directory) {
    make(&directory.folder("f").unwrap(), "a", b"inside");
    assert_eq!(kind(directory.remove_folder("f")), ErrorKind::DirectoryNotEmpty);
    assert_eq!(names(directory), ["f"]);
}

fn an_identity_belongs_to_the_file_and_not_to_its_name(directory: &Directory) {
    let (first, second) = (make(directory, "a", b"same"), make(directory, "b", b"same"));
    let number = |file: &WritableFile| file.identity().unwrap().inode;
    let named = |name: &str| directory.identity_of(name).unwrap().unwrap();
    assert_ne!(number(&first), number(&second));
    assert_eq!(named("a"), first.identity().unwrap());
    assert_eq!(directory.open_file("b").unwrap().identity(), second.identity().unwrap());
    first.write_all_at(b"r", 4).unwrap();
    assert_eq!(named("a").size, 5);
    directory.rename("a", "b").unwrap();
    assert_eq!(named("b").inode, number(&first));
    assert_eq!(directory.identity_of("a").unwrap(), None);
    directory.replace("b", b"same").unwrap();
    assert_ne!(named("b").inode, number(&first));
}

fn a_replacement_is_complete_or_leaves_no_file(directory: &Directory) {
    directory.replace("a", b"first").unwrap();
    assert_eq!(names(directory), ["a"]);
    let staged = directory.stage("a", b"second").unwrap();
    assert_eq!(contents(directory, "a").unwrap(), b"first");
    drop(staged);
    assert_eq!(names(directory), ["a"], "a staged file that is dropped is removed");
    let (first, next) =
        (directory.stage("a", b"second").unwrap(), directory.stage_next("a", b"third").unwrap());
    first.put().unwrap();
    assert_eq!(contents(directory, "a").unwrap(), b"second");
    next.put().unwrap();
    assert_eq!(contents(directory, "a").unwrap(), b"third");
    directory.stage_start("a", 2).unwrap().put().unwrap();
    assert_eq!(contents(directory, "a").unwrap(), b"th");
    assert_eq!(names(directory), ["a"]);
}

/// A change of a directory; names and files by number.
#[derive(Debug, Clone)]
enum Change {
    Create(usize),
    Open(usize),
    Write(usize, u64, Vec<u8>),
    SetSize(usize, u64),
    Allocate(usize, u64),
    Sync(usize),
    Rename(usize, usize),
    Remove(usize),
    Replace(usize, Vec<u8>),
    SyncNames,
}

const NAMES: [&str; 3] = ["a", "b", "c"];
/// Larger than a sector of the in-memory disk, so that changes are within one sector, across two, and over
/// several.
const MAX_POSITION: u64 = 2_000;

fn change() -> impl Strategy<Value = Change> {
    let name = || 0..NAMES.len();
    let file = || 0..8_usize;
    let bytes = || (1..=255_u8, 0..700_usize).prop_map(|(byte, count)| vec![byte; count]);
    prop_oneof![
        3 => name().prop_map(Change::Create),
        1 => name().prop_map(Change::Open),
        6 => (file(), 0..MAX_POSITION, bytes()).prop_map(|(file, position, bytes)| Change::Write(file, position, bytes)),
        3 => (file(), 0..MAX_POSITION).prop_map(|(file, size)| Change::SetSize(file, size)),
        2 => (file(), 1..MAX_POSITION).prop_map(|(file, size)| Change::Allocate(file, size)),
        1 => file().prop_map(Change::Sync),
        2 => (name(), name()).prop_map(|(from, to)| Change::Rename(from, to)),
        2 => name().prop_map(Change::Remove),
        1 => (name(), bytes()).prop_map(|(name, bytes)| Change::Replace(name, bytes)),
        1 => Just(Change::SyncNames),
    ]
}

/// A directory and its open files, including those without a name.
struct Disk {
    directory: Directory,
    open: Vec<WritableFile>,
}

/// Contents in a short form: runs of equal bytes, each with its length.
type Runs = Vec<(u8, usize)>;

fn runs(bytes: &[u8]) -> Runs {
    bytes.chunk_by(|one, next| one == next).map(|run| (run[0], run.len())).collect()
}

/// The visible state of a directory.
#[derive(Debug, PartialEq)]
struct State {
    named: Vec<(String, Runs)>,
    open: Vec<Runs>,
}

impl Disk {
    fn new(directory: Directory) -> Self {
        Self { directory, open: Vec::new() }
    }

    /// The result of a change; `None` if it refers to a file that is not open.
    fn apply(&mut self, change: &Change) -> Option<Result<(), ErrorKind>> {
        let directory = &self.directory;
        let result = match change {
            Change::Create(name) => directory.create(NAMES[*name]).map(|file| self.open.push(file)),
            Change::Open(name) => directory.open_writable(NAMES[*name]).map(|file| self.open.push(file)),
            Change::Write(file, position, bytes) => self.open.get(*file)?.write_all_at(bytes, *position),
            Change::SetSize(file, size) => self.open.get(*file)?.set_size(*size),
            Change::Allocate(file, size) => self.open.get(*file)?.allocate(*size),
            Change::Sync(file) => self.open.get(*file)?.sync(),
            Change::Rename(from, to) => directory.rename(NAMES[*from], NAMES[*to]),
            Change::Remove(name) => directory.remove(NAMES[*name]),
            Change::Replace(name, bytes) => directory.replace(NAMES[*name], bytes),
            Change::SyncNames => directory.sync(),
        };
        Some(result.map_err(|error| kind::<()>(Err(error))))
    }

    /// The contents of the files that have names, and of the open ones.
    fn state(&self) -> State {
        let read = |name: String| {
            let bytes = contents(&self.directory, &name).unwrap();
            (name, runs(&bytes))
        };
        let open = self.open.iter().map(|file| {
            let mut bytes = vec![0; usize::try_from(file.identity().unwrap().size).unwrap()];
            file.read_exact_at(&mut bytes, 0).unwrap();
            runs(&bytes)
        });
        State { named: names(&self.directory).into_iter().map(read).collect(), open: open.collect() }
    }
}

proptest! {
    #![proptest_config(fixed_seed(400))]

    #[test]
    fn random_changes_have_the_same_results_in_memory_and_on_the_system(
        changes in proptest::collection::vec(change(), 1..40)
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut on_the_system = Disk::new(system(&folder));
        let mut in_memory = Disk::new(MemoryDisk::default().directory("/log"));
        for change in &changes {
            prop_assert_eq!(in_memory.apply(change), on_the_system.apply(change), "{:?}", change);
            prop_assert_eq!(in_memory.state(), on_the_system.state(), "after {:?}", change);
        }
    }
}
