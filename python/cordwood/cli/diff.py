"""`cordwood diff`: compare two replicas of a partition."""

from pathlib import Path
from typing import Annotated

import typer

import cordwood
from cordwood import DamagedRange, Difference, FirstDifference, RecordPlace, Replica
from cordwood.cli.exit_codes import FAILED
from cordwood.cli.limits import DEFAULT_MAX_BATCH_BYTES
from cordwood.cli.path import parse_path
from cordwood.cli.progress import elapsed
from cordwood.cli.record_range import MaxBatchBytes
from cordwood.cli.terminal import print_json, print_text
from cordwood.quantities import several

__all__ = ["diff"]

_NAMES = ("A", "B")
_SHOWN_BYTES = 60


def diff(  # noqa: PLR0913, PLR0917  (a command's options)
    a: Annotated[Path, typer.Argument(parser=parse_path, help="A partition directory.")],
    b: Annotated[Path, typer.Argument(parser=parse_path, help="The same partition of another broker.")],
    start_offset: Annotated[int | None, typer.Option(help="The first offset (inclusive).")] = None,
    end_offset: Annotated[int | None, typer.Option(help="The end of the range (exclusive).")] = None,
    max_batch_bytes: MaxBatchBytes = DEFAULT_MAX_BATCH_BYTES,
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of text.")] = False,
) -> None:
    """Compare two replicas of a partition, and show the first difference.

    The offsets that both have are compared, record by record where the bytes of the batches differ. Offsets that only
    one of them has at its start (retention) or at its end (lag) are printed, and do not count as a difference; replicas
    without a common offset are wrong usage. Nothing is changed.

    At a difference: the offset, what differs, the leader epoch, batch, position and value in each replica, and whether
    a follower would notice it: because leader epochs diverge, or because the bytes are damaged.

    \b
    cordwood diff broker1/orders-0 broker2/orders-0
    cordwood diff broker1/orders-0 broker2/orders-0 --start-offset 1000 --end-offset 2000
    cordwood diff broker1/orders-0 broker2/orders-0 --json | jq .first

    \b
    Exit codes: 0 the same records, 1 a difference or damage, 2 wrong usage, 130 Ctrl-C.
    """  # noqa: D301
    with elapsed(f"comparing {a} with {b}"):
        found = cordwood.diff(a, b, start_offset=start_offset, end_offset=end_offset, max_batch_bytes=max_batch_bytes)
    if json:
        print_json(_document(found))
    else:
        _say(found)
    if not found.is_same:
        raise typer.Exit(FAILED)


def _document(found: Difference) -> dict[str, object]:
    form, first = found.other_form, found.first
    return {
        "is_same": found.is_same,
        "start_offset": found.start_offset,
        "end_offset": found.end_offset,
        "same_batches": found.same_batches,
        "same_records": found.same_records,
        "replicas": [_replica_fields(replica) for replica in found.replicas],
        "other_form": form
        and {
            "offset": form.offset,
            "batches": form.batches,
            "codec": form.codec,
            "leader_epoch": form.leader_epoch,
            "producer": form.producer,
            "header": form.header,
            "bytes": form.bytes,
        },
        "first": first
        and {
            "offset": first.offset,
            "field": first.field,
            "cause": first.cause,
            "different_byte": first.different_byte,
            "places": [_place_fields(place) for place in first.places],
            "damage": [_damage_fields(damage) for damage in first.damage],
        },
    }


def _replica_fields(replica: Replica) -> dict[str, object]:
    return {
        "path": replica.path,
        "log_start_offset": replica.log_start_offset,
        "log_end_offset": replica.log_end_offset,
        "leader_epochs": replica.leader_epochs,
        "truncated_to": replica.truncated_to,
        "warnings": replica.warnings,
    }


def _place_fields(place: RecordPlace | None) -> dict[str, object] | None:
    return place and {
        "file": place.file,
        "position": place.position,
        "batch_base_offset": place.batch_base_offset,
        "leader_epoch": place.leader_epoch,
        "timestamp": place.timestamp,
        "key": _text(place.key),
        "value": _text(place.value),
    }


def _damage_fields(damage: DamagedRange | None) -> dict[str, object] | None:
    return damage and {
        "file": damage.file,
        "start_position": damage.start_position,
        "end_position": damage.end_position,
        "start_offset": damage.start_offset,
        "end_offset": damage.end_offset,
        "reason": damage.reason,
    }


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="backslashreplace")


def _say(found: Difference) -> None:
    for name, replica in zip(_NAMES, found.replicas, strict=True):
        print_text(f"{name}: {replica.path}: offsets {replica.log_start_offset} to {replica.log_end_offset}")
        for warning in replica.warnings:
            print_text(f"   {warning}", style="yellow")
    for line in _missing(found.replicas):
        print_text(line)
    first = found.first
    compared = f"offsets {found.start_offset} to {found.end_offset} (exclusive)"
    batches = "1 batch" if found.same_batches == 1 else f"{found.same_batches:,} batches"
    counts = f"{batches} of the same bytes, {several(found.same_records, 'record')} in batches of other bytes"
    print_text(f"{compared}: the same records ({counts})", style="" if first else "bold")
    _say_other_form(found)
    if first is not None:
        _say_first(first)
        for line in _followers(found, first):
            print_text(line)


def _missing(replicas: tuple[Replica, Replica]) -> list[str]:
    """Return what only one of the replicas has at its start or end."""
    lines = []
    for name, own, other in zip(_NAMES, replicas, reversed(replicas), strict=True):
        if own.log_start_offset > other.log_start_offset:
            missing = f"offsets {other.log_start_offset} to {own.log_start_offset} (exclusive)"
            lines.append(f"{name} lacks {missing} at its start (retention), not compared")
        if own.log_end_offset < other.log_end_offset:
            missing = f"offsets {own.log_end_offset} to {other.log_end_offset} (exclusive)"
            lines.append(f"{name} lacks {missing} at its end (lag), not compared")
    return lines


def _say_other_form(found: Difference) -> None:
    form = found.other_form
    if form is None:
        return
    fields = {
        "the offsets of the batches": form.batches,
        "codec": form.codec,
        "leader epoch": form.leader_epoch,
        "producer": form.producer,
        "other fields of the batch headers": form.header,
        "the bytes of the records": form.bytes,
    }
    differing = ", ".join(name for name, differs in fields.items() if differs)
    print_text(f"from offset {form.offset} on the same records are stored in another form: {differing}")


def _say_first(first: FirstDifference) -> None:
    names = {"record": "one of them has no such record", "control": "only one of them is a control record"}
    what = names.get(first.field, first.field)
    print_text(f"first difference at offset {first.offset}: {what}", style="red")
    for number, name in enumerate(_NAMES):
        damage, place = first.damage[number], first.places[number]
        if damage is not None:
            print_text(
                f"{name}: {damage.file} is damaged from position {damage.start_position} to {damage.end_position}: "
                f"{damage.reason}"
            )
        elif place is None:
            print_text(f"{name}: no record at offset {first.offset}")
        else:
            epoch = "no leader epoch" if place.leader_epoch is None else f"leader epoch {place.leader_epoch}"
            byte = first.different_byte
            differs = "" if byte is None else f", first different byte at position {byte[number]}"
            print_text(
                f"{name}: {place.file}, batch {place.batch_base_offset} at position {place.position}{differs}, {epoch}"
            )
            print_text(f"   timestamp {place.timestamp}, key {_shown(place.key)}, value {_shown(place.value)}")


def _shown(value: bytes | None) -> str:
    if value is None:
        return "null"
    rest = f"… ({len(value):,} bytes)" if len(value) > _SHOWN_BYTES else ""
    return f'"{value[:_SHOWN_BYTES].decode(errors="backslashreplace")}"{rest}'


def _followers(found: Difference, first: FirstDifference) -> list[str]:
    """Return how each replica would see the difference as a follower of the other one."""
    if first.cause == "damage":
        return [
            f"{name}: as the leader, its followers refuse the damaged bytes and fetch them again without end; "
            f"as a follower, it keeps them and does not notice the damage"
            for name, damage in zip(_NAMES, first.damage, strict=True)
            if damage is not None
        ]
    lines = []
    for name, leader, replica in zip(_NAMES, reversed(_NAMES), found.replicas, strict=True):
        to = replica.truncated_to
        if to is None:
            effect = "the leader epochs do not tell where it would truncate its log"
        elif to >= replica.log_end_offset:
            effect = "it keeps everything and does not notice the difference"
        elif to > first.offset:
            effect = f"it truncates its log to offset {to}, and does not notice the difference"
        else:
            effect = f"it truncates its log to offset {to}, which removes the difference"
        lines.append(f"{name} as a follower of {leader}: {effect}")
    return lines
