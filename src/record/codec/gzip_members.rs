//! gzip streams as Java reads them: members one after another, and bytes after them that are no member.

use flate2::bufread::GzDecoder;

use super::{Codec, drain};
use crate::error::Malformed;

/// The magic of a member, the method, and the flags; eight more bytes of a header follow.
const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
/// Up to this many bytes after a member are ignored, whatever they are: the smallest member is longer.
const IGNORED: usize = 18;

/// Appends the contents of the members of `bytes` to `output`. Bytes that follow a member and do not begin
/// with a member's header are ignored.
///
/// *Source*: `java.util.zip.GZIPInputStream.readTrailer`.
pub(super) fn decompress(bytes: &[u8], max_bytes: usize, output: &mut Vec<u8>) -> Result<(), Malformed> {
    let mut rest = bytes;
    loop {
        let mut member = GzDecoder::new(rest);
        drain(Codec::Gzip, &mut member, max_bytes, output)?;
        rest = member.into_inner();
        if rest.len() <= IGNORED || !rest.starts_with(&MAGIC) {
            return Ok(());
        }
    }
}
