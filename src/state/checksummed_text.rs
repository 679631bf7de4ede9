//! The format of cordwood's small text files: lines with a name and a number, and a last line with a
//! checksum.
//!
//! ```text
//! 0                            format version
//! log-start-offset 12          a name and a number
//! recovery-point 1234
//! crc32c 9c4e08f1              of all bytes before this line
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::record::crc;

/// The text of a file with these fields.
pub(super) fn write(fields: &BTreeMap<&str, i64>) -> Vec<u8> {
    let mut text = "0\n".to_owned();
    for (name, number) in fields {
        // writing to a String cannot fail
        let _ = writeln!(text, "{name} {number}");
    }
    let checksum = crc::crc32c(text.as_bytes());
    let _ = writeln!(text, "crc32c {checksum:08x}");
    text.into_bytes()
}

/// Parses a text of [`write()`].
///
/// # Errors
/// A description of what was found.
pub(super) fn read(text: &[u8]) -> Result<BTreeMap<String, i64>, String> {
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    let last = text.strip_suffix('\n').and_then(|text| text.rfind('\n')).map(|newline| newline + 1);
    let (lines, last) = last.and_then(|start| text.split_at_checked(start)).ok_or("no complete lines")?;
    let expected = format!("crc32c {:08x}\n", crc::crc32c(lines.as_bytes()));
    if last != expected {
        return Err(format!(
            "the last line {:?} after lines with the checksum {:?}",
            last.trim_end(),
            expected.trim_end()
        ));
    }
    let mut lines = lines.lines();
    match lines.next() {
        Some("0") => {}
        version => return Err(format!("version {:?} instead of 0", version.unwrap_or_default())),
    }
    lines
        .map(|line| {
            let field =
                line.split_once(' ').and_then(|(name, number)| Some((name.to_owned(), number.parse().ok()?)));
            field.ok_or_else(|| format!("{line:?}, which is not a name and a number"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_text_is_read_back_and_every_bit_flip_is_detected() {
        let fields = BTreeMap::from([("log-start-offset", 12), ("recovery-point", 1234)]);
        let text = write(&fields);
        let read_back = read(&text).unwrap();
        assert_eq!(
            read_back.iter().map(|(name, number)| (name.as_str(), *number)).collect::<BTreeMap<_, _>>(),
            fields
        );
        for position in 0..text.len() {
            for bit in 0..8 {
                let mut flipped = text.clone();
                flipped[position] ^= 1 << bit;
                assert!(read(&flipped).is_err(), "bit {bit} of byte {position}");
            }
            assert!(read(&text[..position]).is_err(), "cut at {position}");
        }
    }
}
