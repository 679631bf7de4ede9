//! Base64 with padding (RFC 4648, section 4).

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// Writes bytes in base64.
pub(super) fn write(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(BASE64_STANDARD.encode(bytes).as_bytes());
}
