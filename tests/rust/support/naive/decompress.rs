//! Decompression of one stream. Frames of xerial snappy and of lz4 are parsed here; the libraries decompress
//! the blocks.

use std::io::Read;

use super::Codec;
use super::bytes::Cursor;

const XERIAL: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];

/// `magic` is that of the message that contains the stream: with magic 0 the header checksum of lz4 is wrong
/// and ignored.
pub fn decompress(codec: Codec, magic: u8, bytes: &[u8]) -> Result<Vec<u8>, String> {
    match codec {
        Codec::None => Ok(bytes.to_vec()),
        Codec::Gzip => {
            let mut out = Vec::new();
            flate2::read::MultiGzDecoder::new(bytes)
                .read_to_end(&mut out)
                .map_err(|error| format!("gzip: {error}"))?;
            Ok(out)
        }
        Codec::Snappy => snappy(bytes).map_err(|what| format!("snappy: {what}")),
        Codec::Lz4 => lz4(magic, bytes).map_err(|what| format!("lz4: {what}")),
        Codec::Zstd => zstd::decode_all(bytes).map_err(|error| format!("zstd: {error}")),
    }
}

fn snappy(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let block = |bytes| snap::raw::Decoder::new().decompress_vec(bytes).map_err(|error| error.to_string());
    if bytes.len() < 16 || bytes[..8] != XERIAL {
        return block(bytes);
    }
    let mut rest = Cursor(&bytes[8..]);
    let (version, oldest_reader) = (rest.i32()?, rest.i32()?);
    if version != 1 || oldest_reader != 1 {
        return Err(format!("versions {version} and {oldest_reader}"));
    }
    let mut out = Vec::new();
    while !rest.0.is_empty() {
        let size = rest.i32()?;
        let size = usize::try_from(size).map_err(|_| format!("a block of {size} bytes"))?;
        out.extend(block(rest.take(size)?)?);
    }
    Ok(out)
}

fn lz4(magic: u8, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut rest = Cursor(bytes);
    if rest.u32_le()? != 0x184d_2204 {
        return Err("not a frame".to_owned());
    }
    let (flags, descriptor) = (rest.take(1)?[0], rest.take(1)?[0]);
    if flags & 0b1110_0011 != 0b0110_0000 || descriptor & 0b1000_1111 != 0 {
        return Err(format!("flags {flags:#x} and descriptor {descriptor:#x}"));
    }
    let max_block_size = match descriptor >> 4 {
        4 => 64 << 10,
        5 => 256 << 10,
        6 => 1 << 20,
        7 => 4 << 20,
        other => return Err(format!("block size {other}")),
    };
    let has_block_checksum = flags & 0x10 != 0;
    if flags & 0x08 != 0 {
        rest.take(8)?; // the content's size
    }
    let header = &bytes[4..bytes.len() - rest.0.len()];
    let checksum = rest.take(1)?[0];
    if magic > 0 && checksum != (xxhash32(header) >> 8) as u8 {
        return Err(format!("header checksum {checksum:#x}"));
    }
    let mut out = Vec::new();
    loop {
        let word = rest.u32_le()?;
        if word == 0 {
            break;
        }
        let block = rest.take((word & 0x7fff_ffff) as usize)?;
        let start = out.len();
        if word >> 31 == 1 {
            out.extend(block);
        } else {
            let plain =
                lz4_flex::block::decompress(block, max_block_size).map_err(|error| error.to_string())?;
            out.extend(plain);
        }
        if out.len() - start > max_block_size {
            return Err(format!("a block of {} bytes", out.len() - start));
        }
        if has_block_checksum && rest.u32_le()? != xxhash32(block) {
            return Err("block checksum".to_owned());
        }
    }
    if flags & 0x04 != 0 && rest.u32_le()? != xxhash32(&out) {
        return Err("content checksum".to_owned());
    }
    if !rest.0.is_empty() {
        return Err(format!("{} bytes after the frame", rest.0.len()));
    }
    Ok(out)
}

fn xxhash32(bytes: &[u8]) -> u32 {
    twox_hash::XxHash32::oneshot(0, bytes)
}
