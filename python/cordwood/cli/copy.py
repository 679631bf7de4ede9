"""`cordwood copy`: copy a partition, a range of it, or a data directory."""

from pathlib import Path
from typing import Annotated

import typer

import cordwood
from cordwood import ConfigError, CopyReport, Log
from cordwood.cli.damage import damage_in_words
from cordwood.cli.exit_codes import UsageError
from cordwood.cli.limits import DEFAULT_MAX_BATCH_BYTES
from cordwood.cli.moment import parse_time, with_unit
from cordwood.cli.path import parse_path
from cordwood.cli.progress import byte_progress
from cordwood.cli.record_range import MaxBatchBytes
from cordwood.cli.terminal import print_json, print_text
from cordwood.cli.zone import TZ_OF_INPUT, zone_of
from cordwood.quantities import bytes_in_words, several
from cordwood.times import FORMS, is_relative

__all__ = ["copy"]


def copy(  # noqa: PLR0913, PLR0917  (a command's options)
    source: Annotated[Path, typer.Argument(parser=parse_path, help="A partition directory or a data directory.")],
    destination: Annotated[
        Path, typer.Argument(parser=parse_path, help="A directory that does not exist or is empty.")
    ],
    start_offset: Annotated[int | None, typer.Option(help="The first offset (inclusive).")] = None,
    end_offset: Annotated[int | None, typer.Option(help="The end of the range (exclusive).")] = None,
    since: Annotated[str | None, typer.Option(help=f"The earliest time (inclusive): {FORMS}.")] = None,
    until: Annotated[str | None, typer.Option(help="The end of the range of times (exclusive).")] = None,
    topic: Annotated[
        list[str] | None, typer.Option(help="Of a data directory, only this topic: a name or a glob. Repeatable.")
    ] = None,
    on_damage: Annotated[str, typer.Option(help="raise: stop. skip: leave it out, and say what.")] = "raise",
    max_batch_bytes: MaxBatchBytes = DEFAULT_MAX_BATCH_BYTES,
    tz: Annotated[str | None, TZ_OF_INPUT] = None,
    link: Annotated[
        bool, typer.Option("--link", help="Make hard links of sealed segments where possible. Not for a backup.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of text.")] = False,
) -> None:
    """Copy a partition, a range of it, or all partitions of a data directory. Nothing in SOURCE is changed.

    Batches are copied as they are, with their offsets, timestamps, producer ids and transactions; a range has whole
    batches. Indexes, snapshots and checkpoints come with them, so that Kafka opens the copy without recovery; with a
    whole metadata log also its snapshots and quorum-state. Every checksum is verified, and what was written is read
    back.

    The source may be in use: the copy has the state of the source when it began. If it is interrupted, run the same
    command again: it continues. Another range is refused, with the times of the range that was begun: give these
    instead of a relative range, such as -2h. An unfinished copy is not a log: a writer refuses it, verify names it, and
    readers find nothing in it before the last step, which renames its complete files. Run on a complete copy, it
    compares and changes nothing.

    --link shares files with the source. A truncation, or a broker that recovers a log, then changes both. The last
    segment of the copy is never shared: it may be appended to.

    \b
    cordwood copy /var/lib/kafka/orders-0 /backup/orders-0
    cordwood copy /var/lib/kafka /backup/kafka --topic 'orders*'
    cordwood copy orders-0 part-0 --start-offset 1000 --end-offset 2000
    cordwood copy orders-0 part-0 --since 2024-05-01T10:00Z --until 2024-05-01T11:00Z
    cordwood copy broken-0 saved-0 --on-damage skip     save what is left

    \b
    Exit codes: 0 copied, 1 an error, or damage was left out, 2 wrong usage, 130 Ctrl-C.
    """  # noqa: D301
    if on_damage not in {"raise", "skip"}:
        raise typer.BadParameter(f"expected raise or skip, found {on_damage!r}", param_hint="--on-damage")
    zone = zone_of(tz)
    start_time = None if since is None else parse_time("--since", since, zone, has_tz=True)
    end_time = None if until is None else parse_time("--until", until, zone, has_tz=True)
    try:
        with byte_progress(None, to_file=True) as progress:
            report = cordwood.copy(
                source,
                destination,
                start_offset=start_offset,
                end_offset=end_offset,
                start_time=with_unit(start_time),
                end_time=with_unit(end_time),
                on_damage="skip" if on_damage == "skip" else "raise",
                hard_links=link,
                topics=topic,
                progress=progress,
                max_batch_bytes=max_batch_bytes,
            )
    except ConfigError as error:
        match error:
            case ConfigError(argument="destination"):
                # an argument here, and an option of other commands
                words = "".join(
                    f"; {option} {text} is another time at each call: give the time of the first one"
                    for option, text in (("--since", since), ("--until", until))
                    if text is not None and is_relative(text)
                )
                raise UsageError(f"destination: expected {error.expected}, found {error.found}{words}") from None
        raise
    bounds = {"start_offset": start_offset, "end_offset": end_offset, "start_time": start_time, "end_time": end_time}
    if json:
        print_json(_document(report))
    else:
        _say(report, bounds, max_batch_bytes)
    if report.damaged_ranges:
        raise typer.Exit(1)


def _document(report: CopyReport) -> dict[str, object]:
    return {
        "source": report.source,
        "path": report.path,
        "start_offset": report.start_offset,
        "end_offset": report.end_offset,
        "log_start_offset": report.log_start_offset,
        "segments": report.segments,
        "partitions": [_document(partition) for partition in report.partitions],
        "batches": report.batches,
        "bytes": report.bytes,
        "bytes_written": report.bytes_written,
        "linked": report.linked,
        "damaged_ranges": [
            {
                "file": damaged.file,
                "start_position": damaged.start_position,
                "end_position": damaged.end_position,
                "start_offset": damaged.start_offset,
                "end_offset": damaged.end_offset,
                "reason": damaged.reason,
            }
            for damaged in report.damaged_ranges
        ],
        "open_transactions": report.open_transactions,
        "warnings": report.warnings,
    }


def _say(report: CopyReport, bounds: dict[str, int | None], max_batch_bytes: int) -> None:
    for partition in report.partitions or [report]:
        offsets = f"offsets {partition.start_offset} to {partition.end_offset}"
        size = f"{several(len(partition.segments), 'segment')}, {bytes_in_words(partition.bytes)}"
        linked = f", {partition.linked} of them linked" if partition.linked else ""
        is_old = partition.bytes > 0 and partition.bytes_written == 0 and not partition.linked
        word = "is a complete copy" if is_old else "copied"
        print_text(f"{partition.path}: {word}: {offsets}, {size}{linked}")
        if _is_widened(partition, max_batch_bytes, **bounds):
            print_text("the range was widened to whole batches")
        if partition.open_transactions:
            print_text(
                f"{several(partition.open_transactions, 'transaction')} open at its end: committed readers "
                "do not see the records"
            )
        for damaged in partition.damaged_ranges:
            print_text(damage_in_words(damaged))
        for warning in partition.warnings:
            print_text(f"warning: {warning}")


def _is_widened(  # noqa: PLR0913  (the options of the command)
    partition: CopyReport,
    max_batch_bytes: int,
    *,
    start_offset: int | None,
    end_offset: int | None,
    start_time: int | None,
    end_time: int | None,
) -> bool:
    """Return whether the copy has records outside of the range, because batches are copied whole."""
    if partition.start_offset is None or partition.end_offset is None:
        return False
    if (start_offset is not None and partition.start_offset < start_offset) or (
        end_offset is not None and partition.end_offset > end_offset
    ):
        return True
    if start_time is None and end_time is None:
        return False
    log = Log(partition.path, max_batch_bytes=max_batch_bytes)
    copied = log.scan(on_damage="skip")
    inside = log.scan(start_time=with_unit(start_time), end_time=with_unit(end_time), on_damage="skip")
    return inside.count() < copied.count()
