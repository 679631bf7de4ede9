//! Base64 with padding (RFC 4648, section 4).

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Writes bytes in base64.
pub(super) fn write(out: &mut Vec<u8>, bytes: &[u8]) {
    let (groups, rest) = bytes.as_chunks::<3>();
    out.reserve(4 * groups.len() + 4);
    for group in groups {
        out.extend_from_slice(&digits(*group));
    }
    match *rest {
        [first] => {
            let [a, b, ..] = digits([first, 0, 0]);
            out.extend_from_slice(&[a, b, b'=', b'=']);
        }
        [first, second] => {
            let [a, b, c, _] = digits([first, second, 0]);
            out.extend_from_slice(&[a, b, c, b'=']);
        }
        _ => {}
    }
}

#[inline]
fn digits([first, second, third]: [u8; 3]) -> [u8; 4] {
    [first >> 2, (first & 3) << 4 | second >> 4, (second & 15) << 2 | third >> 6, third & 63]
        .map(|digit| DIGITS.get(usize::from(digit)).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{DIGITS, write};

    /// Digit by digit from the bits.
    fn naive(bytes: &[u8]) -> Vec<u8> {
        let bits: Vec<u8> =
            bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
        let digit = |bits: &[u8]| {
            let number = (0..6).fold(0, |number, bit| 2 * number + bits.get(bit).copied().unwrap_or(0));
            DIGITS[usize::from(number)]
        };
        let mut out: Vec<u8> = bits.chunks(6).map(digit).collect();
        while !out.len().is_multiple_of(4) {
            out.push(b'=');
        }
        out
    }

    fn encoded(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out, bytes);
        out
    }

    #[test]
    fn the_examples_of_the_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
        ] {
            assert_eq!(encoded(bytes.as_bytes()), text.as_bytes());
        }
    }

    proptest! {
        #![proptest_config(crate::text::escapes::fixed_seed())]

        #[test]
        fn any_bytes_are_the_digits_of_their_bits(bytes: Vec<u8>) {
            prop_assert_eq!(encoded(&bytes), naive(&bytes));
        }
    }
}
