//! Texts as the JDK reads them. Java: `BufferedReader.readLine`, `java.util.Properties.load`.

#[cfg(feature = "inspect")]
use std::collections::BTreeMap;

/// The lines of a text. Each ends at `\n`, `\r` or `\r\n`, which the last one may lack.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (line, after) = rest.split_at(rest.find(['\n', '\r']).unwrap_or(rest.len()));
        rest = after.strip_prefix("\r\n").or_else(|| after.strip_prefix(['\n', '\r'])).unwrap_or(after);
        Some(line)
    })
}

/// White space within a line of properties.
#[cfg(feature = "inspect")]
const SPACE: [char; 3] = [' ', '\t', '\u{c}'];

/// The properties of a file, which Java reads as Latin-1.
///
/// # Errors
/// An escape that ends the loading with an exception: `\u` without four hexadecimal digits.
#[cfg(feature = "inspect")]
pub(crate) fn properties(text: &[u8]) -> Result<BTreeMap<String, String>, String> {
    let text: String = text.iter().copied().map(char::from).collect();
    let mut properties = BTreeMap::new();
    for line in logical_lines(&text) {
        let (name, value) = split(&line);
        properties.insert(unescaped(name)?, unescaped(value)?);
    }
    Ok(properties)
}

/// The lines without comments; one that ends with an unescaped backslash is continued by the next one.
#[cfg(feature = "inspect")]
fn logical_lines(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = lines(text).map(|line| line.trim_start_matches(SPACE));
    while let Some(line) = lines.next() {
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let mut whole = line.to_owned();
        while (whole.len() - whole.trim_end_matches('\\').len()) % 2 == 1 {
            whole.pop();
            whole.push_str(lines.next().unwrap_or_default());
        }
        found.push(whole);
    }
    found
}

/// The name and the value of a line, with their escapes. `=`, `:` or white space is between them.
#[cfg(feature = "inspect")]
fn split(line: &str) -> (&str, &str) {
    let mut is_escaped = false;
    let end = line.find(|letter| {
        let is_end = !is_escaped && (SPACE.contains(&letter) || matches!(letter, '=' | ':'));
        is_escaped = letter == '\\' && !is_escaped;
        is_end
    });
    let (name, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start_matches(SPACE);
    (name, rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start_matches(SPACE))
}

#[cfg(feature = "inspect")]
fn unescaped(text: &str) -> Result<String, String> {
    let (mut plain, mut letters) = (String::new(), text.chars());
    while let Some(letter) = letters.next() {
        let escaped = if letter == '\\' { letters.next() } else { None };
        plain.push(match escaped {
            None => letter,
            Some('t') => '\t',
            Some('r') => '\r',
            Some('n') => '\n',
            Some('f') => '\u{c}',
            Some('u') => {
                let digits: String = letters.by_ref().take(4).collect();
                let is_number = digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
                let number = u32::from_str_radix(&digits, 16).ok().filter(|_| is_number);
                let number = number.ok_or_else(|| format!("\\u{digits}"))?;
                // half of a character beyond U+FFFF is in no value that is compared
                char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            Some(other) => other,
        });
    }
    Ok(plain)
}

#[cfg(all(test, feature = "inspect"))]
mod tests {
    use super::{lines, properties};

    #[test]
    fn lines_end_as_in_java() {
        let read = |text| lines(text).collect::<Vec<_>>();
        assert_eq!(read("a\nb\r\nc\rd\n\re"), ["a", "b", "c", "d", "", "e"]);
        assert_eq!([read(""), read("a\n"), read("\n")], [vec![], vec!["a"], vec![""]]);
    }

    #[test]
    fn properties_are_read_as_java_reads_them() {
        for (text, name, value) in [
            ("a=b", "a", "b"),
            ("a = b ", "a", "b "),
            (" a\t:b", "a", "b"),
            ("a b=c", "a", "b=c"),
            ("a==b", "a", "=b"),
            ("a", "a", ""),
            ("a\\=b=c", "a=b", "c"),
            ("# c\\u\n!d\n\na=b\\\n  c\\\r\n\td", "a", "bcd"),
            ("a=b\\\\\n", "a", "b\\"),
            ("a=b\\", "a", "b"),
            ("\\u0061=\\t\\x", "a", "\tx"),
            ("a=1\na=2", "a", "2"),
        ] {
            let read = properties(text.as_bytes()).unwrap();
            assert_eq!(read.iter().collect::<Vec<_>>(), [(&name.to_owned(), &value.to_owned())], "{text:?}");
        }
        assert_eq!(properties(b"a=\xe4").unwrap().get("a").map(String::as_str), Some("\u{e4}"));
        for text in ["a=C:\\users", "\\u12", "a=\\u+123", "a=\\u12\n34=b"] {
            assert!(properties(text.as_bytes()).unwrap_err().starts_with("\\u"), "{text:?}");
        }
    }
}
