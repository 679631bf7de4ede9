//! Values as JSON, with the separators and escapes of Python's `json` module, and escapes for unsafe
//! characters.

use super::base64;
use super::escapes::{self, Escapes, are_plain, is_unsafe, marks, write_hex};
use super::row::{Cells, Value};
use crate::log::DamagedRange;
use crate::record::{Headers, java_string};

/// JSON lines.
pub(super) struct JsonLines;

impl Cells for JsonLines {
    const START: &[u8] = b"{";
    const END: &[u8] = b"}\n";

    fn before(name: &str, is_first: bool) -> Vec<u8> {
        let separator = if is_first { "" } else { ", " };
        format!("{separator}\"{name}\": ").into_bytes()
    }

    #[inline]
    fn write(out: &mut Vec<u8>, value: Value<'_>) {
        match value {
            Value::Null => out.extend_from_slice(b"null"),
            Value::Integer(number) | Value::Timestamp(number) | Value::LocalTimestamp(number, _) => {
                write_integer(out, number);
            }
            Value::Boolean(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
            Value::Text(text) => write_string(out, text),
            Value::Bytes(bytes) => write_bytes(out, bytes),
            Value::Headers(headers) if headers.is_empty() => out.extend_from_slice(b"[]"),
            Value::Headers(headers) => write_headers(out, headers),
            Value::Damage(range) => write_damage(out, range),
        }
    }
}

/// The characters of a JSON string.
pub(super) struct JsonStrings;

impl Escapes for JsonStrings {
    const MARKS: [bool; 256] = marks(b"\"\\", true);

    #[inline]
    fn is_plain(byte: u8) -> bool {
        (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\'
    }

    fn write_escape(out: &mut Vec<u8>, character: char) -> bool {
        let short: &[u8; 2] = match character {
            '"' => b"\\\"",
            '\\' => b"\\\\",
            '\n' => b"\\n",
            '\r' => b"\\r",
            '\t' => b"\\t",
            '\u{8}' => b"\\b",
            '\u{c}' => b"\\f",
            _ if is_unsafe(character) => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    out.extend_from_slice(b"\\u");
                    write_hex(out, u32::from(*unit), 4);
                }
                return true;
            }
            _ => return false,
        };
        out.extend_from_slice(short);
        true
    }
}

#[inline]
pub(super) fn write_integer(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    if are_plain::<JsonStrings>(text.as_bytes()) {
        out.extend_from_slice(text.as_bytes());
    } else {
        escapes::write::<JsonStrings>(out, text);
    }
    out.push(b'"');
}

#[inline]
fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    if are_plain::<JsonStrings>(bytes) {
        out.push(b'"');
        out.extend_from_slice(bytes);
        out.push(b'"');
    } else {
        write_unusual(out, bytes);
    }
}

/// Bytes that need escapes or are not UTF-8.
#[inline(never)]
fn write_unusual(out: &mut Vec<u8>, bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        out.push(b'"');
        escapes::write::<JsonStrings>(out, text);
        out.push(b'"');
    } else {
        out.extend_from_slice(b"{\"base64\": \"");
        base64::write(out, bytes);
        out.extend_from_slice(b"\"}");
    }
}

/// Writes a list of pairs.
pub(super) fn write_headers(out: &mut Vec<u8>, headers: Headers<'_>) {
    let mut separator: &[u8] = b"[[";
    for (name, value) in headers {
        out.extend_from_slice(separator);
        write_string(out, &java_string(name));
        out.extend_from_slice(b", ");
        JsonLines::write(out, value.map_or(Value::Null, Value::Bytes));
        separator = b"], [";
    }
    out.extend_from_slice(b"]]");
}

/// Writes an object with the fields of a damaged range.
pub(super) fn write_damage(out: &mut Vec<u8>, range: &DamagedRange) {
    out.extend_from_slice(b"{\"file\": ");
    write_string(out, &range.file.to_string_lossy());
    let numbers = [
        (", \"start_position\": ", Some(range.start_position.cast_signed())),
        (", \"end_position\": ", Some(range.end_position.cast_signed())),
        (", \"start_offset\": ", Some(range.start_offset)),
        (", \"end_offset\": ", range.end_offset),
    ];
    for (before, number) in numbers {
        out.extend_from_slice(before.as_bytes());
        JsonLines::write(out, number.map_or(Value::Null, Value::Integer));
    }
    out.extend_from_slice(b", \"reason\": ");
    write_string(out, &range.reason);
    out.push(b'}');
}
