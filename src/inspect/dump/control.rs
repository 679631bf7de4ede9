//! What the line of a control record says about it.

use super::records::DumpedRecord;
use super::text::Text;
use crate::error::Malformed;
use crate::record::control::ControlType;
use crate::record::{i16_at, i32_at};

/// Types of control records of a metadata log. Kafka: `ControlRecordType`.
const KRAFT_TYPES: std::ops::RangeInclusive<i16> = 2..=6;

/// Writes the part of the line after the sizes.
///
/// # Errors
/// [`Malformed`] if key or value is not that of a control record.
pub(super) fn write_control(out: &mut Text, record: &DumpedRecord<'_>) -> Result<(), Malformed> {
    let kind = ControlType::parse(record.key()?)?;
    let name = match kind {
        ControlType::Abort => "ABORT",
        ControlType::Commit => "COMMIT",
        ControlType::Other(id) if KRAFT_TYPES.contains(&id) => {
            let found = format!("a control record of type {id}");
            return Err(Malformed::unsupported("a transaction marker", found));
        }
        ControlType::Other(id) => {
            out.str(" controlType: UNKNOWN(").int(id).str(")");
            return Ok(());
        }
    };
    let epoch = coordinator_epoch(record.value()?)?;
    out.str(" endTxnMarker: ").str(name).str(" coordinatorEpoch: ").int(epoch);
    Ok(())
}

/// The epoch in the value of a transaction marker. A version newer than 0 is read as version 0.
///
/// Kafka: `EndTransactionMarker.deserializeValue`.
fn coordinator_epoch(value: Option<&[u8]>) -> Result<i32, Malformed> {
    let value = value.unwrap_or_default();
    let fields = i16_at(value, 0).zip(i32_at(value, 2));
    match fields {
        Some((0.., epoch)) => Ok(epoch),
        Some((version, _)) => {
            Err(Malformed::new("a transaction marker's version from 0 up", format!("version {version}")))
        }
        None => Err(Malformed::new(
            "a transaction marker's value (version, coordinator epoch)",
            format!("{} bytes", value.len()),
        )),
    }
}
