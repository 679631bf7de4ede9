"""`cordwood cat`: write a range of records as JSON lines, CSV, Arrow or Parquet."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cordwood import DamagedRange, Scan
from cordwood.cli.exit_codes import FAILED, UsageError, say
from cordwood.cli.formats import (
    BATCH_BYTES,
    OTHER_COLUMNS,
    RECORD_COLUMNS,
    STREAM_SUFFIX,
    Format,
    format_of,
    write_arrow,
    write_lines,
    write_parquet,
)
from cordwood.cli.log_warnings import opened
from cordwood.cli.output import output_of
from cordwood.cli.path import parse_path
from cordwood.cli.progress import counted
from cordwood.times import FORMS, in_words, parse

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["cat"]


def cat(  # noqa: PLR0913, PLR0917  (a command's options)
    context: typer.Context,
    path: Annotated[Path, typer.Argument(parser=parse_path, help="A partition directory.")],
    start_offset: Annotated[int | None, typer.Option(help="First offset, inclusive.")] = None,
    end_offset: Annotated[int | None, typer.Option(help="End offset, exclusive.")] = None,
    since: Annotated[str | None, typer.Option(help=f"First time, inclusive: {FORMS}.")] = None,
    until: Annotated[str | None, typer.Option(help="End time, exclusive, in the same forms.")] = None,
    columns: Annotated[
        str | None,
        typer.Option(help=f"Comma-separated: {' '.join(RECORD_COLUMNS)} (the default), {' '.join(OTHER_COLUMNS)}."),
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
    limit: Annotated[int | None, typer.Option(min=0, help="Maximum number of rows.")] = None,
    output_format: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="By default by the suffix of -o, otherwise jsonl. arrow and parquet need pyarrow.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The same as --format jsonl.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A file, pipe or device. By default - (standard output).")
    ] = None,
) -> None:
    """Write a partition's records to standard output or to a file.

    Keys and values are text if they are UTF-8; otherwise {"base64": "…"} in JSON and base64:… in CSV.
    Arrow is written to files in the file format, to pipes and to files with the suffix .arrows in the stream format.
    An existing file is replaced when the new one is complete, and its mode is kept.

    \b
    cordwood cat orders-0 --since 2024-05-01T10:00Z --until 2024-05-01T11:00Z
    cordwood cat orders-0 --since -2h --columns offset,key --limit 10
    cordwood cat payments-0 --isolation read_committed -o payments.parquet
    cordwood cat broken-0 --on-damage skip > readable.jsonl

    With --on-damage skip or report, damaged ranges are printed to stderr and the exit code is 1.
    Warnings about the log, such as a missing segment, also go to stderr, and do not change the exit code.
    """  # noqa: D301
    if json and output_format not in {None, "jsonl"}:
        raise UsageError(f"--json means --format jsonl, but --format is {output_format}: use one of them")
    log = opened(context, path)
    target = output_of(output, log.path)
    written_format = format_of(target.path, "jsonl" if json else output_format)
    chosen = _columns(columns, include_control=include_control)
    request: dict[str, Any] = {
        "start_offset": start_offset,
        "end_offset": end_offset,
        **_times(since, until),
        "isolation_level": isolation or "read_uncommitted",
        "include_control": include_control,
        "on_damage": on_damage,
    }
    # larger values do not fit the argument, and no log has more records
    limit = None if limit is None else min(limit, sys.maxsize)
    is_text = written_format in {"jsonl", "csv"}
    if not is_text:
        request["max_bytes"] = BATCH_BYTES
    scan = log.scan(columns=chosen, limit=limit, **request)
    schema = None if is_text else scan.schema
    to_file = target.path is not None
    with target.opened(binary=not is_text) as out:
        match written_format:
            case "jsonl" | "csv":
                text_format = "terminal_csv" if written_format == "csv" and out.isatty() else written_format
                blocks = scan._lines(text_format)  # noqa: SLF001  (it is for this command)
                write_lines(counted(blocks, _line_count, to_file=to_file), out)
            case "arrow":
                is_stream = not target.is_file or (output is not None and output.suffix.lower() == STREAM_SUFFIX)
                write_arrow(schema, counted(scan, _row_count, to_file=to_file), out, stream=is_stream)
            case "parquet":
                write_parquet(schema, counted(scan, _row_count, to_file=to_file), out)
    if isolation is None:
        _name_uncommitted(scan)
    _name_damage(scan.damaged_ranges)


def _columns(given: str | None, *, include_control: bool) -> list[str] | None:
    if given is None:
        return [*RECORD_COLUMNS, "is_control"] if include_control else None
    names = [name.strip() for name in given.split(",")]
    if not all(names):
        raise UsageError(f"--columns: expected column names separated by commas, found {given!r}")
    return names


def _times(since: str | None, until: str | None) -> dict[str, int | None]:
    start = None if since is None else parse(since)
    end = None if until is None else parse(until)
    if start is not None and end is not None and end < start:
        raise UsageError(f"--until {in_words(end)} is before --since {in_words(start)}")
    return {"start_time": start, "end_time": end}


def _name_uncommitted(scan: Scan) -> None:
    found = scan.first_uncommitted
    if found is not None:
        say(
            f"{found[0]}: the output contains records of transactions that were aborted or have not ended, the first "
            f"at offset {found[1]}; --isolation read_committed leaves them out"
        )


def _line_count(block: tuple[bytes, int]) -> int:
    return block[1]


def _row_count(batch: "pa.RecordBatch") -> int:
    return int(batch.num_rows)


def _name_damage(ranges: list[DamagedRange]) -> None:
    if not ranges:
        return
    for damage in ranges:
        end = "the end" if damage.end_offset is None else damage.end_offset
        say(
            f"left out {damage.file}, bytes {damage.start_position} to {damage.end_position}, "
            f"offsets {damage.start_offset} to {end}: {damage.reason}"
        )
    raise typer.Exit(FAILED)
