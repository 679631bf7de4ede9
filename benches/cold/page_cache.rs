//! Eviction of files from the page cache, and what a thread has read from the disk.

use std::fs::File;
use std::mem::MaybeUninit;
use std::ops::{Range, Sub};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use cordwood::fs::{FileBytes, SystemFile};
use cordwood::index::{Entry, Index};
use rustix::fs::Advice;

/// Read-ahead may still run when a file is evicted, so it is checked again after this time.
const PAUSE: Duration = Duration::from_micros(300);
const ATTEMPTS: usize = 1_000;
/// Linux has no smaller pages.
const MIN_PAGE_BYTES: usize = 4096;

/// Files that can be evicted.
pub struct CachedFiles {
    files: Vec<File>,
    /// Mappings through which no page is read: they only show which pages are in memory.
    maps: Vec<FileBytes>,
}

impl CachedFiles {
    /// Opens files, and writes their changed pages to the disk: others are not evicted.
    pub fn open(paths: Vec<PathBuf>) -> Self {
        let (mut files, mut maps) = (Vec::new(), Vec::new());
        for path in paths {
            let file = File::open(&path).unwrap();
            file.sync_all().unwrap();
            files.push(file);
            maps.push(FileBytes::new(SystemFile::open(&path).unwrap(), None, true).unwrap());
        }
        Self { files, maps }
    }

    /// Evicts all pages, until none was in memory at two moments.
    ///
    /// # Panics
    /// If pages stay in memory, as on a file system in memory.
    pub fn evict(&self) {
        for _ in 0..ATTEMPTS {
            for file in &self.files {
                rustix::fs::fadvise(file, 0, None, Advice::DontNeed).unwrap();
            }
            if !self.is_cached() {
                thread::sleep(PAUSE);
                if !self.is_cached() {
                    return;
                }
            }
        }
        panic!("the pages of {} cannot be evicted", self.maps[0].path().display());
    }

    fn is_cached(&self) -> bool {
        self.maps.iter().filter_map(FileBytes::mapped).any(is_in_memory)
    }
}

/// Whether a page of a mapping is in the page cache.
#[expect(unsafe_code, reason = "no crate has a safe mincore; S10 of SAFETY.md")]
fn is_in_memory(mapping: &[u8]) -> bool {
    let mut pages = vec![0u8; mapping.len().div_ceil(MIN_PAGE_BYTES)];
    // SAFETY: S10: the mapping is borrowed during the call, and the vector has a byte for each of its pages
    let done =
        unsafe { libc::mincore(mapping.as_ptr().cast_mut().cast(), mapping.len(), pages.as_mut_ptr()) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    pages.iter().any(|page| page & 1 == 1)
}

/// An index that is mapped, and whose pages can be evicted while it is open.
pub struct MappedIndex<E, const SIZE: usize> {
    pub index: Index<E, SIZE>,
    addresses: Range<*const u8>,
}

impl<E: Entry<SIZE>, const SIZE: usize> MappedIndex<E, SIZE> {
    pub fn open(path: &Path) -> Self {
        let bytes = FileBytes::new(SystemFile::open(path).unwrap(), None, true).unwrap();
        let addresses = bytes.mapped().unwrap().as_ptr_range();
        Self { index: Index::from_bytes(bytes, 0).unwrap(), addresses }
    }

    /// Removes the pages from the page table: while they are there, they are not evicted.
    #[expect(
        unsafe_code,
        reason = "madvise with an advice that could destroy other memory; S10 of SAFETY.md"
    )]
    pub fn forget_pages(&self) {
        let Range { start, end } = self.addresses;
        let length = end.addr() - start.addr();
        // SAFETY: S10: the index keeps its mapping, which is of a file and read-only: the next access reads
        // the same bytes again
        let done = unsafe { libc::madvise(start.cast_mut().cast(), length, libc::MADV_DONTNEED) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }
}

/// What this thread has read from disks.
#[derive(Debug, Clone, Copy)]
pub struct DiskReads {
    /// Page faults that waited for a disk.
    pub faults: u64,
    pub kib: u64,
}

impl DiskReads {
    /// Since the thread began.
    #[expect(unsafe_code, reason = "no crate of the project has a safe getrusage; S10 of SAFETY.md")]
    pub fn so_far() -> Self {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: S10: the call writes one `rusage`, of which zeros are a valid value
        let usage = unsafe {
            assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()), 0);
            usage.assume_init()
        };
        // blocks of 512 bytes
        Self { faults: usage.ru_majflt as u64, kib: usage.ru_inblock as u64 / 2 }
    }
}

impl Sub for DiskReads {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self { faults: self.faults - before.faults, kib: self.kib - before.kib }
    }
}
