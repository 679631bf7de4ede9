"""The part of cordwood that is written in Rust.

Terms: an *offset* is logical and absolute; a *position* is in bytes from the start of a `.log` file (or of the file
that the text names); a *timestamp* is in milliseconds since the epoch, -1 if there is none. Ranges are half-open,
`[start, end)`. Results are immutable objects with attributes. Only `LogWriter` and the index writers write to files.

An argument of the wrong type is a `TypeError`, a value that is not allowed is a `ConfigError`; both name the argument.
Any method that reads or writes files can raise an `OSError`. One that reads a log can also raise a `CorruptLogError`,
an `UnsupportedFormatError` or a `LogChangedError`. *Errors* lists what a method raises beyond that, and these errors
where their cause needs a word.

The examples run in the root directory of the repository; `cw` is `cordwood`.
"""

from collections.abc import Sequence
from typing import Any

from cordwood._stubs.arguments import FilePath, PropertySource
from cordwood._stubs.directory import LogDir, PathInfo, classify
from cordwood._stubs.index import AbortedTransaction, OffsetIndex, OffsetPosition, TimeIndex, TransactionIndex
from cordwood._stubs.index_writers import OffsetIndexWriter, TimeIndexWriter, TransactionIndexWriter
from cordwood._stubs.log import Location, Log, OffsetGap, TimestampOffset
from cordwood._stubs.plans import (
    FileChange,
    RebuiltIndex,
    RecoveryCut,
    RecoveryPlan,
    RetentionPlan,
    SegmentSplit,
    plan_retention,
)
from cordwood._stubs.record import Appended, FlushMode, Record
from cordwood._stubs.scan import DamagedRange, Records, Scan, ScanStats
from cordwood._stubs.segments import PlannedSegment, Segment, Segments, Split
from cordwood._stubs.writer import LogWriter

__all__ = [
    "AbortedTransaction",
    "Appended",
    "DamagedRange",
    "FileChange",
    "FlushMode",
    "Location",
    "Log",
    "LogDir",
    "LogWriter",
    "OffsetGap",
    "OffsetIndex",
    "OffsetIndexWriter",
    "OffsetPosition",
    "PathInfo",
    "PlannedSegment",
    "RebuiltIndex",
    "Record",
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
    "TransactionIndex",
    "TransactionIndexWriter",
    "_has_segments",
    "_is_segment_file",
    "_log_config_checked",
    "_log_config_from_properties",
    "_log_config_to_properties",
    "_nearest",
    "_partition_name",
    "classify",
    "plan_retention",
]

def _has_segments(path: FilePath) -> bool:
    """Return whether a directory has a `.log` named by 20 digits, or one with `.swap`, which Kafka would rename."""

def _is_segment_file(name: str) -> bool:
    """Return whether a file name is that of a file of a segment."""

def _partition_name(name: str) -> tuple[str, int] | None:
    """Return the topic and the partition in the name of a live partition directory; `None` for any other name."""

def _nearest(name: str, known: Sequence[str], letters: int = 3) -> str | None:
    """Return the known name with the fewest edits, ignoring case; `None` if no name is near.

    A name is near if it has at most one edit for each *letters* letters of *name*; one edit is always allowed.
    """

def _log_config_from_properties(
    properties: dict[str, str], kind: PropertySource | None = None, overrides: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return the fields of a `LogConfig` from the properties of a broker or a topic, and overrides of a topic."""

def _log_config_checked(fields: dict[str, object]) -> dict[str, Any]:
    """Check fields of a `LogConfig`, alone and together, and return all fields with their values converted."""

def _log_config_to_properties(fields: dict[str, object]) -> dict[str, str]:
    """Return fields of a `LogConfig` under their topic names."""
