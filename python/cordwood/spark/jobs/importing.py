"""Import of Parquet files into logs, which can be interrupted at any point and repeated."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pyarrow import ArrowInvalid, parquet
from pyarrow.types import is_struct
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as everybody calls it)
from pyspark.sql.types import StructType

from cordwood import Log, LogWriter
from cordwood._core import _is_topic, _local_path
from cordwood.spark.active_session import activate
from cordwood.spark.jobs.errors import ImportRowsError
from cordwood.spark.jobs.export_run import Progress
from cordwood.spark.jobs.reading import Option, Paths, parallelism, texts
from cordwood.spark.source import SinkDataSource
from cordwood.spark.write.commit import recover
from cordwood.spark.write.journal import Journal
from cordwood.spark.write.options import MAX_PARTITIONS, SinkOptions
from cordwood.spark.write.partitions import Partitions, partitions_of_topics
from cordwood.spark.write.rows import COLUMNS, check_columns

__all__ = ["Import", "check_sources", "import_parquet"]

_STEP_BYTES_A_CORE = 256 << 20
_AT_ONCE = 8
# null in records; of an export with mode=PERMISSIVE
_DAMAGE = "_error"


@dataclass(frozen=True)
class Import:
    """The result of an import, or what one would do."""

    path: str
    """The data directory."""

    rows: int
    """Rows of all files that become records: all but those for damage."""

    damage_rows: int
    """Rows for damage, of an export with `mode=PERMISSIVE`. They are left out."""

    files: int
    """Parquet files."""

    size: int
    """Size of these files, bytes."""

    steps: int
    """Steps: a step is imported as a whole or not at all."""

    skipped: int
    """Steps that earlier calls have imported."""

    columns: list[str]
    """The columns that records are made of."""

    ignored: list[str]
    """Other columns of the files."""

    dry_run: bool
    """Whether nothing was written."""


@dataclass(frozen=True)
class _Input:
    path: str
    size: int
    rows: int
    damage_rows: int

    @property
    def records(self) -> int:
        return self.rows - self.damage_rows


def import_parquet(  # noqa: PLR0913  (options, by name)
    spark: SparkSession,
    source: Paths,
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    step_bytes: int | None = None,
    dry_run: bool = True,
    progress: Callable[[Progress], None] | None = None,
    **options: Option,
) -> Import:
    """Append the rows of Parquet files to logs: a record for each row.

    *source*: a Parquet file, a directory of them, or several. The columns `key`, `value`, `topic`, `partition`,
    `timestamp` and `headers` make a record, as with `df.write.format("cordwood")`; *columns* are SQL expressions by the
    name of such a column, over the columns of the files: `{"value": "to_json(struct(*))"}`. Other columns are ignored.
    The records have the time of the column as `CreateTime`, or the time of the append if the topic has the setting
    `message.timestamp.type=LogAppendTime`. The rows for damage of an export with `mode=PERMISSIVE` are left out.
    *path* and *options* are as for a write, such as `topic="orders"`; a new topic has the partitions that its rows
    name, or `numPartitions`. With *dry_run* nothing is written.

    The rows of an export have the order that they had in their logs, by the columns `topic`, `partition` and `offset`;
    others have the order of their files, by name, and in them. The files are imported in steps of *step_bytes* (256 MiB
    for each core), which are ordered by the names of the files. If it is interrupted at any point and started again
    with the same arguments, it continues after the last finished step: no row is lost, and none is written twice. A
    finished import does nothing. *progress* is called at the start and after each step.

    *Errors*: `ImportRowsError` if files or arguments are others than when the import began, and for files that are not
    Parquet; what a write raises.
    """
    roots = check_sources(source)
    inputs = _inputs(roots)
    given = {**texts(options), "path": os.fspath(path)}
    frame = _frame(spark, roots, inputs, columns)
    ignored = [name for name in frame.columns if name not in (*COLUMNS, "offset")]
    frame = frame.drop(*ignored)
    check_columns(frame.schema)
    checked = SinkOptions.of(given, has_topics="topic" in frame.columns)
    steps = _steps(inputs, step_bytes or _STEP_BYTES_A_CORE * parallelism(spark))
    name, version = _names(roots, checked, given, columns, steps)
    if not dry_run:
        recover(checked.root, [] if checked.topic is None else [checked.topic], checked.configs())
    done = _finished(Journal(checked.root), name, version) + 1
    used = [column for column in frame.columns if column in COLUMNS]
    result = Import(
        checked.root,
        sum(one.records for one in inputs),
        sum(one.damage_rows for one in inputs),
        len(inputs),
        sum(one.size for one in inputs),
        len(steps),
        done,
        used,
        ignored,
        dry_run,
    )
    if dry_run:
        return result
    if done == 0 and "partition" in used and checked.partitions is None and checked.partition is None:
        _create_topics(frame, checked)
    spark.dataSource.register(SinkDataSource)
    activate(spark)
    report = _reports(steps, done, progress)
    report(done)
    for number in range(done, len(steps)):
        rows = _frame(spark, roots, steps[number], columns).drop(*ignored)
        sink = rows.orderBy(*_order(rows)).write.format(SinkDataSource.name()).mode("append").options(**given)
        sink.option("txnAppId", f"{name}.{version}").option("txnVersion", str(number)).save()
        report(number + 1)
    return result


def _create_topics(frame: DataFrame, options: SinkOptions) -> None:
    """Create new topics with the partitions that the rows name: a write creates only the partitions of its option."""
    topic = F.col("topic") if options.topic is None else F.lit(options.topic)
    counts = frame.groupBy(topic.alias("topic")).agg(F.max("partition").alias("last")).collect()
    existing, configs = partitions_of_topics(options.root, options.topic), options.configs()
    for name, last in counts:
        # rows without a partition, or with a wrong place, are left to the write
        if last is None or not _is_topic(name or "") or not 0 <= last < MAX_PARTITIONS:
            continue
        partitions = existing.get(name) or Partitions(options.root, name)
        # an import that was interrupted here has left logs without records
        is_empty = all(Log(options.directory(name, number)).log_end_offset == 0 for number in partitions.here)
        if partitions.stated is None and is_empty:
            Path(options.root).mkdir(parents=True, exist_ok=True)
            for number in range(last + 1):
                LogWriter(options.directory(name, number), config=configs.of(name)).close()


def check_sources(source: Paths) -> list[str]:
    """Return the absolute paths of the files and directories. *Errors*: `ImportRowsError` if one does not exist."""
    paths = [source] if isinstance(source, str | os.PathLike) else list(source)
    roots = [os.path.abspath(_local_path(os.fspath(one))) for one in paths]  # noqa: PTH100  (links are not resolved)
    for root in roots:
        if not Path(root).exists():
            raise ImportRowsError(f"{root}: there is no such file or directory", code="import_missing", file=root)
    return roots


def _inputs(roots: Iterable[str]) -> list[_Input]:
    """List the files, sorted by name, with their sizes and numbers of rows."""
    found: list[Path] = []
    for root in map(Path, roots):
        if root.is_dir():
            for folder, folders, names in os.walk(root):
                folders[:] = [name for name in folders if not name.startswith(("_", "."))]
                found += [Path(folder, name) for name in names if not name.startswith(("_", "."))]
        else:
            found.append(root)
    if not found:
        where = ", ".join(roots)
        raise ImportRowsError(f"{where}: expected Parquet files, found none", code="import_missing", file=where)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(_input, sorted(set(found))))


def _input(path: Path) -> _Input:
    try:
        with parquet.ParquetFile(path) as file:
            return _Input(str(path), path.stat().st_size, file.metadata.num_rows, _damage_rows(file))
    except ArrowInvalid as error:
        message = f"{path} is not a complete Parquet file ({error}): move it away, or give the other files"
        raise ImportRowsError(message, code="import_file", file=str(path)) from error


def _damage_rows(file: parquet.ParquetFile) -> int:
    kinds = {field.name: field.type for field in file.schema_arrow}
    kind = kinds.get(_DAMAGE)
    if kind is None or not is_struct(kind) or not _is_of_damage(field.name for field in kind):
        return 0
    column = file.read([_DAMAGE]).column(_DAMAGE)
    return len(column) - int(column.null_count)


def _frame(
    spark: SparkSession, roots: list[str], inputs: Iterable[_Input], columns: Mapping[str, str] | None
) -> DataFrame:
    """Read files. Directories such as `topic=orders` are columns, if the files are in one directory."""
    reader = spark.read.option("mergeSchema", "true")
    if len(roots) == 1 and Path(roots[0]).is_dir():
        reader = reader.option("basePath", f"file://{roots[0]}")
    frame = reader.parquet(*(f"file://{one.path}" for one in inputs))
    # directories have values of inferred types: a topic may look like a number
    if "topic" in frame.columns:
        frame = frame.withColumn("topic", F.col("topic").cast("string"))
    kind = frame.schema[_DAMAGE].dataType if _DAMAGE in frame.columns else None
    if isinstance(kind, StructType) and _is_of_damage(kind.fieldNames()):
        frame = frame.where(F.col(_DAMAGE).isNull())
    return frame.withColumns({name: F.expr(expression) for name, expression in (columns or {}).items()})


def _is_of_damage(fields: Iterable[str]) -> bool:
    """Whether a column with these fields describes damage, as that of an export does, and is no other of this name."""
    return {"file", "startPosition", "endPosition"} <= set(fields)


def _order(frame: DataFrame) -> list[str]:
    if "offset" in frame.columns:
        return [name for name in ("topic", "partition", "offset") if name in frame.columns]
    return ["_metadata.file_path", "_metadata.row_index"]


def _steps(inputs: list[_Input], step_bytes: int) -> list[list[_Input]]:
    """Divide files into steps of at most this size, or of one file."""
    steps: list[list[_Input]] = []
    size = 0
    for one in inputs:
        if not steps or size + one.size > step_bytes:
            steps.append([])
            size = 0
        steps[-1].append(one)
        size += one.size
    return steps


def _names(
    roots: list[str],
    options: SinkOptions,
    given: Mapping[str, str],
    columns: Mapping[str, str] | None,
    steps: list[list[_Input]],
) -> tuple[str, str]:
    """Return what names an import, and what must not change before it is finished, as digests."""
    name = _digest([roots, options.topic, options.partition])
    files = [[(one.path, one.size, one.rows) for one in step] for step in steps]
    return f"import-{name}", _digest([sorted(given.items()), sorted((columns or {}).items()), files])


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:32]


def _finished(journal: Journal, name: str, version: str) -> int:
    """Return the number of the last step that was imported, -1 before the first.

    *Errors*: `ImportRowsError` if other arguments or files were imported under this name.
    """
    for path, commit in journal.finished():
        if commit.query is not None and commit.query.startswith(f"{name}.") and commit.query != f"{name}.{version}":
            message = (
                "the arguments or the files are not those with which this import began; use those again, or import "
                f"other files by their paths (to import all of them, and those of before again, remove {path})"
            )
            raise ImportRowsError(message, code="import_changed", file=str(path))
    return journal.last_batch(f"{name}.{version}")


def _reports(
    steps: list[list[_Input]], skipped: int, progress: Callable[[Progress], None] | None
) -> Callable[[int], None]:
    start = time.monotonic()
    sizes = [sum(one.size for one in step) for step in steps]
    rows = [sum(one.records for one in step) for step in steps]

    def report(done: int) -> None:
        here = sum(sizes[skipped:done])
        rate = here / (time.monotonic() - start) if here else 0.0
        if progress is not None:
            progress(Progress(done, len(steps), sum(sizes[:done]), sum(sizes), sum(rows[:done]), rate))

    return report
