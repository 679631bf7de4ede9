"""The commands of `python -m cordwood.spark`."""

import logging
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as everybody calls it)

from cordwood._core import _local_path
from cordwood.cli.exit_codes import FAILED, USAGE, UsageError, exit_code_of, say, stop_when_unread
from cordwood.cli.moment import parse_time, with_unit
from cordwood.cli.once import CommandWithOptionsOnce
from cordwood.cli.settings import SETTINGS, assigned
from cordwood.cli.terminal import Column as Heading
from cordwood.cli.terminal import print_json, print_table
from cordwood.quantities import bytes_in_words, several
from cordwood.spark import errors, jar, jobs
from cordwood.spark.jobs.importing import check_sources
from cordwood.spark.jobs.json_lines import Row, write_jsonl
from cordwood.spark.jobs.outputs import new_output
from cordwood.spark.jobs.progress import ExportWatch, tasks_watched
from cordwood.spark.jobs.reading import checked
from cordwood.spark.jobs.session import session
from cordwood.spark.jobs.verifying import partitions_of
from cordwood.times import FORMS

__all__ = ["run"]

_PROGRAM = "python -m cordwood.spark"

app = typer.Typer(
    name=_PROGRAM,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)

_Path = Annotated[
    str, typer.Argument(help="A data directory, a partition directory, or a quoted glob of them.", show_default=False)
]
_Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option", metavar="KEY=VALUE", help="An option of the source, such as subscribe=orders. Repeatable."
    ),
]
_Since = Annotated[str | None, typer.Option(help=f"The same as startingTimestamp: {FORMS}.")]
_Until = Annotated[str | None, typer.Option(help="The same as endingTimestamp, in the same forms.")]
_Master = Annotated[
    str | None,
    typer.Option(help="Spark's master. By default from spark-submit or Spark's settings, otherwise local[*]."),
]
_Limit = Annotated[int, typer.Option(min=1, help="Maximum number of rows to print; -o writes all of them.")]
_Json = Annotated[bool, typer.Option("--json", help="One JSON object per line instead of a table.")]


def _no_stream(output: str | None) -> str | None:
    """Refuse `-`, which is standard output in other commands: here it would create a directory of that name."""
    if output == "-":
        raise typer.BadParameter("the output is a directory of Parquet files, which cannot go to standard output")
    return output


_Output = Annotated[
    str | None,
    typer.Option(
        "-o",
        "--output",
        callback=_no_stream,
        help="Write Parquet to this directory, which must be new; print nothing.",
    ),
]


@app.callback()
def cordwood_spark() -> None:
    """Jobs over whole directories of Kafka partitions, in Spark. They write to these directories only with --yes.

    \b
    python -m cordwood.spark segments /mnt/snapshot
    python -m cordwood.spark count /mnt/snapshot --by hour --option subscribe=orders
    python -m cordwood.spark export /mnt/snapshot /lake/orders --option subscribe=orders --since -2h
    python -m cordwood.spark verify /mnt/snapshot
    python -m cordwood.spark resolve-offsets /var/lib/kafka --option subscribe=orders

    On a cluster, give spark-submit a file with these lines, followed by the same arguments:

    \b
    import sys; from cordwood.spark.__main__ import main
    sys.exit(main())

    \b
    spark-submit --master spark://host:7077 jobs.py count /mnt/snapshot

    \b
    Exit codes: 0 done, 1 an error, 2 wrong usage, 130 Ctrl-C.
    """  # noqa: D301  (\b keeps the lines as they are)


@app.command(cls=CommandWithOptionsOnce)
@stop_when_unread
def segments(  # noqa: PLR0913, PLR0917  (a command's options)
    path: _Path,
    option: _Options = None,
    since: _Since = None,
    until: _Until = None,
    limit: _Limit = 1000,
    json: _Json = False,
    output: _Output = None,
    master: _Master = None,
) -> None:
    """Describe the segments: one row for each, with its range, bytes, times, codecs and the density of its index.

    \b
    python -m cordwood.spark segments /mnt/snapshot
    python -m cordwood.spark segments /mnt/snapshot --json | jq 'select(.indexState != "ok") | .segmentBaseOffset'
    python -m cordwood.spark segments /mnt/snapshot --option mode=DROPMALFORMED    skips damage
    """  # noqa: D301
    options = _options(option, since, until)
    if output is not None:
        new_output(output, [path])
    checked(path, options).check()
    with session("segments", master) as spark:
        rows = jobs.segments(spark, path, **options)
        order = [F.asc("topic"), F.asc("partition"), F.asc("segmentBaseOffset")]
        _give(spark, rows, order, limit, json, output)


@app.command(cls=CommandWithOptionsOnce)
@stop_when_unread
def count(  # noqa: PLR0913, PLR0917
    path: _Path,
    by: Annotated[Literal["partition", "key", "hour"], typer.Option(help="The group of a row.")] = "partition",
    option: _Options = None,
    since: _Since = None,
    until: _Until = None,
    limit: _Limit = 1000,
    json: _Json = False,
    output: _Output = None,
    master: _Master = None,
) -> None:
    """Count the records of each partition, of each key, or of each topic and hour (UTC).

    Gaps and control records are not counted, nor are aborted records with isolationLevel=read_committed. Keys are
    sorted by frequency, the most frequent first.

    \b
    python -m cordwood.spark count /mnt/snapshot
    python -m cordwood.spark count /mnt/snapshot --by key --option subscribe=orders --limit 20
    python -m cordwood.spark count /mnt/snapshot --by hour --option isolationLevel=read_committed --json
    """  # noqa: D301
    options = _options(option, since, until)
    if output is not None:
        new_output(output, [path])
    checked(path, options).check()
    with session("count", master) as spark:
        rows = jobs.count(spark, path, by, **options)
        order = {
            "partition": [F.asc("topic"), F.asc("partition")],
            "key": [F.desc("records"), F.asc("key")],
            "hour": [F.asc("topic"), F.asc("hour")],
        }
        _give(spark, rows, order[by], limit, json, output)


@app.command("rebuild-indexes", cls=CommandWithOptionsOnce)
@stop_when_unread
def rebuild_indexes(  # noqa: PLR0913, PLR0917
    path: _Path,
    option: _Options = None,
    assignments: Annotated[list[str] | None, SETTINGS] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Replace the files. Without this, only compare them.")] = False,
    limit: _Limit = 1000,
    json: _Json = False,
    output: _Output = None,
    master: _Master = None,
) -> None:
    """Rebuild indexes and producer snapshots from the logs. Without --yes, only print the files that differ.

    \b
    python -m cordwood.spark rebuild-indexes /mnt/snapshot
    python -m cordwood.spark rebuild-indexes /mnt/snapshot --set index.interval.bytes=1024 --yes
    python -m cordwood.spark rebuild-indexes /mnt/snapshot --option subscribe=orders --json

    Each partition is one task. With -o all files are written, also those that do not differ. A partition with an error
    is one row, and does not change the exit code.
    """  # noqa: D301
    options = _options(option, None, None)
    config = assigned(assignments) or None
    if output is not None:
        new_output(output, [path])
    checked(path, options).check()
    with session("rebuild-indexes", master) as spark:
        rows = jobs.rebuild_indexes(spark, path, config=config, dry_run=not yes, **options)
        if output is None:
            # `reason` is null for an error
            rows = rows.where(~F.col("reason").eqNullSafe("unchanged"))
        _give(spark, rows, [F.asc("topic"), F.asc("partition"), F.asc("file")], limit, json, output)


@app.command(cls=CommandWithOptionsOnce)
@stop_when_unread
def export(  # noqa: PLR0913, PLR0917
    path: _Path,
    output: Annotated[
        str,
        typer.Argument(
            callback=_no_stream, help="A directory that the driver and all executors can open.", show_default=False
        ),
    ],
    option: _Options = None,
    since: _Since = None,
    until: _Until = None,
    compression: Annotated[
        str, typer.Option(help="Compression of the Parquet files: zstd, snappy, gzip, lz4, none.")
    ] = "zstd",
    step_bytes: Annotated[
        int | None, typer.Option(min=1, help="Bytes of the log per step; by default 1 GiB per core.")
    ] = None,
    json: _Json = False,
    master: _Master = None,
) -> None:
    """Export records to Parquet, in directories topic=…/date=… (UTC), and check that all of them are there.

    It may be interrupted at any point: the same command continues where it stopped, loses no row and writes none twice.
    The offsets are fixed at the first start. Repeating a finished export only checks its files. The rows are the
    records from the first one at or after --since to the first one at or after --until (exclusive), in the log's order.

    The columns are key, value, topic, partition, offset, timestamp, timestampType and headers, which an import writes
    again (--option includeHeaders=false leaves the headers out).

    \b
    python -m cordwood.spark export /mnt/snapshot /lake/orders --option subscribe=orders
    python -m cordwood.spark export /mnt/snapshot /lake/orders --since 2024-05-01T10:00Z --until 2024-05-01T12:00Z
    python -m cordwood.spark export /mnt/snapshot /lake/payments --option isolationLevel=read_committed
    python -m cordwood.spark export /mnt/broken /lake/rest --option mode=DROPMALFORMED
    """  # noqa: D301
    options = _options(option, since, until)
    # a finished export does not need them
    if not Path(_local_path(output)).exists():
        checked(path, options).check()
    with session("export", master) as spark, ExportWatch(spark) as watch:
        try:
            done = jobs.export(
                spark, path, output, compression=compression, step_bytes=step_bytes, progress=watch, **options
            )
        except KeyboardInterrupt:
            say("interrupted; the same command continues from here")
            raise
    if json:
        print_json(asdict(done))
        return
    typer.echo(
        f"{done.output}: {several(done.rows, 'row')} in {several(done.files, 'file')}, {bytes_in_words(done.size)}; "
        f"{several(done.ranges, 'range')} of offsets exported, {done.skipped} from before; all counts agree with "
        "the log"
    )


@app.command("import", cls=CommandWithOptionsOnce)
@stop_when_unread
def import_(  # noqa: PLR0913, PLR0917
    source: Annotated[list[str], typer.Argument(help="Parquet files, or directories of them.", show_default=False)],
    path: Annotated[
        str, typer.Argument(help="A data directory, which may be new, or a partition directory.", show_default=False)
    ],
    topic: Annotated[str | None, typer.Option(help="The topic of all rows; by default the column topic.")] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=EXPRESSION",
            help="A column of the records as an SQL expression over the files' columns. Repeatable.",
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", metavar="KEY=VALUE", help="An option of a write, such as numPartitions=6. Repeatable."
        ),
    ] = None,
    step_bytes: Annotated[
        int | None, typer.Option(min=1, help="Bytes of the files per step; by default 256 MiB per core.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Import. Without this, only say what would be done.")] = False,
    json: _Json = False,
    master: _Master = None,
) -> None:
    """Import Parquet files: append a record for each row. Without --yes, only say what would be done.

    The columns key, value, topic, partition, timestamp and headers make a record; others are ignored. It may be
    interrupted at any point: the same command continues where it stopped, loses no row and writes none twice.
    Repeating a finished import does nothing.

    \b
    python -m cordwood.spark import /lake/orders /data --yes                  what export has written
    python -m cordwood.spark import day.parquet /data --topic orders --option numPartitions=6 --yes
    python -m cordwood.spark import /lake/events /data --topic events --column key=user_id \\
        --column 'value=to_json(struct(*))' --column 'timestamp=CAST(at AS TIMESTAMP)' --yes
    """  # noqa: D301
    options = _options(option, None, None)
    columns = _pairs("--column", column, "value=to_json(struct(*))")
    if topic is not None:
        options["topic"] = topic
    check_sources(source)
    with session("import", master) as spark, ExportWatch(spark) as watch:
        try:
            done = jobs.import_parquet(
                spark, source, path, columns=columns, step_bytes=step_bytes, dry_run=not yes, progress=watch, **options
            )
        except KeyboardInterrupt:
            say("interrupted; the same command continues from here")
            raise
    if json:
        print_json(asdict(done))
        return
    what = f"{several(done.rows, 'row')} of {several(done.files, 'file')}, {bytes_in_words(done.size)}"
    if done.damage_rows:
        what += f", {several(done.damage_rows, 'row')} for damage left out"
    how = f"{several(done.steps, 'step')}, {done.skipped} from before; columns {', '.join(done.columns)}"
    if done.ignored:
        how += f" (ignored: {', '.join(done.ignored)})"
    typer.echo(f"{done.path}: {what}; {how}{'; --yes imports them' if done.dry_run else ''}")


@app.command(cls=CommandWithOptionsOnce)
@stop_when_unread
def verify(  # noqa: PLR0913, PLR0917
    path: _Path,
    deep: Annotated[bool, typer.Option("--deep", help="Also decode all records.")] = False,
    limit: _Limit = 1000,
    json: _Json = False,
    output: _Output = None,
    master: _Master = None,
) -> None:
    """Check the files of all partitions, as `cordwood verify` does: one row for each finding.

    \b
    python -m cordwood.spark verify /mnt/snapshot
    python -m cordwood.spark verify /mnt/snapshot --json | jq 'select(.severity == "error") | .file'
    python -m cordwood.spark verify /mnt/snapshot -o /lake/findings
    """  # noqa: D301
    if output is not None:
        new_output(output, [path])
    partitions_of(path)
    with session("verify", master) as spark:
        rows = jobs.verify(spark, path, deep=deep)
        order = [F.asc("file"), F.asc("position"), F.asc("code")]
        _give(spark, rows, order, limit, json, output)


@app.command("resolve-offsets", cls=CommandWithOptionsOnce)
@stop_when_unread
def resolve_offsets(path: _Path, option: _Options = None, since: _Since = None, until: _Until = None) -> None:
    """Resolve options to offsets now, as JSON for startingOffsets and endingOffsets. Does not start Spark.

    \b
    python -m cordwood.spark resolve-offsets /var/lib/kafka --option subscribe=orders --since -2h
    """  # noqa: D301
    print_json(jobs.resolve_offsets(path, **_options(option, since, until)))


@app.command("jar", cls=CommandWithOptionsOnce)
@stop_when_unread
def print_jar() -> None:
    """Print the path of the jar with the data source in Java. Does not start Spark.

    \b
    spark-submit --jars "$(python -m cordwood.spark jar)" job.py
    """  # noqa: D301
    # for `--help`; without arguments `__main__` prints it, and needs no extra
    sys.stdout.write(f"{jar()}\n")


def run(argv: Sequence[str]) -> int:
    """Run a command. Returns the exit code."""
    warnings = _Warnings()
    logging.getLogger().addHandler(warnings)
    try:
        code = app(args=list(argv) or ["--help"], prog_name=_PROGRAM, standalone_mode=False)
    except errors.SparkLogError as error:
        return _exit_code_of(error)
    except PySparkException as error:
        return _exit_code_of(errors.parse(error) or error)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  (the outermost handler: a message, no traceback)
        return exit_code_of(error, argv)
    finally:
        logging.getLogger().removeHandler(warnings)
    return code if isinstance(code, int) else 0


class _Warnings(logging.Handler):
    """Prints warnings of the log in the format of the commands."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        # py4j logs every Ctrl-C to the root logger, with a traceback
        if record.name != "root":
            say(record.getMessage())


def _exit_code_of(error: errors.SparkLogError | PySparkException) -> int:
    if isinstance(error, errors.SparkLogError):
        say(error.sentence)
        return USAGE if error.code == errors.BAD_OPTION else FAILED
    if error.getCondition() == "JAVA_GATEWAY_EXITED":
        say("Spark found no supported Java: install 17 or newer, and set JAVA_HOME if it is not on the path")
        return FAILED
    # the rest is the JVM's stack trace
    say(f"Spark: {str(error).partition('JVM stacktrace')[0]}")
    return FAILED


def _options(given: list[str] | None, since: str | None, until: str | None) -> dict[str, Any]:
    options: dict[str, Any] = {**_pairs("--option", given, "subscribe=orders")}
    for flag, name, time in (("--since", "startingTimestamp", since), ("--until", "endingTimestamp", until)):
        if time is None:
            continue
        if any(name.lower() == other.lower() for other in options):
            raise UsageError(f"{flag} and --option {name}: expected one of them")
        options[name] = with_unit(parse_time(flag, time))
    return options


def _pairs(flag: str, given: list[str] | None, example: str) -> dict[str, str]:
    """Return the values by name. Spark's names do not distinguish upper and lower case, so none may occur in both."""
    pairs: dict[str, str] = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{flag} {text}: expected KEY=VALUE, such as {example}")
        if any(name.lower() == other.lower() for other in pairs):
            raise UsageError(f"{flag} {name}: expected at most once, found it again")
        pairs[name] = value
    return pairs


def _give(  # noqa: PLR0913, PLR0917
    spark: SparkSession, rows: DataFrame, order: Sequence[Column], limit: int, json: bool, output: str | None
) -> None:
    """Print rows, or let the executors write them."""
    with tasks_watched(spark):
        if output is not None:
            rows.write.mode("error").parquet(output)
            return
        times = [name for name, kind in rows.dtypes if kind == "timestamp"]
        written = {name: F.date_format(name, "yyyy-MM-dd'T'HH:mm:ss.SSSX") for name in times}
        found = rows.orderBy(*order).withColumns(written).limit(limit + 1).collect()
    shown = [{name: _plain(value) for name, value in row.asDict().items()} for row in found[:limit]]
    if json:
        sys.stdout.flush()
        write_jsonl(shown, sys.stdout.buffer)
    else:
        _print(rows.columns, shown)
    if len(found) > limit:
        say(f"there are more than {limit} rows: --limit shows more, -o writes all of them")


def _print(columns: Sequence[str], rows: Sequence[Row]) -> None:
    headings: list[Heading] = [
        (name, "right" if any(isinstance(row[name], int | float) for row in rows) else "left") for name in columns
    ]
    print_table(several(len(rows), "row"), headings, [[_cell(row[name]) for name in columns] for row in rows])


def _plain(value: object) -> object:
    # the type that Spark returns for binary depends on its version and settings
    return bytes(value) if isinstance(value, bytearray) else value


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bytes():
            return value.decode(errors="backslashreplace")
        case list():
            return " ".join(map(str, value))
        case float():
            return f"{value:.1f}"
        case _:
            return str(value)
