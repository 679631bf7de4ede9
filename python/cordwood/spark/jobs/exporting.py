"""Export of a log to partitioned Parquet, which can be interrupted at any point and repeated."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as everybody calls it)

from cordwood import ConfigError, CordwoodError
from cordwood._core import _local_path, _open_log, _SourceOptions
from cordwood.spark.jobs.counting import counts
from cordwood.spark.jobs.errors import ExportError
from cordwood.spark.jobs.export_run import Export, Progress, carry_out
from cordwood.spark.jobs.journal import Counts, Journal, Plan
from cordwood.spark.jobs.outputs import local_output
from cordwood.spark.jobs.ranges import Step, plan_steps
from cordwood.spark.jobs.reading import Option, Paths, checked, load, parallelism, ranges_of, write_offsets

__all__ = ["export"]

_PIECE_BYTES = 128 << 20
_PIECES_A_CORE = 8

# needed in every file, for its directory and its counts
_PLACING = ("topic", "partition", "offset", "timestamp")

# these change no row, and may differ at the next start
_SAME_ROWS = (
    "cleanupPolicy",
    "maxPartitionBytes",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxBatchRows",
    "maxBatchBytes",
    "maxLogBatchBytes",
    "io",
)

# these may be set at a later start, for the remaining steps: planned data may have been deleted or damaged
# since
_RELAXED = {"failOnDataLoss": "false", "mode": "DROPMALFORMED"}

_WRITER = {
    # Spark's default, INT96, is deprecated and ends in 2262
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # a task has few dates: several open files instead of a sort of all rows by date
    "spark.sql.maxConcurrentOutputFileWriters": "8",
}

# by arithmetic, because date functions use the session's time zone; -1 ms means no timestamp
_DATE = """
    CASE WHEN unix_micros(timestamp) <> -1000 THEN date_from_unix_date(CAST(
        (unix_micros(timestamp) - pmod(unix_micros(timestamp), 86400000000)) DIV 86400000000 AS INT))
    END
"""


def export(  # noqa: PLR0913  (options, by name)
    spark: SparkSession,
    path: Paths,
    output: str | os.PathLike[str],
    *,
    compression: str = "zstd",
    step_bytes: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    **options: Option,
) -> Export:
    """Export records to Parquet under *output*, in directories `topic=…/date=…` (the UTC date of the timestamp).

    The offsets are fixed at the first start, and the work is divided into steps, one Spark job each. If it is
    interrupted at any point and started again with the same arguments, it continues after the last finished step; no
    row is lost or duplicated. Repeating a finished export reads no log: it checks its files and returns. Newer records
    are another export, with this one's `ending_offsets` as `startingOffsets`, to another output. Each step's files are
    compared with the log's own counts before they are published; at the end all footers are compared once more.

    *output*: a path that is the same for the driver and the executors: a local disk with a local master, otherwise a
    shared file system. It contains a directory `_cordwood`, which Spark and pyarrow ignore; a glob should be
    `topic=*/date=*/*.parquet`. *step_bytes*: bytes of the log per step; by default 1 GiB per core. *progress* is called
    at the start and after each step. *options*: the options of the source; `failOnDataLoss=false` and
    `mode=DROPMALFORMED` may be added at a later start, for the remaining steps, after retention or damage stopped the
    export. The columns are the source's and `headers`, unless `includeHeaders=False` or `columns` leaves them
    out; `topic`, `partition`, `offset` and `timestamp` are always written. Records without a timestamp have the date
    `__HIVE_DEFAULT_PARTITION__`, which readers show as null.

    *Errors*: `ExportError` for an output that is in use or was begun with other arguments, and for counts that differ;
    `OutputError`, which is also a `ConfigError`, for an output that belongs to another program or to Kafka, or is not a
    path; whatever the source raises.
    """
    given = _with_headers(checked(path, options), options)
    if given.table != "records":
        raise ConfigError(
            f"table={given.table}: expected records, because only records are exported (write other tables with Spark)"
        )
    # absolute, for the plan; links are not resolved
    paths = [os.path.abspath(_local_path(one)) for one in given.paths]  # noqa: PTH100
    given = given.replaced({"paths": json.dumps(paths)})
    target = local_output(output, given.paths)
    target.mkdir(parents=True, exist_ok=True)
    journal = Journal(target)
    with journal.locked():
        plan = journal.plan()
        if plan is None:
            plan = _planned(spark, given, step_bytes)
            journal.begin(plan)
        else:
            journal.relaxed = _relaxed(plan, given, target)

        def write(step: Step, staging: Path) -> None:
            _write(spark, _reading(given, step), staging, compression)

        def count(step: Step) -> Counts:
            rows = counts(spark, _reading(given, step).replaced({"columns": None}), warns=False).collect()
            return {(row.topic, row.partition): row.records for row in rows}

        return carry_out(journal, plan, write, count, progress or _silent)


def _with_headers(given: _SourceOptions, options: Mapping[str, Option]) -> _SourceOptions:
    """Add the headers of records, unless the options choose the columns: without them an import is not a copy."""
    if any(name.lower() in {"includeheaders", "columns"} for name in options):
        return given
    return given.replaced({"includeHeaders": "true"})


def _planned(spark: SparkSession, options: _SourceOptions, step_bytes: int | None) -> Plan:
    ranges = ranges_of(options)
    piece_bytes = min(options.max_partition_bytes or _PIECE_BYTES, step_bytes or sys.maxsize)
    return Plan(
        source=list(options.paths),
        options=_deciding(options),
        topic_ids=_topic_ids(part.path for part in ranges),
        starting_offsets=write_offsets({part.named: part.start_offset for part in ranges}),
        ending_offsets=write_offsets({part.named: part.end_offset for part in ranges}),
        steps=plan_steps(
            ranges,
            piece_bytes=piece_bytes,
            step_bytes=step_bytes or _PIECES_A_CORE * piece_bytes * parallelism(spark),
            io=options.io,
        ),
    )


def _reading(options: _SourceOptions, step: Step) -> _SourceOptions:
    """Restrict a read to a step."""
    named = [part.named for part in step.ranges]
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(named):
        topics.setdefault(topic, []).append(partition)
    columns = options.columns
    return options.replaced(
        {
            "subscribe": None,
            "subscribePattern": None,
            "assign": json.dumps(topics),
            "startingTimestamp": None,
            "startingOffsetsByTimestamp": None,
            "startingOffsets": write_offsets({part.named: part.start_offset for part in step.ranges}),
            "endingTimestamp": None,
            "endingOffsetsByTimestamp": None,
            "endingOffsets": write_offsets({part.named: part.end_offset for part in step.ranges}),
            "columns": None if columns is None else ",".join(dict.fromkeys([*columns, *_PLACING])),
        }
    )


def _write(spark: SparkSession, options: _SourceOptions, staging: Path, compression: str) -> None:
    rows = load(spark, options).withColumn("date", F.expr(_DATE))
    with _settings(spark, _WRITER):
        # not percent-encoded: Hadoop does not decode such a URL
        rows.write.partitionBy("topic", "date").option("compression", compression).parquet(f"file://{staging}")


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def _relaxed(plan: Plan, options: _SourceOptions, output: Path) -> dict[str, str]:
    """Refuse arguments that differ from the first start; return the options that are only relaxed."""
    relaxed = {}
    wanted = {"path": ", ".join(plan.source), **plan.options}
    found = {"path": ", ".join(options.paths), **_deciding(options)}
    for name in sorted(wanted.keys() | found.keys()):
        was, now = wanted.get(name), found.get(name)
        if was is None and now is not None and now == _RELAXED.get(name):
            relaxed[name] = now
        elif was != now:
            message = (
                f"the export to {output} was begun with {_said(name, was)}, not with {_said(name, now)}: use the first "
                "arguments again, or choose another output"
            )
            raise ExportError(message, code="export_arguments", file=str(output), expected=was, found=now)
    for folder, was in plan.topic_ids.items():
        now = _topic_ids([folder]).get(folder)
        if now is not None and now != was:
            message = f"{folder} now belongs to another topic: its id was {was} when the export began, and is {now}"
            raise ExportError(message, code="export_source_changed", file=folder, expected=was, found=now)
    return relaxed


def _said(name: str, value: str | None) -> str:
    return f"no {name}" if value is None else f"{name}={value}"


def _deciding(options: _SourceOptions) -> dict[str, str]:
    """Format the options that determine the rows, without the paths."""
    written = options.texts
    return {name: written[name] for name in sorted(written) if name not in {*_SAME_ROWS, "path", "paths"}}


def _topic_ids(folders: Iterable[str]) -> dict[str, str]:
    """Read the topic ids of the partition directories that have one."""
    ids = {}
    for folder in folders:
        # a missing directory is reported when it is read
        with suppress(CordwoodError, OSError):
            if (found := _open_log(folder).topic_id) is not None:
                ids[folder] = found
    return ids


def _silent(_: Progress) -> None:
    pass
