"""Output of a `Table`: for a terminal, or as JSON lines, CSV, Arrow or Parquet."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from cordwood import Table
from cordwood.cli.damage import damage_in_words
from cordwood.cli.declared import Option
from cordwood.cli.exit_codes import FailedError, NothingFoundError, UsageError, say
from cordwood.cli.formats import Format, csv_line, format_of, json_line, write_batches, write_lines
from cordwood.cli.output import output_of
from cordwood.cli.terminal import Column, dropping_unread, escape, escape_json, print_table
from cordwood.quantities import several
from cordwood.times import in_words

__all__ = [
    "MOST_MESSAGES",
    "FormatOption",
    "JsonOption",
    "OnDamageOption",
    "OutputOption",
    "Shown",
    "list_in_words",
    "time_in_words",
    "write",
]

MOST_MESSAGES = 5
"""Messages of one kind beyond these are only counted: the table has them all."""

JsonOption = Annotated[bool, Option("--json", help="The same as --format jsonl.")]
FormatOption = Annotated[
    Format | None,
    Option(
        "--format",
        help="By default a table for people; with -o by its suffix, and jsonl for a file without a suffix. arrow and "
        "parquet need pyarrow.",
    ),
]
OutputOption = Annotated[
    Path | None, Option("-o", "--output", help="A file, pipe or device. By default - (standard output).")
]
OnDamageOption = Annotated[
    Literal["raise", "skip", "report"],
    Option(help="Stop at damage, skip it, or add a row with an error for it."),
]


class Shown(NamedTuple):
    """How a table is shown to people."""

    title: Callable[[list[dict[str, Any]]], str]
    columns: list[Column]
    row: Callable[[dict[str, Any]], list[str]]
    nothing: str
    """The message if there is no row."""


def time_in_words(time: int | None) -> str:
    """Return a time of a row as text; empty if there is none."""
    return "" if time is None else in_words(time)


def list_in_words(values: list[Any] | None) -> str:
    """Return the values of a row's list as text."""
    return "" if values is None else ",".join(map(str, values))


def write(  # noqa: PLR0913  (the options of a command)
    table: Table,
    shown: Shown,
    *,
    paths: Sequence[Path],
    json_lines: bool,
    output_format: Format | None,
    output: Path | None,
    remarks: Sequence[str] = (),
) -> None:
    """Write a table, and then what is wrong: its damage, its errors, and the *remarks*.

    The exit code is 1 if anything is wrong, or if there are no rows; then no file is written.
    """
    if json_lines and output_format not in {None, "jsonl"}:
        raise UsageError(f"--json means --format jsonl, but --format is {output_format}: use one of them")
    rows = table.to_dicts()
    if rows and output is None and output_format is None and not json_lines:
        print_table(shown.title(rows), shown.columns, [shown.row(row) for row in rows])
    elif rows:
        with dropping_unread():
            _write_file(table, rows, paths, "jsonl" if json_lines else output_format, output)
    wrong = sum(row.get("error") is not None for row in rows)
    damaged = table.damaged_ranges
    for damage in damaged[:MOST_MESSAGES]:
        say(damage_in_words(damage))
    if len(damaged) > MOST_MESSAGES:
        say(f"left out {several(len(damaged) - MOST_MESSAGES, 'more damaged range')}")
    if wrong:
        say(f"{wrong} of {len(rows)} rows have an error")
    for remark in remarks:
        say(remark)
    if not rows:
        raise NothingFoundError(shown.nothing)
    if wrong or damaged or remarks:
        raise FailedError


def _write_file(
    table: Table, rows: list[dict[str, Any]], paths: Sequence[Path], output_format: Format | None, output: Path | None
) -> None:
    target = output_of(output, *(str(path.absolute()) for path in paths))
    chosen = format_of(target.path, output_format)
    is_text = chosen in {"jsonl", "csv"}
    arrow = None if is_text else table.to_arrow()
    with target.opened(binary=not is_text) as out:
        if arrow is not None:
            write_batches(arrow.schema, arrow.to_batches(), out, chosen, target)
            return
        is_json = chosen == "jsonl"
        lines = map(json_line, rows) if is_json else _csv_lines(table.column_names, rows)
        shown = map(escape_json if is_json else escape, lines) if out.isatty() else lines
        write_lines(((line.encode() + b"\n", 1) for line in shown), out)


def _csv_lines(columns: list[str], rows: list[dict[str, Any]]) -> Iterator[str]:
    yield csv_line(columns)
    yield from (csv_line(row.values()) for row in rows)
