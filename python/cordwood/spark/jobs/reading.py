"""The source for the jobs: options from Python values, fixed offsets, and the table of segments."""

import json
import os
from collections.abc import Mapping, Sequence
from typing import TypeAlias
from weakref import WeakSet

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from cordwood._core import _Query, _SourceOptions
from cordwood.spark.jobs.ranges import Range
from cordwood.spark.source import LogDataSource

__all__ = [
    "Option",
    "Paths",
    "checked",
    "load",
    "parallelism",
    "ranges_of",
    "resolve_offsets",
    "segments",
    "texts",
    "write_offsets",
]

Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A data directory, a partition directory, or several."""

Option: TypeAlias = str | int | bool | Mapping[str, object] | Sequence[object]
"""The value of an option of the source. Values other than strings and numbers are written as JSON."""

_CONNECT_PARALLELISM = 16


class JobsDataSource(LogDataSource):
    """The source under another name, so that the registration of `cordwood` does not change."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "cordwood_jobs"


_registered: dict[type[LogDataSource], WeakSet[SparkSession]] = {}


def segments(spark: SparkSession, path: Paths, **options: Option) -> DataFrame:
    """Describe the segments: one row for each, with its range, bytes, time span, codecs and the density of its index.

    `offsetGap` is the number of offsets between a segment's end and the base offset of the next: offsets that
    compaction removed, or lost records.

    *options*: the options of the source. *Cost*: the batch headers are read, by the executors; nothing is decompressed.
    """
    return load(spark, checked(path, options).replaced({"table": "segments"}))


def resolve_offsets(path: Paths, **options: Option) -> dict[str, str]:
    """Resolve the start and end of a read to the options `startingOffsets` and `endingOffsets`.

    Each action on a DataFrame is planned separately, so two actions on a directory that a broker is writing to have
    different ends. With `spark.read.format("cordwood").options(**resolve_offsets(path)).load(path)` they have the same.
    All options of the source that choose offsets and times are accepted and resolved; do not pass them to the read
    again. Needs no Spark session.

    >>> from cordwood.spark import jobs
    >>> jobs.resolve_offsets("tests/golden/01-plain/orders-0", startingTimestamp=1_700_000_010_000)
    {'startingOffsets': '{"orders":{"0":488}}', 'endingOffsets': '{"orders":{"0":1500}}'}
    """
    ranges = ranges_of(checked(path, options))
    return {
        "startingOffsets": write_offsets({part.named: part.start_offset for part in ranges}),
        "endingOffsets": write_offsets({part.named: part.end_offset for part in ranges}),
    }


def write_offsets(offsets: Mapping[tuple[str, int], int]) -> str:
    """Format offsets by topic and partition, in a fixed order.

    >>> write_offsets({("orders", 1): 7, ("orders", 0): 23})
    '{"orders":{"0":23,"1":7}}'
    """
    nested: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        nested.setdefault(topic, {})[str(partition)] = offset
    return _json(nested)


def checked(path: Paths, options: Mapping[str, Option]) -> _SourceOptions:
    """Check options given as Python values."""
    paths = [path] if isinstance(path, str | os.PathLike) else path
    return _SourceOptions({**texts(options), "paths": _json([os.fspath(one) for one in paths])})


def texts(options: Mapping[str, Option]) -> dict[str, str]:
    """Format options as strings, as Spark passes them.

    >>> texts({"failOnDataLoss": False, "minPartitions": 4, "assign": {"orders": [0]}})
    {'failOnDataLoss': 'false', 'minPartitions': '4', 'assign': '{"orders":[0]}'}
    """
    return {name: value if isinstance(value, str) else _json(value) for name, value in options.items()}


def ranges_of(options: _SourceOptions) -> list[Range]:
    """Resolve the options now: a range of offsets for each partition, in order."""
    return [
        Range(found.topic, found.partition, found.path, found.start_offset, found.end_offset)
        for found in _Query(options).ranges()
    ]


def load(spark: SparkSession, options: _SourceOptions, source: type[LogDataSource] = JobsDataSource) -> DataFrame:
    """Return the DataFrame of a read."""
    sessions = _registered.setdefault(source, WeakSet())
    if spark not in sessions:
        spark.dataSource.register(source)
        sessions.add(spark)
    return spark.read.format(source.name()).options(**options.texts).load()


def parallelism(spark: SparkSession) -> int:
    """Return the approximate number of concurrent tasks: Spark's default parallelism, or a guess with Spark Connect."""
    try:
        return spark.sparkContext.defaultParallelism
    except PySparkException:
        return _CONNECT_PARALLELISM


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
