//! The common format of Kafka's checkpoint files. Kafka: `CheckpointFile`.
//!
//! ```text
//! 0                    format version
//! 2                    number of lines that follow
//! …                    an entry, its fields separated by spaces
//! …
//! ```

use super::java_text;

/// What is wrong with the text of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WrongText {
    /// A description.
    pub(crate) found: String,
    /// The exception that Kafka throws.
    pub(crate) kind: WrongTextKind,
}

/// The exception for a wrong text. Only the first one takes a data directory offline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WrongTextKind {
    /// `IOException`: it is not the text of a checkpoint.
    Format,
    /// `IllegalArgumentException`: the number of lines is negative.
    Count,
    /// `NumberFormatException`: a word is in the place of a number of an entry.
    Number,
}

impl From<String> for WrongText {
    fn from(found: String) -> Self {
        Self { found, kind: WrongTextKind::Format }
    }
}

/// Parses the entries of a file. An empty file has no entries, as in Kafka.
///
/// *Source*: `CheckpointFile.CheckpointReadBuffer.read`.
///
/// # Errors
/// What is wrong with the text.
pub(crate) fn read<T>(
    text: &[u8],
    entry: impl Fn(&str) -> Result<T, WrongText>,
) -> Result<Vec<T>, WrongText> {
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    let mut lines = java_text::lines(text);
    let Some(version) = lines.next() else { return Ok(Vec::new()) };
    if version.parse() != Ok(0_i32) {
        return Err(format!("version {version:?}, not 0").into());
    }
    let Some(count) = lines.next() else { return Ok(Vec::new()) };
    let expected: i32 =
        count.parse().map_err(|_| format!("{count:?}, not the number of the lines after it"))?;
    if expected < 0 {
        let found = format!("{expected} as the number of the lines after it");
        return Err(WrongText { found, kind: WrongTextKind::Count });
    }
    let entries = lines.map(entry).collect::<Result<Vec<_>, _>>()?;
    if i32::try_from(entries.len()) == Ok(expected) {
        Ok(entries)
    } else {
        Err(format!("{} lines, not {count:?}", entries.len()).into())
    }
}

/// A number of an entry. `expected`: what it is.
pub(crate) fn number<N: std::str::FromStr>(field: &str, expected: &str) -> Result<N, WrongText> {
    field
        .parse()
        .map_err(|_| WrongText { found: format!("{field:?}, not {expected}"), kind: WrongTextKind::Number })
}

/// The fields of a line. As Java's `split("\\s+")` has it, white space before the first field makes an empty
/// field, and white space after the last one does not.
pub(crate) fn fields(line: &str) -> Vec<&str> {
    let is_space = |letter: char| matches!(letter, ' ' | '\t' | '\u{b}' | '\u{c}');
    let before = line.starts_with(is_space).then_some("");
    before.into_iter().chain(line.split(is_space).filter(|field| !field.is_empty())).collect()
}

/// The text of a file with these entries.
pub(crate) fn write(entries: impl ExactSizeIterator<Item = String>) -> String {
    let count = entries.len();
    format!("0\n{count}\n{}", entries.map(|entry| entry + "\n").collect::<String>())
}

#[cfg(test)]
mod tests {
    #[test]
    fn fields_are_split_as_in_java() {
        for (line, expected) in [
            ("5 100", &["5", "100"][..]),
            ("5 \t 100 ", &["5", "100"]),
            (" 5 100", &["", "5", "100"]),
            ("5\u{a0}100", &["5\u{a0}100"]),
        ] {
            assert_eq!(super::fields(line), expected, "{line:?}");
        }
    }

    use super::WrongTextKind;

    #[test]
    fn an_error_describes_the_wrong_header_or_count() {
        let read = |text: &[u8]| super::read(text, |line| Ok(line.to_owned()));
        assert_eq!(read(b"0\n2\na 1\n\n").unwrap(), ["a 1", ""]);
        assert_eq!([read(b"").unwrap(), read(b"0\n").unwrap(), read(b"0\n-0\n").unwrap()], [[""; 0]; 3]);
        assert_eq!([read(b"00\n+1\na").unwrap(), read(b"0\r1\ra\r").unwrap()], [["a"]; 2]);
        for (text, expected) in [
            (&b"1\n0\n"[..], "version \"1\", not 0"),
            (b"0\n2\na 1\n", "1 lines, not \"2\""),
            (b"0\n\n", "\"\", not the number of the lines after it"),
            (b"0\n0\n\xff", "invalid utf-8 sequence of 1 bytes from index 4"),
        ] {
            let wrong = read(text).unwrap_err();
            assert_eq!((wrong.found.as_str(), wrong.kind), (expected, WrongTextKind::Format));
        }
        for text in [&b"0\n-1\n"[..], b"0\n-1\na 1\n"] {
            assert_eq!(read(text).unwrap_err().kind, WrongTextKind::Count);
        }
    }
}
