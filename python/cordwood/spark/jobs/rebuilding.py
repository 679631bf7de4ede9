"""Indexes and snapshots, compared with the logs and rebuilt by the executors."""

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from cordwood import CordwoodError, LogConfig
from cordwood import rebuild_indexes as rebuild
from cordwood.spark.jobs.reading import Option, Paths, checked, ranges_of

__all__ = ["rebuild_indexes"]

_PARTITIONS = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("path", StringType()),
    ]
)
_FILES = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("file", StringType()),
        StructField("reason", StringType()),
        StructField("oldSize", LongType()),
        StructField("newSize", LongType()),
        StructField("firstDifference", LongType()),
        StructField("quarantine", StringType()),
        StructField("error", StringType()),
    ]
)


def rebuild_indexes(
    spark: SparkSession,
    path: Paths,
    *,
    config: Mapping[str, str] | None = None,
    dry_run: bool = True,
    **options: Option,
) -> DataFrame:
    """Compare `.index`, `.timeindex`, `.txnindex` and `.snapshot` with the `.log` files: a row for each file.

    Each partition is one task, which reads each segment once; `cordwood.rebuild_indexes` describes the columns
    `reason`, `oldSize`, `newSize`, `firstDifference` and `quarantine`. A partition that cannot be processed, such as
    one with a damaged log, is one row with its path as `file` and the `error`. With `dry_run=False` each action on the
    DataFrame replaces the files that differ; a task that runs a second time finds them replaced, and reports
    `unchanged`.

    *config*: settings by Kafka's names, such as `{"index.interval.bytes": "1024"}`; without them the interval is found
    from the existing indexes. *options*: the options of the source that select topics and partitions. The directories
    must be at the same paths on all executors.
    """
    partitions = [(part.topic, part.partition, part.path) for part in ranges_of(checked(path, options))]
    settings = None if config is None else dict(config)
    if settings is not None:
        # wrong settings are an error here and not in each task
        LogConfig.from_properties(settings)
    rows = spark.createDataFrame(partitions, _PARTITIONS).repartition(max(1, len(partitions)), "path")
    schema = to_arrow_schema(_FILES)

    def process(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for partition in batch.to_pylist():
                yield pa.RecordBatch.from_pylist(_files_of(partition, settings, dry_run=dry_run), schema=schema)

    return rows.mapInArrow(process, _FILES)


def _files_of(
    partition: dict[str, object], settings: dict[str, str] | None, *, dry_run: bool
) -> list[dict[str, object]]:
    named = {"topic": partition["topic"], "partition": partition["partition"]}
    config = None if settings is None else LogConfig.from_properties(settings)
    try:
        report = rebuild(str(partition["path"]), config=config, dry_run=dry_run)
    except (CordwoodError, OSError) as error:
        return [{**named, "file": partition["path"], "error": str(error)}]
    return [
        {
            **named,
            "file": file.file,
            "reason": file.reason,
            "oldSize": file.old_size,
            "newSize": file.new_size,
            "firstDifference": file.first_difference,
            "quarantine": file.quarantine,
        }
        for file in report.files
    ]
