"""`cordwood find`: find the segment, batch and position of an offset or a time."""

from datetime import UTC, tzinfo
from pathlib import Path
from typing import Annotated, Any

import typer

from cordwood import CordwoodError, Log, OffsetOutOfRangeError, Record, TimestampOffset
from cordwood._core import _partition_parts
from cordwood.cli.exit_codes import FAILED, NothingFoundError, UsageError, error_in_words, say
from cordwood.cli.limits import DEFAULT_MAX_BATCH_BYTES
from cordwood.cli.log_warnings import opened
from cordwood.cli.moment import parse_time
from cordwood.cli.record_range import MaxBatchBytes
from cordwood.cli.segment_files import SegmentFiles
from cordwood.cli.selection import PartitionNumbers, Paths, Selection, Topics, selected
from cordwood.cli.terminal import Column, print_json, print_table
from cordwood.cli.zone import TZ, zone_of
from cordwood.quantities import several
from cordwood.times import FORMS, in_words

__all__ = ["find"]

_COLUMNS: list[Column] = [("what", "left"), ("value", "left")]
_PARTITION_COLUMNS: list[Column] = [
    ("partition", "left"),
    ("offset", "right"),
    ("time", "left"),
    ("position", "right"),
    ("file", "left"),
    ("notes", "text"),
]


def find(  # noqa: PLR0913, PLR0917  (a command's options)
    context: typer.Context,
    paths: Paths,
    offset: Annotated[int | None, typer.Option(help="Find the batch that contains this offset.")] = None,
    time: Annotated[str | None, typer.Option(help=f"Find the first record at or after this time: {FORMS}.")] = None,
    topics: Topics = None,
    partitions: PartitionNumbers = None,
    max_batch_bytes: MaxBatchBytes = DEFAULT_MAX_BATCH_BYTES,
    tz: Annotated[str | None, TZ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")] = False,
) -> None:
    """Find an offset or a time: its segment, its batch and the position of the batch.

    For several partitions, or for data directories, there is a row for each partition. If an offset is missing because
    of compaction, the next record is shown.

    \b
    cordwood find /var/lib/kafka/orders-0 --offset 1234567
    cordwood find /var/lib/kafka/orders-0 --time 2024-05-01T10:00Z
    cordwood find /var/lib/kafka/orders-0 --time '2024-05-01 12:00' --tz Europe/Berlin
    cordwood find /var/lib/kafka --topic orders --time -2h          the offset in each partition
    cordwood find /var/lib/kafka/orders-0 --time -2h --json

    The exit code is 1 if nothing is found, or if a partition cannot be read.
    """  # noqa: D301
    if (offset is None) == (time is None):
        raise UsageError("find: expected either --offset or --time")
    zone = zone_of(tz)
    timestamp = None if time is None else parse_time("--time", time, zone, has_tz=True)
    shown_zone = zone or UTC
    selection = selected(paths, topics, partitions, max_batch_bytes)
    if selection.is_single:
        log = opened(context, selection.paths[0], max_batch_bytes)
        _show(_found(log, offset, timestamp, selection.files, shown_zone), shown_zone, json=json)
        return
    _find_in_each(selection, offset, timestamp, max_batch_bytes, shown_zone, json=json)


def _find_in_each(  # noqa: PLR0913  (the options of the command)
    selection: Selection,
    offset: int | None,
    timestamp: int | None,
    max_batch_bytes: int,
    zone: tzinfo,
    *,
    json: bool,
) -> None:
    rows = []
    failed = [(path, error_in_words(error, "find")) for path, error in selection.failed]
    for path in selection.paths:
        try:
            row = _found(Log(path, max_batch_bytes=max_batch_bytes), offset, timestamp, None, zone)
        except NothingFoundError:
            row = {"path": str(path.absolute()), "offset": None, "notes": "no record at or after it"}
        except OffsetOutOfRangeError as error:
            row = {
                "path": str(path.absolute()),
                "offset": None,
                "notes": f"outside offsets {error.log_start_offset} to {error.log_end_offset} (exclusive)",
            }
        except (CordwoodError, OSError) as error:
            failed.append((path, error_in_words(error, "find")))
            continue
        topic, number, _ = _partition_parts(path.absolute().name) or (None, None, None)
        rows.append({"topic": topic, "partition": number} | row)
    found = sum(row["offset"] is not None for row in rows)
    target = f"offset {offset}" if timestamp is None else in_words(timestamp, zone)
    if json:
        errors = {"failed": [{"path": str(path), "error": reason} for path, reason in failed]} if failed else {}
        print_json({"partitions": rows} | errors)
    elif rows:
        title = f"{target}: found in {found} of {several(len(rows), 'partition')}"
        print_table(title, _PARTITION_COLUMNS, [_partition_row(row, zone) for row in rows])
    for _, reason in failed:
        say(reason)
    if failed:
        raise typer.Exit(FAILED)
    if not found:
        raise NothingFoundError(f"{target}: not found in {several(len(rows), 'partition')}")


def _partition_row(row: dict[str, Any], zone: tzinfo) -> list[str]:
    name = Path(row["path"]).name
    if row["offset"] is None:
        return [name, "none", "", "", "", row["notes"]]
    time = in_words(row["timestamp"], zone) if "timestamp" in row else ""
    notes = f"offset {row['missing']} is missing" if "missing" in row else ""
    return [name, str(row["offset"]), time, str(row.get("position", "")), row.get("file") or "", notes]


def _found(
    log: Log, offset: int | None, timestamp: int | None, files: SegmentFiles | None, zone: tzinfo
) -> dict[str, Any]:
    """Find an offset or a time in a log, or in some of its segments. *Errors*: `NothingFoundError`."""
    if timestamp is not None:
        return _at_time(log, timestamp, files, zone)
    return _at_offset(log, offset or 0, files)


def _at_time(log: Log, timestamp: int, files: SegmentFiles | None, zone: tzinfo) -> dict[str, Any]:
    nothing = NothingFoundError(f"{log.path} has no record at or after {in_words(timestamp, zone)}")
    first: TimestampOffset | Record | None
    if files is None:
        first = log.offset_for_time(f"{timestamp}ms")
    else:
        # that of the log may be in an earlier segment. The time of a marker counts, as in a whole log
        records = log.records(
            start_offset=files.start_offset,
            end_offset=files.end_offset,
            start_time=f"{timestamp}ms",
            include_control=True,
        )
        first = next(records, None)
        nothing = NothingFoundError(f"the files have no record at or after {in_words(timestamp, zone)}")
    if first is None:
        raise nothing
    return {"path": log.path, "offset": first.offset, "timestamp": first.timestamp} | _place(log, first.offset)


def _at_offset(log: Log, offset: int, files: SegmentFiles | None) -> dict[str, Any]:
    """Find the record at an offset, or the next record if there is none."""
    nothing = NothingFoundError(f"{log.path} has no record at or after offset {offset}")
    if files is not None and not files.start_offset <= offset < files.end_offset:
        raise NothingFoundError(
            f"the files have the offsets {files.start_offset} to {files.end_offset} (exclusive), not offset {offset}"
        )
    if log.locate(offset) is None:
        raise nothing
    # the header has only the range of offsets; compaction may have removed some of its records
    record = next(log.records(start_offset=offset, include_control=True), None)
    if record is None or (files is not None and record.offset >= files.end_offset):
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


def _show(document: dict[str, Any], zone: tzinfo, *, json: bool) -> None:
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
    shown = document | ({"time": in_words(document["timestamp"], zone)} if "timestamp" in document else {})
    title = document["path"]
    if "missing" in document:
        title += f": offset {document['missing']} is missing; the next record is at offset {document['offset']}"
    print_table(title, _COLUMNS, [[words[key], str(shown[key])] for key in words if key in shown])
