//! What a broker does when it opens a partition directory.

use std::borrow::Cow;
use std::ffi::OsString;

use pyo3::prelude::*;

use super::arguments::{self, Defaulted, LEFT_OUT, optional};
use super::config::config_of;
use super::enter::{SIGNALS, enter};
use super::value_class::{value_class, wrapped};
use crate::inspect::kafka_load::{
    KafkaLoad, LoadAction, LoadFailure, LoadOptions, LoadWarning, LoadedFile, LoadedLog, LoadedSegment,
    LostOffsets, PlannedDirectory, other_directories, plan_start,
};
use crate::record::MAX_BATCH_BYTES;

#[doc = stub_doc!(plan_kafka_load)]
#[pyfunction]
#[pyo3(
    signature = (path, *, clean=None, recovery_point=None, log_start_offset=None, config=None, max_batch_bytes=LEFT_OUT),
    text_signature = "(path, *, clean=None, recovery_point=None, log_start_offset=None, config=None, max_batch_bytes=134217728)"
)]
pub(super) fn plan_kafka_load(
    path: &Bound<'_, PyAny>,
    clean: Option<&Bound<'_, PyAny>>,
    recovery_point: Option<&Bound<'_, PyAny>>,
    log_start_offset: Option<&Bound<'_, PyAny>>,
    config: Option<&Bound<'_, PyAny>>,
    max_batch_bytes: Defaulted<'_, '_>,
) -> PyResult<PyKafkaLoad> {
    let (py, path) = (path.py(), arguments::path(path)?);
    let options = LoadOptions {
        clean: optional("clean", clean, arguments::flag)?,
        recovery_point: optional("recovery_point", recovery_point, arguments::offset)?,
        log_start_offset: optional("log_start_offset", log_start_offset, arguments::offset)?,
        config: config.map(|given| config_of(given).map(Cow::Owned)).transpose()?,
        max_batch_bytes: max_batch_bytes.or("max_batch_bytes", MAX_BATCH_BYTES, arguments::positive)?,
        interrupt: SIGNALS,
    };
    enter(py, || KafkaLoad::plan(&path, &options)).map(Into::into)
}

/// A directory's name, its fate, and what is expected and found.
type DirectoryFate = (String, &'static str, String, String);

#[doc = stub_doc!(_directory_fates)]
#[pyfunction]
#[pyo3(name = "_directory_fates")]
pub(super) fn directory_fates(
    path: &Bound<'_, PyAny>,
    others: &Bound<'_, PyAny>,
    server_properties: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<DirectoryFate>> {
    let (py, path) = (path.py(), arguments::path(path)?);
    let others = arguments::paths(others)?;
    let settings =
        server_properties.map(|given| arguments::path_of("server_properties", given)).transpose()?;
    let planned = enter(py, || plan_start(&path, &others, settings.as_deref(), SIGNALS))?;
    let fields = |planned: PlannedDirectory| {
        let PlannedDirectory { name, fate, expected, found } = planned;
        (name, fate.code(), expected, found)
    };
    Ok(planned.into_iter().map(fields).collect())
}

#[doc = stub_doc!(_other_directories)]
#[pyfunction]
#[pyo3(name = "_other_directories")]
pub(super) fn directories_of_broker(
    path: &Bound<'_, PyAny>,
    others: &Bound<'_, PyAny>,
) -> PyResult<Vec<OsString>> {
    let (py, path) = (path.py(), arguments::path(path)?);
    let others = arguments::paths(others)?;
    let found = enter(py, || other_directories(&path, &others))?;
    Ok(found.into_iter().map(Into::into).collect())
}

value_class! {
    "KafkaLoad", PyKafkaLoad(KafkaLoad),
    attributes {
        path: OsString = |load| load.path.clone().into(),
        is_clean: bool = KafkaLoad::is_clean,
        closed_cleanly: bool,
        recovery_point: i64,
        log_start_offset: i64,
        actions: Vec<PyLoadAction> = |load| wrapped(&load.actions),
        log: Option<PyLoadedLog> = |load| load.log.clone().map(Into::into),
        failure: Option<PyLoadFailure> = |load| load.failure.clone().map(Into::into),
        files: Vec<PyLoadedFile> = |load| wrapped(&load.files),
        lost_offsets: Vec<PyLostOffsets> = |load| wrapped(&load.lost_offsets),
        bytes_cut: u64 = KafkaLoad::bytes_cut,
        warnings: Vec<PyLoadWarning> = |load| wrapped(&load.warnings),
        index_interval_bytes: u64,
        interval_source: &'static str = |load| load.interval_source.code(),
    }
    methods {
        fn __repr__(&self) -> String {
            let KafkaLoad { path, actions, lost_offsets, warnings, log, .. } = &self.0;
            let end = log.as_ref().map_or("None".to_owned(), |log| log.log_end_offset.to_string());
            format!(
                "KafkaLoad(path={:?}, log_end_offset={end}, actions={}, bytes_cut={}, lost_offsets={}, warnings={})",
                path.to_string_lossy(), actions.len(), self.0.bytes_cut(), lost_offsets.len(), warnings.len()
            )
        }
    }
}

value_class! {
    "LoadAction", PyLoadAction(LoadAction),
    repr {
        kind: &'static str = |action| action.kind.code(),
        file: String,
        reason: &'static str = |action| action.reason.code(),
        old_size: Option<u64>,
        new_size: Option<u64>,
    }
    more {
        new_file: Option<String>,
        is_changed: bool,
    }
    methods {
        fn __str__(&self) -> String {
            self.0.to_string()
        }
    }
}

value_class! {
    "LoadFailure", PyLoadFailure(LoadFailure),
    repr {
        kind: &'static str = |failure| failure.kind.code(),
        exception: &'static str = |failure| failure.kind.class(),
        file: Option<String>,
        reason: String,
    }
    more {
        takes_directory_offline: bool = |failure| failure.kind.takes_directory_offline(),
    }
    methods {
        fn __str__(&self) -> String {
            self.0.to_string()
        }
    }
}

value_class! {
    "LoadedLog", PyLoadedLog(LoadedLog),
    repr {
        log_start_offset: i64,
        log_end_offset: i64,
        recovery_point: i64,
        last_stable_offset: i64,
    }
    more {
        segments: Vec<PyLoadedSegment> = |log| wrapped(&log.segments),
        leader_epochs: Vec<(i32, i64)>,
        producer_ids: Vec<i64> = |log| {
            let mut ids: Vec<_> = log.producers.iter().map(|producer| producer.producer_id).collect();
            ids.sort_unstable();
            ids
        },
    }
}

value_class! {
    "LoadedSegment", PyLoadedSegment(LoadedSegment),
    repr {
        base_offset: i64,
        size: u64,
        offset_entries: u64,
        time_entries: u64,
        largest_timestamp: Option<i64> = |segment| {
            Some(segment.largest_timestamp).filter(|timestamp| *timestamp >= 0)
        },
    }
}

value_class! {
    "LoadedFile", PyLoadedFile(LoadedFile),
    repr {
        name: String,
        old_size: Option<u64>,
        new_size: Option<u64>,
        closed_size: Option<u64>,
    }
    more {
        crc32c: Option<u32>,
    }
}

value_class! {
    "LostOffsets", PyLostOffsets(LostOffsets),
    repr {
        start_offset: i64,
        end_offset: Option<i64>,
        is_hidden: bool,
    }
    methods {
        fn __str__(&self) -> String {
            self.0.to_string()
        }
    }
}

value_class! {
    "LoadWarning", PyLoadWarning(LoadWarning),
    repr {
        kind: &'static str = |warning| warning.kind.code(),
        file: String,
        position: u64,
        size: u64,
    }
    methods {
        fn __str__(&self) -> String {
            self.0.to_string()
        }
    }
}
