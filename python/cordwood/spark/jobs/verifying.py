"""The verification of partitions by the executors: each partition, and so each segment, once."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

import cordwood as cw
from cordwood import Finding
from cordwood.spark.jobs.reading import Paths, parallelism

__all__ = ["partitions_of", "verify"]

_PATHS = StructType([StructField("path", StringType(), nullable=False)])
_FINDINGS = StructType(
    [
        StructField("path", StringType()),
        StructField("severity", StringType()),
        StructField("code", StringType()),
        StructField("file", StringType()),
        StructField("position", LongType()),
        StructField("end_position", LongType()),
        StructField("start_offset", LongType()),
        StructField("end_offset", LongType()),
        StructField("expected", StringType()),
        StructField("found", StringType()),
        StructField("evidence", ArrayType(StringType(), containsNull=False)),
        StructField("kafka", StringType()),
        StructField("advice", StringType()),
    ]
)


def verify(spark: SparkSession, path: Paths, *, deep: bool = False) -> DataFrame:
    """Check every rule of the files of partitions, as `cordwood.verify` does: a row for each finding.

    *path*: a data directory, a partition directory, or several, which the driver lists and the executors open. With
    *deep* all records are decoded too.

    The columns are the attributes of a `cordwood.Finding`, after `path`, the directory of the partition. A finding
    about a file of the data directory has no `path`, and is returned once. Nothing but findings passes through Spark.
    A partition is one task's work, because its segments are compared with each other.

    *Errors*: `ConfigError` and `LogNotFoundError` for a path that has no partition.
    """
    partitions = partitions_of(path)
    rows = spark.createDataFrame([(directory,) for directory in dict.fromkeys(partitions)], _PATHS)
    tasks = min(len(partitions), 4 * parallelism(spark))

    def found(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for directory in batch.column("path").to_pylist():
                yield from _findings(directory, deep=deep)

    # partitions of one data directory find the same about its files
    return rows.repartition(max(tasks, 1), "path").mapInArrow(found, _FINDINGS).distinct()


def partitions_of(path: Paths) -> list[str]:
    """List the partitions to verify."""
    paths = [path] if isinstance(path, str | os.PathLike) else path
    return [directory for one in paths for directory in _partitions(Path(one).absolute())]


def _partitions(path: Path) -> list[str]:
    if cw.classify(path).kind == "data_directory":
        return [str(path / name) for name in cw.LogDir(path, include=["future"])]
    return [str(path)]


def _findings(directory: str, *, deep: bool) -> Iterator[pa.RecordBatch]:
    findings = cw.verify(directory, deep=deep).findings
    if findings:
        rows = [_row(directory, finding) for finding in findings]
        yield pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(_FINDINGS))


def _row(directory: str, finding: Finding) -> dict[str, object]:
    is_inside = directory in {finding.file, str(Path(finding.file).parent)}
    names = [field.name for field in _FINDINGS.fields if field.name != "path"]
    return {"path": directory if is_inside else None} | {name: getattr(finding, name) for name in names}
