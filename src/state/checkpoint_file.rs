//! The common format of Kafka's checkpoint files. Kafka: `CheckpointFile`.
//!
//! ```text
//! 0                    format version
//! 2                    number of lines that follow
//! …                    an entry, its fields separated by spaces
//! …
//! ```

/// Parses the entries of a file. An empty file has no entries, as in Kafka.
///
/// # Errors
/// A description of what is wrong with the text.
pub(crate) fn read<T, E: From<String>>(
    text: &[u8],
    entry: impl Fn(&str) -> Result<T, E>,
) -> Result<Vec<T>, E> {
    let text = std::str::from_utf8(text).map_err(|error| E::from(error.to_string()))?;
    let mut lines = text.lines();
    match lines.next() {
        None => return Ok(Vec::new()),
        Some("0") => {}
        Some(version) => return Err(format!("version {version:?}, not 0").into()),
    }
    let Some(count) = lines.next() else { return Ok(Vec::new()) };
    let entries = lines.map(entry).collect::<Result<Vec<_>, _>>()?;
    // Kafka parses the count as an int, which accepts "-0"
    if i32::try_from(entries.len()).is_ok_and(|read| count.parse() == Ok(read)) {
        Ok(entries)
    } else {
        Err(format!("{} lines, not {count:?}", entries.len()).into())
    }
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

    #[test]
    fn an_error_describes_the_wrong_header_or_count() {
        let read = |text: &[u8]| super::read::<_, String>(text, |line| Ok(line.to_owned()));
        assert_eq!(read(b"0\n2\na 1\n\n").unwrap(), ["a 1", ""]);
        assert_eq!([read(b"").unwrap(), read(b"0\n").unwrap(), read(b"0\n-0\n").unwrap()], [[""; 0]; 3]);
        for (text, expected) in [
            (&b"1\n0\n"[..], "version \"1\", not 0"),
            (b"0\n2\na 1\n", "1 lines, not \"2\""),
            (b"0\n\n", "0 lines, not \"\""),
            (b"0\n0\n\xff", "invalid utf-8 sequence of 1 bytes from index 4"),
        ] {
            assert_eq!(read(text).unwrap_err(), expected);
        }
    }
}
