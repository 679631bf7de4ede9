//! The row of a segment in `table=segments`.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray};
use arrow_schema::ArrowError;

use super::gaps::offsets_in_gaps;
use crate::error::{Error, Result};
use crate::index::{OffsetIndex, TimeIndex};
use crate::log::{Log, OnDamage, Ranges, ScanOptions, ScanStep};

/// What the batch headers of a segment say.
#[derive(Default)]
struct Headers {
    batches: i64,
    /// `None` if a batch does not say how many it has.
    records: Option<i64>,
    first_timestamp: Option<i64>,
    largest_timestamp: Option<i64>,
    codecs: BTreeSet<&'static str>,
    /// Without a torn tail: a broker may be writing it.
    damaged_bytes: u64,
}

/// Describes a segment: its batch headers, and the state of its indexes. `None` if it no longer exists.
pub(super) fn describe_segment(
    log: &Log,
    base_offset: i64,
    on_damage: OnDamage,
) -> Result<Option<RecordBatch>> {
    let segment = log.segments().floor(base_offset).filter(|segment| segment.base_offset() == base_offset);
    let Some(segment) = segment else { return Ok(None) };
    let end = match log.segments().higher(base_offset) {
        Some(next) => next.base_offset(),
        None => log.log_end_offset()?,
    };
    let start = base_offset.max(log.log_start_offset()).min(end);
    let Headers { batches, records, first_timestamp, largest_timestamp, codecs, damaged_bytes } =
        read_headers(log, start..end, on_damage)?;
    let (index, time_index) = (segment.offset_index()?, segment.time_index()?);
    let entries = |entries: u64| i64::try_from(entries).ok();
    let index_entries = index.as_ref().map(|index| index.entries());
    #[expect(clippy::cast_precision_loss, reason = "a density, of numbers below 2^53")]
    let density = index_entries
        .filter(|entries| *entries > 0)
        .map(|entries| Ok::<_, Error>(segment.size()? as f64 / entries as f64))
        .transpose()?;
    let state = state(index.as_deref(), time_index.as_deref())?;
    let mut codec_lists = ListBuilder::new(StringBuilder::new()).with_field(super::shape::string_element());
    codec_lists.append_value(codecs.into_iter().map(Some));
    let bigint = |value: Option<i64>| -> ArrayRef { Arc::new(Int64Array::from(vec![value])) };
    let timestamp = |value: Option<i64>| -> ArrayRef {
        Arc::new(TimestampMillisecondArray::from(vec![value]).with_timezone("UTC"))
    };
    let columns = [
        ("segment_base_offset", bigint(Some(base_offset))),
        ("end_offset", bigint(Some(segment.end_offset()?))),
        ("offset_gap", bigint(entries(offsets_in_gaps(log, base_offset..end)?))),
        ("bytes", bigint(entries(segment.size()?))),
        ("batches", bigint(Some(batches))),
        ("records", bigint(records)),
        ("first_timestamp", timestamp(first_timestamp)),
        ("largest_timestamp", timestamp(largest_timestamp)),
        ("codecs", Arc::new(codec_lists.finish()) as ArrayRef),
        ("index_entries", bigint(index_entries.and_then(entries))),
        ("time_index_entries", bigint(time_index.and_then(|index| entries(index.entries())))),
        ("bytes_per_index_entry", Arc::new(Float64Array::from(vec![density])) as ArrayRef),
        ("index_state", Arc::new(StringArray::from(vec![state])) as ArrayRef),
        ("damaged_bytes", bigint(entries(damaged_bytes))),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)));
    batch.map(Some).map_err(|error: ArrowError| Error::config("table", "columns that fit", error.to_string()))
}

fn read_headers(log: &Log, offsets: std::ops::Range<i64>, on_damage: OnDamage) -> Result<Headers> {
    let ranges =
        Ranges { start_offset: Some(offsets.start), end_offset: Some(offsets.end), ..Ranges::default() };
    let options = ScanOptions { ranges, on_damage, batches_only: true, ..ScanOptions::default() };
    let mut scan = log.scan(options)?;
    let mut found = Headers { records: Some(0), ..Headers::default() };
    let known = |time: i64| (time >= 0).then_some(time);
    while let Some(step) = scan.next_step()? {
        let ScanStep::Batch(batch) = step else { continue };
        let header = batch.header;
        if found.batches == 0 && header.delete_horizon().is_none() {
            found.first_timestamp = header.base_timestamp.and_then(known);
        }
        found.batches += 1;
        let counted = if header.is_control() { header.count.map(|_| 0) } else { header.count };
        found.records = found.records.zip(counted).map(|(records, count)| records + i64::from(count));
        found.largest_timestamp = found.largest_timestamp.max(known(header.max_timestamp));
        found.codecs.insert(header.codec().map_or("unknown", crate::record::Codec::name));
    }
    let damaged = scan.damaged_ranges().iter().filter(|range| !range.is_tail());
    found.damaged_bytes = damaged.map(|range| range.end_position - range.start_position).sum();
    Ok(found)
}

/// `ok`, or the problem of each index.
fn state(index: Option<&OffsetIndex>, time_index: Option<&TimeIndex>) -> Result<String> {
    let problem = |name: &str, checked: Option<Result<()>>| match checked {
        None => Ok(Some(format!("{name} missing"))),
        Some(Err(error @ Error::Corrupt { .. })) => {
            Ok(Some(format!("{name} {}", error.found().unwrap_or_default())))
        }
        Some(Err(error)) => Err(error),
        Some(Ok(())) => Ok(None),
    };
    let problems = [
        problem("index", index.map(OffsetIndex::sanity_check))?,
        problem("timeindex", time_index.map(TimeIndex::sanity_check))?,
    ];
    let problems: Vec<_> = problems.into_iter().flatten().collect();
    Ok(if problems.is_empty() { "ok".to_owned() } else { problems.join(", ") })
}
