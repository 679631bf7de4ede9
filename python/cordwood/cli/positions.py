"""`cordwood positions`: the offsets that programs have committed in partition directories, with the lag."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from cordwood import CordwoodError, CorruptLogError, Log, LogDir, LogNotFoundError, Position, classify
from cordwood.cli.exit_codes import FAILED, NothingFoundError, error_in_words, say
from cordwood.cli.limits import DEFAULT_MAX_BATCH_BYTES
from cordwood.cli.path import parse_path
from cordwood.cli.record_range import MaxBatchBytes
from cordwood.cli.terminal import Column, print_json, print_table
from cordwood.quantities import several
from cordwood.times import in_words

__all__ = ["positions"]

_COLUMNS: list[Column] = [
    ("name", "left"),
    ("offset", "right"),
    ("end", "right"),
    ("lag", "right"),
    ("committed", "left"),
    ("notes", "text"),
]


def positions(
    path: Annotated[Path, typer.Argument(parser=parse_path, help="A partition directory or a data directory.")],
    max_batch_bytes: MaxBatchBytes = DEFAULT_MAX_BATCH_BYTES,
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")] = False,
) -> None:
    """List the positions of programs that read a log, with the lag.

    They are the offsets that Position.commit has stored in the partition directory. The offsets of Kafka's consumer
    groups are in another place: cordwood groups lists them.

    \b
    cordwood positions /var/lib/orders-0
    cordwood positions /var/lib/kafka                                 of every partition
    cordwood positions /var/lib/orders-0 --json | jq '.positions[] | select(.lag > 1000)'

    The lag is the distance to the log end offset. It is negative if the log was truncated below the position.
    The exit code is 1 if nothing is found, or if a position or a log cannot be read.
    """  # noqa: D301
    is_directory = classify(path).kind == "data_directory"
    opened = _of_directory if is_directory else _of_partition
    rows = list(opened(path, max_batch_bytes))
    if not rows:
        raise NothingFoundError(f"{path}: no position is committed here")
    if json:
        print_json({"path": str(path.absolute()), "positions": rows})
    else:
        columns: list[Column] = [("partition", "left"), *_COLUMNS] if is_directory else _COLUMNS
        cells = [([row["partition"]] if is_directory else []) + _cells(row) for row in rows]
        count = sum(row["name"] is not None for row in rows)
        print_table(f"{path}: {several(count, 'position')}", columns, cells)
    wrong = [row for row in rows if "error" in row]
    for row in wrong:
        say(row["error"])
    if wrong:
        raise typer.Exit(FAILED)


def _of_directory(path: Path, max_batch_bytes: int) -> Iterator[dict[str, Any]]:
    directory = LogDir(path, max_batch_bytes=max_batch_bytes)
    for name in directory:
        try:
            yield from ({"partition": name} | row for row in _of_log(directory[name]))
        except (CordwoodError, OSError) as error:
            # a partition that Kafka has just created has no segment yet
            if not (isinstance(error, LogNotFoundError) and error.code == "no_segment"):
                yield {"partition": name, "name": None, "error": error_in_words(error, "positions")}


def _of_partition(path: Path, max_batch_bytes: int) -> Iterator[dict[str, Any]]:
    return _of_log(Log(path, max_batch_bytes=max_batch_bytes))


def _of_log(log: Log) -> Iterator[dict[str, Any]]:
    return (_row(log, position) for position in log.positions())


def _row(log: Log, position: Position) -> dict[str, Any]:
    row: dict[str, Any] = {"name": position.name}
    try:
        committed = position.committed
    except (CorruptLogError, OSError) as error:
        row |= {"log_start_offset": log.log_start_offset, "log_end_offset": log.log_end_offset}
        return row | {"error": error_in_words(error, "positions")}
    # after the position, which a consumer may commit while a writer appends
    log = log.refresh()
    row |= {"log_start_offset": log.log_start_offset, "log_end_offset": log.log_end_offset}
    if committed is None:
        # removed since the listing
        return row | {"offset": None, "lag": None, "timestamp": None}
    lag = log.log_end_offset - committed.offset
    return row | {"offset": committed.offset, "lag": lag, "timestamp": committed.timestamp}


def _cells(row: dict[str, Any]) -> list[str]:
    if row.get("offset") is None:
        end = row.get("log_end_offset")
        return [row["name"] or "", "", "" if end is None else str(end), "", "", row.get("error", "")]
    note = ""
    if row["lag"] < 0:
        note = "above the log end offset"
    elif row["offset"] < row["log_start_offset"]:
        note = f"below the log start offset, {row['log_start_offset']}"
    numbers = [str(row["offset"]), str(row["log_end_offset"]), str(row["lag"])]
    return [row["name"], *numbers, in_words(row["timestamp"]), note]
