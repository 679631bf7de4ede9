"""`cordwood carve`: find batches in an image, and write them as partitions."""

from pathlib import Path
from typing import Annotated

import typer

from cordwood import CarvedRun, CarveReport
from cordwood import carve as carve_image
from cordwood.cli.exit_codes import NothingFoundError
from cordwood.cli.path import parse_path
from cordwood.cli.terminal import Column, print_json, print_table, print_text
from cordwood.quantities import several
from cordwood.times import in_words

__all__ = ["carve"]

_COLUMNS: list[Column] = [
    ("run", "right"),
    ("offsets", "left"),
    ("records", "right"),
    ("bytes", "right"),
    ("position", "right"),
    ("last time", "left"),
    ("found", "text"),
]


def carve(
    image: Annotated[Path, typer.Argument(parser=parse_path, help="A file of any kind, or a directory of files.")],
    into: Annotated[
        Path | None,
        typer.Option("--into", parser=parse_path, help="A new directory for what is found."),
    ] = None,
    min_records: Annotated[int, typer.Option("--min-records", min=1, help="Leave out runs of fewer records.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")] = False,
) -> None:
    """Find every whole batch in an image, at any position, and write them as partitions.

    The image may be a disk image, a truncated or overwritten file, or a directory whose file names are lost; its
    subdirectories are not searched. Batches that follow each other, or whose offsets continue exactly, are one run; a
    batch does not say which partition it belongs to. With --into each run becomes a partition directory, which all
    other commands can read.

    \b
    cordwood carve disk.img                    print what is there
    cordwood carve disk.img --into found       and write it to found/carved-0, found/carved-1 and so on
    cordwood carve lost+found --min-records 10
    """  # noqa: D301
    report = carve_image(image, into, min_records=min_records)
    if json:
        print_json(_document(report))
    if not report.runs:
        found = "no whole batch"
        if report.small_runs:
            found = f"only runs of fewer than {min_records} records, {report.small_runs},"
        raise NothingFoundError(f"{report.path}: {found} in {report.bytes_searched} bytes")
    if json:
        return
    rows = [_row(number, run) for number, run in enumerate(report.runs)]
    print_table(f"{report.path}: {several(len(report.runs), 'run')} of batches", _COLUMNS, rows)
    if report.repeated_batches:
        print_text(f"found more than once: {report.repeated_batches:,} of the batches")
    if report.small_runs:
        print_text(f"left out because of fewer than {min_records} records: {several(report.small_runs, 'run')}")
    if report.given_up:
        print_text(f"{report.given_up} possible batches above 1 MiB were not checked, because too many overlap")
    if report.destination:
        print_text(f"written to {report.destination}; cordwood ls shows the partitions")


def _row(number: int, run: CarvedRun) -> list[str]:
    found = str(run)
    if run.conflicts:
        found += "; offsets in common with run " + ", ".join(map(str, run.conflicts))
    return [
        str(number),
        f"{run.first_offset} to {run.last_offset}",
        str(run.records),
        str(run.bytes),
        str(run.pieces[0].start_position),
        in_words(run.timestamps[1]) if run.timestamps else "",
        found,
    ]


def _document(report: CarveReport) -> dict[str, object]:
    return {
        "path": report.path,
        "runs": [
            {
                "first_offset": run.first_offset,
                "last_offset": run.last_offset,
                "batches": run.batches,
                "records": run.records,
                "bytes": run.bytes,
                "largest_batch": run.largest_batch,
                "timestamps": run.timestamps,
                "leader_epochs": run.leader_epochs,
                "magics": run.magics,
                "codecs": run.codecs,
                "producer_ids": run.producer_ids,
                "gaps": run.gaps,
                "conflicts": run.conflicts,
                "confidence": run.confidence,
                "directory": run.directory,
                "pieces": [
                    {
                        "file": piece.file,
                        "start_position": piece.start_position,
                        "end_position": piece.end_position,
                        "first_offset": piece.first_offset,
                        "last_offset": piece.last_offset,
                    }
                    for piece in run.pieces
                ],
            }
            for run in report.runs
        ],
        "small_runs": report.small_runs,
        "repeated_batches": report.repeated_batches,
        "given_up": report.given_up,
        "bytes_searched": report.bytes_searched,
        "destination": report.destination,
    }
