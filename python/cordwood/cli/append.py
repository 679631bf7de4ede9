"""`cordwood append`: append records from standard input to a log."""

import base64
import itertools
import json
import os
import select
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cordwood import (
    Appended,
    ConfigError,
    CordwoodError,
    InvalidRecordError,
    LogWriter,
    Record,
    RecordTooLargeError,
)
from cordwood.cli.exit_codes import UsageError, say, sentence
from cordwood.cli.formats import DAMAGE_COLUMN, OTHER_COLUMNS, RECORD_COLUMNS
from cordwood.cli.limits import DEFAULT_MAX_BATCH_BYTES
from cordwood.cli.moment import with_unit
from cordwood.cli.path import parse_path
from cordwood.cli.progress import counted
from cordwood.cli.record_range import MaxBatchBytes
from cordwood.cli.recover import say_changes
from cordwood.cli.settings import PROPERTIES, SETTINGS, settings_of
from cordwood.cli.terminal import print_json, print_text
from cordwood.quantities import several

__all__ = ["append"]

InputFormat = Literal["lines", "jsonl"]

_POLL_S = 0.5
_CHUNK_BYTES = 1 << 20
_IGNORED_FIELDS = {"offset", "timestamp_type"}
_FIELDS = {"value", "key", "headers", "timestamp"}
_COLUMNS = {*RECORD_COLUMNS, *OTHER_COLUMNS, DAMAGE_COLUMN}


class LineError(ValueError):
    """A line is not a record."""


def append(  # noqa: PLR0913, PLR0917  (a command's options)
    path: Annotated[
        Path,
        typer.Argument(parser=parse_path, help="A partition directory. It is created if it is missing."),
    ],
    input_format: Annotated[
        InputFormat | None,
        typer.Option(
            "--format",
            help="The format of standard input. By default a line is a value, or a record if the first line is output "
            "of cordwood cat (a message on stderr says so).",
        ),
    ] = None,
    key_separator: Annotated[
        str | None, typer.Option(help="With lines: the text before its first occurrence is the key.")
    ] = None,
    flush: Annotated[
        str,
        typer.Option(
            help="When records are made durable: always, none, 'group(ms=2, bytes=1048576)', 'interval(messages=1000)' "
            "or 'interval(ms=50)'. At the end all of them are durable."
        ),
    ] = "always",
    assignments: Annotated[list[str] | None, SETTINGS] = None,
    properties: Annotated[Path | None, PROPERTIES] = None,
    topic_id: Annotated[str | None, typer.Option(help="The topic id, as Kafka prints it, for a new partition.")] = None,
    leader_epoch: Annotated[
        int | None, typer.Option(min=0, help="The leader epoch of the batches. By default the latest epoch of the log.")
    ] = None,
    max_batch_bytes: MaxBatchBytes = DEFAULT_MAX_BATCH_BYTES,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a sentence.")] = False,
) -> None:
    """Append standard input to a log, one record per line, and print the offsets.

    The lines that a pipe contains at one time are one append. An empty input does not open a log that exists. With
    --format jsonl a line is an object with value, key, headers and timestamp, as `cordwood cat` writes it. Values are
    text, or {"base64": "…"}. A timestamp is a number of ms, or a text such as 2024-05-01T10:00Z or 1714557600s; null
    means no timestamp, and a missing one means now. So the output of `cat` can be appended to another log. It contains
    aborted records, unless `cat` has --isolation read_committed.

    \b
    echo 'first line' | cordwood append greetings-0
    cordwood append orders-0 --key-separator : --flush 'group(ms=5)' < orders.txt
    cordwood cat orders-0 --isolation read_committed | cordwood append copy-0 --format jsonl

    A log has one writer at a time, and no broker may use it. If a line is invalid, the records before it are kept.
    """  # noqa: D301
    _check(input_format, key_separator)
    config = settings_of(path, properties, assignments).config
    if path.exists():
        # refuse a log that cannot be opened before waiting for the first line
        LogWriter.plan_recovery(path, config=config, max_batch_bytes=max_batch_bytes)
    chunks = _chunks()
    first = next(chunks, None)
    if first is None and path.exists():
        # an opening may recover the log
        say("standard input is empty: nothing was opened or changed")
        _report(str(path.absolute()), 0, 0, as_json=as_json)
        return
    lines = list(first or ())
    if input_format is None and key_separator is None:
        input_format = _detected(lines)
    to_record = _record_parser(input_format or "lines", None if key_separator is None else key_separator.encode())
    with LogWriter(
        path,
        config=config,
        flush=flush,
        topic_id=topic_id,
        leader_epoch=leader_epoch,
        max_batch_bytes=max_batch_bytes,
    ) as writer:
        opened_path, start = writer.path, writer.log_end_offset
        say_changes(writer.recovery)
        try:
            for _ in counted(_appended(writer, to_record, itertools.chain([lines], chunks)), _count, to_file=True):
                pass
        except BaseException:
            # ask the writer: Ctrl-C may arrive after an append is done and before it has returned
            end = _durable(writer)
            if end > start:
                say(f"appended before the error: offsets {start} to {end - 1}")
            raise
        end = writer.log_end_offset
    _report(opened_path, start, end, as_json=as_json)


def _check(input_format: InputFormat | None, key_separator: str | None) -> None:
    if key_separator is not None and input_format == "jsonl":
        raise UsageError("--key-separator is for --format lines; a jsonl line has a field key")
    if key_separator == "":
        raise UsageError("--key-separator: expected at least one character, found none")
    if sys.stdin is None:
        raise UsageError("standard input is closed, so there is nothing to append")


def _durable(writer: LogWriter) -> int:
    with suppress(CordwoodError, OSError):
        writer.flush()
    return writer.durable_offset


def _report(path: str, start: int, end: int, *, as_json: bool) -> None:
    count = end - start
    if as_json:
        first, last = (start, end - 1) if count else (None, None)
        print_json({"path": path, "first_offset": first, "last_offset": last, "count": count})
    elif count == 0:
        print_text(f"{path}: nothing to append")
    else:
        print_text(f"{path}: appended {several(count, 'record')}, offsets {start} to {end - 1}")


def _count(appended: Appended) -> int:
    return appended.last_offset - appended.first_offset + 1


def _appended(
    writer: LogWriter, to_record: Callable[[bytes], Record], chunks: Iterable[Iterable[bytes]]
) -> Iterator[Appended]:
    number = 0
    for lines in chunks:
        first, records, wrong = number + 1, [], None
        for line in lines:
            number += 1
            try:
                records.append(to_record(line))
            except (ValueError, TypeError) as error:
                wrong = _line_error(number, str(error))
                break
        yield from _append(writer, records, first)
        if wrong is not None:
            raise wrong


def _append(writer: LogWriter, records: list[Record], line: int) -> Iterator[Appended]:
    """Append records; the first is on the given line. If one is refused, append the records before it and raise."""
    if not records:
        return
    end = writer.log_end_offset
    try:
        yield writer.append_many(records)
    except (ConfigError, InvalidRecordError, RecordTooLargeError) as error:
        # earlier batches may have been appended: some are found to be too large only after compression
        done = writer.log_end_offset - end
        rest, line = records[done:], line + done
        if len(rest) == 1:
            raise _line_error(line, sentence(error, "append")) from None
        half = len(rest) // 2
        yield from _append(writer, rest[:half], line)
        yield from _append(writer, rest[half:], line + half)


def _line_error(line: int, cause: str) -> LineError:
    return LineError(f"line {line} is not a record: {cause}")


def _read(source: int) -> bytes:
    """Read the available bytes. Poll, because a Ctrl-C just before a blocking read would not interrupt it."""
    while not select.select([source], [], [], _POLL_S)[0]:
        pass
    try:
        return os.read(source, _CHUNK_BYTES)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, "standard input") from error


def _chunks() -> Iterator[Iterable[bytes]]:
    """Yield whole lines, without line ends, as they arrive."""
    source, rest = sys.stdin.fileno(), [b""]
    while chunk := _read(source):
        head, newline, tail = chunk.rpartition(b"\n")
        if newline:
            yield b"".join([*rest, head]).split(b"\n")
            rest = []
        rest.append(tail)
    if any(rest):
        yield [b"".join(rest)]


def _detected(lines: list[bytes]) -> InputFormat:
    """Detect the format from the first line.

    A record with an offset is output of `cat`. Any other JSON object with columns of `cat` may also be a value.
    """
    found: InputFormat = "lines"
    names = _names(lines[0]) if lines else set()
    if names and names <= _COLUMNS:
        try:
            _record_of_json(lines[0])
        except (ValueError, TypeError) as error:
            raise UsageError(
                f"the first line looks like output of cordwood cat but is not a record: {error}; use --format lines to "
                f"append lines as values, or the output of cordwood cat --columns {','.join(RECORD_COLUMNS)}"
            ) from None
        if "offset" not in names:
            raise UsageError(
                "the first line is JSON that may be a record or a value: choose with --format jsonl or --format lines"
            )
        found = "jsonl"
        say(
            "standard input is output of cordwood cat, so --format jsonl is used; "
            "--format lines appends its lines as values"
        )
    return found


def _names(line: bytes) -> set[str]:
    """Return the names in a line that is a JSON object; an empty set for any other line."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return set()
    return set(fields) if isinstance(fields, dict) else set()


def _record_parser(input_format: InputFormat, key_separator: bytes | None) -> Callable[[bytes], Record]:
    if input_format == "jsonl":
        return _record_of_json
    if key_separator is None:
        return Record
    separator = key_separator

    def with_key(line: bytes) -> Record:
        key, found, value = line.partition(separator)
        if not found:
            raise LineError(f"it does not contain {separator.decode()!r}")
        return Record(value, key=key)

    return with_key


def _record_of_json(line: bytes) -> Record:
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise LineError(f"not JSON: {error}") from None
    except RecursionError:
        raise LineError("the JSON is nested too deeply") from None
    if not isinstance(fields, dict):
        raise LineError("not a JSON object")
    unknown = sorted(fields.keys() - _FIELDS - _IGNORED_FIELDS)
    if unknown:
        raise LineError(f"unknown fields {', '.join(unknown)}; expected value, key, headers and timestamp")
    if "value" not in fields:
        raise LineError("it has no field value (which may be null)")
    headers = _headers(fields.get("headers"))
    return Record(_bytes(fields["value"], "value"), _bytes(fields.get("key"), "key"), headers, _timestamp(fields))


def _timestamp(fields: dict[str, Any]) -> int | str | None:
    """Return the timestamp of a line. A number that looks like one of another unit is refused, unless it was stored."""
    if "timestamp" not in fields:
        return None
    match fields["timestamp"]:
        case None:
            return -1
        case str(text):
            return text
        case bool():
            pass
        case int(number):
            return with_unit(number) if "offset" in fields and number >= 0 else number
    raise LineError("timestamp: expected a number of milliseconds, a text such as 2024-05-01T10:00Z, or null")


def _headers(given: object) -> list[tuple[bytes | str, bytes | str | None]]:
    headers: list[tuple[bytes | str, bytes | str | None]] = []
    if given is None:
        return headers
    for pair in given if isinstance(given, list) else [given]:
        match pair:
            case [name, value] if (key := _bytes(name, "a header's name")) is not None:
                headers.append((key, _bytes(value, "a header")))
            case _:
                raise LineError("headers: expected a list of [name, value]")
    return headers


def _bytes(value: Any, what: str) -> bytes | str | None:  # noqa: ANN401  (any JSON value)
    match value:
        case None | str():
            return value
        case {"base64": str() as text} if len(value) == 1:
            try:
                return base64.b64decode(text, validate=True)
            except ValueError as error:
                raise LineError(f"{what}: expected base64: {error}") from None
    raise LineError(f'{what}: expected text, null or {{"base64": "…"}}')
