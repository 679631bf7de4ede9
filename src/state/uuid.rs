//! Kafka's notation of a UUID: 22 base64url characters, with `==` after them or not. Kafka:
//! `Uuid.fromString`.

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};

/// The last character has 2 bits of a UUID; the JDK ignores its others.
const JDK: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// The text that Kafka writes for the UUID of a text; `None` for another text.
pub(crate) fn canonical(text: &str) -> Option<String> {
    let (upper, lower) = parse(text)?;
    let mut id = [0; 22];
    JDK.encode_slice([upper.to_be_bytes(), lower.to_be_bytes()].concat(), &mut id).ok()?;
    String::from_utf8(id.to_vec()).ok()
}

/// The upper and the lower 64 bits of a UUID; `None` for another text.
pub(crate) fn parse(text: &str) -> Option<(i64, i64)> {
    let mut bytes = [0; 16];
    let text = text.strip_suffix("==").unwrap_or(text);
    let length = JDK.decode_slice(text, &mut bytes).ok()?;
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
            ("AAAAAAAAAAAAAAAAAAAAAB", Some((0, 0))),
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
