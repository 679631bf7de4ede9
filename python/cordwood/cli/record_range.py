"""Options that select records, of the commands that read many of them."""

import os
from datetime import tzinfo
from typing import Annotated, Any

import typer

from cordwood.cli.exit_codes import UsageError
from cordwood.cli.limits import MAX_BATCH_BYTES_OPTION
from cordwood.cli.moment import parse_time, with_unit
from cordwood.times import FORMS, in_words

__all__ = [
    "EndOffset",
    "Grep",
    "Key",
    "KeyPrefix",
    "MaxBatchBytes",
    "Since",
    "StartOffset",
    "Until",
    "contents",
    "selects",
    "times",
]

StartOffset = Annotated[int | None, typer.Option(help="First offset, inclusive.")]
EndOffset = Annotated[int | None, typer.Option(help="End offset, exclusive.")]
MaxBatchBytes = Annotated[int, typer.Option("--max-batch-bytes", **MAX_BATCH_BYTES_OPTION)]
Since = Annotated[str | None, typer.Option(help=f"First time, inclusive: {FORMS}.")]
Until = Annotated[str | None, typer.Option(help="End time, exclusive, in the same forms.")]
Key = Annotated[list[str] | None, typer.Option(metavar="TEXT", help="Only records with this key. Repeatable: any.")]
KeyPrefix = Annotated[
    list[str] | None,
    typer.Option(metavar="TEXT", help="Only records whose key begins with this text. Repeatable: any."),
]
Grep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="REGEX",
        help="Only records whose value matches this regular expression (syntax of the Rust crate regex; (?i) ignores "
        "case). Repeatable: any.",
    ),
]


def times(since: str | None, until: str | None, zone: tzinfo | None) -> dict[str, Any]:
    """Return a range of times as arguments of the core, for a command with `--tz`. *Errors*: `UsageError`."""
    start = None if since is None else parse_time("--since", since, zone, has_tz=True)
    end = None if until is None else parse_time("--until", until, zone, has_tz=True)
    if start is not None and end is not None and end < start:
        raise UsageError(f"--until {in_words(end)} is before --since {in_words(start)}")
    return {"start_time": with_unit(start), "end_time": with_unit(end)}


def contents(keys: list[str] | None, key_prefixes: list[str] | None, patterns: list[str] | None) -> dict[str, Any]:
    """Return the filters of keys and values as arguments of the core. Keys are the bytes of the command line."""
    return {
        "key": [os.fsencode(key) for key in keys] if keys else None,
        "key_prefix": [os.fsencode(prefix) for prefix in key_prefixes] if key_prefixes else None,
        "grep": patterns or None,
    }


def selects(*options: object) -> bool:
    """Return whether one of these options was given."""
    return any(option is not None and option != [] for option in options)
