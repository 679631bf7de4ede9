"""`cordwood producers`: what a log knows of each producer id."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cordwood import Log, ProducerState, classify
from cordwood.cli.exit_codes import NothingFoundError, UsageError
from cordwood.cli.path import parse_path
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
    path: Annotated[Path, typer.Argument(parser=parse_path, help="A partition directory.")],
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")] = False,
) -> None:
    """List the producer ids that a log knows, with their last batches and open transactions.

    \b
    cordwood producers /var/lib/kafka/orders-0
    cordwood producers orders-0 --json | jq '.producers[] | select(.open_transaction != null)'

    They are those of the latest snapshot and of the batches after it, as a broker finds them when it opens the log.
    expires: when producer.id.expiration.ms, of which the default is a day, has passed since the last time. A broker
    forgets the producer at its next check after that. It is empty for a producer with an open transaction.
    The exit code is 1 if there is none.
    """  # noqa: D301
    if classify(path).kind == "data_directory":
        raise UsageError(f"{path} is a data directory: give the path of one partition in it")
    states = Log(path).producers
    if not states:
        raise NothingFoundError(f"{path}: no batch has a producer id")
    if json:
        rows: list[dict[str, Any]] = [{name: getattr(state, name) for name in _FIELDS} for state in states]
        print_json({"path": str(path.absolute()), "producers": rows})
    else:
        print_table(f"{path}: {several(len(states), 'producer id')}", _COLUMNS, [_cells(state) for state in states])


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
