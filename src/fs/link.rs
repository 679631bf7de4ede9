//! The refusal of symbolic links in the place of files.

use std::fmt;
use std::io;

#[cfg(feature = "inspect")]
use crate::error::Error;

/// Why an open failed at a symbolic link.
#[derive(Debug)]
struct LinkNotFollowed;

impl fmt::Display for LinkNotFollowed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a symbolic link, which is not followed")
    }
}

impl std::error::Error for LinkNotFollowed {}

pub(super) fn not_followed() -> io::Error {
    io::Error::other(LinkNotFollowed)
}

/// Whether a file was not opened because it is a symbolic link.
#[cfg(feature = "inspect")]
pub(crate) fn is_of_link(error: &Error) -> bool {
    let Error::Io { source, .. } = error else { return false };
    source.get_ref().and_then(|inner| inner.downcast_ref::<LinkNotFollowed>()).is_some()
}
