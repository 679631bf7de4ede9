"""Kafka's log as a library: open, search, read and write partition directories with no broker.

>>> import cordwood as cw
>>> log = cw.Log("tests/golden/01-plain/orders-0")
>>> log.log_start_offset, log.log_end_offset
(0, 1500)
"""

from collections.abc import Mapping, Sequence
from importlib.metadata import version

from cordwood._core import (
    AbortedTransaction,
    Appended,
    DamagedRange,
    FileChange,
    FlushMode,
    Location,
    Log,
    LogDir,
    LogWriter,
    OffsetGap,
    OffsetIndex,
    OffsetIndexWriter,
    OffsetPosition,
    PathInfo,
    PlannedSegment,
    RebuiltIndex,
    Record,
    Records,
    RecoveryCut,
    RecoveryPlan,
    RetentionPlan,
    Scan,
    ScanStats,
    Segment,
    Segments,
    SegmentSplit,
    Split,
    TimeIndex,
    TimeIndexWriter,
    TimestampOffset,
    TransactionIndex,
    TransactionIndexWriter,
    classify,
    plan_retention,
)
from cordwood.config import LogConfig
from cordwood.errors import (
    ClosedError,
    ConfigError,
    CordwoodError,
    CorruptLogError,
    ForkedHandleError,
    InternalError,
    InvalidRecordError,
    LockedError,
    LogChangedError,
    LogNotFoundError,
    OffsetOutOfRangeError,
    PoisonedError,
    RecordTooLargeError,
    UnsupportedFormatError,
)
from cordwood.types import TimestampType

__all__ = [
    "AbortedTransaction",
    "Appended",
    "ClosedError",
    "ConfigError",
    "CordwoodError",
    "CorruptLogError",
    "DamagedRange",
    "FileChange",
    "FlushMode",
    "ForkedHandleError",
    "InternalError",
    "InvalidRecordError",
    "Location",
    "LockedError",
    "Log",
    "LogChangedError",
    "LogConfig",
    "LogDir",
    "LogNotFoundError",
    "LogWriter",
    "OffsetGap",
    "OffsetIndex",
    "OffsetIndexWriter",
    "OffsetOutOfRangeError",
    "OffsetPosition",
    "PathInfo",
    "PlannedSegment",
    "PoisonedError",
    "RebuiltIndex",
    "Record",
    "RecordTooLargeError",
    "Records",
    "RecoveryCut",
    "RecoveryPlan",
    "RetentionPlan",
    "Scan",
    "ScanStats",
    "Segment",
    "SegmentSplit",
    "Segments",
    "Split",
    "TimeIndex",
    "TimeIndexWriter",
    "TimestampOffset",
    "TimestampType",
    "TransactionIndex",
    "TransactionIndexWriter",
    "UnsupportedFormatError",
    "__version__",
    "classify",
    "plan_retention",
]

__version__ = version("cordwood")

# These Rust classes behave as containers; registering them makes `isinstance` agree.
Mapping.register(LogDir)
Sequence.register(Segments)
