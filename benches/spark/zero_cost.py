"""A data source that decodes nothing: shows Spark's own cost for the rows of a Python data source."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

SCHEMA = {"key": "binary", "value": "binary", "offset": "bigint", "timestamp": "timestamp"}
# the limits of cordwood's batches
MAX_ROWS, MAX_BYTES = 20_000, 8 << 20
_SIZES = {"key": 16, "value": 200}


def prebuilt(columns: list[str], rows: int) -> pa.RecordBatch:
    """A batch of `rows` rows like the generated log's."""

    def binary(size: int) -> pa.Array:
        ends = np.arange(rows + 1, dtype=np.int32) * np.int32(size)
        content = np.frombuffer(np.random.default_rng(7).bytes(rows * size), dtype=np.uint8)
        return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(ends), pa.py_buffer(content)])

    arrays = {
        name: binary(_SIZES[name]) if name in _SIZES else pa.array(np.arange(rows, dtype=np.int64)) for name in columns
    }
    if "timestamp" in arrays:
        arrays["timestamp"] = arrays["timestamp"].cast(pa.timestamp("us", tz="UTC"))
    return pa.RecordBatch.from_pydict(arrays)


class ZeroCost(DataSource):
    """`rows` rows of `columns` in `splits` splits."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "zero-cost"

    def schema(self) -> str:
        """The columns of the options."""
        return ", ".join(f"{name} {SCHEMA[name]}" for name in self.options["columns"].split(","))

    def reader(self, schema: StructType) -> _Reader:
        """A reader, one per action."""
        return _Reader(schema.fieldNames(), int(self.options["rows"]), int(self.options["splits"]))


class _Reader(DataSourceReader):
    def __init__(self, columns: list[str], rows: int, splits: int) -> None:
        self.columns, self.rows, self.splits = columns, rows, splits

    def partitions(self) -> list[InputPartition]:
        ends = [self.rows * i // self.splits for i in range(self.splits + 1)]
        return [InputPartition(end - start) for start, end in pairwise(ends)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        row_bytes = sum(_SIZES.get(name, 0) + (4 if name in _SIZES else 8) for name in self.columns)
        rows = min(MAX_ROWS, MAX_BYTES // row_bytes)
        batch = prebuilt(self.columns, rows)
        for first in range(0, partition.value, rows):
            yield batch.slice(0, min(rows, partition.value - first))
