//! Appends of a stream of record batches.

use arrow_array::RecordBatchReader;
use arrow_schema::ArrowError;

use super::NewRecords;
use crate::error::{Error, Result};
use crate::types::Interrupt;
use crate::writer::{Appended, Appender};

/// Appends the rows of a stream; each record batch is in the log before the next one is read, and stays there
/// if a later one fails. Without a row, the result has the offset of the next record as `first_offset`.
/// `clock`: returns the timestamp of a row if there is no timestamp column, ms.
///
/// # Errors
/// As [`Appender::append_many`]; [`Error::Config`] if the columns are not columns of records, or the stream
/// cannot be read.
pub fn append_stream(
    appender: &Appender,
    stream: &mut impl RecordBatchReader,
    clock: fn() -> i64,
    interrupt: Interrupt,
) -> Result<Appended> {
    NewRecords::check(&stream.schema())?;
    let mut all = appender.append_many(&[])?;
    for batch in stream {
        let batch = batch.map_err(|error| unreadable(&error))?;
        interrupt.check()?;
        if batch.num_rows() == 0 {
            continue;
        }
        let records = NewRecords::of(&batch)?;
        let headers = records.headers()?;
        all = all.followed_by(appender.append_many(&records.records(&headers, clock()))?);
    }
    Ok(all)
}

/// The error of a stream that cannot be read.
pub fn unreadable(error: &ArrowError) -> Error {
    Error::config("table", "a stream of record batches that can be read to its end", error.to_string())
}
