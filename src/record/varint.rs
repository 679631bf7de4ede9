//! Zigzag varints, as in Protocol Buffers. Kafka: `ByteUtils.readVarint`, `readVarlong`.

use crate::error::Malformed;

/// Reads a varint (at most 5 bytes) from the front of `bytes`.
///
/// # Errors
/// [`Malformed`] where the bytes end inside it or a fifth byte says that it goes on.
#[inline]
pub fn read_i32(bytes: &mut &[u8]) -> Result<i32, Malformed> {
    // one and two bytes hold nearly every length and delta
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
            // the fifth group holds four bits of an i32; Kafka lets the rest fall off, and so do we
            Ok(unzigzag32(u32::try_from(raw & 0xffff_ffff).unwrap_or(u32::MAX)))
        }
    }
}

/// Reads a varlong (at most 10 bytes) from the front of `bytes`.
///
/// # Errors
/// [`Malformed`] where the bytes end inside it or a tenth byte says that it goes on.
#[inline]
pub fn read_i64(bytes: &mut &[u8]) -> Result<i64, Malformed> {
    match **bytes {
        [first, ref rest @ ..] if first < 0x80 => {
            *bytes = rest;
            Ok(unzigzag64(u64::from(first)))
        }
        // two bytes hold a timestamp delta of up to eight seconds
        [first, second, ref rest @ ..] if second < 0x80 => {
            *bytes = rest;
            Ok(unzigzag64(u64::from(first & 0x7f) | u64::from(second) << 7))
        }
        _ => read_groups(bytes, 10).map(unzigzag64),
    }
}

#[cold]
fn read_groups(bytes: &mut &[u8], most: usize) -> Result<u64, Malformed> {
    let mut value = 0u64;
    for (index, byte) in bytes.iter().take(most).enumerate() {
        value |= u64::from(byte & 0x7f).wrapping_shl(u32::try_from(7 * index).unwrap_or(0));
        if *byte < 0x80 {
            *bytes = bytes.get(index + 1..).unwrap_or_default();
            return Ok(value);
        }
    }
    let found = if bytes.len() < most { "the end of the bytes" } else { "one that goes on" };
    Err(Malformed::new(format!("a varint of at most {most} bytes"), found))
}

fn unzigzag32(raw: u32) -> i32 {
    (raw >> 1).cast_signed() ^ -(raw & 1).cast_signed()
}

fn unzigzag64(raw: u64) -> i64 {
    (raw >> 1).cast_signed() ^ -(raw & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn write(mut raw: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while raw >= 0x80 {
            bytes.push(u8::try_from(raw & 0x7f).unwrap() | 0x80);
            raw >>= 7;
        }
        bytes.push(u8::try_from(raw).unwrap());
        bytes
    }

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

    proptest! {
        #[test]
        fn what_was_written_is_read(value: i64, small: i32) {
            let mut bytes = write(((value << 1) ^ (value >> 63)).cast_unsigned());
            bytes.push(9);
            let mut rest = &bytes[..];
            prop_assert_eq!(read_i64(&mut rest), Ok(value));
            prop_assert_eq!(rest, [9]);
            let bytes = write(u64::from(((small << 1) ^ (small >> 31)).cast_unsigned()));
            prop_assert_eq!(read_i32(&mut &bytes[..]), Ok(small));
        }
    }
}
