"""`cordwood append`: records from standard input to a log."""

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
from cordwood.cli.progress import counted
from cordwood.cli.settings import PROPERTIES, SETTINGS, settings
from cordwood.cli.terminal import print_json, print_text, several

__all__ = ["append"]

InputFormat = Literal["lines", "jsonl"]

_PATIENCE_S = 0.5
_CHUNK_BYTES = 1 << 20
_MADE_BY_CAT = {"offset", "timestamp_type"}
_FIELDS = {"value", "key", "headers", "timestamp"}
_COLUMNS = {*RECORD_COLUMNS, *OTHER_COLUMNS, DAMAGE_COLUMN}


class LineError(ValueError):
    """A line that is no record; the message names it."""


def append(  # noqa: PLR0913, PLR0917  (a command's options)
    path: Annotated[Path, typer.Argument(help="A partition's directory; it is made where there is none.")],
    input_format: Annotated[
        InputFormat | None,
        typer.Option(
            "--format",
            help="What a line of standard input is. By default a value; where the first line is one of cordwood cat, "
            "a record of it, and stderr says so.",
        ),
    ] = None,
    key_separator: Annotated[
        str | None, typer.Option(help="With lines: what stands before it, the first time, is the key.")
    ] = None,
    flush: Annotated[
        str,
        typer.Option(
            help="When records are made durable: always, none, 'group(ms=2, bytes=1048576)', 'interval(messages=1000)' "
            "or 'interval(ms=50)'. At the end all of them are."
        ),
    ] = "always",
    assignments: Annotated[list[str] | None, SETTINGS] = None,
    properties: Annotated[Path | None, PROPERTIES] = None,
    topic_id: Annotated[
        str | None, typer.Option(help="The topic's id, as Kafka prints it, for a partition that is made.")
    ] = None,
    leader_epoch: Annotated[
        int | None, typer.Option(min=0, help="What batches are stamped with; by default the log's latest epoch.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a sentence.")] = False,
) -> None:
    """Append standard input to a log, a record a line, and say where it went.

    Lines are taken as they come: what a pipe holds at a time is one append. With --format jsonl a line is an object of
    value, key, headers and timestamp (ms), as `cordwood cat` writes it: text, or {"base64": "…"}; a timestamp of null
    is none, one that is left out is now. So `cat` of one log can be the `append` of another. What was aborted is
    appended like the rest, unless --isolation read_committed leaves it out.

    \b
    echo 'first line' | cordwood append greetings-0
    cordwood append orders-0 --key-separator : --flush 'group(ms=5)' < orders.txt
    cordwood cat orders-0 --isolation read_committed | cordwood append copy-0 --format jsonl

    Only one writer may use a log at a time, and no broker. What was appended before a line that cannot be read stays.
    """  # noqa: D301
    if key_separator is not None and input_format == "jsonl":
        raise UsageError("--key-separator is for --format lines; a jsonl line has a key of its own")
    if key_separator == "":
        raise UsageError("--key-separator wants at least one letter")
    if sys.stdin is None:
        raise UsageError("there is no standard input to append")
    config = settings(properties, assignments)
    chunks = _chunks()
    if input_format is None and key_separator is None:
        if path.exists():
            # the first line may take long to arrive
            LogWriter.plan_recovery(path, config=config)
        input_format, chunks = _detected(chunks)
    made = _maker(input_format or "lines", None if key_separator is None else key_separator.encode())
    with LogWriter(path, config=config, flush=flush, topic_id=topic_id, leader_epoch=leader_epoch) as writer:
        where, start = writer.path, writer.log_end_offset
        try:
            for _ in counted(_appended(writer, made, chunks), _count, to_file=True):
                pass
        except BaseException:
            # asked of the log: Ctrl-C may come when an append is done and before anybody has heard of it
            end = _durable(writer)
            if end > start:
                say(f"appended before that: offsets {start} to {end - 1}")
            raise
        end = writer.log_end_offset
    _report(where, start, end, as_json=as_json)


def _durable(writer: LogWriter) -> int:
    with suppress(CordwoodError, OSError):
        writer.flush()
    return writer.durable_offset


def _report(path: str, start: int, end: int, *, as_json: bool) -> None:
    count = end - start
    if as_json:
        first, last = (start, end - 1) if count else (None, None)
        print_json({"path": path, "first": first, "last": last, "count": count})
    elif count == 0:
        print_text(f"{path}: nothing to append")
    else:
        print_text(f"{path}: appended {several(count, 'record')}, offsets {start} to {end - 1}")


def _count(appended: Appended) -> int:
    return appended.last_offset - appended.first_offset + 1


def _appended(
    writer: LogWriter, made: Callable[[bytes], Record], chunks: Iterable[Iterable[bytes]]
) -> Iterator[Appended]:
    number = 0
    for lines in chunks:
        first, records, wrong = number + 1, [], None
        for line in lines:
            number += 1
            try:
                records.append(made(line))
            except (ValueError, TypeError) as error:
                wrong = _no_record(number, str(error))
                break
        yield from _append(writer, records, first)
        if wrong is not None:
            raise wrong


def _append(writer: LogWriter, records: list[Record], line: int) -> Iterator[Appended]:
    """Append the records of lines from this one on; where one is refused, those before it, and name its line."""
    if not records:
        return
    end = writer.log_end_offset
    try:
        yield writer.append_many(records)
    except (ConfigError, InvalidRecordError, RecordTooLargeError) as error:
        # a batch that is only found too large once it is compressed may have others before it
        done = writer.log_end_offset - end
        rest, line = records[done:], line + done
        if len(rest) == 1:
            raise _no_record(line, sentence(error)) from None
        half = len(rest) // 2
        yield from _append(writer, rest[:half], line)
        yield from _append(writer, rest[half:], line + half)


def _no_record(line: int, cause: str) -> LineError:
    return LineError(f"line {line} is no record: {cause}")


def _read(source: int) -> bytes:
    """Read what is there, and wait for it in pieces: a Ctrl-C that comes just before a read would not end it."""
    while not select.select([source], [], [], _PATIENCE_S)[0]:
        pass
    try:
        return os.read(source, _CHUNK_BYTES)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, "standard input") from error


def _chunks() -> Iterator[Iterable[bytes]]:
    """Give whole lines, without their ends, as they come."""
    source, rest = sys.stdin.fileno(), [b""]
    while chunk := _read(source):
        head, newline, tail = chunk.rpartition(b"\n")
        if newline:
            yield b"".join([*rest, head]).split(b"\n")
            rest = []
        rest.append(tail)
    if any(rest):
        yield [b"".join(rest)]


def _detected(chunks: Iterator[Iterable[bytes]]) -> tuple[InputFormat, Iterator[Iterable[bytes]]]:
    """Detect the format from the first line.

    A record with an offset is the output of `cat`. Any other JSON object of columns of `cat` may be a value as well.
    """
    lines = list(next(chunks, ()))
    found: InputFormat = "lines"
    names = _names(lines[0]) if lines else set()
    if names and names <= _COLUMNS:
        try:
            _of_json(lines[0])
        except (ValueError, TypeError) as error:
            raise UsageError(
                f"the first line may be output of cordwood cat, and is no record: {error}; give --format lines to "
                f"append lines as values, or input of cordwood cat --columns {','.join(RECORD_COLUMNS)}"
            ) from None
        if "offset" not in names:
            raise UsageError(
                "the first line is JSON that may be a record or a value: say which, by --format jsonl or --format lines"
            )
        found = "jsonl"
        say("standard input is of cordwood cat, and taken as --format jsonl; --format lines takes its lines as values")
    return found, itertools.chain([lines], chunks)


def _names(line: bytes) -> set[str]:
    """List the names in a line that is a JSON object; none of any other line."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return set()
    return set(fields) if isinstance(fields, dict) else set()


def _maker(input_format: InputFormat, key_separator: bytes | None) -> Callable[[bytes], Record]:
    if input_format == "jsonl":
        return _of_json
    if key_separator is None:
        return Record
    separator = key_separator

    def with_key(line: bytes) -> Record:
        key, found, value = line.partition(separator)
        if not found:
            raise LineError(f"there is no {separator.decode()!r} in it")
        return Record(value, key=key)

    return with_key


def _of_json(line: bytes) -> Record:
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise LineError(f"not JSON: {error}") from None
    except RecursionError:
        raise LineError("not JSON that can be read: it is nested too deeply") from None
    if not isinstance(fields, dict):
        raise LineError("not an object")
    unknown = sorted(fields.keys() - _FIELDS - _MADE_BY_CAT)
    if unknown:
        raise LineError(f"of {', '.join(unknown)} nothing is known; it may have value, key, headers and timestamp")
    if "value" not in fields:
        raise LineError("it has no value (null is one)")
    timestamp = fields.get("timestamp", "now")
    if timestamp is None:
        timestamp = -1
    elif timestamp == "now":
        timestamp = None
    elif isinstance(timestamp, bool) or not isinstance(timestamp, int):
        raise LineError("timestamp is a number of milliseconds, or null")
    headers = _headers(fields.get("headers"))
    return Record(_bytes(fields["value"], "value"), _bytes(fields.get("key"), "key"), headers, timestamp)


def _headers(given: object) -> list[tuple[bytes | str, bytes | str | None]]:
    headers: list[tuple[bytes | str, bytes | str | None]] = []
    if given is None:
        return headers
    for pair in given if isinstance(given, list) else [given]:
        match pair:
            case [name, value] if (key := _bytes(name, "a header's name")) is not None:
                headers.append((key, _bytes(value, "a header")))
            case _:
                raise LineError("headers is a list of [name, value]")
    return headers


def _bytes(value: Any, what: str) -> bytes | str | None:  # noqa: ANN401  (whatever JSON can say)
    match value:
        case None | str():
            return value
        case {"base64": str() as text} if len(value) == 1:
            try:
                return base64.b64decode(text, validate=True)
            except ValueError as error:
                raise LineError(f"{what} is not base64: {error}") from None
    raise LineError(f'{what} is text, null or {{"base64": "…"}}')
