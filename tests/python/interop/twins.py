"""One list of steps, done by Kafka's UnifiedLog and by `LogWriter`, and what is compared of the two directories.

A step is a mapping as `tests/interop` takes it (README.md there): `do` and its arguments, bytes in base64.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from kafka_classes import Row

import cordwood as cw

COLUMNS = ["offset", "timestamp_type", "timestamp", "leader_epoch", "key", "value", "headers"]


def our_lines(log: cw.Log) -> list[str]:
    """Every record, as Kafka's side writes it."""
    table = log.scan(columns=COLUMNS).to_arrow()
    at = table.schema.get_field_index("timestamp")
    table = table.set_column(at, "timestamp", table["timestamp"].cast(pa.int64()))
    return [
        str(
            Row(
                row["offset"],
                row["timestamp_type"],
                -1 if row["timestamp"] is None else row["timestamp"],
                row["leader_epoch"],
                row["key"],
                row["value"],
                [(header["key"], header["value"]) for header in row["headers"] or ()],
            )
        )
        for row in table.to_pylist()
    ]


def contents(partition: Path, *patterns: str) -> dict[str, bytes]:
    """The files of these patterns by name."""
    return {path.name: path.read_bytes() for pattern in patterns for path in sorted(partition.glob(pattern))}
