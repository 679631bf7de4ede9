"""Kafka's log as a library: open, search, read and write partition directories with no broker.

>>> import cordwood as cw
>>> log = cw.Log("tests/golden/01-plain/orders-0")
>>> log.log_start_offset, log.log_end_offset
(0, 1500)

Results are immutable values: equal if their fields are, and fit for `pickle`, `copy` and other processes.

>>> import copy
>>> copy.deepcopy(log.locate(7)) == log.locate(7), log.locate(7) in {log.locate(7)}
(True, True)
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cordwood._core import (
    AbortedTransaction,
    Appended,
    CarvedPiece,
    CarvedRun,
    CarveReport,
    ClusterMetadata,
    CommittedOffset,
    CompactedSegment,
    Compaction,
    CopyReport,
    DamagedRange,
    DerivedFile,
    Difference,
    Dump,
    DumpRows,
    FileChange,
    Finding,
    FirstDifference,
    FlushMode,
    KafkaLoad,
    LoadAction,
    LoadedFile,
    LoadedLog,
    LoadedSegment,
    LoadFailure,
    LoadWarning,
    Location,
    Log,
    LogDir,
    LogWriter,
    LostOffsets,
    LostRange,
    OffsetGap,
    OffsetIndex,
    OffsetIndexWriter,
    OffsetPosition,
    OtherForm,
    PathInfo,
    PlannedSegment,
    Position,
    Producer,
    ProducerState,
    RebuildReport,
    RebuiltIndex,
    Record,
    RecordPlace,
    Records,
    RecoveryCut,
    RecoveryPlan,
    RepairAction,
    RepairPlan,
    Replica,
    RetentionPlan,
    Scan,
    ScanStats,
    Segment,
    Segments,
    SegmentSplit,
    Split,
    Table,
    TimeIndex,
    TimeIndexWriter,
    TimestampOffset,
    Transaction,
    TransactionIndex,
    TransactionIndexWriter,
    Unprotected,
    Verification,
    WriterMetrics,
    __version__,
    carve,
    classify,
    consumer_groups,
    consumer_offsets,
    copy,
    diff,
    dump,
    metadata,
    metadata_records,
    open_transactions,
    plan_compaction,
    plan_kafka_load,
    plan_retention,
    rebuild_indexes,
    repair,
    transactions,
    verify,
)
from cordwood.errors import (
    ClosedError,
    ConfigError,
    CordwoodError,
    CorruptLogError,
    ForkedHandleError,
    InternalError,
    InvalidProducerEpochError,
    InvalidRecordError,
    LockedError,
    LogChangedError,
    LogNotFoundError,
    OffsetOutOfRangeError,
    OutOfOrderSequenceError,
    PoisonedError,
    RecordTooLargeError,
    UnsupportedFormatError,
)
from cordwood.types import TimestampType

# imported when they are used: their modules import others that take longer than all else here
if TYPE_CHECKING:
    from cordwood.config import LogConfig
    from cordwood.follow import Follow
    from cordwood.retention import RetentionTimer, retention_timer

__all__ = [
    "AbortedTransaction",
    "Appended",
    "CarveReport",
    "CarvedPiece",
    "CarvedRun",
    "ClosedError",
    "ClusterMetadata",
    "CommittedOffset",
    "CompactedSegment",
    "Compaction",
    "ConfigError",
    "CopyReport",
    "CordwoodError",
    "CorruptLogError",
    "DamagedRange",
    "DerivedFile",
    "Difference",
    "Dump",
    "DumpRows",
    "FileChange",
    "Finding",
    "FirstDifference",
    "FlushMode",
    "Follow",
    "ForkedHandleError",
    "InternalError",
    "InvalidProducerEpochError",
    "InvalidRecordError",
    "KafkaLoad",
    "LoadAction",
    "LoadFailure",
    "LoadWarning",
    "LoadedFile",
    "LoadedLog",
    "LoadedSegment",
    "Location",
    "LockedError",
    "Log",
    "LogChangedError",
    "LogConfig",
    "LogDir",
    "LogNotFoundError",
    "LogWriter",
    "LostOffsets",
    "LostRange",
    "OffsetGap",
    "OffsetIndex",
    "OffsetIndexWriter",
    "OffsetOutOfRangeError",
    "OffsetPosition",
    "OtherForm",
    "OutOfOrderSequenceError",
    "PathInfo",
    "PlannedSegment",
    "PoisonedError",
    "Position",
    "Producer",
    "ProducerState",
    "RebuildReport",
    "RebuiltIndex",
    "Record",
    "RecordPlace",
    "RecordTooLargeError",
    "Records",
    "RecoveryCut",
    "RecoveryPlan",
    "RepairAction",
    "RepairPlan",
    "Replica",
    "RetentionPlan",
    "RetentionTimer",
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
    "TimestampType",
    "Transaction",
    "TransactionIndex",
    "TransactionIndexWriter",
    "Unprotected",
    "UnsupportedFormatError",
    "Verification",
    "WriterMetrics",
    "__version__",
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
    "retention_timer",
    "transactions",
    "verify",
]

# These Rust classes behave as containers; registering them makes `isinstance` agree.
Mapping.register(LogDir)
Sequence.register(Segments)


_MODULES = {
    "Follow": "cordwood.follow",
    "LogConfig": "cordwood.config",
    "RetentionTimer": "cordwood.retention",
    "retention_timer": "cordwood.retention",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401  (any name)
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    found = getattr(import_module(_MODULES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
