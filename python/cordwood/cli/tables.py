"""Output of a `Table`: for a terminal, or as JSON lines, CSV, Arrow or Parquet."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cordwood import Table
from cordwood.cli.exit_codes import FAILED, NothingFoundError, UsageError, say
from cordwood.cli.formats import STREAM_SUFFIX, Format, format_of, write_arrow, write_lines, write_parquet
from cordwood.cli.output import output_of
from cordwood.cli.terminal import Column, escape, escape_json, print_table
from cordwood.times import in_words

__all__ = [
    "FormatOption",
    "JsonOption",
    "OnDamageOption",
    "OutputOption",
    "Shown",
    "list_in_words",
    "time_in_words",
    "write",
]

JsonOption = Annotated[bool, typer.Option("--json", help="The same as --format jsonl.")]
FormatOption = Annotated[
    Format | None,
    typer.Option(
        "--format", help="A table for people if it is left out, also without -o. arrow and parquet need pyarrow."
    ),
]
OutputOption = Annotated[
    Path | None, typer.Option("-o", "--output", help="A file, pipe or device. By default - (standard output).")
]
OnDamageOption = Annotated[
    Literal["raise", "skip", "report"],
    typer.Option(help="Stop at damage, skip it, or add a row with an error for it."),
]


@dataclass(frozen=True)
class Shown:
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
    table: Table, shown: Shown, *, path: Path, json_lines: bool, output_format: Format | None, output: Path | None
) -> None:
    """Write a table. The exit code is 1 if it has no rows, or one with an error."""
    if json_lines and output_format not in {None, "jsonl"}:
        raise UsageError(f"--json means --format jsonl, but --format is {output_format}: use one of them")
    if not len(table):
        raise NothingFoundError(shown.nothing)
    rows = table.to_dicts()
    if output is None and output_format is None and not json_lines:
        print_table(shown.title(rows), shown.columns, [shown.row(row) for row in rows])
    else:
        _write_file(table, rows, path, "jsonl" if json_lines else output_format, output)
    wrong = sum(row.get("error") is not None for row in rows)
    for damage in table.damaged_ranges:
        say(f"left out {damage.file}, bytes {damage.start_position} to {damage.end_position}: {damage.reason}")
    if wrong:
        say(f"{wrong} of {len(rows)} rows have an error")
    if wrong or table.damaged_ranges:
        raise typer.Exit(FAILED)


def _write_file(
    table: Table, rows: list[dict[str, Any]], path: Path, output_format: Format | None, output: Path | None
) -> None:
    target = output_of(output, str(path.absolute()))
    chosen = format_of(target.path, output_format)
    is_text = chosen in {"jsonl", "csv"}
    arrow = None if is_text else table.to_arrow()
    with target.opened(binary=not is_text) as out:
        if arrow is None:
            lines = _json_lines(rows) if chosen == "jsonl" else _csv_lines(table.column_names, rows)
            clean = (escape_json if chosen == "jsonl" else escape) if out.isatty() else str
            write_lines(((clean(line).encode() + b"\n", 1) for line in lines), out)
        elif chosen == "arrow":
            is_stream = not target.is_file or (output is not None and output.suffix.lower() == STREAM_SUFFIX)
            write_arrow(arrow.schema, arrow.to_batches(), out, stream=is_stream)
        else:
            write_parquet(arrow.schema, arrow.to_batches(), out)


def _json_lines(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        yield json.dumps(row, ensure_ascii=False)


def _csv_lines(columns: list[str], rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield a line of headings and one for each row; lists are JSON, and null is an empty cell."""
    yield ",".join(columns)
    for row in rows:
        line = io.StringIO()
        csv.writer(line, quoting=csv.QUOTE_NOTNULL if hasattr(csv, "QUOTE_NOTNULL") else csv.QUOTE_MINIMAL).writerow(
            [json.dumps(cell, ensure_ascii=False) if isinstance(cell, list | dict) else cell for cell in row.values()]
        )
        yield line.getvalue().removesuffix("\r\n")
