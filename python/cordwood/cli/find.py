"""`cordwood find`: find the segment, batch and position of an offset or a time."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cordwood import Log
from cordwood.cli.exit_codes import NothingFoundError, UsageError
from cordwood.cli.log_warnings import opened
from cordwood.cli.moment import parse_time
from cordwood.cli.path import parse_path
from cordwood.cli.terminal import Column, print_json, print_table
from cordwood.times import FORMS, in_words

__all__ = ["find"]

_COLUMNS: list[Column] = [("what", "left"), ("value", "left")]


def find(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(parser=parse_path, help="A partition directory.")],
    offset: Annotated[int | None, typer.Option(help="Find the batch that contains this offset.")] = None,
    time: Annotated[str | None, typer.Option(help=f"Find the first record at or after this time: {FORMS}.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")] = False,
) -> None:
    """Find an offset or a time: its segment, its batch and the position of the batch.

    If an offset is missing because of compaction, the next record is shown.

    \b
    cordwood find /var/lib/kafka/orders-0 --offset 1234567
    cordwood find /var/lib/kafka/orders-0 --time 2024-05-01T10:00Z
    cordwood find /var/lib/kafka/orders-0 --time -2h --json
    """  # noqa: D301
    if (offset is None) == (time is None):
        raise UsageError("find: expected either --offset or --time")
    log = opened(context, path)
    if time is not None:
        timestamp = parse_time("--time", time)
        found = log.offset_for_time(timestamp)
        if found is None:
            raise NothingFoundError(f"{log.path} has no record at or after {in_words(timestamp)}")
        _show(
            {"path": log.path, "offset": found.offset, "timestamp": found.timestamp} | _place(log, found.offset), json
        )
    elif offset is not None:
        _show(_at_offset(log, offset), json)


def _at_offset(log: Log, offset: int) -> dict[str, Any]:
    """Find the record at an offset, or the next record if there is none."""
    nothing = NothingFoundError(f"{log.path} has no record at or after offset {offset}")
    if log.locate(offset) is None:
        raise nothing
    # the header has only the range of offsets; compaction may have removed some of its records
    record = next(log.records(start_offset=offset, include_control=True), None)
    if record is None:
        raise nothing
    document: dict[str, Any] = {"path": log.path, "offset": record.offset}
    if record.offset != offset:
        document["missing"] = offset
    return document | _place(log, record.offset)


def _place(log: Log, offset: int) -> dict[str, Any]:
    location = log.locate(offset)
    if location is None:
        return {}
    segment = log.segments.floor(location.segment_base_offset)
    return {
        "segment_base_offset": location.segment_base_offset,
        "batch_base_offset": location.batch_base_offset,
        "position": location.position,
        "size": location.size,
        "file": None if segment is None else segment.path,
    }


def _show(document: dict[str, Any], json: bool) -> None:
    if json:
        print_json(document)
        return
    words = {
        "offset": "offset",
        "time": "time",
        "timestamp": "timestamp",
        "segment_base_offset": "segment (base offset)",
        "batch_base_offset": "batch (base offset)",
        "position": "position (bytes)",
        "size": "batch size (bytes)",
        "file": "file",
    }
    shown = document | ({"time": in_words(document["timestamp"])} if "timestamp" in document else {})
    title = document["path"]
    if "missing" in document:
        title += f": offset {document['missing']} is missing; the next record is at offset {document['offset']}"
    print_table(title, _COLUMNS, [[words[key], str(shown[key])] for key in words if key in shown])
