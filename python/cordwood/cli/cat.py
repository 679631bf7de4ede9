"""`cordwood cat`: write a range of records as JSON lines, CSV, Arrow or Parquet."""

import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

import typer

from cordwood import Log, Scan
from cordwood._core import _scan_logs
from cordwood.cli.damage import damage_in_words
from cordwood.cli.exit_codes import FAILED, NothingFoundError, UsageError, say
from cordwood.cli.follow import Follower, follow, max_open_logs
from cordwood.cli.formats import (
    BATCH_BYTES,
    OTHER_COLUMNS,
    RECORD_COLUMNS,
    SUFFIXES,
    Format,
    format_of,
    row_count,
    write_batches,
)
from cordwood.cli.limits import DEFAULT_MAX_BATCH_BYTES
from cordwood.cli.log_warnings import opened
from cordwood.cli.output import Output, output_of
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
from cordwood.cli.text_output import LimitReached, TextOutput
from cordwood.cli.zone import TZ, core_zone, zone_of

__all__ = ["cat"]

_ORIGIN_COLUMNS = ("topic", "partition")


def cat(  # noqa: PLR0913, PLR0917  (a command's options)
    context: typer.Context,
    paths: Paths,
    topics: Topics = None,
    partitions: PartitionNumbers = None,
    start_offset: StartOffset = None,
    end_offset: EndOffset = None,
    since: Since = None,
    until: Until = None,
    last: Annotated[
        int | None,
        typer.Option(min=0, help="Only the last N records of the range that match, of each partition.", metavar="N"),
    ] = None,
    key: Key = None,
    key_prefix: KeyPrefix = None,
    grep: Grep = None,
    limit: Annotated[int | None, typer.Option(min=0, help="Maximum number of rows, of those that match.")] = None,
    is_following: Annotated[
        bool, typer.Option("-f", "--follow", help="Then wait for new records and write them, until Ctrl-C.")
    ] = False,
    columns: Annotated[
        str | None,
        typer.Option(
            help=f"Comma-separated: {' '.join(RECORD_COLUMNS)} (the default; of several partitions topic partition "
            f"before them), {' '.join(OTHER_COLUMNS)}."
        ),
    ] = None,
    isolation: Annotated[
        Literal["read_uncommitted", "read_committed"] | None,
        typer.Option(
            help="read_committed leaves out aborted and open transactions. By default they are included, and a message "
            "on stderr names the first such record."
        ),
    ] = None,
    include_control: Annotated[
        bool,
        typer.Option(
            "--include-control",
            help="Also write transaction markers; without --columns also the column is_control, which marks them.",
        ),
    ] = False,
    on_damage: Annotated[
        Literal["raise", "skip", "report"],
        typer.Option(help="Stop at damage, skip it, or write a row with an error column for it."),
    ] = "raise",
    max_batch_bytes: MaxBatchBytes = DEFAULT_MAX_BATCH_BYTES,
    tz: Annotated[str | None, TZ] = None,
    output_format: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="By default by the suffix of -o; jsonl for standard output, and for a file without a suffix. arrow "
            "and parquet need pyarrow.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The same as --format jsonl.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Values alone, as they are, one on each line; a null is an empty line.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A file, pipe or device. By default - (standard output).")
    ] = None,
) -> None:
    """Write records of partitions to standard output or to a file.

    Rows of several partitions, or of a data directory, begin with the columns topic and partition.
    Keys and values are text if they are UTF-8; otherwise {"base64": "…"} in JSON and base64:… in CSV.
    Arrow is written to files in the file format, to pipes and to files with the suffix .arrows in the stream format.
    An existing file is replaced when the new one is complete, and its mode is kept.

    \b
    cordwood cat orders-0 --last 5
    cordwood cat orders-0 --follow --raw
    cordwood cat orders-0 --since 2024-05-01T10:00Z --until 2024-05-01T11:00Z
    cordwood cat /var/lib/kafka --topic 'orders-*' --partition 0 --grep '"status": *"failed"' --limit 10
    cordwood cat orders-* --since '2024-05-01 12:00' --tz Europe/Berlin --format csv
    cordwood cat payments-0 --isolation read_committed -o payments.parquet
    cordwood cat broken-0 --on-damage skip > readable.jsonl

    If .log files are given, the records of these segments are written. With --on-damage skip or report, damaged ranges
    are printed to stderr and the exit code is 1. It is also 1 if an option selects records and none matches. Warnings
    about the log, such as a missing segment, also go to stderr, and do not change the exit code. With --follow, records
    that retention deletes before they are read are reported on stderr; if records are withdrawn after they were written
    out (a follower that truncates its log), the command ends with an error.
    """  # noqa: D301
    if json and output_format not in {None, "jsonl"}:
        raise UsageError(f"--json means --format jsonl, but --format is {output_format}: use one of them")
    if raw:
        _check_raw(columns, output_format, json=json, on_damage=on_damage)
    zone = zone_of(tz)
    selection = selected(paths, topics, partitions, max_batch_bytes)
    for _, error in selection.failed:
        # before rows are written
        raise error
    logs: list[Log | Path] = [*selection.paths]
    if selection.is_single and not is_following:
        logs = [opened(context, selection.paths[0], max_batch_bytes)]
    target = output_of(output, *selection.paths)
    written_format = _written_format(target, "jsonl" if json else output_format, raw=raw)
    if is_following:
        if selection.files is not None:
            raise UsageError("--follow waits for records of a partition: expected its directory, not .log files")
        _check_following(target, written_format, end_offset=end_offset, until=until)
    request: dict[str, Any] = {
        **selection.offsets(start_offset, end_offset),
        **times(since, until, zone),
        "isolation_level": isolation or "read_uncommitted",
        "include_control": include_control,
        "on_damage": on_damage,
        "columns": _columns(columns, include_control=include_control, has_origin=not selection.is_single),
        **contents(key, key_prefix, grep),
        # larger values do not fit the argument, and no log has more records
        "last": None if last is None else min(last, sys.maxsize),
        "limit": None if limit is None else min(limit, sys.maxsize),
    }
    is_text = raw or written_format in {"jsonl", "csv"}
    if not is_text:
        request["max_bytes"] = BATCH_BYTES
    scan = _scan_logs(logs, max_batch_bytes=max_batch_bytes, **request)
    schema = None if is_text else scan.schema
    to_file = target.path is not None
    with target.opened(binary=not is_text) as out:
        if is_text:
            text = TextOutput("raw" if raw else written_format, core_zone(zone), out, to_file=to_file)
            if is_following:
                _follow(
                    text,
                    out,
                    request,
                    lambda: selected(paths, topics, partitions, max_batch_bytes).paths,
                    is_alone=selection.is_single,
                    max_batch_bytes=max_batch_bytes,
                )
                return
            text.write(scan)
        else:
            write_batches(schema, counted(scan, row_count, to_file=to_file), out, written_format, target)
    is_asked = limit != 0 and last != 0
    is_selecting = last is not None or selects(start_offset, end_offset, since, until, key, key_prefix, grep)
    _end(scan, is_isolated=isolation is not None, is_selecting=is_asked and is_selecting)


def _end(scan: Scan, *, is_isolated: bool, is_selecting: bool) -> None:
    """Write what is to say about the records that were written, and end with the exit code."""
    uncommitted = None if is_isolated else _uncommitted(scan)
    if uncommitted is not None:
        say(uncommitted)
    if scan.damaged_ranges:
        for damage in scan.damaged_ranges:
            say(damage_in_words(damage))
        raise typer.Exit(FAILED)
    if is_selecting and not scan.stats.records:
        raise NothingFoundError("no record matches")


def _check_raw(columns: str | None, output_format: Format | None, *, json: bool, on_damage: str) -> None:
    if columns is not None or output_format is not None or json:
        raise UsageError("--raw writes values alone: use it without --columns, --format and --json")
    if on_damage == "report":
        raise UsageError("--raw has no column for damage: use --on-damage skip, or another format")


def _written_format(target: Output, given: Format | None, *, raw: bool) -> Format:
    by_suffix = None if target.path is None else SUFFIXES.get(target.path.suffix.lower())
    if raw and by_suffix not in {None, "jsonl"}:
        raise UsageError(f"--raw writes values alone, and {target.path} has the suffix of {by_suffix}")
    # a file of values alone may have any other suffix
    return format_of(target.path, "jsonl" if raw else given)


def _check_following(target: Output, written_format: Format, *, end_offset: int | None, until: str | None) -> None:
    if written_format not in {"jsonl", "csv"}:
        raise UsageError(f"--follow writes jsonl, csv and --raw, not {written_format}")
    if target.is_file:
        raise UsageError("--follow writes to standard output or to a pipe: a file appears only when it is complete")
    if end_offset is not None or until is not None:
        raise UsageError("--follow has no end: use it without --end-offset and --until")


def _follow(  # noqa: PLR0913  (the options of the command)
    text: TextOutput,
    out: BinaryIO,
    request: dict[str, Any],
    select: Callable[[], list[Path]],
    *,
    is_alone: bool,
    max_batch_bytes: int,
) -> None:
    """Write the records of these partitions, and then new ones."""
    said: set[str] = set()

    def say_once(scan: Scan) -> None:
        found = [_uncommitted(scan)] if request["isolation_level"] == "read_uncommitted" else []
        for paragraph in [*found, *map(damage_in_words, scan.damaged_ranges)]:
            if paragraph is not None and paragraph not in said:
                said.add(paragraph)
                say(paragraph)

    committed = request["isolation_level"] == "read_committed"

    def followers(known: Collection[Path], start: int | None, *, is_new: bool) -> dict[Path, Follower]:
        paths = [path for path in select() if path not in known]
        found = {}
        for path in paths:
            found[path] = Follower(path, start, committed=committed, is_new=is_new, max_batch_bytes=max_batch_bytes)
            if len(paths) > max_open_logs():
                found[path].release()
        return found

    def created(known: Collection[Path]) -> dict[Path, Follower]:
        return followers(known, None, is_new=True)

    first = followers((), request["start_offset"], is_new=False)
    with suppress(LimitReached):
        follow(first, text.follower(request, say_once), out, created, is_alone=is_alone)


def _columns(given: str | None, *, include_control: bool, has_origin: bool) -> list[str]:
    if given is None:
        origin = _ORIGIN_COLUMNS if has_origin else ()
        return [*origin, *RECORD_COLUMNS, *(["is_control"] if include_control else [])]
    names = [name.strip() for name in given.split(",")]
    if not all(names):
        raise UsageError(f"--columns: expected column names separated by commas, found {given!r}")
    return names


def _uncommitted(scan: Scan) -> str | None:
    found = scan.first_uncommitted
    if found is None:
        return None
    return (
        f"{found[0]}: the output contains records of transactions that were aborted or have not ended, the first "
        f"at offset {found[1]}; --isolation read_committed leaves them out"
    )
