//! Values as cells of CSV: texts in quotes, numbers and nulls without.

use super::escapes::{self, Escapes, are_plain, is_unsafe, marks, write_hex};
use super::row::{Cells, Value};
use super::{base64, json, utc};

/// The characters of a cell in a file.
pub(super) struct FileCells;

impl Escapes for FileCells {
    const MARKS: [bool; 256] = marks(b"\"", false);

    #[inline]
    fn is_plain(byte: u8) -> bool {
        byte.is_ascii() && byte != b'"'
    }

    #[inline]
    fn write_escape(out: &mut Vec<u8>, character: char) -> bool {
        if character == '"' {
            out.extend_from_slice(b"\"\"");
        }
        character == '"'
    }
}

/// The characters of a cell on a terminal.
pub(super) struct TerminalCells;

impl Escapes for TerminalCells {
    const MARKS: [bool; 256] = marks(b"\"", true);

    #[inline]
    fn is_plain(byte: u8) -> bool {
        (0x20..0x7f).contains(&byte) && byte != b'"'
    }

    fn write_escape(out: &mut Vec<u8>, character: char) -> bool {
        if !is_unsafe(character) {
            return FileCells::write_escape(out, character);
        }
        let (letter, digits) = match u32::from(character) {
            ..0x100 => (b'x', 2),
            0x100..0x1_0000 => (b'u', 4),
            _ => (b'U', 8),
        };
        out.extend_from_slice(&[b'\\', letter]);
        write_hex(out, u32::from(character), digits);
        true
    }
}

/// CSV with this kind of cells.
pub(super) struct Csv<E>(std::marker::PhantomData<E>);

impl<E: Escapes> Cells for Csv<E> {
    const START: &[u8] = b"";
    const END: &[u8] = b"\n";

    fn before(_: &str, is_first: bool) -> Vec<u8> {
        if is_first { Vec::new() } else { b",".to_vec() }
    }

    #[inline]
    fn write(out: &mut Vec<u8>, value: Value<'_>) {
        match value {
            Value::Null => {}
            Value::Integer(number) => json::write_integer(out, number),
            Value::Timestamp(milliseconds) => utc::write(out, milliseconds),
            Value::LocalTimestamp(milliseconds, seconds) => utc::write_local(out, milliseconds, seconds),
            Value::Boolean(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
            Value::Text(text) => write_text::<E>(out, text),
            Value::Bytes(bytes) => write_bytes::<E>(out, bytes),
            Value::Headers(headers) if headers.is_empty() => {}
            Value::Headers(headers) => write_json(out, |out| json::write_headers(out, headers)),
            Value::Damage(range) => write_json(out, |out| json::write_damage(out, range)),
        }
    }
}

/// Writes the line of headings.
pub(super) fn write_headings<'a>(out: &mut Vec<u8>, names: impl Iterator<Item = &'a str>) {
    let headings: Vec<_> = names.map(|name| format!("\"{name}\"")).collect();
    out.extend_from_slice(headings.join(",").as_bytes());
    out.push(b'\n');
}

fn write_text<E: Escapes>(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    escapes::write::<E>(out, text);
    out.push(b'"');
}

#[inline]
fn write_bytes<E: Escapes>(out: &mut Vec<u8>, bytes: &[u8]) {
    if are_plain::<E>(bytes) {
        out.push(b'"');
        out.extend_from_slice(bytes);
        out.push(b'"');
    } else {
        write_unusual::<E>(out, bytes);
    }
}

/// Bytes that need escapes or are not UTF-8.
#[inline(never)]
fn write_unusual<E: Escapes>(out: &mut Vec<u8>, bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        write_text::<E>(out, text);
    } else {
        out.extend_from_slice(b"\"base64:");
        base64::write(out, bytes);
        out.push(b'"');
    }
}

/// Writes a cell of JSON, in which the unsafe characters are escaped already.
fn write_json(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let mut json = Vec::new();
    write(&mut json);
    out.push(b'"');
    for byte in json {
        if byte == b'"' {
            out.push(byte);
        }
        out.push(byte);
    }
    out.push(b'"');
}
