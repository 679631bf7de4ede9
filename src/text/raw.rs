//! Values as they are, one on each line, as kcat writes them. A null is an empty line.

use super::base64;
use super::csv::TerminalCells;
use super::escapes::{self, Escapes, are_plain, marks};
use super::row::{Cells, Value};

/// Values without a change: a value with line feeds is several lines.
pub(super) struct Raw;

impl Cells for Raw {
    const START: &[u8] = b"";
    const END: &[u8] = b"\n";

    fn before(_: &str, _: bool) -> Vec<u8> {
        Vec::new()
    }

    #[inline]
    fn write(out: &mut Vec<u8>, value: Value<'_>) {
        if let Value::Bytes(bytes) = value {
            out.extend_from_slice(bytes);
        }
    }
}

/// Values for a terminal, without characters that control it.
pub(super) struct RawOnTerminal;

impl Cells for RawOnTerminal {
    const START: &[u8] = b"";
    const END: &[u8] = b"\n";

    fn before(_: &str, _: bool) -> Vec<u8> {
        Vec::new()
    }

    fn write(out: &mut Vec<u8>, value: Value<'_>) {
        let Value::Bytes(bytes) = value else { return };
        match std::str::from_utf8(bytes) {
            Ok(_) if are_plain::<TerminalLines>(bytes) => out.extend_from_slice(bytes),
            Ok(text) => escapes::write::<TerminalLines>(out, text),
            Err(_) => {
                out.extend_from_slice(b"base64:");
                base64::write(out, bytes);
            }
        }
    }
}

/// The characters of a line on a terminal: as in a cell, except for its quotes.
struct TerminalLines;

impl Escapes for TerminalLines {
    const MARKS: [bool; 256] = marks(b"", true);

    #[inline]
    fn is_plain(byte: u8) -> bool {
        (0x20..0x7f).contains(&byte)
    }

    fn write_escape(out: &mut Vec<u8>, character: char) -> bool {
        TerminalCells::write_escape(out, character)
    }
}
