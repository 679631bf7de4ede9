//! What is wanted of the keys and values of records: the arguments `key`, `key_prefix` and `grep`.

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyMemoryView, PySequence, PyString};
use regex::bytes::{Regex, RegexSet};

use super::arguments;
use super::error;
use super::record_input::Blob;
use crate::error::Error;
use crate::log::RecordFilter;

const PATTERN: &str = "a regular expression, as of the Rust crate regex";

/// Any of the keys, and any of the prefixes of keys, and any of the patterns of values; `None`: all.
#[derive(Debug, Clone, Default)]
pub(super) struct Contents {
    pub(super) keys: Option<Vec<Vec<u8>>>,
    pub(super) key_prefixes: Option<Vec<Vec<u8>>>,
    pub(super) patterns: Option<RegexSet>,
}

impl Contents {
    /// Adds the arguments from which it was made.
    pub(super) fn add_to(&self, keywords: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = keywords.py();
        let bytes = |all: &Vec<Vec<u8>>| all.iter().map(|one| PyBytes::new(py, one)).collect::<Vec<_>>();
        keywords.set_item("key", self.keys.as_ref().map(bytes))?;
        keywords.set_item("key_prefix", self.key_prefixes.as_ref().map(bytes))?;
        keywords.set_item("grep", self.patterns.as_ref().map(|patterns| patterns.patterns().to_vec()))
    }

    pub(super) fn is_all(&self) -> bool {
        self.keys.is_none() && self.key_prefixes.is_none() && self.patterns.is_none()
    }

    /// `None` if all records are wanted.
    pub(super) fn filter(&self) -> Option<RecordFilter> {
        let Self { keys, key_prefixes, patterns } = self.clone();
        (!self.is_all()).then(|| {
            RecordFilter::new(move |key, value| {
                let is_key =
                    |wanted: &Vec<Vec<u8>>| key.is_some_and(|key| wanted.iter().any(|one| one == key));
                let has_prefix = |wanted: &Vec<Vec<u8>>| {
                    key.is_some_and(|key| wanted.iter().any(|prefix| key.starts_with(prefix)))
                };
                let matches = |wanted: &RegexSet| value.is_some_and(|value| wanted.is_match(value));
                keys.as_ref().is_none_or(is_key)
                    && key_prefixes.as_ref().is_none_or(has_prefix)
                    && patterns.as_ref().is_none_or(matches)
            })
        })
    }
}

/// Each item of a list, or the one value that was given instead.
fn one_or_more<T>(
    argument: &str,
    given: &Bound<'_, PyAny>,
    convert: impl Fn(&str, &Bound<'_, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    let is_one = given.is_instance_of::<PyString>()
        || given.is_instance_of::<PyBytes>()
        || given.is_instance_of::<PyByteArray>()
        || given.is_instance_of::<PyMemoryView>();
    match given.cast::<PySequence>() {
        Ok(list) if !is_one => {
            let items = list.try_iter()?.enumerate();
            items.map(|(place, item)| convert(&format!("{argument}[{place}]"), &item?)).collect()
        }
        _ => Ok(vec![convert(argument, given)?]),
    }
}

/// Keys, or prefixes of keys.
pub(super) fn keys(argument: &str, given: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<u8>>> {
    one_or_more(argument, given, |argument, key| {
        Ok(Blob::of(argument, "bytes or str, or a list of them", key)?.as_slice().to_vec())
    })
}

/// Regular expressions over bytes. A class such as `\w` matches characters of UTF-8; `(?-u)` turns that off.
pub(super) fn patterns(argument: &str, given: &Bound<'_, PyAny>) -> PyResult<RegexSet> {
    let texts = one_or_more(argument, given, |argument, text| {
        let pattern = arguments::text(argument, PATTERN, text)?;
        // a set's error does not say which of them is wrong
        Regex::new(&pattern).map_err(|wrong| wrong_pattern(argument, text, &wrong))?;
        Ok(pattern)
    })?;
    RegexSet::new(texts).map_err(|wrong| wrong_pattern(argument, given, &wrong))
}

fn wrong_pattern(argument: &str, given: &Bound<'_, PyAny>, wrong: &regex::Error) -> PyErr {
    let reason = wrong.to_string();
    // the last line has the reason, and those before it a drawing of the place
    let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ");
    let found = format!("{}: {reason}", arguments::shown(given));
    error::to_python(given.py(), Error::config(argument, PATTERN, found))
}
