//! Compression, as Kafka's clients and brokers do it: the same streams, not always the same bytes.

use crate::error::{Error, Result};
use crate::record::Codec;

/// Appends the compressed stream of `bytes` to `out`. Without a level it is Kafka's default: gzip −1 (that is 6), lz4 9,
/// zstd 3.
///
/// Compressed bytes are not canonical: every library makes its own of the same records, and readers compare none of them.
/// LZ4 here has one strength, Kafka's default (the fast one): its levels are checked and change nothing.
///
/// # Errors
/// [`Error::Config`] for a level that [`check_level`] refuses, for any codec but [`Codec::None`] where the crate was built
/// without the feature `compression`, and where a library refuses the bytes.
///
/// # Source
/// Kafka: `Compression.wrapForOutput` of each codec.
pub fn compress(codec: Codec, level: Option<i32>, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    check_level(codec, level)?;
    if codec == Codec::None {
        out.extend_from_slice(bytes);
        return Ok(());
    }
    let start = out.len();
    stream(codec, level, bytes, out).inspect_err(|_| out.truncate(start))
}

/// Whether `codec` knows the compression level `level`: gzip −1 and 1 to 9, lz4 1 to 17, zstd −131072 to 22; the others
/// have none.
///
/// # Errors
/// [`Error::Config`] that names the setting.
///
/// # Source
/// Kafka: `CompressionType.levelValidator`.
pub fn check_level(codec: Codec, level: Option<i32>) -> Result<()> {
    let Some(level) = level else { return Ok(()) };
    let (is_known, expected) = match codec {
        Codec::None | Codec::Snappy => (false, "no level: this codec has none"),
        Codec::Gzip => (level == -1 || (1..=9).contains(&level), "-1 (the default) or 1 to 9"),
        Codec::Lz4 => ((1..=17).contains(&level), "1 to 17"),
        Codec::Zstd => ((-131_072..=22).contains(&level), "-131072 to 22"),
    };
    if is_known {
        return Ok(());
    }
    Err(Error::config(format!("compression.{}.level", codec.name()), expected, level.to_string()))
}

#[cfg(feature = "compression")]
fn stream(codec: Codec, level: Option<i32>, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let done = match codec {
        Codec::None => Ok(()),
        Codec::Gzip => gzip(level.unwrap_or(-1), bytes, out),
        Codec::Snappy => super::xerial::compress(bytes, out),
        Codec::Lz4 => super::lz4_frame::compress(bytes, out),
        Codec::Zstd => zstd(level.unwrap_or(3), bytes, out),
    };
    done.map_err(|error| {
        Error::config("compression.type", format!("bytes that {} takes", codec.name()), error.to_string())
    })
}

#[cfg(not(feature = "compression"))]
fn stream(codec: Codec, _level: Option<i32>, _bytes: &[u8], _out: &mut Vec<u8>) -> Result<()> {
    let found = format!("{} (built without the feature \"compression\")", codec.name());
    Err(Error::config("compression.type", "uncompressed", found))
}

/// One RFC 1952 member.
#[cfg(feature = "compression")]
fn gzip(level: i32, bytes: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    use std::io::Write;

    let level =
        u32::try_from(level).map_or_else(|_| flate2::Compression::default(), flate2::Compression::new);
    let mut encoder = flate2::write::GzEncoder::new(out, level);
    encoder.write_all(bytes)?;
    encoder.finish().map(drop)
}

/// One frame that tells neither its size nor a checksum: what streams of the Java library look like.
#[cfg(feature = "compression")]
fn zstd(level: i32, bytes: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    use std::io::Write;

    let mut encoder = zstd::stream::write::Encoder::new(out, level)?;
    encoder.include_contentsize(false)?;
    encoder.include_checksum(false)?;
    encoder.write_all(bytes)?;
    encoder.finish().map(drop)
}
