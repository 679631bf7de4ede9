//! gzip streams as Java reads them: members one after another, and bytes after them that are no member.
//!
//! ```text
//!  0       2    3     4                                                    (all little-endian)
//! │ 1f 8b │ 08 │ FLG │ six bytes │ (size u16, extra) │ (name 00) │ (comment 00) │ (header checksum u16)
//! │ deflated bytes │ their CRC-32 u32 │ their size u32 │
//! ```
//!
//! Java ignores the reserved bits of FLG, which RFC 1952 wants to be zero.

use flate2::Crc;
use flate2::bufread::DeflateDecoder;

use super::{Codec, drain};
use crate::error::Malformed;

/// The magic of a member, and the method.
const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
/// The bytes of a header without optional fields.
const HEADER: usize = 10;
/// The bits of FLG.
const HAS_CHECKSUM: u8 = 1 << 1;
const HAS_EXTRA: u8 = 1 << 2;
const HAS_NAME: u8 = 1 << 3;
const HAS_COMMENT: u8 = 1 << 4;
/// Up to this many bytes after a member are ignored, whatever they are: the smallest member is longer.
const IGNORED: usize = 18;

/// Appends the contents of the members of `bytes` to `output`. Bytes that follow a member and do not begin
/// with a member's header are ignored.
///
/// *Source*: `java.util.zip.GZIPInputStream.readTrailer`.
pub(super) fn decompress(bytes: &[u8], max_bytes: usize, output: &mut Vec<u8>) -> Result<(), Malformed> {
    let broken = |found| Malformed::new("a gzip stream", found);
    let mut deflated = after_header(bytes).ok_or_else(|| broken("invalid gzip header"))?;
    loop {
        let start = output.len();
        let mut decoder = DeflateDecoder::new(deflated);
        drain(Codec::Gzip, &mut decoder, max_bytes, output)?;
        let mut rest = decoder.into_inner();
        let content = output.get(start..).unwrap_or_default();
        let trailer = take_u32(&mut rest).zip(take_u32(&mut rest));
        let (checksum, size) = trailer.ok_or_else(|| broken("unexpected end of file"))?;
        let computed = crc(content);
        if checksum != computed.sum() || size != computed.amount() {
            return Err(broken("corrupt gzip stream does not have a matching checksum"));
        }
        let next = if rest.len() > IGNORED { after_header(rest) } else { None };
        let Some(next) = next else { return Ok(()) };
        deflated = next;
    }
}

/// The bytes after the header of a member; `None` if `member` does not begin with a valid one.
///
/// *Source*: `java.util.zip.GZIPInputStream.readHeader`.
fn after_header(member: &[u8]) -> Option<&[u8]> {
    let flags = *member.strip_prefix(&MAGIC)?.first()?;
    let mut rest = member.get(HEADER..)?;
    if flags & HAS_EXTRA != 0 {
        let size = take_u16(&mut rest)?;
        rest = rest.get(usize::from(size)..)?;
    }
    for has_text in [HAS_NAME, HAS_COMMENT] {
        if flags & has_text != 0 {
            let end = rest.iter().position(|byte| *byte == 0)?;
            rest = rest.get(end + 1..)?;
        }
    }
    if flags & HAS_CHECKSUM != 0 {
        let computed = crc(member.get(..member.len() - rest.len())?).sum() & 0xffff;
        if u32::from(take_u16(&mut rest)?) != computed {
            return None;
        }
    }
    Some(rest)
}

/// The CRC-32 of bytes, with their number.
fn crc(bytes: &[u8]) -> Crc {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc
}

#[expect(clippy::little_endian_bytes, reason = "gzip's format is little-endian")]
fn take_u16(rest: &mut &[u8]) -> Option<u16> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u16::from_le_bytes(*taken))
}

#[expect(clippy::little_endian_bytes, reason = "gzip's format is little-endian")]
fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_le_bytes(*taken))
}
