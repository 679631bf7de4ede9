"""`cordwood report`: a page with pictures of a partition."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from cordwood import Log
from cordwood.cli.formats import format_of_suffix
from cordwood.cli.limits import DEFAULT_MAX_BATCH_BYTES
from cordwood.cli.log_warnings import silent_log
from cordwood.cli.output import output_of
from cordwood.cli.path import parse_path
from cordwood.cli.progress import byte_progress
from cordwood.cli.record_range import MaxBatchBytes
from cordwood.cli.terminal import print_text

__all__ = ["report"]

_Format = Literal["html", "png", "svg"]
_FORMATS: dict[str, _Format] = {".html": "html", ".htm": "html", ".png": "png", ".svg": "svg"}


def report(
    path: Annotated[Path, typer.Argument(parser=parse_path, help="A partition directory.")],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="The file to write (.html, .htm, .png or .svg), or - for standard output."),
    ] = Path("report.html"),
    output_format: Annotated[
        _Format | None,
        typer.Option(
            "--format",
            help="By default by the suffix of -o; html for standard output, and for a file without a suffix. html is a "
            "page with facts and warnings; png and svg are its pictures as one image.",
        ),
    ] = None,
    max_batch_bytes: MaxBatchBytes = DEFAULT_MAX_BATCH_BYTES,
) -> None:
    """Write a page that shows what is in a partition, in pictures.

    The page shows the segments over offset and time, the record rate, timestamps out of order, sizes of batches and
    records, compression, the density of the indexes, missing offsets, transactions and damage. It is one file that
    needs no network. An existing file is replaced when the new one is complete.
    It needs matplotlib: pip install "cordwood[cli,report]".

    \b
    cordwood report orders-0                       write report.html in the current directory
    cordwood report orders-0 -o orders.png         its pictures as one image
    cordwood report orders-0 -o - > orders.html    the page to standard output

    Reads every record once and writes nothing to the partition. Damage, and warnings about the log, are part of the
    page and do not change the exit code.
    """  # noqa: D301
    # imported here: it needs matplotlib
    from cordwood.report import Report  # noqa: PLC0415

    log = Log(path, max_batch_bytes=max_batch_bytes)
    target = output_of(output, log.path)
    written = format_of_suffix(target.path, output_format, _FORMATS) or "html"
    with silent_log(), byte_progress(log.size, to_file=target.path is not None) as show:
        made = Report(log, on_progress=show)
    with target.opened(binary=written == "png") as out:
        out.write(made.to_html().encode() if written == "html" else made.to_image(written))
    if target.path is not None:
        what = "a page" if written == "html" else "the pictures"
        print_text(f"{log.path}: wrote {what} to {target.path}")
