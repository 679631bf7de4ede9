//! Base64 with padding (RFC 4648, section 4).

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// Writes bytes in base64.
pub(super) fn write(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    // 4 letters for 3 bytes
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    let written = out.get_mut(start..).and_then(|rest| BASE64_STANDARD.encode_slice(bytes, rest).ok());
    debug_assert_eq!(written, Some(out.len() - start), "the length of base64");
}
