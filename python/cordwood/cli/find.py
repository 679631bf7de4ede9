"""`cordwood find`: where an offset or a time lies."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cordwood import Location, Log, TimestampOffset
from cordwood.cli.failure import NothingFoundError, UsageError
from cordwood.cli.terminal import Column, print_json, print_table
from cordwood.cli.times import FORMS, in_words, parse

__all__ = ["find"]

_COLUMNS: list[Column] = [("what", "left"), ("value", "left")]


def find(
    path: Annotated[Path, typer.Argument(help="A partition's directory.")],
    offset: Annotated[int | None, typer.Option(help="Find the batch that holds this offset.")] = None,
    time: Annotated[str | None, typer.Option(help=f"Find the first record at or after this time: {FORMS}.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")] = False,
) -> None:
    """Find an offset or a time: its segment, its batch and the byte where that starts.

    \b
    cordwood find /var/lib/kafka/orders-0 --offset 1234567
    cordwood find /var/lib/kafka/orders-0 --time 2024-05-01T10:00Z
    cordwood find /var/lib/kafka/orders-0 --time -2h --json
    """  # noqa: D301
    if (offset is None) == (time is None):
        raise UsageError("find wants either --offset or --time")
    log = Log(path)
    if time is not None:
        timestamp = parse(time)
        found = log.offset_for_time(timestamp)
        if found is None:
            raise NothingFoundError(f"{log.path} has no record at or after {in_words(timestamp)}")
        _show(log, log.locate(found.offset), found.offset, found, json)
    elif offset is not None:
        location = log.locate(offset)
        if location is None:
            raise NothingFoundError(f"{log.path} has no record at or after offset {offset}")
        _show(log, location, offset, None, json)


def _show(log: Log, location: Location | None, offset: int, found: TimestampOffset | None, json: bool) -> None:
    document: dict[str, Any] = {"path": log.path, "offset": offset}
    if found is not None:
        document["timestamp"] = found.timestamp
    if location is not None:
        segment = log.segments.floor(location.segment)
        document["segment"] = location.segment
        document["batch_base_offset"] = location.batch_base_offset
        document["position"] = location.position
        document["size"] = location.size
        document["file"] = None if segment is None else segment.path
    if json:
        print_json(document)
        return
    words = {
        "offset": "offset",
        "timestamp": "timestamp",
        "segment": "segment (base offset)",
        "batch_base_offset": "batch (base offset)",
        "position": "position (bytes)",
        "size": "batch size (bytes)",
        "file": "file",
    }
    rows = [[words[key], str(document[key])] for key in words if key in document]
    if found is not None:
        rows.insert(1, ["time", in_words(found.timestamp)])
    print_table(log.path, _COLUMNS, rows)
