"""`cordwood truncate`: delete the end of a log."""

from pathlib import Path
from typing import Annotated

import typer

from cordwood import Log, LogWriter, OffsetOutOfRangeError
from cordwood.cli.exit_codes import UsageError
from cordwood.cli.limits import DEFAULT_MAX_BATCH_BYTES
from cordwood.cli.log_warnings import opened
from cordwood.cli.path import parse_path
from cordwood.cli.record_range import MaxBatchBytes
from cordwood.cli.recover import say_changes
from cordwood.cli.settings import YES
from cordwood.cli.terminal import print_json, print_text
from cordwood.quantities import bytes_in_words, several

__all__ = ["truncate"]

_END = 1 << 63


def truncate(  # noqa: PLR0913, PLR0917  (a command's options)
    context: typer.Context,
    path: Annotated[Path, typer.Argument(parser=parse_path, help="A partition directory.")],
    to: Annotated[int, typer.Option("--to", help="The new end offset of the log.")],
    max_batch_bytes: MaxBatchBytes = DEFAULT_MAX_BATCH_BYTES,
    yes: Annotated[bool, YES] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of sentences.")] = False,
) -> None:
    """Delete all batches with offsets at or above the given one. Without --yes, only print them.

    A batch that contains the offset is deleted as a whole.

    \b
    cordwood truncate orders-0 --to 1000          print what would be deleted
    cordwood truncate orders-0 --to 1000 --yes    delete it
    """  # noqa: D301
    if not 0 <= to < _END:
        raise UsageError(f"--to: expected an offset from 0 to 2^63 - 1, found {to}")
    log = opened(context, path, max_batch_bytes)
    document = _plan(log, to)
    if not yes:
        # the error with which a log is not opened for writing
        LogWriter.plan_recovery(path, max_batch_bytes=max_batch_bytes)
    else:
        with LogWriter(path, max_batch_bytes=max_batch_bytes) as writer:
            say_changes(writer.recovery)
            document["truncated"] = writer.truncate_to(to)
        # may be below `to`: a batch that contained the offset was deleted as a whole
        document["log_end_offset"] = log.refresh().log_end_offset
    document["dry_run"] = not yes
    if json:
        print_json(document)
        return
    _say(log, to, document)


def _plan(log: Log, to: int) -> dict[str, object]:
    """Return the first offset that is deleted, the number of bytes, and the whole segments."""
    document: dict[str, object] = {"path": log.path, "to": to, "log_end_offset": log.log_end_offset}
    segments = list(log.segments)
    document |= {"first_offset": None, "bytes": 0, "segments": []}
    if to >= log.log_end_offset:
        return document
    if to < log.log_start_offset:
        first, size = log.log_start_offset, sum(segment.size for segment in segments)
        whole = [segment.base_offset for segment in segments]
    else:
        whole = [segment.base_offset for segment in segments if segment.base_offset > to]
        size = sum(segment.size for segment in segments if segment.base_offset > to)
        first = min([to, *whole])
        location = _located(log, to)
        holding = log.segments.floor(to)
        if location is not None and holding is not None and location[0] == holding.base_offset:
            first = min(first, location[1])
            size += holding.size - location[2]
    return document | {"first_offset": first, "bytes": size, "segments": whole}


def _located(log: Log, offset: int) -> tuple[int, int, int] | None:
    try:
        found = log.locate(offset)
    except OffsetOutOfRangeError:
        return None
    return None if found is None else (found.segment_base_offset, found.batch_base_offset, found.position)


def _say(log: Log, to: int, document: dict[str, object]) -> None:
    if document["first_offset"] is None:
        print_text(f"{log.path} ends at {log.log_end_offset}: nothing to truncate at {to}")
        return
    segments = document["segments"]
    whole = len(segments) if isinstance(segments, list) else 0
    size = document["bytes"]
    what = (
        f"the records from offset {document['first_offset']} to {log.log_end_offset} (exclusive), "
        f"{bytes_in_words(size if isinstance(size, int) else 0)}, {several(whole, 'whole segment')} with them"
    )
    if document["dry_run"]:
        print_text(f"{log.path}: would remove {what}")
        print_text("nothing was written; add --yes to delete", style="dim")
    else:
        print_text(f"{log.path}: removed {what}; the log ends at {document['log_end_offset']}")
    if to < log.log_start_offset:
        becomes = "would start" if document["dry_run"] else "starts"
        print_text(f"it is empty then, and {becomes} at offset {to}, below its former start, {log.log_start_offset}")
