//! The text of a header's name.

use std::borrow::Cow;

/// Decodes UTF-8 like Java's `new String(bytes, UTF_8)`, which Kafka's client uses for a header's name.
///
/// It differs from [`String::from_utf8_lossy`] in one case: three bytes that encode a surrogate become one
/// U+FFFD, and so do the first two of them without the third.
pub fn java_string(bytes: &[u8]) -> Cow<'_, str> {
    let mut decoded = String::new();
    let mut rest = bytes;
    loop {
        let error = match std::str::from_utf8(rest) {
            Ok(text) if decoded.is_empty() && rest.len() == bytes.len() => return Cow::Borrowed(text),
            Ok(text) => {
                decoded.push_str(text);
                return Cow::Owned(decoded);
            }
            Err(error) => error,
        };
        let (valid, broken) = rest.split_at(error.valid_up_to());
        decoded.push_str(std::str::from_utf8(valid).unwrap_or_default());
        decoded.push('\u{fffd}');
        let skipped = match broken {
            [0xed, 0x80..=0xbf, 0x80..=0xbf, ..] => 3,
            [0xed, 0x80..=0xbf, ..] => 2,
            _ => error.error_len().unwrap_or(broken.len()),
        };
        rest = broken.get(skipped..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::java_string;

    #[test]
    fn names_that_are_not_utf8_are_decoded_as_java_does() {
        // each right side is the result of `new String(bytes, UTF_8)` in JDK 17
        for (bytes, decoded) in [
            (&b"plain"[..], "plain"),
            (b"", ""),
            (b"a\xffb", "a\u{fffd}b"),
            (b"\xed\xa0\x80", "\u{fffd}"),
            (b"\xed\xa0x", "\u{fffd}x"),
            (b"\xed\xa0", "\u{fffd}"),
            (b"\xe2\xed\xa8<", "\u{fffd}\u{fffd}<"),
            (b"\xe2\x82", "\u{fffd}"),
            (b"\xf0\x9f\x98x", "\u{fffd}x"),
            (b"\xc0\xaf", "\u{fffd}\u{fffd}"),
            (b"\xf4\x90\x80\x80", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(java_string(bytes), decoded, "{bytes:02x?}");
        }
    }
}
