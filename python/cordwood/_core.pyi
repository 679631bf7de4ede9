"""The part of cordwood that is written in Rust.

Terms: an *offset* is logical and absolute; a *position* is in bytes from the start of a `.log` file (or of the file
that the text names); a *timestamp* is in milliseconds since the epoch, -1 if there is none. Ranges are half-open,
`[start, end)`. Results are immutable objects with attributes. Only `LogWriter` and its producers
and transactions, `Position.commit`, the index writers, `copy`, `carve`, `rebuild_indexes` and `repair` write to files.

An argument of the wrong type is a `TypeError`, a value that is not allowed is a `ConfigError`; both name the argument.
Any method that reads or writes files can raise an `OSError`. One that reads a log can also raise a `CorruptLogError`,
an `UnsupportedFormatError` or a `LogChangedError`. *Errors* lists the other errors, and these if they have
a special cause.

The examples run in the root directory of the repository; `cw` is `cordwood`.
"""

from collections.abc import Sequence
from typing import Any, Literal

# `X as X`: in a stub Jedi ignores other imports, although `__all__` lists the names
from cordwood._stubs.arguments import FilePath, PropertySource
from cordwood._stubs.async_appends import _Unflushed as _Unflushed
from cordwood._stubs.cat import _scan_logs as _scan_logs
from cordwood._stubs.cat import _Zone as _Zone
from cordwood._stubs.compaction import CompactedSegment as CompactedSegment
from cordwood._stubs.compaction import Compaction as Compaction
from cordwood._stubs.compaction import plan_compaction as plan_compaction
from cordwood._stubs.copies import CopyReport as CopyReport
from cordwood._stubs.copies import copy as copy
from cordwood._stubs.count import _Counter as _Counter
from cordwood._stubs.diff import Difference as Difference
from cordwood._stubs.diff import FirstDifference as FirstDifference
from cordwood._stubs.diff import OtherForm as OtherForm
from cordwood._stubs.diff import RecordPlace as RecordPlace
from cordwood._stubs.diff import Replica as Replica
from cordwood._stubs.diff import diff as diff
from cordwood._stubs.directory import LogDir as LogDir
from cordwood._stubs.directory import PathInfo as PathInfo
from cordwood._stubs.directory import classify as classify
from cordwood._stubs.dump import Dump as Dump
from cordwood._stubs.dump import DumpRows as DumpRows
from cordwood._stubs.dump import dump as dump
from cordwood._stubs.follow import _is_being_truncated as _is_being_truncated
from cordwood._stubs.follow import _LogPosition as _LogPosition
from cordwood._stubs.follow import _watch_directories as _watch_directories
from cordwood._stubs.index import AbortedTransaction as AbortedTransaction
from cordwood._stubs.index import OffsetIndex as OffsetIndex
from cordwood._stubs.index import OffsetPosition as OffsetPosition
from cordwood._stubs.index import TimeIndex as TimeIndex
from cordwood._stubs.index import TransactionIndex as TransactionIndex
from cordwood._stubs.index_writers import OffsetIndexWriter as OffsetIndexWriter
from cordwood._stubs.index_writers import TimeIndexWriter as TimeIndexWriter
from cordwood._stubs.index_writers import TransactionIndexWriter as TransactionIndexWriter
from cordwood._stubs.internal_topics import ClusterMetadata as ClusterMetadata
from cordwood._stubs.internal_topics import Table as Table
from cordwood._stubs.internal_topics import consumer_groups as consumer_groups
from cordwood._stubs.internal_topics import consumer_offsets as consumer_offsets
from cordwood._stubs.internal_topics import metadata as metadata
from cordwood._stubs.internal_topics import metadata_records as metadata_records
from cordwood._stubs.internal_topics import open_transactions as open_transactions
from cordwood._stubs.internal_topics import transactions as transactions
from cordwood._stubs.kafka_load import KafkaLoad as KafkaLoad
from cordwood._stubs.kafka_load import LoadAction as LoadAction
from cordwood._stubs.kafka_load import LoadedFile as LoadedFile
from cordwood._stubs.kafka_load import LoadedLog as LoadedLog
from cordwood._stubs.kafka_load import LoadedSegment as LoadedSegment
from cordwood._stubs.kafka_load import LoadFailure as LoadFailure
from cordwood._stubs.kafka_load import LoadWarning as LoadWarning
from cordwood._stubs.kafka_load import LostOffsets as LostOffsets
from cordwood._stubs.kafka_load import plan_kafka_load as plan_kafka_load
from cordwood._stubs.log import Location as Location
from cordwood._stubs.log import Log as Log
from cordwood._stubs.log import OffsetGap as OffsetGap
from cordwood._stubs.log import TimestampOffset as TimestampOffset
from cordwood._stubs.plans import FileChange as FileChange
from cordwood._stubs.plans import RebuiltIndex as RebuiltIndex
from cordwood._stubs.plans import RecoveryCut as RecoveryCut
from cordwood._stubs.plans import RecoveryPlan as RecoveryPlan
from cordwood._stubs.plans import RetentionPlan as RetentionPlan
from cordwood._stubs.plans import SegmentSplit as SegmentSplit
from cordwood._stubs.plans import plan_retention as plan_retention
from cordwood._stubs.positions import CommittedOffset as CommittedOffset
from cordwood._stubs.positions import Position as Position
from cordwood._stubs.producers import Producer as Producer
from cordwood._stubs.producers import ProducerState as ProducerState
from cordwood._stubs.producers import Transaction as Transaction
from cordwood._stubs.profile import _Profiler as _Profiler
from cordwood._stubs.rebuild import DerivedFile as DerivedFile
from cordwood._stubs.rebuild import RebuildReport as RebuildReport
from cordwood._stubs.rebuild import rebuild_indexes as rebuild_indexes
from cordwood._stubs.record import Appended as Appended
from cordwood._stubs.record import FlushMode as FlushMode
from cordwood._stubs.record import Record as Record
from cordwood._stubs.record import WriterMetrics as WriterMetrics
from cordwood._stubs.record import _other_unit as _other_unit
from cordwood._stubs.record import _parse_time as _parse_time
from cordwood._stubs.record import _record as _record
from cordwood._stubs.record import _time_forms as _time_forms
from cordwood._stubs.repair import CarvedPiece as CarvedPiece
from cordwood._stubs.repair import CarvedRun as CarvedRun
from cordwood._stubs.repair import CarveReport as CarveReport
from cordwood._stubs.repair import LostRange as LostRange
from cordwood._stubs.repair import RepairAction as RepairAction
from cordwood._stubs.repair import RepairPlan as RepairPlan
from cordwood._stubs.repair import carve as carve
from cordwood._stubs.repair import repair as repair
from cordwood._stubs.scan import DamagedRange as DamagedRange
from cordwood._stubs.scan import Records as Records
from cordwood._stubs.scan import Scan as Scan
from cordwood._stubs.scan import ScanStats as ScanStats
from cordwood._stubs.scan import _Lines as _Lines
from cordwood._stubs.segments import PlannedSegment as PlannedSegment
from cordwood._stubs.segments import Segment as Segment
from cordwood._stubs.segments import Segments as Segments
from cordwood._stubs.segments import Split as Split
from cordwood._stubs.spark import _decode_batches as _decode_batches
from cordwood._stubs.spark import _local_path as _local_path
from cordwood._stubs.spark import _logs_opened as _logs_opened
from cordwood._stubs.spark import _open_log as _open_log
from cordwood._stubs.spark import _partition_directory as _partition_directory
from cordwood._stubs.spark import _partitions_of_keys as _partitions_of_keys
from cordwood._stubs.spark import _Piece as _Piece
from cordwood._stubs.spark import _Query as _Query
from cordwood._stubs.spark import _SourceOptions as _SourceOptions
from cordwood._stubs.spark import _Stream as _Stream
from cordwood._stubs.spark import _Task as _Task
from cordwood._stubs.spark import _TaskReader as _TaskReader
from cordwood._stubs.verify import Finding as Finding
from cordwood._stubs.verify import Unprotected as Unprotected
from cordwood._stubs.verify import Verification as Verification
from cordwood._stubs.verify import verify as verify
from cordwood._stubs.writer import LogWriter as LogWriter

__all__ = [
    "AbortedTransaction",
    "Appended",
    "CarveReport",
    "CarvedPiece",
    "CarvedRun",
    "ClusterMetadata",
    "CommittedOffset",
    "CompactedSegment",
    "Compaction",
    "CopyReport",
    "DamagedRange",
    "DerivedFile",
    "Difference",
    "Dump",
    "DumpRows",
    "FileChange",
    "Finding",
    "FirstDifference",
    "FlushMode",
    "KafkaLoad",
    "LoadAction",
    "LoadFailure",
    "LoadWarning",
    "LoadedFile",
    "LoadedLog",
    "LoadedSegment",
    "Location",
    "Log",
    "LogDir",
    "LogWriter",
    "LostOffsets",
    "LostRange",
    "OffsetGap",
    "OffsetIndex",
    "OffsetIndexWriter",
    "OffsetPosition",
    "OtherForm",
    "PathInfo",
    "PlannedSegment",
    "Position",
    "Producer",
    "ProducerState",
    "RebuildReport",
    "RebuiltIndex",
    "Record",
    "RecordPlace",
    "Records",
    "RecoveryCut",
    "RecoveryPlan",
    "RepairAction",
    "RepairPlan",
    "Replica",
    "RetentionPlan",
    "Scan",
    "ScanStats",
    "Segment",
    "SegmentSplit",
    "Segments",
    "Split",
    "Table",
    "TimeIndex",
    "TimeIndexWriter",
    "TimestampOffset",
    "Transaction",
    "TransactionIndex",
    "TransactionIndexWriter",
    "Unprotected",
    "Verification",
    "WriterMetrics",
    "_Counter",
    "_Lines",
    "_LogPosition",
    "_Piece",
    "_Profiler",
    "_Query",
    "_SourceOptions",
    "_Stream",
    "_Task",
    "_TaskReader",
    "_Unflushed",
    "_Zone",
    "__version__",
    "_data_directory_entry",
    "_decode_batches",
    "_directory_fates",
    "_has_segments",
    "_is_being_truncated",
    "_is_in_data_directory",
    "_is_segment_file",
    "_is_topic",
    "_local_path",
    "_log_config_checked",
    "_log_config_from_properties",
    "_log_config_of_topic",
    "_log_config_to_properties",
    "_logs_opened",
    "_nearest",
    "_offsets_in_words",
    "_open_log",
    "_other_directories",
    "_other_unit",
    "_parse_time",
    "_partition_directory",
    "_partition_parts",
    "_partitions_of_keys",
    "_record",
    "_scan_logs",
    "_time_forms",
    "_watch_directories",
    "_wrong_writer_files",
    "carve",
    "classify",
    "consumer_groups",
    "consumer_offsets",
    "copy",
    "diff",
    "dump",
    "metadata",
    "metadata_records",
    "open_transactions",
    "plan_compaction",
    "plan_kafka_load",
    "plan_retention",
    "rebuild_indexes",
    "repair",
    "transactions",
    "verify",
]

__version__: str

def _directory_fates(
    path: FilePath, others: Sequence[FilePath], server_properties: FilePath | None
) -> list[
    tuple[
        str,
        Literal[
            "kept",
            "metadata",
            "stray",
            "unserved",
            "no_leader",
            "deleted",
            "set_aside",
            "refused",
            "offline",
            "missing",
            "created",
        ],
        str,
        str,
    ]
]:
    """Return the partition directories of a data directory, and what a broker does with each that it can load.

    A name, the fate, and what a broker expects and finds, if it is not *kept*; after them, the partitions that the
    metadata of the cluster has there without a directory; at the end, `meta.properties` if it is missing, cannot
    be loaded (*offline*), is that of another directory, or has another id than the metadata (*no_leader*). *others*:
    further data directories, one of which may have the metadata log of the broker.
    """

def _other_directories(path: FilePath, others: Sequence[FilePath]) -> list[str]:
    """Return which data directories may belong to the broker of *path*: their `meta.properties` has no other ids."""

def _has_segments(path: FilePath) -> bool:
    """Return whether a directory has a `.log` named by 20 digits, or one with `.swap`, which Kafka would rename."""

def _is_segment_file(name: str) -> bool:
    """Return whether a file name is the name of a file of a segment."""

def _is_topic(name: str) -> bool:
    """Return whether Kafka accepts the name of a topic."""

def _partition_parts(name: str) -> tuple[str, int, Literal["live", "delete", "future", "stray"]] | None:
    """Return topic, partition and state in the name of a partition directory; `None` for any other name."""

def _is_in_data_directory(path: FilePath) -> bool:
    """Return whether a partition directory is in a Kafka data directory."""

def _data_directory_entry(
    name: str, is_directory: bool
) -> Literal["live", "delete", "future", "stray", "known", "foreign"]:
    """Return what an entry of a data directory is, by its name: the state of a partition, or `known`, or `foreign`.

    A file or folder of a broker or of cordwood is known. A broker does not start with a foreign folder.
    """

def _offsets_in_words(start_offset: int, end_offset: int | None, /) -> str:
    """Return offsets as every message writes them: `offset 5`, `offsets 5 to 9`, `offset 5 and after`, `no offset`."""

def _nearest(name: str, known: Sequence[str], letters: int = 3) -> str | None:
    """Return the known name with the fewest edits, ignoring case; `None` if no name is near.

    A name is near if it has at most one edit for each *letters* letters of *name*; one edit is always allowed.
    """

def _wrong_writer_files(path: FilePath) -> list[str]:
    """Return the small files of a `LogWriter` in a partition directory that an opening makes again."""

def _log_config_from_properties(
    properties: dict[str, str], kind: PropertySource | None = None, overrides: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return the fields of a `LogConfig` that the properties of a broker or a topic, or overrides of a topic, have."""

def _log_config_of_topic(
    path: FilePath, metadata: FilePath | None, file: dict[str, str], overrides: dict[str, str]
) -> tuple[dict[str, Any], dict[str, str]] | None:
    """Return the stated fields of a `LogConfig` of a partition's topic, and the source of each setting by its name.

    `None` if the metadata is not there, or does not have the topic. *file*: the properties of a broker, which the
    metadata overrides, or of a topic, which override the metadata. The sources are `override`, `topic`, `broker`,
    `file` and `default`.
    """

def _log_config_checked(fields: dict[str, object]) -> dict[str, Any]:
    """Check fields of a `LogConfig`, alone and together, and return all fields with their values converted."""

def _log_config_to_properties(fields: dict[str, object]) -> dict[str, str]:
    """Return fields of a `LogConfig` under their topic names."""
