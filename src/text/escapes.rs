//! Characters that are written as an escape.
//!
//! The bytes of most values need no escape. They are tested first, without a branch for each byte, and copied
//! as a whole.

/// How the characters of a string are written.
pub(super) trait Escapes {
    /// The bytes with which a character that is escaped may begin: ASCII characters themselves, and lead
    /// bytes of UTF-8.
    const MARKS: [bool; 256];

    /// Whether a byte is an ASCII character that is not escaped. The compiler makes vector instructions of
    /// this test, and not of a look-up in [`MARKS`](Self::MARKS).
    fn is_plain(byte: u8) -> bool;

    /// Writes the escape of a character; false if it has none.
    fn write_escape(out: &mut Vec<u8>, character: char) -> bool;
}

/// The number of bytes that are tested together.
const CHUNK: usize = 16;

/// Whether bytes are ASCII characters that are not escaped.
#[inline]
pub(super) fn are_plain<E: Escapes>(bytes: &[u8]) -> bool {
    let (chunks, rest) = bytes.as_chunks::<CHUNK>();
    chunks.iter().all(|chunk| chunk.iter().fold(true, |plain, byte| plain & E::is_plain(*byte)))
        && rest.iter().fold(true, |plain, byte| plain & E::is_plain(*byte))
}

/// Writes text with escapes. What is between two of them is copied as a whole.
pub(super) fn write<E: Escapes>(out: &mut Vec<u8>, text: &str) {
    let mut rest = text;
    loop {
        // a mark is the first byte of a character
        let (unmarked, marked) =
            rest.split_at_checked(first_mark::<E>(rest.as_bytes())).unwrap_or((rest, ""));
        out.extend_from_slice(unmarked.as_bytes());
        if marked.is_empty() {
            return;
        }
        rest = write_first::<E>(out, marked);
    }
}

/// The position of the first mark, or the number of bytes.
#[inline]
fn first_mark<E: Escapes>(bytes: &[u8]) -> usize {
    let (chunks, rest) = bytes.as_chunks::<CHUNK>();
    let is_marked = |byte: &u8| is_mark::<E>(*byte);
    for (before, chunk) in chunks.iter().enumerate() {
        if !are_plain::<E>(chunk)
            && let Some(at) = chunk.iter().position(is_marked)
        {
            return before * CHUNK + at;
        }
    }
    let before = bytes.len() - rest.len();
    before + rest.iter().position(is_marked).unwrap_or(rest.len())
}

/// Writes the first character and returns the others.
#[inline]
fn write_first<'a, E: Escapes>(out: &mut Vec<u8>, text: &'a str) -> &'a str {
    let mut characters = text.chars();
    if let Some(character) = characters.next()
        && !E::write_escape(out, character)
    {
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    characters.as_str()
}

#[inline]
fn is_mark<E: Escapes>(byte: u8) -> bool {
    E::MARKS.get(usize::from(byte)).copied().unwrap_or_default()
}

/// C0 and C1 controls, DEL, and characters that reorder or hide text. `escape` in `cli/terminal.py` has the
/// same set.
pub(super) fn is_unsafe(character: char) -> bool {
    matches!(character,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The bytes with which these ASCII characters begin, and if `with_unsafe` the first bytes of the characters
/// of [`is_unsafe`].
pub(super) const fn marks(characters: &[u8], with_unsafe: bool) -> [bool; 256] {
    let mut marks = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let is_lead = matches!(byte, 0xc2 | 0xd8 | 0xe2 | 0xef | 0xf3);
        set(&mut marks, byte, with_unsafe && (byte < 0x20 || byte == 0x7f || is_lead));
        byte += 1;
    }
    let mut rest = characters;
    while let Some((first, others)) = rest.split_first() {
        set(&mut marks, *first as usize, true);
        rest = others;
    }
    marks
}

#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, which reports an index out of bounds"
)]
const fn set(marks: &mut [bool; 256], byte: usize, is_mark: bool) {
    marks[byte] = is_mark;
}

/// Writes digits in lower-case hexadecimal, `digits` of them.
pub(super) fn write_hex(out: &mut Vec<u8>, number: u32, digits: u32) {
    for place in (0..digits).rev() {
        let digit = number >> (4 * place) & 15;
        out.extend(char::from_digit(digit, 16).and_then(|digit| u8::try_from(digit).ok()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::csv::{FileCells, TerminalCells};
    use super::super::json::JsonStrings;
    use super::*;

    /// Character by character.
    fn naive<E: Escapes>(text: &str) -> String {
        let mut out = Vec::new();
        for character in text.chars() {
            if !E::write_escape(&mut out, character) {
                out.extend(character.to_string().bytes());
            }
        }
        String::from_utf8(out).unwrap()
    }

    fn escaped<E: Escapes>(text: &str) -> String {
        let mut out = Vec::new();
        write::<E>(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    fn agrees_on_every_character<E: Escapes>() {
        for character in '\0'..=char::MAX {
            let text = format!("a{character}{character}é");
            assert_eq!(escaped::<E>(&text), naive::<E>(&text), "{character:?}");
        }
        for byte in 0..=u8::MAX {
            assert_eq!(E::is_plain(byte), byte.is_ascii() && !is_mark::<E>(byte), "{byte:#x}");
        }
    }

    #[test]
    fn every_character_that_is_escaped_begins_with_a_mark() {
        agrees_on_every_character::<JsonStrings>();
        agrees_on_every_character::<FileCells>();
        agrees_on_every_character::<TerminalCells>();
    }

    proptest! {
        #![proptest_config(crate::types::fixed_seed(2000))]

        #[test]
        fn any_text_is_escaped_character_by_character(
            text in r#"([ -~]|["\\,\n\r]|\PC|[\x{0}-\x{a0}]|[\x{2000}-\x{2070}]|[\x{e0000}-\x{e0080}]){0,60}"#
        ) {
            prop_assert_eq!(escaped::<JsonStrings>(&text), naive::<JsonStrings>(&text));
            prop_assert_eq!(escaped::<FileCells>(&text), naive::<FileCells>(&text));
            prop_assert_eq!(escaped::<TerminalCells>(&text), naive::<TerminalCells>(&text));
            if are_plain::<JsonStrings>(text.as_bytes()) {
                prop_assert_eq!(naive::<JsonStrings>(&text), text);
            }
        }

        #[test]
        fn bytes_are_plain_if_each_of_them_is(bytes in proptest::collection::vec(0x1eu8..0x82, 0..40)) {
            let each = bytes.iter().all(|byte| JsonStrings::is_plain(*byte));
            prop_assert_eq!(are_plain::<JsonStrings>(&bytes), each);
        }
    }
}
