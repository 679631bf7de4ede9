"""`cordwood ls`: list the partitions of a data directory, or the segments of a partition."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import cordwood
from cordwood import ConfigError, CordwoodError, Log, LogDir, LogNotFoundError, Segment
from cordwood.cli.exit_codes import FAILED, NothingFoundError, say, sentence
from cordwood.cli.log_warnings import silent_log
from cordwood.cli.path import parse_path
from cordwood.cli.terminal import Column, bytes_in_words, print_json, print_table, print_text, several
from cordwood.times import in_words

__all__ = ["ls"]

_PARTITION_COLUMNS: list[Column] = [
    ("partition", "left"),
    ("size", "right"),
    ("start", "right"),
    ("end", "right"),
    ("segments", "right"),
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


def ls(
    path: Annotated[Path, typer.Argument(parser=parse_path, help="A data directory or a partition directory.")],
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")] = False,
) -> None:
    """List a data directory's partitions, or a partition's segments.

    \b
    cordwood ls /var/lib/kafka                    size, first and end offset of every partition
    cordwood ls /var/lib/kafka/orders-0           its segments, with the number of entries of each index
    cordwood ls /var/lib/kafka --json | jq '.partitions[] | select(.size > 1e9) | .name'
    """  # noqa: D301
    with silent_log():
        _list(path, json)


def _list(path: Path, json: bool) -> None:
    try:
        log = Log(path)
    except LogNotFoundError as error:
        if not _is_without_segment(error):
            raise
        directory = _data_directory(path)
        if directory is None:
            advice = "give a partition directory or a data directory"
            raise NothingFoundError(f"{error.file} contains no segment and no partition: {advice}") from None
        _list_partitions(directory, json)
    else:
        _list_segments(log, json)


def _is_without_segment(error: Exception) -> bool:
    return isinstance(error, LogNotFoundError) and error.code == "no_segment"


def _data_directory(path: Path) -> LogDir | None:
    """Open a data directory; `None` if it has no partitions, or is a partition directory itself."""
    try:
        return LogDir(path) or None
    except ConfigError:
        # a partition directory without a segment
        return None


def _list_partitions(directory: LogDir, json: bool) -> None:
    partitions = [_partition(directory, name) for name in directory]
    if json:
        print_json({"path": directory.path, "partitions": partitions})
    else:
        total = bytes_in_words(sum(entry.get("size", 0) for entry in partitions))
        title = f"{directory.path}: {several(len(partitions), 'partition')}, {total}"
        print_table(title, _PARTITION_COLUMNS, [_partition_row(entry) for entry in partitions])
    failed = [entry["name"] for entry in partitions if "error" in entry]
    if failed:
        say(f"{len(failed)} of {several(len(partitions), 'partition')} could not be opened: {', '.join(failed)}")
        raise typer.Exit(FAILED)


def _partition(directory: LogDir, name: str) -> dict[str, Any]:
    try:
        log = directory[name]
        return {
            "name": name,
            "topic": log.topic,
            "partition": log.partition,
            "size": log.size,
            "log_start_offset": log.log_start_offset,
            "log_end_offset": log.log_end_offset,
            "segments": len(log.segments),
            "warnings": log.warnings,
        }
    except CordwoodError as error:
        # a partition that Kafka has just created has no segment yet
        is_new = _is_without_segment(error)
        return {"name": name, "size": 0, "segments": 0} if is_new else {"name": name, "error": sentence(error)}
    except OSError as error:
        return {"name": name, "error": str(error)}


def _partition_row(entry: dict[str, Any]) -> list[str]:
    if "error" in entry:
        return [entry["name"], "", "", "", "", entry["error"]]
    if not entry["segments"]:
        return [entry["name"], bytes_in_words(0), "", "", "0", "no segment yet"]
    warnings = len(entry["warnings"])
    return [
        entry["name"],
        bytes_in_words(entry["size"]),
        str(entry["log_start_offset"]),
        str(entry["log_end_offset"]),
        str(entry["segments"]),
        several(warnings, "warning") if warnings else "",
    ]


def _list_segments(log: Log, json: bool) -> None:
    segments = [_segment(segment) for segment in log.segments]
    if json:
        document = {
            "path": log.path,
            "topic": log.topic,
            "partition": log.partition,
            "size": log.size,
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
