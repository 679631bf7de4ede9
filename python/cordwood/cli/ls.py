"""`cordwood ls`: list the partitions of a data directory, or the segments of a partition."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

import cordwood
from cordwood import CordwoodError, Log, LogDir, LogNotFoundError, Segment, classify
from cordwood._core import _partition_parts
from cordwood.cli.exit_codes import FAILED, NothingFoundError, UsageError, error_in_words, say
from cordwood.cli.limits import DEFAULT_MAX_BATCH_BYTES
from cordwood.cli.log_warnings import silent_log
from cordwood.cli.missing_segments import missing_in_words, missing_segments
from cordwood.cli.others import Other, others_in, others_in_words
from cordwood.cli.path import parse_path
from cordwood.cli.record_range import MaxBatchBytes
from cordwood.cli.segment_files import segment_files
from cordwood.cli.terminal import Column, print_json, print_table, print_text
from cordwood.disk_usage import disk_usage
from cordwood.quantities import bytes_in_words, several
from cordwood.times import in_words

__all__ = ["ls"]

Sort = Literal["name", "size", "time"]

_PARTITION_COLUMNS: list[Column] = [
    ("partition", "left"),
    ("on disk", "right"),
    ("log", "right"),
    ("start", "right"),
    ("end", "right"),
    ("segments", "right"),
    ("modified", "left"),
    ("contents", "left"),
    ("notes", "text"),
]
_TOPIC_COLUMNS: list[Column] = [
    ("topic", "left"),
    ("on disk", "right"),
    ("log", "right"),
    ("partitions", "right"),
    ("modified", "left"),
    ("contents", "left"),
    ("notes", "text"),
]
_SEGMENT_COLUMNS: list[Column] = [
    ("base", "right"),
    ("end", "right"),
    ("size", "right"),
    ("largest time", "left"),
    ("index", "right"),
    ("timeindex", "right"),
    ("txnindex", "right"),
]


def ls(  # noqa: PLR0913, PLR0917  (a command's options)
    paths: Annotated[
        list[Path],
        typer.Argument(
            parser=parse_path,
            metavar="PATH…",
            help="Data directories, such as all of a broker, partition directories, or .log files of a partition.",
        ),
    ],
    sort: Annotated[
        Sort,
        typer.Option(
            help="name (of segments: the base offset), size (on disk, largest first) or time (of the last change, of "
            "segments of the newest record; newest first)."
        ),
    ] = "name",
    is_reversed: Annotated[bool, typer.Option("-r", "--reverse", help="Reverse the order.")] = False,
    by: Annotated[Literal["partition", "topic"], typer.Option(help="A row for each.")] = "partition",
    is_all: Annotated[
        bool,
        typer.Option("--all", help="Also partitions that are being deleted or moved: -delete, -future, -stray."),
    ] = False,
    max_batch_bytes: MaxBatchBytes = DEFAULT_MAX_BATCH_BYTES,
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")] = False,
) -> None:
    """List the partitions or topics of data directories, or the segments of a partition.

    The partitions of several data directories are in one list. On disk are all files of a partition: logs, indexes,
    snapshots, quarantine/. Records are not read: contents are unchecked unless the directory cannot be opened. A last
    line counts what is not in the table. Offsets that no segment has are named, unless the log is compacted; headers of
    batches are read for that, where offsets are missing.

    \b
    cordwood ls /var/lib/kafka                         size, first and end offset of every partition
    cordwood ls /var/lib/kafka --by topic --sort size  which topics fill the disk
    cordwood ls /var/lib/kafka --all --sort time       what has changed last, deleted partitions too
    cordwood ls /var/lib/kafka/orders-0                its segments, with the number of entries of each index
    cordwood ls /var/lib/kafka --json | jq '.partitions[] | select(.size > 1e9) | .name'
    """  # noqa: D301
    order = _Order(sort, is_reversed=is_reversed)
    with silent_log():
        directories, logs = _opened_paths(paths, max_batch_bytes, is_all=is_all)
        if logs and (by == "topic" or is_all):
            raise UsageError(
                f"{logs[0].log.path} is a partition directory: --by topic and --all are for data directories"
            )
        documents = [_segments(listed, order) for listed in logs]
        partitions = [_partition(directory, name) for directory in directories for name in directory]
        if directories:
            documents.append(_partitions(directories, partitions, order, by_topic=by == "topic"))
        if json:
            print_json(documents[0] if len(documents) == 1 else documents)
        else:
            _print(logs, directories, documents, by_topic=by == "topic")
        _fail_for(partitions)


class _Listed(NamedTuple):
    """A partition whose segments are listed."""

    log: Log
    base_offsets: list[int] | None
    """The segments; `None`: all."""


class _Order:
    """The order of rows."""

    def __init__(self, sort: Sort, *, is_reversed: bool) -> None:
        self._sort = sort
        self._is_reversed = is_reversed

    def rows(self, rows: list[dict[str, Any]], *, size: str, time: str) -> list[dict[str, Any]]:
        """Return rows in order, which are in the order of names. *size*, *time*: the fields with these."""
        if self._sort != "name":
            field = size if self._sort == "size" else time

            def key(row: dict[str, Any]) -> int:
                value = row.get(field)
                return value if isinstance(value, int) else -1

            rows = sorted(rows, key=key, reverse=True)
        return rows[::-1] if self._is_reversed else rows


def _opened_paths(paths: list[Path], max_batch_bytes: int, *, is_all: bool) -> tuple[list[LogDir], list[_Listed]]:
    """Open the data directories and the partitions, each once."""
    files = segment_files(paths, max_batch_bytes)
    if files is not None:
        return [], [_Listed(Log(files.partition, max_batch_bytes=max_batch_bytes), files.base_offsets)]
    directories, logs = [], []
    for path in {path.resolve(): path for path in paths}.values():
        try:
            logs.append(_Listed(Log(path, max_batch_bytes=max_batch_bytes), None))
        except LogNotFoundError as error:
            if not _is_without_segment(error):
                raise
            directory = _data_directory(path, max_batch_bytes, is_all=is_all)
            if directory is None:
                advice = "give a partition directory or a data directory"
                raise NothingFoundError(f"{error.file} contains no segment and no partition: {advice}") from None
            directories.append(directory)
    return directories, logs


def _is_without_segment(error: Exception) -> bool:
    return isinstance(error, LogNotFoundError) and error.code == "no_segment"


def _data_directory(path: Path, max_batch_bytes: int, *, is_all: bool) -> LogDir | None:
    """Open a data directory; `None` if it has no partitions, or is a partition directory itself."""
    if classify(path).kind == "partition":
        # without a segment
        return None
    directory = LogDir(path, include=["delete", "future", "stray"] if is_all else None, max_batch_bytes=max_batch_bytes)
    return directory or None


def _partitions(
    directories: list[LogDir], partitions: list[dict[str, Any]], order: _Order, *, by_topic: bool
) -> dict[str, Any]:
    rows = _by_topic(partitions) if by_topic else partitions
    if len(directories) > 1 and not by_topic:
        rows = sorted(rows, key=lambda row: (row["topic"], row["partition"], row["directory"]))
    paths = [directory.path for directory in directories]
    return {
        **({"path": paths[0]} if len(paths) == 1 else {"paths": paths}),
        "verified": False,
        "topics" if by_topic else "partitions": order.rows(rows, size="disk_bytes", time="modified"),
        "others": [other._asdict() for directory in directories for other in others_in(directory)],
    }


def _print(logs: list[_Listed], directories: list[LogDir], documents: list[dict[str, Any]], *, by_topic: bool) -> None:
    for listed, document in zip(logs, documents, strict=False):
        _print_segments(listed.log, document)
    if directories:
        _print_partitions(directories, documents[-1], by_topic=by_topic)


def _print_partitions(directories: list[LogDir], document: dict[str, Any], *, by_topic: bool) -> None:
    rows = document["topics" if by_topic else "partitions"]
    count = sum(row["partitions"] for row in rows) if by_topic else len(rows)
    total = sum(row["disk_bytes"] or 0 for row in rows)
    at_least = "at least " if any(row["disk_bytes"] is None or row.get("not_listed") for row in rows) else ""
    paths = " ".join(directory.path for directory in directories)
    columns, row = (_TOPIC_COLUMNS, _topic_row) if by_topic else (_PARTITION_COLUMNS, _partition_row)
    cells = [row(entry) for entry in rows]
    if len(directories) > 1 and not by_topic:
        columns = [*columns[:-1], ("directory", "left"), columns[-1]]
        cells = [[*line[:-1], entry["directory"], line[-1]] for line, entry in zip(cells, rows, strict=True)]
    print_table(f"{paths}: {several(count, 'partition')}, {at_least}{bytes_in_words(total)} on disk", columns, cells)
    others = [Other(**other) for other in document["others"]]
    if others:
        print_text(f"not in the table: {others_in_words(others)}")
    print_text(f"contents are unchecked: cordwood verify {paths} reads and checks them", style="dim")


def _fail_for(partitions: list[dict[str, Any]]) -> None:
    """Name the partitions that could not be opened, if there are any."""
    failed = [entry for entry in partitions if "error" in entry]
    if failed:
        names = ", ".join(entry["name"] for entry in failed)
        errors = "; ".join(entry["error"] for entry in failed)
        say(f"{len(failed)} of {several(len(partitions), 'partition')} could not be opened: {names}: {errors}")
        raise typer.Exit(FAILED)


def _partition(directory: LogDir, name: str) -> dict[str, Any]:
    # the directory itself may not be readable
    topic, partition, state = _partition_parts(name) or (None, None, "live")
    path = Path(directory.path, name)
    usage = disk_usage(path)
    # nobody knows the files of a directory that cannot be read
    is_listed = os.access(path, os.R_OK | os.X_OK)
    files = {
        "name": name,
        "directory": directory.path,
        "topic": topic,
        "partition": partition,
        "state": state,
        "files": usage.files if is_listed else None,
        "file_bytes": usage.bytes if is_listed else None,
        "disk_bytes": usage.disk_bytes if is_listed else None,
        "modified": usage.modified,
    }
    return files | _opened(directory, name)


def _opened(directory: LogDir, name: str) -> dict[str, Any]:
    try:
        log = directory[name]
        return {
            "size": log.size,
            "log_start_offset": log.log_start_offset,
            "log_end_offset": log.log_end_offset,
            "segments": len(log.segments),
            "warnings": log.warnings,
            # last, because it warns of them
            "missing": _missing(log),
        }
    except (CordwoodError, OSError) as error:
        # a partition that Kafka has just created has no segment yet
        is_new = _is_without_segment(error)
        return {"size": 0, "segments": 0} if is_new else {"error": error_in_words(error, "ls")}


def _partition_row(entry: dict[str, Any]) -> list[str]:
    on_disk = entry["disk_bytes"]
    first = [entry["name"], "" if on_disk is None else bytes_in_words(on_disk)]
    modified = _modified(entry) if on_disk is not None else ""
    if "error" in entry:
        return [*first, "", "", "", "", modified, "not opened", entry["error"]]
    if not entry["segments"]:
        return [*first, bytes_in_words(0), "", "", "0", modified, "unchecked", "no segment yet"]
    warnings = len(entry["warnings"])
    notes = [several(warnings, "warning")] if warnings else []
    notes += [missing_in_words(**gap) for gap in entry["missing"][:1]]
    notes += [several(len(entry["missing"]) - 1, "further gap")] if len(entry["missing"]) > 1 else []
    return [
        *first,
        bytes_in_words(entry["size"]),
        str(entry["log_start_offset"]),
        str(entry["log_end_offset"]),
        str(entry["segments"]),
        modified,
        "unchecked",
        "; ".join(notes),
    ]


def _missing(log: Log) -> list[dict[str, int]]:
    try:
        gaps = missing_segments(log)
    except (CordwoodError, OSError):
        # a running broker deletes segments, and of a damaged one the end may not be known
        return []
    return [{"start_offset": gap.start_offset, "end_offset": gap.end_offset} for gap in gaps]


def _modified(entry: dict[str, Any]) -> str:
    modified = entry["modified"]
    # without the fraction of a second
    return "none" if modified is None else in_words(modified)[:-5] + "Z"


def _by_topic(partitions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add up the partitions of each topic; those in another state than live are its partitions too."""
    topics: dict[str, list[dict[str, Any]]] = {}
    for entry in partitions:
        topics.setdefault(entry["topic"], []).append(entry)
    return [
        {
            "topic": topic,
            "partitions": len(entries),
            "size": sum(entry.get("size", 0) for entry in entries),
            "file_bytes": sum(entry["file_bytes"] or 0 for entry in entries),
            "disk_bytes": sum(entry["disk_bytes"] or 0 for entry in entries),
            "modified": max((entry["modified"] for entry in entries if entry["modified"] is not None), default=None),
            "missing": [entry["name"] for entry in entries if entry.get("missing")],
            "not_opened": [entry["name"] for entry in entries if "error" in entry],
            "not_listed": [entry["name"] for entry in entries if entry["disk_bytes"] is None],
        }
        for topic, entries in sorted(topics.items())
    ]


def _topic_row(entry: dict[str, Any]) -> list[str]:
    failed, gaps = entry["not_opened"], entry["missing"]
    notes = [f"not opened: {', '.join(failed)}"] if failed else []
    notes += [f"no segment contains some offsets of {', '.join(gaps)}"] if gaps else []
    return [
        entry["topic"],
        bytes_in_words(entry["disk_bytes"]),
        bytes_in_words(entry["size"]),
        str(entry["partitions"]),
        _modified(entry),
        "unchecked",
        "; ".join(notes),
    ]


def _segments(listed: _Listed, order: _Order) -> dict[str, Any]:
    log, bases = listed
    rows = [_segment(segment) for segment in log.segments if bases is None or segment.base_offset in bases]
    usage = disk_usage(Path(log.path))
    return {
        "path": log.path,
        "topic": log.topic,
        "partition": log.partition,
        "verified": False,
        "size": log.size,
        "files": usage.files,
        "file_bytes": usage.bytes,
        "disk_bytes": usage.disk_bytes,
        "log_start_offset": log.log_start_offset,
        "log_end_offset": log.log_end_offset,
        "segments": order.rows(rows, size="size", time="largest_timestamp"),
        "missing": _missing(log),
        "warnings": log.warnings,
    }


def _print_segments(log: Log, document: dict[str, Any]) -> None:
    count = len(log.segments)
    shown = len(document["segments"])
    title = (
        f"{log.path}: offsets {log.log_start_offset} to {log.log_end_offset}, "
        f"{bytes_in_words(log.size)} in {several(count, 'segment')}"
    )
    title += "" if shown == count else f"; {shown} of them"
    print_table(title, _SEGMENT_COLUMNS, [_segment_row(entry) for entry in document["segments"]])
    print_text(f"{several(document['files'], 'file')}, {bytes_in_words(document['disk_bytes'])} on disk")
    print_text(f"contents are unchecked: cordwood verify {log.path} reads and checks them", style="dim")
    for gap in document["missing"]:
        print_text(f"warning: {missing_in_words(**gap)}", style="yellow")
    for warning in document["warnings"]:
        print_text(f"warning: {warning}", style="yellow")


def _segment(segment: Segment) -> dict[str, Any]:
    return {
        "base_offset": segment.base_offset,
        "end_offset": segment.end_offset,
        "size": segment.size,
        "largest_timestamp": _largest_timestamp(segment),
        "path": segment.path,
        "offset_index_entries": _entries(lambda: segment.offset_index),
        "time_index_entries": _entries(lambda: segment.time_index),
        "transaction_index_entries": _entries(lambda: segment.transaction_index),
    }


def _largest_timestamp(segment: Segment) -> int | str | None:
    try:
        largest = segment.largest_record_timestamp
    except CordwoodError:
        return "damaged"
    except OSError:
        return "not readable"
    # not the file's modification time: a copy may have another one
    return None if largest < 0 else largest


def _entries(
    open_index: Callable[[], cordwood.OffsetIndex | cordwood.TimeIndex | cordwood.TransactionIndex | None],
) -> int | str | None:
    try:
        index = open_index()
    except CordwoodError:
        return "damaged"
    except OSError:
        return "not readable"
    return None if index is None else index.entries


def _segment_row(entry: dict[str, Any]) -> list[str]:
    names = ("offset_index_entries", "time_index_entries", "transaction_index_entries")
    largest = entry["largest_timestamp"]
    indexes = ["none" if entry[name] is None else str(entry[name]) for name in names]
    return [
        str(entry["base_offset"]),
        str(entry["end_offset"]),
        bytes_in_words(entry["size"]),
        in_words(largest) if isinstance(largest, int) else largest or "none",
        *indexes,
    ]
