"""The row that a log refuses, by its number, and the option with the limit. Does not use Spark."""

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from cordwood import ConfigError, InvalidRecordError, LogWriter, RecordTooLargeError
from cordwood.spark.errors import SparkLogError

__all__ = ["REFUSALS", "refusal"]

REFUSALS = (InvalidRecordError, RecordTooLargeError, ConfigError)
"""What an append raises for rows; the last for a time before 1970, and for a header without a name, which it places."""

_Refusal: TypeAlias = InvalidRecordError | RecordTooLargeError | ConfigError

# the settings with the limit, by the argument of the error
_SETTINGS = {
    "max.message.bytes": ("max.message.bytes",),
    "segment.bytes": ("segment.bytes",),
    "timestamp": ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms"),
}


@dataclass(frozen=True)
class _Refused:
    row: int
    error: _Refusal


def refusal(  # noqa: PLR0913  (what names the row, by name)
    error: _Refusal,
    writer: LogWriter,
    rows: pa.Table,
    *,
    topic: str,
    partition: int,
    first_row: int,
) -> SparkLogError:
    """Return the error for rows that *writer* has refused with *error*: with the number of the first of them.

    *writer*: of a log that is discarded afterwards, because other rows are appended in the search. *first_row*: the
    number of the first of *rows* among the task's rows for this partition.
    """
    if isinstance(error, ConfigError) and error.argument != "timestamp":
        return SparkLogError.of(error, topic=topic, partition=partition)
    refused = _first_refused(writer, rows)
    where = ""
    if refused is not None:
        where = f"row {first_row + refused.row} (from 0) of the task's rows for this partition: "
        error = refused.error
    limits = () if isinstance(error, ConfigError) else _SETTINGS.get(error.argument or "", ())
    settings = [f"kafka.{name}" for name in limits]
    advice = f"; the limit is set by {' and '.join(settings)}" if settings else ""
    found = SparkLogError.of(error)
    return SparkLogError(str(found.code), f"{where}{found.reason}{advice}", topic=topic, partition=partition)


def _first_refused(writer: LogWriter, rows: pa.Table) -> _Refused | None:
    """Search the first row that is refused alone; `None` if only several rows together are."""
    start, end = 0, rows.num_rows
    while start < end:
        middle = start + max((end - start) // 2, 1)
        error = _error_of(writer, rows.slice(start, middle - start))
        if error is None:
            start = middle
        elif middle - start == 1:
            return _Refused(start, error)
        else:
            end = middle
    return None


def _error_of(writer: LogWriter, rows: pa.Table) -> _Refusal | None:
    try:
        writer.append_arrow(rows)
    except REFUSALS as error:
        return error
    return None
