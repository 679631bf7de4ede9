//! Loading bytes into the caches of the processor before they are used.

/// Asks the processor to load the first and the last byte, without waiting for them: all bytes, if they are in two lines of a
/// cache. Has no other effect: no page is read from a disk, and a mapping that another process shortened is no error here.
#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "the instruction has no safe function; S7 of SAFETY.md")]
pub(crate) fn prefetch(bytes: &[u8]) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

    if let [first, .., last] = bytes {
        for byte in [first, last] {
            // SAFETY: S7: the address is that of a borrowed byte, and the instruction gives the program nothing.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) };
        }
    }
}

/// Does nothing: the language has no such instruction for this processor.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn prefetch(_bytes: &[u8]) {}
