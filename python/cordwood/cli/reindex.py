"""`cordwood reindex`: compare indexes and snapshots with the log, and rebuild them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from cordwood import CordwoodError, DerivedFile, LogDir, RebuildReport, classify, rebuild_indexes
from cordwood.cli.exit_codes import FAILED, NothingFoundError, error_in_words, say
from cordwood.cli.limits import DEFAULT_MAX_BATCH_BYTES
from cordwood.cli.path import parse_path
from cordwood.cli.progress import byte_progress
from cordwood.cli.record_range import MaxBatchBytes
from cordwood.cli.selection import has_log
from cordwood.cli.settings import PROPERTIES, SETTINGS, interval_in_words, settings_of
from cordwood.cli.terminal import Column, print_json, print_table, print_text
from cordwood.quantities import several

__all__ = ["reindex"]

_COLUMNS: list[Column] = [
    ("file", "left"),
    ("reason", "left"),
    ("old size", "right"),
    ("new size", "right"),
    ("first difference", "right"),
    ("old bytes kept in", "left"),
]


def reindex(  # noqa: PLR0913, PLR0917  (a command's options)
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", parser=parse_path, help="Partition directories, and data directories."),
    ],
    assignments: Annotated[list[str] | None, SETTINGS] = None,
    properties: Annotated[Path | None, PROPERTIES] = None,
    threads: Annotated[int, typer.Option(min=1, help="How many segments are read at the same time.")] = 1,
    max_batch_bytes: MaxBatchBytes = DEFAULT_MAX_BATCH_BYTES,
    yes: Annotated[bool, typer.Option("--yes", help="Replace the files. Without this, only compare them.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of tables.")] = False,
) -> None:
    """Rebuild indexes and producer snapshots from the log. Without --yes, only print what differs.

    Computes .index, .timeindex, .txnindex and .snapshot from the .log files, byte for byte as Kafka's recovery does (a
    snapshot has the same entries, in ascending order), and compares them with the files. With --yes, files that differ
    are replaced, and the old ones are kept in quarantine/ in the partition directory. The .log files are never changed.
    Stop the broker first: its lock is an error with --yes.

    The entries of an index depend on index.interval.bytes: from --set, the topic's settings in the metadata of the data
    directory or --properties, else from the existing indexes, else Kafka's default.

    \b
    cordwood reindex orders-0                    print which files differ
    cordwood reindex orders-0 --yes              replace them
    cordwood reindex /var/lib/kafka --threads 4  all partitions of a data directory
    cordwood reindex orders-0 --set index.interval.bytes=1024

    \b
    Reasons: missing    there is no such file
             untrimmed  right entries and space after them, as while a broker runs
             differs    a valid file with other contents
             expired    a snapshot without producers that were idle: usual
             damaged    a file that is not valid by itself
             stray      a snapshot that cannot exist; it is moved to quarantine/

    A difference does not change the exit code, as in cordwood recover. An error in a partition, such as a damaged
    log, does: the others are still processed.
    """  # noqa: D301
    has_settings = properties is not None or assignments
    partitions = [partition for path in paths for partition in _partitions(path)]
    reports: list[RebuildReport] = []
    failed: list[Path] = []
    with byte_progress(sum(map(_log_bytes, partitions)), to_file=False) as show:
        done = 0
        for partition in partitions:
            try:
                config = settings_of(partition, properties, assignments).config if has_settings else None
                report = rebuild_indexes(
                    partition, config=config, dry_run=not yes, threads=threads, max_batch_bytes=max_batch_bytes
                )
                reports.append(report)
            except (CordwoodError, OSError) as error:
                if len(partitions) == 1:
                    raise
                failed.append(partition)
                say(error_in_words(error, "reindex"))
            done += _log_bytes(partition)
            show(done)
    if json:
        print_json({"dry_run": not yes, "partitions": [_document(report) for report in reports]})
    else:
        for report in reports:
            _say(report)
        if not yes and not all(report.is_clean for report in reports):
            print_text("nothing was written; add --yes to replace these files", style="dim")
    if failed:
        names = ", ".join(partition.name for partition in failed)
        say(f"{len(failed)} of {several(len(partitions), 'partition')} could not be rebuilt: {names}")
        raise typer.Exit(FAILED)


def _partitions(path: Path) -> Iterator[Path]:
    if classify(path).kind != "data_directory":
        yield path
        return
    directory = LogDir(path)
    found = [path / name for name in directory if _may_have_log(directory, name)]
    if not found:
        raise NothingFoundError(f"{path} contains no partition with a segment")
    yield from found


def _may_have_log(directory: LogDir, name: str) -> bool:
    try:
        return has_log(directory, name)
    except (CordwoodError, OSError):
        # the rebuild has the same error, and names the partition
        return True


def _log_bytes(partition: Path) -> int:
    try:
        return sum(file.stat().st_size for file in partition.glob("*.log"))
    except OSError:
        # a running broker deletes files
        return 0


def _differing(report: RebuildReport) -> list[DerivedFile]:
    return [file for file in report.files if file.reason != "unchanged"]


def _document(report: RebuildReport) -> dict[str, Any]:
    return {
        "path": report.path,
        "is_clean": report.is_clean,
        "index_interval_bytes": report.index_interval_bytes,
        "interval_source": report.interval_source,
        "log_end_offset": report.log_end_offset,
        "files": [
            {
                "file": file.file,
                "reason": file.reason,
                "old_size": file.old_size,
                "new_size": file.new_size,
                "first_difference": file.first_difference,
                "quarantine": file.quarantine,
            }
            for file in report.files
        ],
    }


def _say(report: RebuildReport) -> None:
    interval = interval_in_words(report)
    differing = _differing(report)
    if not differing:
        print_text(f"{report.path}: {several(len(report.files), 'file')} as the log gives them ({interval})")
        return
    words = "differ from what the log gives" if report.dry_run else "were rebuilt"
    count = f"{len(differing):,} of {several(len(report.files), 'file')}"
    columns = _COLUMNS[:-1] if report.dry_run else _COLUMNS
    print_table(
        f"{report.path}: {count} {words} ({interval})", columns, [_row(file)[: len(columns)] for file in differing]
    )


def _row(file: DerivedFile) -> list[str]:
    numbers = [file.old_size, file.new_size, file.first_difference]
    cells = ["" if number is None else f"{number:,}" for number in numbers]
    kept = "" if file.quarantine is None else f"quarantine/{Path(file.quarantine).name}"
    return [Path(file.file).name, file.reason, *cells, kept]
