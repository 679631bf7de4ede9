//! Compression in the stream formats of Kafka's clients and brokers. The bytes may differ from theirs.

use crate::error::{Error, Result};
use crate::record::Codec;

/// Appends the compressed stream of `bytes` to `out`. The default levels are Kafka's: gzip −1 (that is 6),
/// lz4 9, zstd 3.
///
/// Compressed bytes are not canonical: libraries produce different bytes for the same records, and no reader
/// compares them. LZ4 has one compression strength here, Kafka's default (the fast one): its levels are
/// checked and have no effect.
///
/// # Errors
/// [`Error::Config`] for a level that [`check_level`] refuses, for any codec but [`Codec::None`] if the crate
/// was built without the feature `compression`, and if a library refuses the bytes.
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

/// Checks a compression level: gzip −1 and 1 to 9, lz4 1 to 17, zstd −131072 to 22; the other codecs have no
/// levels.
///
/// # Errors
/// [`Error::Config`] with the name of the setting.
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
    let result = match codec {
        Codec::None => Ok(()),
        Codec::Gzip => gzip(level.unwrap_or(-1), bytes, out),
        Codec::Snappy => super::xerial::compress(bytes, out),
        Codec::Lz4 => super::lz4_frame::compress(bytes, out),
        Codec::Zstd => super::zstd_frames::compress(level.unwrap_or(3), bytes, out),
    };
    result.map_err(|error| {
        Error::config(
            "compression.type",
            format!("bytes that {} can compress", codec.name()),
            error.to_string(),
        )
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
