"""`cordwood count`: count records by partition, topic, time or key."""

import base64
import csv
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

from cordwood import DamagedRange, Log
from cordwood._core import _Counter, _partition_parts
from cordwood.cli.damage import damage_in_words
from cordwood.cli.exit_codes import FAILED, NothingFoundError, UsageError, error_in_words, say
from cordwood.cli.limits import DEFAULT_MAX_BATCH_BYTES
from cordwood.cli.log_warnings import opened
from cordwood.cli.progress import counted
from cordwood.cli.record_range import (
    EndOffset,
    Grep,
    Key,
    KeyPrefix,
    MaxBatchBytes,
    Since,
    StartOffset,
    Until,
    contents,
    selects,
    times,
)
from cordwood.cli.selection import PartitionNumbers, Paths, Topics, selected
from cordwood.cli.terminal import Column, dropping_unread, print_json, print_table
from cordwood.cli.zone import TZ, core_zone, zone_of
from cordwood.quantities import several

__all__ = ["count"]


class By(StrEnum):
    """A group; an enum, because typer takes no list of `Literal`."""

    PARTITION = "partition"
    TOPIC = "topic"
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    KEY = "key"


_PERIODS = ("minute", "hour", "day")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Group(NamedTuple):
    """A row: the values of the groups, by their column, and the number of records."""

    values: dict[str, Any]
    records: int


def count(  # noqa: PLR0913, PLR0917  (a command's options)
    context: typer.Context,
    paths: Paths,
    by: Annotated[
        list[By] | None,
        typer.Option(help="A group for each of these, by default partition. Repeatable; one period of time at most."),
    ] = None,
    topics: Topics = None,
    partitions: PartitionNumbers = None,
    start_offset: StartOffset = None,
    end_offset: EndOffset = None,
    since: Since = None,
    until: Until = None,
    key: Key = None,
    key_prefix: KeyPrefix = None,
    grep: Grep = None,
    isolation: Annotated[
        Literal["read_uncommitted", "read_committed"],
        typer.Option(help="read_committed leaves out aborted and open transactions. Markers are never counted."),
    ] = "read_uncommitted",
    on_damage: Annotated[Literal["raise", "skip"], typer.Option(help="Stop at damage, or skip it.")] = "raise",
    max_batch_bytes: MaxBatchBytes = DEFAULT_MAX_BATCH_BYTES,
    limit: Annotated[int | None, typer.Option(min=0, help="Maximum number of groups.")] = None,
    tz: Annotated[str | None, TZ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")] = False,
    is_csv: Annotated[bool, typer.Option("--csv", help="CSV instead of a table.")] = False,
) -> None:
    """Count the records of partitions.

    By partition and topic, the headers of the batches are enough where no time range cuts a batch; the other groups
    decompress and read every record. Compacted logs have fewer records than offsets. Groups by key begin with the keys
    that have the most records. A record without a timestamp or a key has none in these columns.

    \b
    cordwood count /var/lib/kafka                               records of every partition
    cordwood count orders-0 --by hour                           records per hour
    cordwood count orders-* --by day --by topic --tz Europe/Berlin
    cordwood count orders-0 --by key --limit 10                 the ten most frequent keys
    cordwood count orders-0 --since -2h --grep failed           how many records match

    With --on-damage skip, damaged ranges are printed to stderr and the exit code is 1. The same holds for partitions
    that cannot be read; the others are counted. It is also 1 if an option selects records and none matches.
    """  # noqa: D301
    if json and is_csv:
        raise UsageError("expected either --json or --csv")
    groups: list[By] = by or [By.PARTITION]
    if sum(name in _PERIODS for name in set(groups)) > 1:
        raise UsageError("--by: expected one of minute, hour and day at most")
    zone = zone_of(tz)
    selection = selected(paths, topics, partitions, max_batch_bytes)
    logs: list[Log | Path] = [*selection.paths]
    if selection.is_single:
        logs = [opened(context, selection.paths[0], max_batch_bytes)]
    counter = _Counter(
        logs,
        list(dict.fromkeys(groups)),
        zone=core_zone(zone),
        isolation_level=isolation,
        on_damage=on_damage,
        max_batch_bytes=max_batch_bytes,
        **selection.offsets(start_offset, end_offset),
        **times(since, until, zone),
        **contents(key, key_prefix, grep),
    )
    for _ in counted(_steps(counter), lambda records: records, to_file=True):
        pass
    damaged = counter.damaged_ranges
    unread = selection.failed + [(selection.paths[place], error) for place, error in counter.take_failures()]
    found = [
        _Group(_values(row, selection.paths, groups, is_local=zone is not None), row[-1]) for row in counter.finish()
    ]
    total = sum(group.records for group in found)
    shown = found if limit is None else found[:limit]
    failed = [(str(path), error_in_words(error, "count")) for path, error in unread]
    if json:
        errors = {"failed": [{"path": path, "error": error} for path, error in failed]} if failed else {}
        print_json({"records": total, "groups": [_json_row(group) for group in shown], **errors})
    elif is_csv:
        with dropping_unread():
            _write_csv(shown, groups)
    else:
        read = len(selection.paths) + len(selection.failed) - len(failed)
        title = f"{several(total, 'record')} in {several(read, 'partition')}"
        _print(title + ("" if len(shown) == len(found) else f"; {len(shown)} of {len(found)} groups"), shown, groups)
    _say_what_is_missing(failed, damaged, len(selection.paths) + len(selection.failed))
    if not total and selects(start_offset, end_offset, since, until, key, key_prefix, grep):
        raise NothingFoundError("no record matches")


def _values(
    row: tuple[str | None, int | None, tuple[int, int] | None, bytes | None, int],
    paths: list[Path],
    groups: list[By],
    *,
    is_local: bool,
) -> dict[str, Any]:
    """Return the values of a row's groups, in the order of the columns."""
    topic, place, period, key, _ = row
    values: dict[str, Any] = {}
    if "topic" in groups:
        values["topic"] = topic
    if "partition" in groups and place is not None:
        topic, number, _ = _partition_parts(paths[place].absolute().name) or (None, None, None)
        values |= {"topic": topic, "partition": number, "path": str(paths[place])}
    for name in _PERIODS:
        if name in groups:
            values[name] = None if period is None else _period(*period, name, is_local=is_local)
    if "key" in groups:
        values["key"] = key
    return values


def _period(local: int, utc_offset: int, name: str, *, is_local: bool) -> str:
    """Format the start of a period: a day has no time and no zone."""
    try:
        moment = _EPOCH + timedelta(milliseconds=local)
    except OverflowError:
        return f"{local - utc_offset * 1000} ms"
    if name == "day":
        return moment.date().isoformat()
    if not is_local:
        return moment.isoformat(timespec="minutes").replace("+00:00", "Z")
    return moment.replace(tzinfo=timezone(timedelta(seconds=utc_offset))).isoformat(timespec="minutes")


def _key_as_json(group: _Group) -> str | dict[str, str] | None:
    key = group.values["key"]
    try:
        return None if key is None else str(key, "utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(key).decode()}


def _json_row(group: _Group) -> dict[str, Any]:
    key = {"key": _key_as_json(group)} if "key" in group.values else {}
    return {**group.values, **key, "records": group.records}


def _cells(group: _Group, *, none: str) -> list[str]:
    """Return a row as texts, with the path only where it has no topic."""
    cells = []
    for name, value in group.values.items():
        match name, value:
            case "path", _:
                continue
            case "topic", None if "path" in group.values:
                cells.append(group.values["path"])
            case _, None:
                cells.append(none)
            case "key", bytes():
                key = _key_as_json(group)
                cells.append(f"base64:{key['base64']}" if isinstance(key, dict) else str(key))
            case _:
                cells.append(str(value))
    return [*cells, str(group.records)]


def _headings(groups: list[By]) -> list[str]:
    first = ["topic"] if "topic" in groups or "partition" in groups else []
    rest = [name for name in ("partition", *_PERIODS, "key") if name in groups]
    return [*first, *rest, "records"]


def _write_csv(shown: list[_Group], groups: list[By]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(_headings(groups))
    writer.writerows(_cells(group, none="") for group in shown)


def _print(title: str, shown: list[_Group], groups: list[By]) -> None:
    columns: list[Column] = [
        (name, "right" if name in {"partition", "records"} else "left") for name in _headings(groups)
    ]
    print_table(title, columns, [_cells(group, none="none") for group in shown])


def _say_what_is_missing(failed: list[tuple[str, str]], damaged: list[DamagedRange], partitions: int) -> None:
    """Write what was not counted to stderr: the paths and errors of partitions, and damage."""
    for _, error in failed:
        say(error)
    if failed:
        names = ", ".join(Path(path).name for path, _ in failed)
        say(f"{len(failed)} of {several(partitions, 'partition')} could not be read: {names}")
    for damage in damaged:
        say(damage_in_words(damage))
    if failed or damaged:
        raise typer.Exit(FAILED)


def _steps(counter: _Counter) -> Iterator[int]:
    before = 0
    while (records := counter.advance()) is not None:
        yield records - before
        before = records
