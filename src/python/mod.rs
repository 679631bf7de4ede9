//! The extension module `cordwood._core`. A method converts its arguments, calls the core by
//! [`enter`](enter::enter), and converts the result.

#![allow(
    clippy::doc_markdown,
    clippy::doc_link_with_quotes,
    reason = "the docstrings are written for Python"
)]

// `stub_doc!(Log.scan)` is the docstring of `Log.scan` in the stub
include!(concat!(env!("OUT_DIR"), "/stub_doc.rs"));

mod arguments;
mod arrow_export;
mod arrow_import;
mod async_append;
mod call_lock;
mod cat;
mod compaction;
mod config;
mod contents;
mod copy;
mod count;
mod diff;
mod dir;
mod dump;
mod enter;
mod error;
mod flush_mode;
mod follow;
mod handle;
mod index;
mod index_handle;
mod index_writers;
mod internal_topics;
mod kafka_load;
mod keywords;
mod log;
mod lookup_targets;
mod names;
mod plan;
mod plan_reader;
mod position;
mod producer;
mod profile;
mod rebuild;
mod record;
mod record_columns;
mod record_input;
mod recovery;
mod repair;
mod results;
mod retention;
mod scan;
mod segment;
mod split;
mod times;
mod transaction;
mod turns;
mod value_class;
mod verify;
mod writer;
mod writer_class;
mod writer_handle;
mod writer_options;
mod zone;

use pyo3::prelude::*;

#[doc = stub_doc!(module)]
#[pymodule]
#[pyo3(name = "_core", gil_used = true)]
mod core_module {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn add_version(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    #[pymodule_export]
    use super::async_append::PyUnflushed;
    #[pymodule_export]
    use super::cat::scan_logs;
    #[pymodule_export]
    use super::compaction::{PyCompactedSegment, PyCompaction, plan_compaction};
    #[pymodule_export]
    use super::config::{checked, from_properties, of_topic, to_properties};
    #[pymodule_export]
    use super::copy::{PyCopyReport, copy};
    #[pymodule_export]
    use super::count::PyCounter;
    #[pymodule_export]
    use super::diff::{PyDifference, PyFirstDifference, PyOtherForm, PyRecordPlace, PyReplica, diff};
    #[pymodule_export]
    use super::dir::PyLogDir;
    #[pymodule_export]
    use super::dump::{PyDump, PyDumpRows, dump};
    #[pymodule_export]
    use super::flush_mode::PyFlushMode;
    #[pymodule_export]
    use super::follow::{PyLogPosition, is_being_truncated, watch_directories};
    #[pymodule_export]
    use super::index::{PyOffsetIndex, PyTimeIndex, PyTransactionIndex};
    #[pymodule_export]
    use super::index_writers::{PyOffsetIndexWriter, PyTimeIndexWriter, PyTransactionIndexWriter};
    #[pymodule_export]
    use super::internal_topics::{
        PyClusterMetadata, PyTable, consumer_groups, consumer_offsets, metadata, metadata_records,
        open_transactions, transactions,
    };
    #[pymodule_export]
    use super::kafka_load::{
        PyKafkaLoad, PyLoadAction, PyLoadFailure, PyLoadWarning, PyLoadedFile, PyLoadedLog, PyLoadedSegment,
        PyLostOffsets, directories_of_broker, directory_fates, plan_kafka_load,
    };
    #[pymodule_export]
    use super::log::PyLog;
    #[pymodule_export]
    use super::names::{
        PyPathInfo, classify, data_directory_entry, has_segments, is_in_data_directory, is_segment_file,
        is_topic, nearest, offsets_in_words, partition_parts,
    };
    #[pymodule_export]
    use super::plan::{
        PyPiece, PyQuery, PySourceOptions, PyTask, local_path, logs_opened, open_log, partition_directory,
    };
    #[pymodule_export]
    use super::plan_reader::{PyStream, PyTaskReader};
    #[pymodule_export]
    use super::position::{PyCommittedOffset, PyPosition};
    #[pymodule_export]
    use super::producer::{PyProducer, PyProducerState};
    #[pymodule_export]
    use super::profile::PyProfiler;
    #[pymodule_export]
    use super::rebuild::{PyDerivedFile, PyRebuildReport, rebuild_indexes};
    #[pymodule_export]
    use super::record::{PyRecord, record};
    #[pymodule_export]
    use super::record_columns::{decode_batches, partitions_of_keys};
    #[pymodule_export]
    use super::record_input::other_unit;
    #[pymodule_export]
    use super::recovery::{PyFileChange, PyRebuiltIndex, PyRecoveryCut, PyRecoveryPlan, PySegmentSplit};
    #[pymodule_export]
    use super::repair::{
        PyCarveReport, PyCarvedPiece, PyCarvedRun, PyLostRange, PyRepairAction, PyRepairPlan, carve_image,
        repair_partition,
    };
    #[pymodule_export]
    use super::results::{
        PyAbortedTransaction, PyDamagedRange, PyLocation, PyOffsetGap, PyOffsetPosition, PyScanStats,
        PyTimestampOffset,
    };
    #[pymodule_export]
    use super::retention::{PyRetentionPlan, plan_retention};
    #[pymodule_export]
    use super::scan::{PyLineIterator, PyRecords, PyScan};
    #[pymodule_export]
    use super::segment::{PySegment, PySegments};
    #[pymodule_export]
    use super::split::{PyPlannedSegment, PySplit};
    #[pymodule_export]
    use super::times::{parse_time, time_forms};
    #[pymodule_export]
    use super::transaction::PyTransaction;
    #[pymodule_export]
    use super::verify::{PyFinding, PyUnprotected, PyVerification, verify, wrong_writer_files};
    #[pymodule_export]
    use super::writer::{PyAppended, PyWriterMetrics};
    #[pymodule_export]
    use super::writer_class::PyLogWriter;
    #[pymodule_export]
    use super::zone::PyZone;
}
