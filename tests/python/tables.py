"""Conversion of Arrow tables to plain Python values, for comparisons."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from corpus import Expected

DEFAULT_COLUMNS = ["offset", "timestamp", "timestamp_type", "key", "value", "headers"]
MORE_COLUMNS = [
    "topic",
    "partition",
    "leader_epoch",
    "producer_id",
    "producer_epoch",
    "sequence",
    "is_transactional",
    "is_control",
    "codec",
    "magic",
    "batch_base_offset",
    "position",
    "segment_base_offset",
    "key_size",
    "value_size",
]


def column(table: pa.Table, name: str) -> list[Any]:
    """A column's values; timestamps as int milliseconds, headers as pairs."""
    values = table[name]
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("ms", tz=values.type.tz)).cast(pa.int64())
    out = values.to_pylist()
    if name == "headers":
        return [None if row is None else [(h["key"], h["value"]) for h in row] for row in out]
    return out


def or_minus_one(values: Iterable[Any]) -> list[Any]:
    """Replace null by -1, which Kafka writes for a missing epoch, producer, sequence or time."""
    return [-1 if value is None else value for value in values]


def rows(table: pa.Table, names: list[str] | None = None) -> list[tuple[Any, ...]]:
    """Rows in the order of `names`, by default the table's own columns."""
    names = table.column_names if names is None else names
    return list(zip(*(column(table, name) for name in names), strict=True)) if table.num_rows else []


def expected_rows(records: Iterable[Expected]) -> list[tuple[Any, ...]]:
    """The values of the default columns for these records."""
    return [
        (
            r.offset,
            None if r.timestamp == -1 else r.timestamp,
            r.timestamp_type,
            r.key,
            r.value,
            list(r.headers) or None,
        )
        for r in records
    ]


def offsets(table: pa.Table) -> list[int]:
    return column(table, "offset")


def first_difference(got: list[Any], wanted: list[Any]) -> str:
    """The first difference of two long lists, in a line; empty if they are equal."""
    for place, (left, right) in enumerate(zip(got, wanted, strict=False)):
        if left != right:
            return f"row {place}: got {str(left)[:300]}, wanted {str(right)[:300]}"
    return "" if len(got) == len(wanted) else f"got {len(got)} rows, wanted {len(wanted)}"
