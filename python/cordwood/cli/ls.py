"""`cordwood ls`: list the partitions of a data directory, or the segments of a partition."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import cordwood
from cordwood import ConfigError, CordwoodError, Log, LogDir, LogNotFoundError, Segment
from cordwood._core import _partition_parts
from cordwood.cli.exit_codes import FAILED, NothingFoundError, UsageError, error_in_words, say
from cordwood.cli.log_warnings import silent_log
from cordwood.cli.path import parse_path
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
    path: Annotated[Path, typer.Argument(parser=parse_path, help="A data directory or a partition directory.")],
    sort: Annotated[
        Sort,
        typer.Option(
            help="name (of segments: the base offset), size (on disk, largest first) or time (of the last change, of "
            "segments of the newest record; newest first)."
        ),
    ] = "name",
    is_reversed: Annotated[bool, typer.Option("-r", "--reverse", help="The other order.")] = False,
    by: Annotated[Literal["partition", "topic"], typer.Option(help="A row for each.")] = "partition",
    is_all: Annotated[
        bool,
        typer.Option("--all", help="Also partitions that are being deleted or moved: -delete, -future, -stray."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")] = False,
) -> None:
    """List a data directory's partitions or topics, or a partition's segments.

    On disk are all files of a partition: logs, indexes, snapshots, quarantine/. Batches are not read: contents are
    unchecked unless the directory cannot be opened.

    \b
    cordwood ls /var/lib/kafka                         size, first and end offset of every partition
    cordwood ls /var/lib/kafka --by topic --sort size  which topics fill the disk
    cordwood ls /var/lib/kafka --all --sort time       what has changed last, deleted partitions too
    cordwood ls /var/lib/kafka/orders-0                its segments, with the number of entries of each index
    cordwood ls /var/lib/kafka --json | jq '.partitions[] | select(.size > 1e9) | .name'
    """  # noqa: D301
    order = _Order(sort, is_reversed=is_reversed)
    with silent_log():
        _list(path, order, by_topic=by == "topic", is_all=is_all, json=json)


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


def _list(path: Path, order: _Order, *, by_topic: bool, is_all: bool, json: bool) -> None:
    try:
        log = Log(path)
    except LogNotFoundError as error:
        if not _is_without_segment(error):
            raise
        directory = _data_directory(path, is_all=is_all)
        if directory is None:
            advice = "give a partition directory or a data directory"
            raise NothingFoundError(f"{error.file} contains no segment and no partition: {advice}") from None
        _list_partitions(directory, order, by_topic=by_topic, json=json)
    else:
        if by_topic or is_all:
            raise UsageError(f"{path} is a partition directory: --by topic and --all are for data directories")
        _list_segments(log, order, json)


def _is_without_segment(error: Exception) -> bool:
    return isinstance(error, LogNotFoundError) and error.code == "no_segment"


def _data_directory(path: Path, *, is_all: bool) -> LogDir | None:
    """Open a data directory; `None` if it has no partitions, or is a partition directory itself."""
    try:
        return LogDir(path, include=["delete", "future", "stray"] if is_all else None) or None
    except ConfigError:
        # a partition directory without a segment
        return None


def _list_partitions(directory: LogDir, order: _Order, *, by_topic: bool, json: bool) -> None:
    partitions = [_partition(directory, name) for name in directory]
    total = sum(entry["disk_bytes"] for entry in partitions)
    title = f"{directory.path}: {several(len(partitions), 'partition')}, {bytes_in_words(total)} on disk"
    rows = _by_topic(partitions) if by_topic else partitions
    rows = order.rows(rows, size="disk_bytes", time="modified")
    if json:
        print_json({"path": directory.path, "verified": False, "topics" if by_topic else "partitions": rows})
    else:
        columns, row = (_TOPIC_COLUMNS, _topic_row) if by_topic else (_PARTITION_COLUMNS, _partition_row)
        print_table(title, columns, [row(entry) for entry in rows])
        print_text(f"contents are unchecked: cordwood verify {directory.path} reads and checks them", style="dim")
    failed = [entry["name"] for entry in partitions if "error" in entry]
    if failed:
        errors = "; ".join(entry["error"] for entry in partitions if "error" in entry)
        names = ", ".join(failed)
        say(f"{len(failed)} of {several(len(partitions), 'partition')} could not be opened: {names}: {errors}")
        raise typer.Exit(FAILED)


def _partition(directory: LogDir, name: str) -> dict[str, Any]:
    # the directory itself may not be readable
    topic, partition, state = _partition_parts(name) or (None, None, "live")
    usage = disk_usage(Path(directory.path, name))
    files = {
        "name": name,
        "topic": topic,
        "partition": partition,
        "state": state,
        "files": usage.files,
        "file_bytes": usage.bytes,
        "disk_bytes": usage.disk_bytes,
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
        }
    except (CordwoodError, OSError) as error:
        # a partition that Kafka has just created has no segment yet
        is_new = _is_without_segment(error)
        return {"size": 0, "segments": 0} if is_new else {"error": error_in_words(error, "ls")}


def _partition_row(entry: dict[str, Any]) -> list[str]:
    first = [entry["name"], bytes_in_words(entry["disk_bytes"])]
    modified = _modified(entry)
    if "error" in entry:
        return [*first, "", "", "", "", modified, "not opened", entry["error"]]
    if not entry["segments"]:
        return [*first, bytes_in_words(0), "", "", "0", modified, "unchecked", "no segment yet"]
    warnings = len(entry["warnings"])
    return [
        *first,
        bytes_in_words(entry["size"]),
        str(entry["log_start_offset"]),
        str(entry["log_end_offset"]),
        str(entry["segments"]),
        modified,
        "unchecked",
        several(warnings, "warning") if warnings else "",
    ]


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
            "file_bytes": sum(entry["file_bytes"] for entry in entries),
            "disk_bytes": sum(entry["disk_bytes"] for entry in entries),
            "modified": max((entry["modified"] for entry in entries if entry["modified"] is not None), default=None),
            "not_opened": [entry["name"] for entry in entries if "error" in entry],
        }
        for topic, entries in sorted(topics.items())
    ]


def _topic_row(entry: dict[str, Any]) -> list[str]:
    failed = entry["not_opened"]
    return [
        entry["topic"],
        bytes_in_words(entry["disk_bytes"]),
        bytes_in_words(entry["size"]),
        str(entry["partitions"]),
        _modified(entry),
        "unchecked",
        f"not opened: {', '.join(failed)}" if failed else "",
    ]


def _list_segments(log: Log, order: _Order, json: bool) -> None:
    segments = order.rows([_segment(segment) for segment in log.segments], size="size", time="largest_timestamp")
    usage = disk_usage(Path(log.path))
    if json:
        document = {
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
            "segments": segments,
            "warnings": log.warnings,
        }
        print_json(document)
        return
    title = (
        f"{log.path}: offsets {log.log_start_offset} to {log.log_end_offset}, "
        f"{bytes_in_words(log.size)} in {several(len(segments), 'segment')}"
    )
    print_table(title, _SEGMENT_COLUMNS, [_segment_row(entry) for entry in segments])
    print_text(f"{several(usage.files, 'file')}, {bytes_in_words(usage.disk_bytes)} on disk")
    print_text(f"contents are unchecked: cordwood verify {log.path} reads and checks them", style="dim")
    for warning in log.warnings:
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
    # not the file's modification time: a copy may have another one
    return None if largest < 0 else largest


def _entries(
    open_index: Callable[[], cordwood.OffsetIndex | cordwood.TimeIndex | cordwood.TransactionIndex | None],
) -> int | str | None:
    try:
        index = open_index()
    except CordwoodError:
        return "damaged"
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
