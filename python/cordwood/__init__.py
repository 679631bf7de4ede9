"""Kafka's log as a library: open, search and read partition directories with no broker.

>>> import cordwood as cw
>>> log = cw.Log("tests/golden/01-plain/orders-0")
>>> log.log_start_offset, log.log_end_offset
(0, 1500)
"""

from collections.abc import Mapping, Sequence
from importlib.metadata import version

from cordwood._core import (
    AbortedTransaction,
    Gap,
    Location,
    Log,
    LogDir,
    OffsetIndex,
    OffsetPosition,
    Record,
    Records,
    Scan,
    ScanStats,
    Segment,
    Segments,
    Split,
    TimeIndex,
    TimestampOffset,
    TransactionIndex,
)
from cordwood.config import LogConfig
from cordwood.errors import (
    ConfigError,
    CordwoodError,
    CorruptLogError,
    ForkedHandleError,
    InternalError,
    LockedError,
    LogChangedError,
    LogNotFoundError,
    OffsetOutOfRangeError,
    PoisonedError,
    UnsupportedFormatError,
)
from cordwood.types import TimestampType

__all__ = [
    "AbortedTransaction",
    "ConfigError",
    "CordwoodError",
    "CorruptLogError",
    "ForkedHandleError",
    "Gap",
    "InternalError",
    "Location",
    "LockedError",
    "Log",
    "LogChangedError",
    "LogConfig",
    "LogDir",
    "LogNotFoundError",
    "OffsetIndex",
    "OffsetOutOfRangeError",
    "OffsetPosition",
    "PoisonedError",
    "Record",
    "Records",
    "Scan",
    "ScanStats",
    "Segment",
    "Segments",
    "Split",
    "TimeIndex",
    "TimestampOffset",
    "TimestampType",
    "TransactionIndex",
    "UnsupportedFormatError",
    "__version__",
]

__version__ = version("cordwood")

# The classes come from Rust as they are; these two are containers by behaviour, and `isinstance` should know it.
Mapping.register(LogDir)
Sequence.register(Segments)
