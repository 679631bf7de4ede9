//! Columns of keys and of raw batches, for the sink of Spark and the UDF `decode_batches`.

use std::num::NonZeroI32;

use arrow_array::cast::AsArray;
use arrow_array::{BinaryArray, RecordBatchReader};
use pyo3::prelude::*;

use super::enter::{SIGNALS, enter};
use super::{arguments, arrow_export, arrow_import};
use crate::arrow::{decode_cells, unreadable};
use crate::error::{Error, Result};
use crate::record::partition_of_key;

#[doc = stub_doc!(_partitions_of_keys)]
#[pyfunction(name = "_partitions_of_keys")]
pub(super) fn partitions_of_keys(
    py: Python<'_>,
    keys: &Bound<'_, PyAny>,
    partitions: &Bound<'_, PyAny>,
) -> PyResult<Vec<Option<i32>>> {
    let wanted = "a number of partitions, 1 or more";
    let partitions = arguments::whole::<i32>("partitions", wanted, partitions)?;
    let mut stream = arrow_import::stream(keys)?;
    enter(py, || {
        let partitions = NonZeroI32::new(partitions)
            .filter(|partitions| partitions.get() > 0)
            .ok_or_else(|| Error::config("partitions", wanted, partitions.to_string()))?;
        let keys = binary_column(&mut stream)?;
        Ok(keys.iter().map(|key| key.map(|key| partition_of_key(key, partitions))).collect())
    })
}

#[doc = stub_doc!(_decode_batches)]
#[pyfunction(name = "_decode_batches")]
pub(super) fn decode_batches<'py>(
    py: Python<'py>,
    batches: &Bound<'py, PyAny>,
    max_bytes: &Bound<'py, PyAny>,
    max_batch_bytes: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let max_bytes = arguments::whole::<usize>("max_bytes", "a number of bytes, 0 or more", max_bytes)?;
    let max_batch_bytes = arguments::positive("max_batch_bytes", max_batch_bytes)?;
    let mut stream = arrow_import::stream(batches)?;
    let decoded =
        enter(py, || decode_cells(&binary_column(&mut stream)?, max_bytes, max_batch_bytes, SIGNALS))?;
    arrow_export::record_batch(py, decoded)
}

/// The first column of the first record batch of a stream.
fn binary_column(stream: &mut impl RecordBatchReader) -> Result<BinaryArray> {
    let Some(batch) = stream.next() else { return Ok(BinaryArray::from_iter_values([[0_u8; 0]; 0])) };
    let batch = batch.map_err(|error| unreadable(&error))?;
    let column = batch.columns().first().and_then(|column| column.as_binary_opt::<i32>());
    column.cloned().ok_or_else(|| {
        Error::config("table", "one column of type binary", format!("the columns {}", batch.schema()))
    })
}
