//! Records as lines of text: JSON lines, CSV, and values alone; and times as texts ([`TimeText`]).
//!
//! | value | JSON lines | CSV |
//! |---|---|---|
//! | number, boolean | as it is | as it is |
//! | null | `null` | an empty cell, without quotes |
//! | timestamp | ms since the epoch | UTC: `2023-11-14 22:13:20.000Z`; in another zone `2023-11-14 23:13:20.000+01:00` |
//! | text (`topic`, `codec`) | a string | in quotes |
//! | bytes (`key`, `value`) | a string if they are UTF-8, otherwise `{"base64": "…"}` | in quotes: text if they are UTF-8, otherwise `base64:…` |
//! | `headers` | a list of pairs of a name and a value; `[]` if there are none | this JSON in quotes; an empty cell if there are none |
//! | `error` | an object with the fields of [`DamagedRange`](crate::log::DamagedRange); `null` for records | this JSON in quotes; an empty cell for records |
//!
//! CSV begins with a line of headings. Cells are separated by `,`, and a `"` in a cell is doubled. JSON has
//! `, ` and `: ` as separators and keeps characters outside ASCII.
//!
//! Characters that control a terminal, or that hide or reorder text, are escaped in JSON, always, as
//! `\u001b`, and in cells of CSV for a terminal, as `\x1b`.

mod base64;
mod csv;
mod escapes;
mod json;
mod lines;
mod local_time;
mod raw;
mod row;
#[cfg(feature = "arrow")]
mod times;
mod utc;

pub use lines::{Block, Lines, LinesOptions};
pub use local_time::UtcOffset;
#[cfg(feature = "plan")]
pub(crate) use times::write as write_time;
#[cfg(feature = "arrow")]
pub use times::{FORMS as TIME_FORMS, TimeFormError, TimeText, milliseconds as milliseconds_of};

/// The form of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// A JSON object for each row.
    #[default]
    JsonLines,
    /// CSV with a line of headings.
    Csv,
    /// CSV whose cells cannot control a terminal.
    TerminalCsv,
    /// The value of each record as it is, and a line feed; of a null only that. Other columns are left out.
    Raw,
    /// As `Raw`, without characters that can control a terminal. Bytes that are not UTF-8 are `base64:…`.
    TerminalRaw,
}

impl Format {
    fn has_headings(self) -> bool {
        matches!(self, Self::Csv | Self::TerminalCsv)
    }
}
