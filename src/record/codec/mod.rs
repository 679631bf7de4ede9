//! Compression and decompression, one function each for all five codecs, with an absolute limit on the
//! decompressed size.
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

use super::Codec;
use crate::error::Malformed;

/// Decompresses `bytes` into `output`, which is cleared first. `magic`: the magic of the batch, because LZ4
/// frames of v0 have a wrong header checksum.
///
/// # Errors
/// [`Malformed`] if the stream is damaged, or larger than `max_bytes`.
#[cfg(feature = "compression")]
pub fn decompress(
    codec: Codec,
    magic: u8,
    bytes: &[u8],
    max_bytes: usize,
    output: &mut Vec<u8>,
) -> Result<(), Malformed> {
    output.clear();
    match codec {
        Codec::None => output.extend_from_slice(bytes),
        Codec::Gzip => gzip_members::decompress(bytes, max_bytes, output)?,
        Codec::Snappy => xerial::decompress(bytes, max_bytes, output)?,
        Codec::Lz4 => lz4_frame::decompress(bytes, magic == 0, max_bytes, output)?,
        Codec::Zstd => zstd_frames::decompress(bytes, max_bytes, output)?,
    }
    Ok(())
}

/// Without the feature `compression`, only uncompressed batches can be read.
///
/// # Errors
/// [`Malformed`] for every codec but [`Codec::None`].
#[cfg(not(feature = "compression"))]
pub fn decompress(
    codec: Codec,
    _magic: u8,
    bytes: &[u8],
    _max_bytes: usize,
    output: &mut Vec<u8>,
) -> Result<(), Malformed> {
    output.clear();
    if codec != Codec::None {
        let found = format!("{} (built without the feature \"compression\")", codec.name());
        return Err(Malformed::unsupported("an uncompressed batch", found));
    }
    output.extend_from_slice(bytes);
    Ok(())
}

/// Reads a decoder to its end, or until `output` is one byte longer than the limit.
#[cfg(feature = "compression")]
fn drain(codec: Codec, decoder: impl Read, max_bytes: usize, output: &mut Vec<u8>) -> Result<(), Malformed> {
    let room = max_bytes.saturating_add(1).saturating_sub(output.len());
    decoder.take(room as u64).read_to_end(output).map_err(|error| stream_error(codec, &error))?;
    if output.len() > max_bytes { Err(too_large(codec, max_bytes, output.len())) } else { Ok(()) }
}

#[cfg(feature = "compression")]
fn stream_error(codec: Codec, error: &std::io::Error) -> Malformed {
    Malformed::new(format!("a {} stream", codec.name()), error.to_string())
}

/// `known`: bytes to which it expands at least.
#[cfg(feature = "compression")]
#[cold]
fn too_large(codec: Codec, max_bytes: usize, known: usize) -> Malformed {
    Malformed::too_large(max_bytes, format!("at least {known} bytes, decompressed ({})", codec.name()))
}

/// Extends `output` by `more` bytes, within the limit, and returns them.
#[cfg(feature = "compression")]
fn grow(codec: Codec, output: &mut Vec<u8>, more: usize, max_bytes: usize) -> Result<&mut [u8], Malformed> {
    let start = output.len();
    if more > max_bytes.saturating_sub(start) {
        return Err(too_large(codec, max_bytes, start.saturating_add(more)));
    }
    output.resize(start + more, 0);
    Ok(output.get_mut(start..).unwrap_or_default())
}
