//! Times as texts.

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDateTime, PyDelta, PyDictMethods, PyTzInfo};

use super::record::now;
use crate::text::{TIME_FORMS, TimeFormError, TimeText, milliseconds_of};

/// What to do with a text.
pub(super) struct TimeRule<'a, 'py> {
    /// Of a time without a zone, which is an error otherwise, and of a date, which is midnight UTC
    /// otherwise: a `datetime.tzinfo`.
    pub(super) zone: Option<&'a Bound<'py, PyAny>>,
    /// Whether a fraction of a millisecond is rounded up, as for a bound, or left out, as for a record.
    pub(super) rounds_up: bool,
}

/// Milliseconds since the epoch of a text. The inner error is that of the text, the outer one that of a zone.
pub(super) fn parsed(
    py: Python<'_>,
    text: &str,
    now_ms: i64,
    rule: &TimeRule<'_, '_>,
) -> PyResult<Result<i64, TimeFormError>> {
    let found = match TimeText::parse(text, now_ms) {
        Ok(found) => found,
        Err(wrong) => return Ok(Err(wrong)),
    };
    let nanoseconds = match (found, rule.zone) {
        (TimeText::Moment(nanoseconds) | TimeText::Date(nanoseconds), None)
        | (TimeText::Moment(nanoseconds), _) => nanoseconds,
        (TimeText::Local(_), None) => return Ok(Err(TimeFormError::without_zone(text))),
        // the first moment of a day, also where the clock leaves midnight out
        (TimeText::Date(local), Some(zone)) => local - ahead_of_utc(py, local, zone, Fold::First)?,
        (TimeText::Local(local), Some(zone)) => {
            let first = ahead_of_utc(py, local, zone, Fold::First)?;
            let second = ahead_of_utc(py, local, zone, Fold::Second)?;
            if first != second {
                return Ok(Err(TimeFormError::not_once(text, first, second)));
            }
            local - first
        }
    };
    Ok(milliseconds_of(nanoseconds, rule.rounds_up))
}

/// Which one of a local time is meant that a zone has twice. Of one that it has not, the first is by the
/// rules before the change of the clock, the second by those after it.
#[derive(Debug, Clone, Copy)]
enum Fold {
    First,
    Second,
}

/// How far a zone is ahead of UTC at a local time, nanoseconds.
///
/// *Source*: PEP 495.
fn ahead_of_utc(py: Python<'_>, local: i128, zone: &Bound<'_, PyAny>, fold: Fold) -> PyResult<i128> {
    let epoch = PyDateTime::new(py, 1970, 1, 1, 0, 0, 0, 0, None)?;
    let (day, second) = (86_400_000_000_000, 1_000_000_000);
    let days = i32::try_from(local.div_euclid(day))?;
    let seconds = i32::try_from(local.rem_euclid(day) / second)?;
    let moment = epoch.add(PyDelta::new(py, days, seconds, 0, true)?)?;
    let given = [("tzinfo", zone)].into_py_dict(py)?;
    given.set_item("fold", fold as u8)?;
    let moment = moment.call_method("replace", (), Some(&given))?;
    let ahead = moment.call_method0("utcoffset")?;
    let microseconds: i64 = ahead.floor_div(PyDelta::new(py, 0, 0, 1, false)?)?.extract()?;
    Ok(i128::from(microseconds) * 1000)
}

#[doc = stub_doc!(_time_forms)]
#[pyfunction]
#[pyo3(name = "_time_forms")]
pub(super) fn time_forms() -> &'static str {
    TIME_FORMS
}

#[doc = stub_doc!(_parse_time)]
#[pyfunction]
#[pyo3(name = "_parse_time", signature = (text, now_ms=None, zone=None, *, rounds_up=true))]
pub(super) fn parse_time(
    py: Python<'_>,
    text: &str,
    now_ms: Option<i64>,
    zone: Option<&Bound<'_, PyTzInfo>>,
    rounds_up: bool,
) -> PyResult<i64> {
    let rule = TimeRule { zone: zone.map(Bound::as_any), rounds_up };
    parsed(py, text, now_ms.unwrap_or_else(now), &rule)?.map_err(|wrong| {
        let make = || {
            let class = py.import("cordwood.times")?.getattr("TimeFormError")?;
            let lacks_zone = [("lacks_zone", wrong.lacks_zone)].into_py_dict(py)?;
            Ok(PyErr::from_value(class.call((text, wrong.expected), Some(&lacks_zone))?))
        };
        make().unwrap_or_else(|failed: PyErr| failed)
    })
}
