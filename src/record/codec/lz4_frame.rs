//! LZ4 frames, encoded and decoded here around the library's blocks: Kafka uses a subset of the frame format,
//! and a wrong checksum for magic 0.
//!
//! ```text
//!  0             4     5    6              (all little-endian)
//! │ 04 22 4D 18 │ FLG │ BD │ (content size u64) │ HC │ { size u32, bit 31 = stored │ data │ (checksum u32) } … │ 00 00 00 00
//! ```
//!
//! HC is the second byte of xxHash32 over FLG to the content size. Writers of v0 included the frame's magic
//! in the hash, so HC is not checked for v0 (KAFKA-3160). Kafka: `Lz4BlockInputStream`,
//! `Lz4BlockOutputStream`.

use lz4_flex::block::DecompressError;
use twox_hash::XxHash32;

use super::{Codec, grow, too_large};
use crate::error::Malformed;

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
const STORED: u32 = 1 << 31;
/// The descriptor that Kafka writes: version 1, independent blocks, no content checksum, no content size;
/// blocks of 64 KiB.
const DESCRIPTOR: [u8; 2] = [0x60, 0x40];
const BLOCK: usize = 64 << 10;

/// Appends the frame of `bytes`, as for magic 1 and 2, to `output`. A block that does not shrink is stored
/// uncompressed.
pub(super) fn compress(bytes: &[u8], output: &mut Vec<u8>) -> std::io::Result<()> {
    output.extend_from_slice(&MAGIC);
    output.extend_from_slice(&DESCRIPTOR);
    output.push(header_checksum(&DESCRIPTOR));
    for block in bytes.chunks(BLOCK) {
        let start = output.len();
        output.resize(start + 4 + lz4_flex::block::get_maximum_output_size(block.len()), 0);
        let (size, room) = output.get_mut(start..).unwrap_or_default().split_at_mut(4);
        let written = lz4_flex::block::compress_into(block, room).map_err(std::io::Error::other)?;
        if written < block.len() {
            size.copy_from_slice(&le_u32(written));
            output.truncate(start + 4 + written);
        } else {
            output.truncate(start);
            output.extend_from_slice(&le_u32(block.len() | STORED as usize));
            output.extend_from_slice(block);
        }
    }
    output.extend_from_slice(&[0; 4]);
    Ok(())
}

/// Appends the contents of the first frame of `bytes` to `output`. Bytes after its end mark are ignored, as
/// in Kafka.
pub(super) fn decompress(
    bytes: &[u8],
    checksum_is_wrong: bool,
    max_bytes: usize,
    output: &mut Vec<u8>,
) -> Result<(), Malformed> {
    let mut rest = bytes;
    if take(&mut rest, 4)? != MAGIC {
        let found = format!("{:02x?}", bytes.get(..4).unwrap_or(bytes));
        return Err(Malformed::new("the magic of an LZ4 frame", found));
    }
    let descriptor = rest;
    let &[flags, block] = take(&mut rest, 2)? else { return Err(cut()) };
    let [has_block_checksum, has_content_size, has_content_checksum] =
        [4, 3, 2].map(|bit| flags >> bit & 1 == 1);
    if flags >> 6 != 1 || flags >> 5 & 1 != 1 || flags & 0b11 != 0 || block & 0b1000_1111 != 0 {
        let found = format!("flags {flags:#04x}, block descriptor {block:#04x}");
        return Err(Malformed::new("an LZ4 frame of version 1 with independent blocks", found));
    }
    let max_block_size = match block >> 4 {
        size @ 4..=7 => 1usize << (2 * size + 8),
        size => return Err(Malformed::new("an LZ4 block size from 4 to 7", format!("{size}"))),
    };
    if has_content_size {
        take(&mut rest, 8)?;
    }
    let hashed = descriptor.len() - rest.len();
    let &[stored] = take(&mut rest, 1)? else { return Err(cut()) };
    let computed = header_checksum(descriptor.get(..hashed).unwrap_or_default());
    if stored != computed && !checksum_is_wrong {
        let expected = format!("header checksum {stored:#04x}, as stored");
        return Err(Malformed::new(expected, format!("{computed:#04x} of its bytes")));
    }
    loop {
        let word = take_u32(&mut rest)?;
        let size = usize::try_from(word & !STORED).unwrap_or(usize::MAX);
        // an end mark, also with the bit of a stored block
        if size == 0 {
            // Kafka does not compare the content checksum
            return if has_content_checksum { take_u32(&mut rest).map(drop) } else { Ok(()) };
        }
        if size > max_block_size {
            return Err(Malformed::new(
                format!("an LZ4 block of at most {max_block_size} bytes"),
                format!("{size}"),
            ));
        }
        let data = take(&mut rest, size)?;
        if has_block_checksum && take_u32(&mut rest)? != hash(data) {
            return Err(Malformed::new("an LZ4 block with a valid checksum", "another checksum"));
        }
        if word & STORED == STORED {
            grow(Codec::Lz4, output, size, max_bytes)?.copy_from_slice(data);
        } else {
            let start = output.len();
            // the last block may be smaller than what is left up to the limit
            let left = max_block_size.min(max_bytes.saturating_sub(start));
            let room = grow(Codec::Lz4, output, left, max_bytes)?;
            let written = lz4_flex::block::decompress_into(data, room).map_err(|error| match error {
                DecompressError::OutputTooSmall { expected, .. } if left < max_block_size => {
                    too_large(Codec::Lz4, max_bytes, start.saturating_add(expected.max(left + 1)))
                }
                error => Malformed::new("an LZ4 block", error.to_string()),
            })?;
            output.truncate(start + written);
        }
    }
}

fn hash(bytes: &[u8]) -> u32 {
    XxHash32::oneshot(0, bytes)
}

/// HC: the second byte of the hash.
fn header_checksum(descriptor: &[u8]) -> u8 {
    let [_, _, second, _] = hash(descriptor).to_be_bytes();
    second
}

fn cut() -> Malformed {
    Malformed::new("a complete LZ4 frame", "the end of the bytes")
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], Malformed> {
    let (taken, rest) = bytes.split_at_checked(length).ok_or_else(cut)?;
    *bytes = rest;
    Ok(taken)
}

/// A block's size, with the bit for a stored block.
#[expect(clippy::little_endian_bytes, reason = "LZ4's frame format is little-endian")]
fn le_u32(size: usize) -> [u8; 4] {
    u32::try_from(size).unwrap_or_default().to_le_bytes()
}

/// The only little-endian numbers of Kafka's files.
#[expect(clippy::little_endian_bytes, reason = "LZ4's frame format is little-endian")]
fn take_u32(bytes: &mut &[u8]) -> Result<u32, Malformed> {
    let (taken, rest) = bytes.split_first_chunk().ok_or_else(cut)?;
    *bytes = rest;
    Ok(u32::from_le_bytes(*taken))
}
