//! Loading bytes into the caches of the processor before they are used.

/// The bytes of a line of a cache.
const LINE: usize = 64;

/// Asks the processor to load bytes into its caches, without waiting for them. Has no other effect: no page
/// is read from a disk, and a mapping that another process shortened is no error here.
#[inline]
pub(crate) fn prefetch<T>(bytes: &[T]) {
    let size = size_of_val(bytes);
    for line in (0..size).step_by(LINE) {
        load(bytes, line);
    }
    // the bytes need not begin with a line, so the last one may be in a line of its own
    if let Some(last) = size.checked_sub(1) {
        load(bytes, last);
    }
}

/// [`prefetch`] of the two lines from byte `at`, which may be after the end. For loops that process about as
/// many other bytes in each step: nothing is compared, because a branch that is mispredicted would cost more
/// than it saves.
#[cfg(feature = "arrow")]
#[inline]
pub(crate) fn prefetch_two_lines(bytes: &[u8], at: usize) {
    load(bytes, at);
    load(bytes, at.wrapping_add(LINE));
}

/// Loads the line with a byte, which may be after the end.
#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "the instruction has no safe function; S7 of SAFETY.md")]
fn load<T>(bytes: &[T], at: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

    // SAFETY: S7: the instruction gives the program nothing, whatever the address is.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().wrapping_byte_add(at).cast()) };
}

/// Does nothing: the standard library has no stable function for this processor.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn load<T>(_: &[T], _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::{FileBytes, SystemFile};

    #[test]
    fn bytes_in_memory_and_in_a_mapping_are_the_same_after_they_were_loaded() {
        let expected: Vec<u8> = (0..=255).cycle().take(3 * 4096 + 7).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bytes");
        std::fs::write(&path, &expected).unwrap();
        let file = FileBytes::new(SystemFile::open(&path).unwrap(), None, true).unwrap();
        for bytes in [&expected, file.mapped().unwrap()] {
            for length in [0, 1, 2, LINE - 3, LINE, LINE + 1, 3 * LINE, 4096, bytes.len()] {
                prefetch(bytes.get(..length).unwrap());
                prefetch(bytes.get(bytes.len() - length..).unwrap());
            }
            assert_eq!(bytes, expected);
        }
    }

    #[test]
    fn a_mapping_of_a_file_that_was_cut_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bytes");
        std::fs::write(&path, vec![1; 3 * 4096]).unwrap();
        let file = FileBytes::new(SystemFile::open(&path).unwrap(), None, true).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        prefetch(file.mapped().unwrap());
    }
}
