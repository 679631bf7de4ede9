//! `repair` and `carve`.

use std::ffi::OsString;

use pyo3::prelude::*;

use super::arguments::{self, Defaulted, LEFT_OUT, one_of, optional};
use super::config::config_of;
use super::enter::{SIGNALS, enter};
use super::value_class::{value_class, wrapped};
use crate::inspect::carve::{self, CarveOptions, CarveReport, CarvedPiece, CarvedRun};
use crate::inspect::repair::{self, LostRange, RepairAction, RepairOptions, RepairPlan, RepairPolicy};
use crate::record::MAX_BATCH_BYTES;

value_class! {
    "RepairPlan", PyRepairPlan(RepairPlan),
    attributes {
        path: OsString = |plan| plan.path.clone().into(),
        policy: &'static str = |plan| plan.policy.code(),
        is_clean: bool = RepairPlan::is_clean,
        is_applied: bool,
        actions: Vec<PyRepairAction> = |plan| wrapped(&plan.actions),
        lost_ranges: Vec<PyLostRange> = |plan| wrapped(&plan.lost_ranges),
        lost_bytes: u64 = RepairPlan::lost_bytes,
        kept_batches: u64,
        kept_bytes: u64,
        segments: Vec<i64>,
        log_end_offset: i64,
        kept_files: Vec<OsString> = |plan| plan.kept_files.iter().map(|file| file.clone().into()).collect(),
        foreign_files: Vec<OsString> = |plan| plan.foreign_files.iter().map(|file| file.clone().into()).collect(),
        has_clean_shutdown: bool,
    }
    methods {
        fn __repr__(&self) -> String {
            let RepairPlan { path, policy, is_applied, actions, lost_ranges, kept_batches, .. } = &self.0;
            format!(
                "RepairPlan(path={:?}, policy={:?}, is_applied={}, actions={}, lost_ranges={}, kept_batches={kept_batches})",
                path.to_string_lossy(), policy.code(), if *is_applied { "True" } else { "False" }, actions.len(), lost_ranges.len()
            )
        }
    }
}

value_class! {
    "RepairAction", PyRepairAction(RepairAction),
    repr {
        kind: &'static str = |action| action.kind.code(),
        file: OsString = |action| action.file.clone().into(),
        start_position: u64,
        end_position: u64,
        reason: String,
    }
    more {
        size: u64 = RepairAction::size,
        quarantine: Option<OsString> = |action| action.quarantine.clone().map(Into::into),
    }
    methods {
        fn __str__(&self) -> String {
            self.0.to_string()
        }
    }
}

value_class! {
    "LostRange", PyLostRange(LostRange),
    repr {
        file: OsString = |lost| lost.file.clone().into(),
        start_position: u64,
        end_position: u64,
        start_offset: i64,
        end_offset: Option<i64>,
        reason: String,
    }
    more {
        size: u64 = LostRange::size,
        quarantine: Option<OsString> = |lost| lost.quarantine.clone().map(Into::into),
    }
    methods {
        fn __str__(&self) -> String {
            self.0.to_string()
        }
    }
}

value_class! {
    "CarveReport", PyCarveReport(CarveReport),
    attributes {
        path: OsString = |report| report.path.clone().into(),
        runs: Vec<PyCarvedRun> = |report| wrapped(&report.runs),
        small_runs: u64,
        repeated_batches: u64,
        given_up: u64,
        bytes_searched: u64,
        destination: Option<OsString> = |report| report.destination.clone().map(Into::into),
    }
    methods {
        fn __repr__(&self) -> String {
            let CarveReport { path, runs, small_runs, repeated_batches, bytes_searched, .. } = &self.0;
            format!(
                "CarveReport(path={:?}, runs={}, small_runs={small_runs}, repeated_batches={repeated_batches}, \
                 bytes_searched={bytes_searched})",
                path.to_string_lossy(), runs.len()
            )
        }
    }
}

value_class! {
    "CarvedRun", PyCarvedRun(CarvedRun),
    repr {
        first_offset: i64,
        last_offset: i64,
        batches: u64,
        records: u64,
        bytes: u64,
        confidence: &'static str = |run| run.confidence().code(),
    }
    more {
        pieces: Vec<PyCarvedPiece> = |run| wrapped(&run.pieces),
        largest_batch: u32,
        timestamps: Option<(i64, i64)>,
        leader_epochs: (i32, i32),
        magics: Vec<i64> = |run| run.magics.iter().map(|magic| i64::from(*magic)).collect(),
        codecs: Vec<String>,
        producer_ids: Vec<i64>,
        gaps: u64,
        conflicts: Vec<usize>,
        directory: Option<OsString> = |run| run.directory.clone().map(Into::into),
    }
    methods {
        fn __str__(&self) -> String {
            self.0.confidence().to_string()
        }
    }
}

value_class! {
    "CarvedPiece", PyCarvedPiece(CarvedPiece),
    repr {
        file: OsString = |piece| piece.file.clone().into(),
        start_position: u64,
        end_position: u64,
        first_offset: i64,
        last_offset: i64,
    }
}

#[doc = stub_doc!(repair)]
#[pyfunction]
#[pyo3(
    name = "repair",
    signature = (path, *, policy=LEFT_OUT, config=None, dry_run=LEFT_OUT, max_batch_bytes=LEFT_OUT),
    text_signature = "(path, *, policy='torn_tail', config=None, dry_run=True, max_batch_bytes=134217728)"
)]
pub(super) fn repair_partition(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    policy: Defaulted<'_, '_>,
    config: Option<&Bound<'_, PyAny>>,
    dry_run: Defaulted<'_, '_>,
    max_batch_bytes: Defaulted<'_, '_>,
) -> PyResult<PyRepairPlan> {
    let path = arguments::path(path)?;
    let policies = RepairPolicy::ALL.map(|policy| (policy.code(), policy));
    let policy = policy.or("policy", RepairPolicy::default(), one_of(&policies))?;
    let dry_run = dry_run.or("dry_run", true, |argument, given| arguments::flag(argument, given))?;
    let options = RepairOptions {
        policy,
        config: config.map(config_of).transpose()?,
        max_batch_bytes: max_batch_bytes.or("max_batch_bytes", MAX_BATCH_BYTES, arguments::positive)?,
        interrupt: SIGNALS,
    };
    let repaired =
        || if dry_run { repair::plan_repair(path, &options) } else { repair::repair(path, &options) };
    enter(py, repaired).map(Into::into)
}

#[doc = stub_doc!(carve)]
#[pyfunction]
#[pyo3(
    name = "carve",
    signature = (image, destination=None, *, min_records=LEFT_OUT),
    text_signature = "(image, destination=None, *, min_records=1)"
)]
pub(super) fn carve_image(
    py: Python<'_>,
    image: &Bound<'_, PyAny>,
    destination: Option<&Bound<'_, PyAny>>,
    min_records: Defaulted<'_, '_>,
) -> PyResult<PyCarveReport> {
    let image = arguments::path_of("image", image)?;
    let destination = optional("destination", destination, arguments::path_of)?;
    let min_records = min_records.or("min_records", 1, arguments::positive)?;
    let options = CarveOptions { min_records: min_records as u64, interrupt: SIGNALS };
    enter(py, || carve::carve(image, destination.as_deref(), &options)).map(Into::into)
}
