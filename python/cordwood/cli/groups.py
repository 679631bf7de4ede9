"""`cordwood groups`: the committed offsets of groups and their lag, from `__consumer_offsets`."""

from pathlib import Path
from typing import Annotated, Any

import cordwood
from cordwood.cli.declared import Argument, Option
from cordwood.cli.exit_codes import UsageError
from cordwood.cli.limits import DEFAULT_MAX_BATCH_BYTES, MAX_BATCH_BYTES_OPTION
from cordwood.cli.path import parse_path
from cordwood.cli.progress import elapsed
from cordwood.cli.tables import FormatOption, JsonOption, OnDamageOption, OutputOption, Shown, time_in_words, write
from cordwood.quantities import several

__all__ = ["groups"]


def groups(  # noqa: PLR0913, PLR0917  (a command's options)
    paths: Annotated[
        list[Path],
        Argument(
            parser=parse_path,
            metavar="PATH…",
            help="Data directories, such as all of a broker, or partitions of __consumer_offsets.",
        ),
    ],
    group: Annotated[list[str] | None, Option(help="Only this group. Can be repeated.")] = None,
    topic: Annotated[list[str] | None, Option(help="Only this topic. Can be repeated.")] = None,
    members: Annotated[
        bool, Option("--members", help="The groups with state, protocol and members, instead of their offsets.")
    ] = False,
    on_damage: OnDamageOption = "raise",
    max_batch_bytes: Annotated[int, Option(**MAX_BATCH_BYTES_OPTION)] = DEFAULT_MAX_BATCH_BYTES,
    output_format: FormatOption = None,
    json: JsonOption = False,
    output: OutputOption = None,
) -> None:
    """List the offsets that groups have committed, with the lag.

    \b
    cordwood groups /var/lib/kafka                               group, topic, partition, offset, end, lag
    cordwood groups /var/lib/kafka --group billing --topic orders
    cordwood groups /var/lib/kafka --members                     state and members of each group
    cordwood groups /disk1/kafka /disk2/kafka                    of a broker with several data directories
    cordwood groups /var/lib/kafka --json | jq 'select(.lag > 1000)'

    The lag is the distance to the end of the partition in these data directories, and empty if it is not there.
    An offset that a transaction commits counts when the transaction is committed; until then it is "pending".
    The exit code is 1 if nothing is found, or if a row has an error: a record that is not decodable, a transaction
    whose outcome damage may have destroyed, a log that cannot be read for its lag.
    """  # noqa: D301
    if members and topic:
        raise UsageError("--topic has no effect with --members: leave one of them out")
    with elapsed(f"reading {' '.join(map(str, paths))}"):
        if members:
            table = cordwood.consumer_groups(paths, groups=group, on_damage=on_damage, max_batch_bytes=max_batch_bytes)
            shown = _GROUPS
        else:
            table = cordwood.consumer_offsets(
                paths, groups=group, topics=topic, on_damage=on_damage, max_batch_bytes=max_batch_bytes
            )
            shown = _OFFSETS
    write(table, shown, paths=paths, json_lines=json, output_format=output_format, output=output)


def _number(number: int | None) -> str:
    return "" if number is None else str(number)


def _offset_row(row: dict[str, Any]) -> list[str]:
    notes = row["error"] or ""
    if row["pending_offset"] is not None:
        pending = f"pending: {row['pending_offset']} of producer {row['pending_producer_id']}"
        notes = f"{notes}; {pending}" if notes else pending
    return [
        row["group"] or "",
        row["topic"] or "",
        *(_number(row[name]) for name in ("partition", "offset", "log_end_offset", "lag")),
        time_in_words(row["commit_time"]),
        notes,
    ]


def _group_row(row: dict[str, Any]) -> list[str]:
    members = row["members"] or []
    return [
        row["group"] or "",
        row["type"] or "",
        row["state"] or "",
        row["protocol"] or "",
        _number(row["epoch"]),
        str(len(members)),
        row["error"] or ", ".join(f"{member['client_id']} {member['client_host']}" for member in members),
    ]


def _count(rows: list[dict[str, Any]]) -> int:
    return len({row["group"] for row in rows if row["group"] is not None})


_OFFSETS = Shown(
    title=lambda rows: (
        f"{several(_count(rows), 'group')}, {several(sum(row['group'] is not None for row in rows), 'offset')}"
    ),
    columns=[
        ("group", "left"),
        ("topic", "left"),
        ("partition", "right"),
        ("offset", "right"),
        ("end", "right"),
        ("lag", "right"),
        ("committed", "left"),
        ("notes", "text"),
    ],
    row=_offset_row,
    nothing="no group has committed an offset here that --group and --topic select",
)
_GROUPS = Shown(
    title=lambda rows: several(_count(rows), "group"),
    columns=[
        ("group", "left"),
        ("type", "left"),
        ("state", "left"),
        ("protocol", "left"),
        ("epoch", "right"),
        ("members", "right"),
        ("clients", "text"),
    ],
    row=_group_row,
    nothing="there is no group here that --group selects",
)
