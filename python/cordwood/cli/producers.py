"""`cordwood producers`: what logs know of each producer id."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cordwood import CordwoodError, Log, ProducerState
from cordwood.cli.exit_codes import FAILED, NothingFoundError, UsageError, error_in_words, say
from cordwood.cli.limits import DEFAULT_MAX_BATCH_BYTES
from cordwood.cli.path import parse_path
from cordwood.cli.record_range import MaxBatchBytes
from cordwood.cli.selection import PartitionNumbers, Selection, Topics, selected
from cordwood.cli.tables import time_in_words
from cordwood.cli.terminal import Column, print_json, print_table
from cordwood.quantities import several

__all__ = ["producers"]

_FIELDS = (
    "producer_id",
    "producer_epoch",
    "last_sequence",
    "last_offset",
    "last_timestamp",
    "open_transaction",
    "coordinator_epoch",
    "expires",
)
_COLUMNS: list[Column] = [
    ("producer", "right"),
    ("epoch", "right"),
    ("last sequence", "right"),
    ("last offset", "right"),
    ("last time", "left"),
    ("open since", "right"),
    ("coordinator", "right"),
    ("expires", "left"),
]


def producers(
    paths: Annotated[list[Path], typer.Argument(parser=parse_path, help="Partition directories and data directories.")],
    topics: Topics = None,
    partitions: PartitionNumbers = None,
    max_batch_bytes: MaxBatchBytes = DEFAULT_MAX_BATCH_BYTES,
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")] = False,
) -> None:
    """List the producer ids that logs know, with their last batches and open transactions.

    \b
    cordwood producers /var/lib/kafka/orders-0
    cordwood producers /var/lib/kafka --topic orders             in each of its partitions
    cordwood producers orders-0 --json | jq '.producers[] | select(.open_transaction != null)'

    They come from the latest snapshot and from the batches after it, as for a broker that opens the log. expires: when
    producer.id.expiration.ms (by default a day) has passed since the last time. A broker forgets the producer at its
    next check after that. It is empty for a producer with an open transaction. The exit code is 1 if there is none, or
    if a partition cannot be read.
    """  # noqa: D301
    selection = selected(paths, topics, partitions, max_batch_bytes)
    if selection.files is not None:
        raise UsageError("the producers are those of whole partitions: give the partition directory, not .log files")
    if not selection.is_single:
        _of_each(selection, max_batch_bytes, json=json)
        return
    [path] = selection.paths
    states = Log(path, max_batch_bytes=max_batch_bytes).producers
    if not states:
        raise NothingFoundError(f"{path}: no batch has a producer id")
    if json:
        print_json({"path": str(path.absolute()), "producers": _rows(states)})
    else:
        print_table(f"{path}: {several(len(states), 'producer id')}", _COLUMNS, [_cells(state) for state in states])


def _of_each(selection: Selection, max_batch_bytes: int, *, json: bool) -> None:
    found: list[tuple[Path, list[ProducerState]]] = []
    failed = [(path, error_in_words(error, "producers")) for path, error in selection.failed]
    for path in selection.paths:
        try:
            found.append((path, Log(path, max_batch_bytes=max_batch_bytes).producers))
        except (CordwoodError, OSError) as error:
            failed.append((path, error_in_words(error, "producers")))
    rows = [[path.absolute().name, *_cells(state)] for path, states in found for state in states]
    if json:
        errors = {"failed": [{"path": str(path), "error": reason} for path, reason in failed]} if failed else {}
        logs = [{"path": str(path.absolute()), "producers": _rows(states)} for path, states in found]
        print_json({"partitions": logs} | errors)
    elif rows:
        title = f"{several(len(rows), 'producer id')} in {several(len(found), 'partition')}"
        print_table(title, [("partition", "left"), *_COLUMNS], rows)
    for _, reason in failed:
        say(reason)
    if failed:
        raise typer.Exit(FAILED)
    if not rows:
        raise NothingFoundError(f"no batch of {several(len(found), 'partition')} has a producer id")


def _rows(states: list[ProducerState]) -> list[dict[str, Any]]:
    return [{name: getattr(state, name) for name in _FIELDS} for state in states]


def _cells(state: ProducerState) -> list[str]:
    def text(value: int | None) -> str:
        return "" if value is None else str(value)

    return [
        str(state.producer_id),
        text(state.producer_epoch),
        text(state.last_sequence),
        text(state.last_offset),
        time_in_words(state.last_timestamp),
        text(state.open_transaction),
        text(state.coordinator_epoch),
        time_in_words(state.expires),
    ]
