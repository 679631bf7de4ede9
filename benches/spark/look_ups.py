"""The timed functions: cordwood's, and functions of the same kinds and types without a look-up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql.functions import arrow_udf, pandas_udf

from generate import RECORDS_PER_MS, START_TIMESTAMP

# a prime, so that its multiples visit the targets unsorted and none twice
STRIDE = 2_654_435_761
LOCATION = "segment bigint, batch_base_offset bigint, position int, size int"
_FIELDS = {"segment": pa.int64(), "batch_base_offset": pa.int64(), "position": pa.int32(), "size": pa.int32()}


def function(spec: dict[str, Any]) -> Callable[..., Any]:
    """The column function that `spec` names."""
    if spec["variant"] == "zero-cost":
        return _zero_cost(spec["flavour"])
    import cordwood.spark  # noqa: PLC0415 - not for the arms without it

    factory = {"locate": cordwood.spark.locate, "offset_for_time": cordwood.spark.offset_for_time}[spec["function"]]
    return factory(spec["path"], kind=spec["flavour"])


def _zero_cost(flavour: str) -> Callable[..., Any]:
    def of_arrow(it: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for array in it:
            columns = [array.cast(type_, safe=False) for type_ in _FIELDS.values()]
            yield pa.StructArray.from_arrays(columns, names=list(_FIELDS))

    def of_series(it: Iterator[pd.Series]) -> Iterator[pd.DataFrame]:
        for series in it:
            yield pd.DataFrame(
                {name: series.to_numpy().astype(type_.to_pandas_dtype()) for name, type_ in _FIELDS.items()}
            )

    # actual types, because Spark does not accept the strings of postponed annotations
    if flavour == "arrow":
        of_arrow.__annotations__ = {"it": Iterator[pa.Array], "return": Iterator[pa.Array]}
        return arrow_udf(of_arrow, LOCATION)
    of_series.__annotations__ = {"it": Iterator[pd.Series], "return": Iterator[pd.DataFrame]}
    return pandas_udf(of_series, LOCATION)


def native(spec: dict[str, Any]) -> dict[str, Callable[[], None]]:
    """The library's call alone, on the same targets in chunks as large as Spark's batches."""
    import cordwood as cw  # noqa: PLC0415 - the same

    log = cw.Log(spec["path"], io="pread")
    call = log.locate_many if spec["function"] == "locate" else log.offsets_for_times

    def asking(order: str) -> Callable[[], None]:
        numbers, step = _numbers(spec, order), spec["records_per_batch"]
        chunks = [pa.array(numbers[first : first + step]) for first in range(0, len(numbers), step)]

        def ask() -> None:
            for chunk in chunks:
                call(chunk)

        return ask

    return {order: asking(order) for order in ("sorted", "random")}


def _numbers(spec: dict[str, Any], order: str) -> np.ndarray:
    ids = np.arange(spec["lookups"], dtype=np.int64)
    if spec["function"] == "locate":
        many, first = spec["rows"], 0
    else:
        many, first = spec["rows"] // RECORDS_PER_MS, START_TIMESTAMP
    return first + (ids * many // spec["lookups"] if order == "sorted" else ids * STRIDE % many)
