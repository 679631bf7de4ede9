//! Zigzag varints, as in Protocol Buffers. Kafka: `ByteUtils.readVarint`, `writeVarint` and similar methods.
//!
//! The varlong of a number in the range of an i32 equals its varint, so one function writes both.

use crate::error::Malformed;

/// Reads a varint (at most 5 bytes) from the front of `bytes`.
///
/// # Errors
/// [`Malformed`] if the bytes end inside it or the fifth byte has the continuation bit.
#[inline]
pub fn read_i32(bytes: &mut &[u8]) -> Result<i32, Malformed> {
    // nearly every length and delta fits into one or two bytes
    match **bytes {
        [first, ref rest @ ..] if first < 0x80 => {
            *bytes = rest;
            Ok(unzigzag32(u32::from(first)))
        }
        [first, second, ref rest @ ..] if second < 0x80 => {
            *bytes = rest;
            Ok(unzigzag32(u32::from(first & 0x7f) | u32::from(second) << 7))
        }
        _ => {
            let raw = read_groups(bytes, 5)?;
            // the fifth group has four bits of an i32; the other bits are ignored, as in Kafka
            Ok(unzigzag32(u32::try_from(raw & 0xffff_ffff).unwrap_or(u32::MAX)))
        }
    }
}

/// Reads a varlong (at most 10 bytes) from the front of `bytes`.
///
/// # Errors
/// [`Malformed`] if the bytes end inside it or the tenth byte has the continuation bit.
#[inline]
pub fn read_i64(bytes: &mut &[u8]) -> Result<i64, Malformed> {
    match **bytes {
        [first, ref rest @ ..] if first < 0x80 => {
            *bytes = rest;
            Ok(unzigzag64(u64::from(first)))
        }
        // two bytes are enough for a timestamp delta of up to eight seconds
        [first, second, ref rest @ ..] if second < 0x80 => {
            *bytes = rest;
            Ok(unzigzag64(u64::from(first & 0x7f) | u64::from(second) << 7))
        }
        _ => read_groups(bytes, 10).map(unzigzag64),
    }
}

/// Appends `value` to `bytes`, in the minimum number of bytes.
#[inline]
pub fn write(bytes: &mut Vec<u8>, value: i64) {
    let mut raw = zigzag(value);
    while raw >= 0x80 {
        bytes.push(low_byte(raw) | 0x80);
        raw >>= 7;
    }
    bytes.push(low_byte(raw));
}

/// The number of bytes that [`write`](fn@write) appends for `value`: 1 to 10. Kafka:
/// `ByteUtils.sizeOfVarint`, `sizeOfVarlong`.
#[inline]
pub fn size(value: i64) -> usize {
    // seven bits per byte, and one byte for zero: ⌈bits / 7⌉ without a division
    let bits = 64 - (zigzag(value) | 1).leading_zeros();
    (bits as usize * 9 + 64) >> 6
}

/// The bits of a varint of at most three bytes at `at`, before the zigzag is undone, and the position after
/// it; `None` if it is longer. `N` must be a power of two, and at least `at + 3`.
#[expect(clippy::inline_always, reason = "as its only caller, the decoder of records")]
#[inline(always)]
pub(super) fn short<const N: usize>(bytes: &[u8; N], at: usize) -> Option<(u32, usize)> {
    // the mask has no effect on a position in the array; with it the compiler knows that no check is needed
    let byte = |at: usize| bytes.get(at & (N - 1)).map_or(0, |byte| u32::from(*byte));
    let first = byte(at);
    if first < 0x80 {
        return Some((first, at + 1));
    }
    let second = byte(at + 1);
    if second < 0x80 {
        return Some((first & 0x7f | second << 7, at + 2));
    }
    let third = byte(at + 2);
    let bits = first & 0x7f | (second & 0x7f) << 7 | third << 14;
    (third < 0x80).then_some((bits, at + 3))
}

#[cold]
fn read_groups(bytes: &mut &[u8], max: usize) -> Result<u64, Malformed> {
    let mut value = 0u64;
    for (index, byte) in bytes.iter().take(max).enumerate() {
        value |= u64::from(byte & 0x7f).wrapping_shl(u32::try_from(7 * index).unwrap_or(0));
        if *byte < 0x80 {
            *bytes = bytes.get(index + 1..).unwrap_or_default();
            return Ok(value);
        }
    }
    let found = if bytes.len() < max { "the end of the bytes" } else { "a longer one" };
    Err(Malformed::new(format!("a varint of at most {max} bytes"), found))
}

#[inline]
pub(super) fn unzigzag32(raw: u32) -> i32 {
    (raw >> 1).cast_signed() ^ -(raw & 1).cast_signed()
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// The lowest eight bits.
fn low_byte(raw: u64) -> u8 {
    let [.., low] = raw.to_be_bytes();
    low
}

#[inline]
pub(super) fn unzigzag64(raw: u64) -> i64 {
    (raw >> 1).cast_signed() ^ -(raw & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn varints_of_kafkas_own_tests() {
        let cases: [(&[u8], i32); 7] = [
            (&[0x01], -1),
            (&[0x7e], 63),
            (&[0x7f], -64),
            (&[0x80, 0x01], 64),
            (&[0x81, 0x01], -65),
            (&[0xfe, 0xff, 0xff, 0xff, 0x0f], i32::MAX),
            (&[0xff, 0xff, 0xff, 0xff, 0x0f], i32::MIN),
        ];
        for (bytes, value) in cases {
            assert_eq!(read_i32(&mut &*bytes), Ok(value));
            let mut written = Vec::new();
            write(&mut written, value.into());
            assert_eq!(written, bytes);
        }
        assert_eq!(read_i64(&mut &[0x80, 0x80, 0x80, 0x80, 0x80, 0x01][..]), Ok(17_179_869_184));
    }

    #[test]
    fn a_sixth_varint_byte_and_an_eleventh_varlong_byte_are_errors() {
        assert!(read_i32(&mut &[0xff; 6][..]).is_err());
        assert!(read_i64(&mut &[0xff; 11][..]).is_err());
        assert!(read_i32(&mut &[0x80, 0x80][..]).is_err());
        assert!(read_i64(&mut &[][..]).is_err());
    }

    #[test]
    fn sizes_at_every_number_of_bits() {
        for bit in 0..64 {
            for value in [1i64 << bit, (1i64 << bit).wrapping_sub(1), (1i64 << bit).wrapping_neg()] {
                let mut bytes = Vec::new();
                write(&mut bytes, value);
                assert_eq!(size(value), bytes.len(), "{value}");
            }
        }
    }

    proptest! {
        #![proptest_config(crate::types::fixed_seed(256))]

        #[test]
        fn a_written_varint_is_read_back(value: i64, small: i32) {
            let mut bytes = Vec::new();
            write(&mut bytes, value);
            prop_assert_eq!(size(value), bytes.len());
            bytes.push(9);
            let mut rest = &bytes[..];
            prop_assert_eq!(read_i64(&mut rest), Ok(value));
            prop_assert_eq!(rest, [9]);
            let mut bytes = Vec::new();
            write(&mut bytes, small.into());
            prop_assert_eq!(size(small.into()), bytes.len());
            prop_assert_eq!(read_i32(&mut &bytes[..]), Ok(small));
        }
    }
}
