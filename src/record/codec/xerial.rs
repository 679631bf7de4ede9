//! Snappy as Kafka's clients write it: the stream format of the Java library (xerial), or one raw block.
//!
//! ```text
//!  0                          8           12                16
//! │ 82 'S' 'N' 'A' 'P' 'P' 'Y' 00 │ version i32 │ compatible i32 │ { length i32, a snappy block of that length } …
//! ```
//!
//! As the Java library reads it: any version in the first header, several streams one after another, and up
//! to three bytes after the last chunk. Where a length is expected, 16 bytes that begin with 82 'S' 'N' 'A'
//! but are no header are skipped.

use super::{Codec, grow};
use crate::error::Malformed;
use crate::record::i32_at;

const MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
/// The start of the magic by which a header is told from the length of a chunk.
const HEAD: [u8; 4] = *b"\x82SNA";
const HEADER: usize = 16;
/// The chunk size of Kafka's clients.
const CHUNK: usize = 32 << 10;

/// Appends the stream of `bytes` to `output`.
pub(super) fn compress(bytes: &[u8], output: &mut Vec<u8>) -> std::io::Result<()> {
    output.extend_from_slice(&MAGIC);
    output.extend_from_slice(&1i32.to_be_bytes());
    output.extend_from_slice(&1i32.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    for chunk in bytes.chunks(CHUNK) {
        let start = output.len();
        output.resize(start + 4 + snap::raw::max_compress_len(chunk.len()), 0);
        let (length, room) = output.get_mut(start..).unwrap_or_default().split_at_mut(4);
        let written = encoder.compress(chunk, room)?;
        length.copy_from_slice(&u32::try_from(written).unwrap_or_default().to_be_bytes());
        output.truncate(start + 4 + written);
    }
    Ok(())
}

/// Appends the decompressed `bytes` to `output`.
pub(super) fn decompress(bytes: &[u8], max_bytes: usize, output: &mut Vec<u8>) -> Result<(), Malformed> {
    let framed = bytes.len() >= HEADER && bytes.starts_with(&MAGIC);
    if !framed {
        return block(bytes, max_bytes, output);
    }
    let mut rest = bytes.get(HEADER..).unwrap_or_default();
    // up to three bytes after the last chunk are no length, and ignored
    while rest.len() >= 4 {
        if rest.starts_with(&HEAD) {
            rest = after_further_header(rest)?;
            continue;
        }
        let length = i32_at(rest, 0).and_then(|length| usize::try_from(length).ok());
        let chunk = length
            .and_then(|length| rest.get(4..)?.split_at_checked(length))
            .ok_or_else(|| Malformed::new("a whole snappy chunk", format!("{} bytes left", rest.len())))?;
        block(chunk.0, max_bytes, output)?;
        rest = chunk.1;
    }
    Ok(())
}

/// *Source*: `SnappyInputStream.hasNextChunk`, `SnappyInputStream.isValidHeader`.
fn after_further_header(bytes: &[u8]) -> Result<&[u8], Malformed> {
    let (header, rest) = bytes
        .split_at_checked(HEADER)
        .ok_or_else(|| Malformed::new("a whole snappy header", format!("{} bytes left", bytes.len())))?;
    match i32_at(header, MAGIC.len()) {
        Some(version) if header.starts_with(&MAGIC) && version < 1 => {
            Err(Malformed::new("a snappy header of version 1 or above", format!("version {version}")))
        }
        _ => Ok(rest),
    }
}

fn block(bytes: &[u8], max_bytes: usize, output: &mut Vec<u8>) -> Result<(), Malformed> {
    let broken = |error: snap::Error| Malformed::new("a snappy block", error.to_string());
    let length = snap::raw::decompress_len(bytes).map_err(broken)?;
    let room = grow(Codec::Snappy, output, length, max_bytes)?;
    snap::raw::Decoder::new().decompress(bytes, room).map_err(broken)?;
    Ok(())
}
