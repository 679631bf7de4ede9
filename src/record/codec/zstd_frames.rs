//! Zstandard frames, compressed and decompressed with one context each a thread: the tables and buffers of a
//! context are larger than most batches.

use std::cell::RefCell;
use std::io::{ErrorKind, Read, Result as IoResult};

use zstd::stream::read::Decoder;
use zstd::zstd_safe::{
    CCtx, CParameter, DCtx, ResetDirective, compress_bound, find_frame_compressed_size, get_error_name,
};

use super::{Codec, drain, stream_error};
use crate::error::Malformed;

/// The maximum window of a frame, as the logarithm of its bytes. The context allocates the window, whose size
/// is in the frame, before the first byte.
const MAX_WINDOW_LOG: u32 = 27;

/// The maximum size of a context that is kept, bytes. The window of Kafka's producers has at most 8 MiB.
const MAX_KEPT: usize = 16 << 20;

thread_local! {
    static CONTEXT: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
    static COMPRESSION: RefCell<Option<CCtx<'static>>> = const { RefCell::new(None) };
}

/// Appends one frame without content size and checksum, like the streams of the Java library, to `output`.
pub(super) fn compress(level: i32, bytes: &[u8], output: &mut Vec<u8>) -> std::io::Result<()> {
    let mut context = COMPRESSION.take().unwrap_or_else(CCtx::create);
    let compressed = compress_with(&mut context, level, bytes, output)
        .map_err(|code| std::io::Error::other(get_error_name(code)));
    if context.sizeof() <= MAX_KEPT {
        COMPRESSION.set(Some(context));
    }
    compressed
}

fn compress_with(
    context: &mut CCtx<'static>,
    level: i32,
    bytes: &[u8],
    output: &mut Vec<u8>,
) -> Result<(), usize> {
    context.reset(ResetDirective::SessionAndParameters)?;
    context.set_parameter(CParameter::CompressionLevel(level))?;
    context.set_parameter(CParameter::ContentSizeFlag(false))?;
    let start = output.len();
    output.resize(start + compress_bound(bytes.len()), 0);
    // the tables have the size that so many bytes need
    let compressed = context.compress2(output.get_mut(start..).unwrap_or_default(), bytes);
    output.truncate(start + compressed.unwrap_or(0));
    compressed.map(drop)
}

/// Appends the contents of the frames in `bytes` to `output`.
pub(super) fn decompress(bytes: &[u8], max_bytes: usize, output: &mut Vec<u8>) -> Result<(), Malformed> {
    let mut context = CONTEXT.take().unwrap_or_else(DCtx::create);
    let decompressed = decompress_with(&mut context, bytes, max_bytes, output);
    if context.sizeof() <= MAX_KEPT {
        CONTEXT.set(Some(context));
    }
    decompressed
}

fn decompress_with(
    context: &mut DCtx<'static>,
    bytes: &[u8],
    max_bytes: usize,
    output: &mut Vec<u8>,
) -> Result<(), Malformed> {
    let broken = |error: std::io::Error| stream_error(Codec::Zstd, &error);
    // the frame before may have ended with an error
    context
        .reset(ResetDirective::SessionOnly)
        .map_err(|code| broken(std::io::Error::other(get_error_name(code))))?;
    let mut decoder = Decoder::with_context(bytes, context);
    decoder.window_log_max(MAX_WINDOW_LOG).map_err(broken)?;
    drain(Codec::Zstd, UpToCut { decoder, bytes }, max_bytes, output)
}

/// A decoder of `bytes` that ends without an error in a cut frame where Java's does.
struct UpToCut<'a, D> {
    decoder: D,
    bytes: &'a [u8],
}

impl<D: Read> Read for UpToCut<'_, D> {
    fn read(&mut self, buffer: &mut [u8]) -> IoResult<usize> {
        match self.decoder.read(buffer) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof && is_cut_ignored(self.bytes) => Ok(0),
            read => read,
        }
    }
}

/// Whether a cut frame at the end of `bytes` is no error: Java forgets that it has begun a frame if another
/// one ended in the bytes that it read last.
///
/// *Source*: `ZstdInputStreamNoFinalizer.readInternal`, its field `frameFinished`.
#[cold]
fn is_cut_ignored(bytes: &[u8]) -> bool {
    let read = DCtx::in_size();
    let last_read = bytes.len().saturating_sub(1) / read * read;
    let mut end = 0;
    while let Ok(size) = find_frame_compressed_size(bytes.get(end..).unwrap_or_default()) {
        end += size;
    }
    end > last_read
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;
    use crate::record::MAX_BATCH_BYTES;

    /// A frame of `length` bytes, with a window of 2^`window_log` bytes.
    fn frame(seed: u8, length: usize, window_log: u32) -> Vec<u8> {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(window_log).unwrap();
        let bytes: Vec<u8> = (0..length).map(|at| u8::try_from(at * at / 7 % 251).unwrap() ^ seed).collect();
        encoder.write_all(&bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn streams() -> impl Strategy<Value = Vec<u8>> {
        let frames = proptest::collection::vec((any::<u8>(), 0..5000usize, 10..22u32), 0..3);
        let change = prop_oneof![
            2 => Just(None),
            1 => (any::<Index>(), any::<Option<u8>>()).prop_map(Some),
        ];
        (frames, change).prop_map(|(frames, change)| {
            let mut bytes: Vec<_> =
                frames.into_iter().flat_map(|(seed, length, window)| frame(seed, length, window)).collect();
            match change.filter(|_| !bytes.is_empty()) {
                Some((at, Some(byte))) => {
                    let at = at.index(bytes.len());
                    bytes[at] ^= byte;
                }
                Some((at, None)) => bytes.truncate(at.index(bytes.len())),
                None => {}
            }
            bytes
        })
    }

    proptest! {
        #![proptest_config(crate::types::fixed_seed(300))]

        #[test]
        fn a_context_that_is_used_again_decompresses_as_a_new_one(
            all in proptest::collection::vec(streams(), 1..8)
        ) {
            for bytes in all {
                let (mut reused, mut naive) = (Vec::new(), Vec::new());
                let found = decompress(&bytes, MAX_BATCH_BYTES, &mut reused);
                let mut decoder = Decoder::with_buffer(&bytes[..]).unwrap();
                decoder.window_log_max(MAX_WINDOW_LOG).unwrap();
                let decoder = UpToCut { decoder, bytes: &bytes };
                prop_assert_eq!(found, drain(Codec::Zstd, decoder, MAX_BATCH_BYTES, &mut naive));
                prop_assert_eq!(reused, naive);
            }
        }
    }

    #[test]
    fn a_large_window_is_not_kept_and_a_larger_one_refused() {
        let mut output = Vec::new();
        decompress(&frame(1, 5000, 20), MAX_BATCH_BYTES, &mut output).unwrap();
        assert_eq!(output.len(), 5000);
        let is_kept = || {
            let context = CONTEXT.take();
            let is_kept = context.is_some();
            CONTEXT.set(context);
            is_kept
        };
        assert!(is_kept());
        decompress(&frame(1, 5000, 26), MAX_BATCH_BYTES, &mut output).unwrap();
        assert!(!is_kept());
        let error = decompress(&frame(1, 5000, 28), MAX_BATCH_BYTES, &mut output).unwrap_err();
        assert_eq!(error.expected, "a zstd stream", "{error:?}");
    }
}
