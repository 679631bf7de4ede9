//! Compression and decompression, one function each for all five codecs, with an absolute limit on the decompressed size.
//!
//! Kafka: the classes of `org.apache.kafka.common.compress`.

mod compress;
#[cfg(feature = "compression")]
mod gzip_members;
#[cfg(feature = "compression")]
mod lz4_frame;
#[cfg(feature = "compression")]
mod xerial;
#[cfg(feature = "compression")]
mod zstd_frames;

pub use compress::{check_level, compress};

#[cfg(feature = "compression")]
use std::io::Read;

use super::{Codec, MAX_DECOMPRESSED_BYTES};
use crate::error::Malformed;

/// Decompresses `bytes` into `output`, which is cleared first. `magic`: the magic of the batch, because LZ4 frames of v0 have a
/// wrong header checksum.
///
/// # Errors
/// [`Malformed`] if the stream is damaged or larger than [`MAX_DECOMPRESSED_BYTES`].
#[cfg(feature = "compression")]
pub fn decompress(codec: Codec, magic: u8, bytes: &[u8], output: &mut Vec<u8>) -> Result<(), Malformed> {
    output.clear();
    match codec {
        Codec::None => output.extend_from_slice(bytes),
        Codec::Gzip => gzip_members::decompress(bytes, output)?,
        Codec::Snappy => xerial::decompress(bytes, output)?,
        Codec::Lz4 => lz4_frame::decompress(bytes, magic == 0, output)?,
        Codec::Zstd => zstd_frames::decompress(bytes, output)?,
    }
    Ok(())
}

/// Without the feature `compression`, only uncompressed batches can be read.
///
/// # Errors
/// [`Malformed`] for every codec but [`Codec::None`].
#[cfg(not(feature = "compression"))]
pub fn decompress(codec: Codec, _magic: u8, bytes: &[u8], output: &mut Vec<u8>) -> Result<(), Malformed> {
    output.clear();
    if codec != Codec::None || bytes.len() > MAX_DECOMPRESSED_BYTES {
        let found = format!("{} (built without the feature \"compression\")", codec.name());
        return Err(Malformed::unsupported("an uncompressed batch", found));
    }
    output.extend_from_slice(bytes);
    Ok(())
}

/// Reads a decoder to its end, or until `output` is one byte longer than the limit.
#[cfg(feature = "compression")]
fn drain(codec: Codec, decoder: impl Read, output: &mut Vec<u8>) -> Result<(), Malformed> {
    let room = (MAX_DECOMPRESSED_BYTES + 1).saturating_sub(output.len());
    decoder.take(room as u64).read_to_end(output).map_err(|error| stream_error(codec, &error))?;
    if output.len() > MAX_DECOMPRESSED_BYTES { Err(too_large(codec)) } else { Ok(()) }
}

#[cfg(feature = "compression")]
fn stream_error(codec: Codec, error: &std::io::Error) -> Malformed {
    Malformed::new(format!("a {} stream", codec.name()), error.to_string())
}

#[cfg(feature = "compression")]
fn too_large(codec: Codec) -> Malformed {
    Malformed::new(
        format!("at most {MAX_DECOMPRESSED_BYTES} bytes in one batch"),
        format!("a larger {} stream", codec.name()),
    )
}

/// Extends `output` by `more` bytes, within the limit, and returns them.
#[cfg(feature = "compression")]
fn grow(codec: Codec, output: &mut Vec<u8>, more: usize) -> Result<&mut [u8], Malformed> {
    let start = output.len();
    if more > MAX_DECOMPRESSED_BYTES - start.min(MAX_DECOMPRESSED_BYTES) {
        return Err(too_large(codec));
    }
    output.resize(start + more, 0);
    Ok(output.get_mut(start..).unwrap_or_default())
}
