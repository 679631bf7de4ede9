//! Kafka's notation of a UUID: 22 base64url characters, with `==` after them or not. Kafka:
//! `Uuid.fromString`.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

/// The text by which Kafka names the UUID of a text.
pub(crate) fn without_padding(text: &str) -> &str {
    text.strip_suffix("==").unwrap_or(text)
}

/// The upper and the lower 64 bits of a UUID; `None` for another text.
pub(crate) fn parse(text: &str) -> Option<(i64, i64)> {
    let mut bytes = [0; 16];
    let text = without_padding(text);
    // the last character has 2 bits, and as in the JDK its others must be zero
    let length = BASE64_URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
    let (upper, lower) = bytes.split_first_chunk::<8>()?;
    let lower = lower.first_chunk::<8>()?;
    (length == bytes.len()).then_some((i64::from_be_bytes(*upper), i64::from_be_bytes(*lower)))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_uuid_is_two_numbers_of_64_bits() {
        for (text, numbers) in [
            ("AAAAAAAAAAAAAAAAAAAAAA", Some((0, 0))),
            ("AAAAAAAAAAAAAAAAAAAAAQ", Some((0, 1))),
            ("AAAAAAAAAAAAAAAAAAAAYw", Some((0, 99))),
            ("AAAAAAAAAAAAAAAAAAAAZA", Some((0, 100))),
            ("AAAAAAAAAAD__________w", Some((0, -1))),
            ("AAAAAAAAAAEAAAAAAAAABQ", Some((1, 5))),
            ("_____________________w", Some((-1, -1))),
            ("AAAAAAAAAAAAAAAAAAAAAB", None),
            ("AAAAAAAAAAAAAAAAAAAA?A", None),
            ("AAAAAAAAAAAAAAAAAAAAA", None),
            ("AAAAAAAAAAAAAAAAAAAAAAA", None),
            ("AAAAAAAAAAAAAAAAAAAAAQ==", Some((0, 1))),
            ("AAAAAAAAAAAAAAAAAAAAAA=", None),
            ("AAAAAAAAAAAAAAAAAAAAAA====", None),
            ("\u{e4}AAAAAAAAAAAAAAAAAAAA", None),
            ("", None),
        ] {
            assert_eq!(parse(text), numbers, "{text}");
        }
    }
}
