//! The keyword arguments that `scan`, `records`, `batches` and `plan` share.

use std::cell::RefCell;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arguments::{
    self, BYTE_TYPES, HEADER_KEYS, ISOLATION_LEVELS, ON_DAMAGE, ON_INVALID_UTF8, TIMESTAMP_UNITS, flag,
    not_allowed, one_of, positive, whole,
};
use super::contents::{self, Contents};
use crate::arrow::{Column, ReaderOptions};
use crate::config::suggestion;
use crate::log::{OnDamage, Ranges, ScanOptions};
use crate::record::MAX_BATCH_BYTES;

/// The keyword arguments of one call. The methods take them out one by one; [`Keywords::finish`] refuses the
/// rest.
pub(super) struct Keywords<'a, 'py> {
    call: &'static str,
    given: Option<&'a Bound<'py, PyDict>>,
    /// The names that were taken, for suggestions.
    known: RefCell<Vec<&'static str>>,
}

impl<'a, 'py> Keywords<'a, 'py> {
    /// `call`: the name of the method, for the error of an unknown keyword. `given`: the call's dict, which
    /// is emptied.
    pub(super) fn new(call: &'static str, given: Option<&'a Bound<'py, PyDict>>) -> Self {
        Self { call, given, known: RefCell::default() }
    }

    /// An argument, or `default` if it was left out.
    fn or<T>(
        &self,
        name: &'static str,
        default: T,
        convert: impl FnOnce(&'static str, &Bound<'py, PyAny>) -> PyResult<T>,
    ) -> PyResult<T> {
        self.known.borrow_mut().push(name);
        let Some(keywords) = self.given else { return Ok(default) };
        let Some(value) = keywords.get_item(name)? else { return Ok(default) };
        keywords.del_item(name)?;
        convert(name, &value)
    }

    /// An argument whose default is `None`.
    pub(super) fn optional<T>(
        &self,
        name: &'static str,
        convert: impl FnOnce(&'static str, &Bound<'py, PyAny>) -> PyResult<T>,
    ) -> PyResult<Option<T>> {
        self.or(
            name,
            None,
            |name, value| {
                if value.is_none() { Ok(None) } else { convert(name, value).map(Some) }
            },
        )
    }

    /// The largest batch that is read, bytes.
    pub(super) fn max_batch_bytes(&self) -> PyResult<usize> {
        self.or("max_batch_bytes", MAX_BATCH_BYTES, positive)
    }

    /// The bounds of a range.
    pub(super) fn ranges(&self) -> PyResult<Ranges> {
        let zone = self.optional("tz", arguments::zone)?;
        let time = |name, given: &Bound<'py, PyAny>| arguments::time_in_zone(name, given, zone.as_ref());
        Ok(Ranges {
            start_offset: self.optional("start_offset", arguments::offset)?,
            end_offset: self.optional("end_offset", arguments::offset)?,
            start_time: self.optional("start_time", time)?,
            end_time: self.optional("end_time", time)?,
        })
    }

    /// A range and its isolation level.
    pub(super) fn committed_ranges(&self) -> PyResult<ScanOptions> {
        let default = ScanOptions::default();
        Ok(ScanOptions {
            ranges: self.ranges()?,
            isolation_level: self.or(
                "isolation_level",
                default.isolation_level,
                one_of(&ISOLATION_LEVELS),
            )?,
            ..default
        })
    }

    fn on_damage(&self) -> PyResult<OnDamage> {
        self.or("on_damage", OnDamage::default(), one_of(&ON_DAMAGE))
    }

    /// A range of batches, and what to do about damage.
    pub(super) fn batches(&self) -> PyResult<ScanOptions> {
        let (ranges, on_damage) = (self.ranges()?, self.on_damage()?);
        Ok(ScanOptions { ranges, on_damage, batches_only: true, ..ScanOptions::default() })
    }

    /// A range of records, and which of them.
    pub(super) fn records(&self) -> PyResult<ScanOptions> {
        Ok(ScanOptions {
            include_control: self.or("include_control", false, flag)?,
            on_damage: self.on_damage()?,
            ..self.committed_ranges()?
        })
    }

    /// A number of records, such as the last ones.
    pub(super) fn record_count(&self, name: &'static str) -> PyResult<Option<usize>> {
        self.optional(name, |name, given| whole(name, "a number of records, 0 or more", given))
    }

    /// What is wanted of keys and values.
    pub(super) fn contents(&self) -> PyResult<Contents> {
        Ok(Contents {
            keys: self.optional("key", contents::keys)?,
            key_prefixes: self.optional("key_prefix", contents::keys)?,
            patterns: self.optional("grep", contents::patterns)?,
        })
    }

    /// A range of records as columns, and what is wanted of their keys and values; `columns`: the default
    /// ones.
    pub(super) fn columns(&self, columns: &[Column]) -> PyResult<(ReaderOptions, Contents)> {
        let default = ReaderOptions::default();
        let contents = self.contents()?;
        let latest = self.or("latest", false, |name, given| match flag(name, given)? {
            true if !contents.is_all() => {
                Err(not_allowed(name, "False with key, key_prefix or grep (Log.latest finds one key)", given))
            }
            value => Ok(value),
        })?;
        let include_tombstones = |name, given: &Bound<'_, PyAny>| match flag(name, given)? {
            true if !latest => Err(not_allowed(name, "False, unless latest is True", given)),
            value => Ok(value),
        };
        let options = ReaderOptions {
            scan: ScanOptions { check_crcs: self.or("check_crcs", true, flag)?, ..self.records()? },
            columns: self
                .optional("columns", |_, given| arguments::columns(given))?
                .unwrap_or_else(|| columns.to_vec()),
            key_type: self.or("key_type", default.key_type, one_of(&BYTE_TYPES))?,
            value_type: self.or("value_type", default.value_type, one_of(&BYTE_TYPES))?,
            invalid_text: self.or("on_invalid_utf8", default.invalid_text, one_of(&ON_INVALID_UTF8))?,
            header_keys: self.or("header_keys", default.header_keys, one_of(&HEADER_KEYS))?,
            timestamp_unit: self.or("timestamp_unit", default.timestamp_unit, one_of(&TIMESTAMP_UNITS))?,
            max_rows: self.or("max_rows", default.max_rows, positive)?,
            max_bytes: self.or("max_bytes", default.max_bytes, positive)?,
            threads: self.or("threads", default.threads, positive)?,
            limit: self.record_count("limit")?,
            last: self.record_count("last")?,
            latest,
            include_tombstones: self.or("include_tombstones", false, include_tombstones)?,
            ..default
        };
        Ok((options, contents))
    }

    /// Refuses a keyword that was not taken: the call does not have it.
    pub(super) fn finish(self) -> PyResult<()> {
        let Some(unknown) = self.given.and_then(|keywords| keywords.keys().iter().next()) else {
            return Ok(());
        };
        let name = unknown.to_string();
        let hint = suggestion(&name, self.known.take());
        Err(PyTypeError::new_err(format!(
            "{}() got an unexpected keyword argument '{name}'{hint}",
            self.call
        )))
    }
}
