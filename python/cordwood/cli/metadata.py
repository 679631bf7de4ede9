"""`cordwood metadata`: topics, partitions, brokers and settings of a cluster, from `__cluster_metadata`."""

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import cordwood
from cordwood import Table
from cordwood.cli.declared import Argument, Option
from cordwood.cli.exit_codes import UsageError
from cordwood.cli.limits import DEFAULT_MAX_BATCH_BYTES, MAX_BATCH_BYTES_OPTION
from cordwood.cli.path import parse_path
from cordwood.cli.progress import elapsed
from cordwood.cli.tables import (
    MOST_MESSAGES,
    FormatOption,
    JsonOption,
    OnDamageOption,
    OutputOption,
    Shown,
    write,
)
from cordwood.cli.terminal import Column
from cordwood.quantities import several

__all__ = ["metadata"]

Name = Literal[
    "topics",
    "partitions",
    "brokers",
    "controllers",
    "configs",
    "features",
    "acls",
    "client_quotas",
    "scram_credentials",
    "delegation_tokens",
    "producer_ids",
    "errors",
    "records",
]


def metadata(  # noqa: PLR0913, PLR0917  (a command's options)
    words: Annotated[
        list[str],
        Argument(
            metavar="PATH… [TABLE]",
            help="Data directories, one with __cluster_metadata-0, or this partition directory, or a snapshot; and the "
            "table, by default topics.",
        ),
    ],
    topic: Annotated[
        list[str] | None, Option(help="Of topics, partitions and configs: only this topic. Can be repeated.")
    ] = None,
    on_damage: OnDamageOption = "raise",
    max_batch_bytes: Annotated[int, Option(**MAX_BATCH_BYTES_OPTION)] = DEFAULT_MAX_BATCH_BYTES,
    output_format: FormatOption = None,
    json: JsonOption = False,
    output: OutputOption = None,
) -> None:
    """Show the metadata of a KRaft cluster at the end of its log.

    \b
    cordwood metadata /var/lib/kafka                         topics
    cordwood metadata /var/lib/kafka partitions --topic orders
    cordwood metadata /var/lib/kafka configs --json
    cordwood metadata /var/lib/kafka records                 the log itself, record by record
    cordwood metadata 00000000000000000084-0000000001.checkpoint brokers

    \b
    Tables: topics partitions brokers controllers configs features acls client_quotas
            scram_credentials delegation_tokens producer_ids errors records

    The exit code is 1 if the table is empty, or may be wrong: errors are records that are missing, not decodable, or
    that contradict the ones before them.
    """  # noqa: D301
    paths, name = _paths_and_table(words)
    if topic and name not in _TOPIC_COLUMNS:
        raise UsageError(f"--topic selects rows of {', '.join(_TOPIC_COLUMNS)}, not of {name}")
    remarks: list[str] = []
    with elapsed(f"reading {' '.join(map(str, paths))}"):
        if name == "records":
            table = cordwood.metadata_records(paths, on_damage=on_damage, max_batch_bytes=max_batch_bytes)
        else:
            found = cordwood.metadata(paths, on_damage=on_damage, topics=topic, max_batch_bytes=max_batch_bytes)
            table = getattr(found, name)
            remarks = [] if name == "errors" else _remarks(found.errors)
    shown = _shown(table, name)
    if topic:
        shown = shown._replace(nothing=f"the metadata has no {name} of a topic named {' or '.join(topic)}")
    write(table, shown, paths=paths, json_lines=json, output_format=output_format, output=output, remarks=remarks)


def _paths_and_table(words: list[str]) -> tuple[list[Path], str]:
    """Return the paths, and the table, which is the last of several words if it is the name of one."""
    tables = get_args(Name)
    *rest, last = words
    if rest and last in tables:
        return [parse_path(word) for word in rest], last
    if rest and not Path(last).exists():
        raise UsageError(f"expected a path or a table ({', '.join(tables)}), found {last!r}")
    return [parse_path(word) for word in words], "topics"


def _remarks(errors: Table) -> list[str]:
    """Return what to say of the errors of the replay, which may concern any table."""
    rows = errors.to_dicts()
    remarks = [
        row["error"] if row["offset"] is None else f"offset {row['offset']}: {row['error']}"
        for row in rows[:MOST_MESSAGES]
    ]
    if rows:
        remarks.append(f"this table may be wrong: the log has {several(len(rows), 'error')}; the table errors has them")
    return remarks


_TOPIC_COLUMNS = ("topics", "partitions", "configs")
_WRAPPED = {"data", "value", "end_points", "features"}
_HIDDEN = {"is_migrating_zk_broker", "zk_migration_ready", "error"}


def _shown(table: Table, name: str) -> Shown:
    columns = [column for column in table.column_names if column not in _HIDDEN]
    headings: list[Column] = [
        (column.replace("_", " "), "text" if column in _WRAPPED else "left") for column in columns
    ]
    return Shown(
        title=lambda rows: f"{name.replace('_', ' ')}: {several(len(rows), 'row')}",
        columns=headings,
        row=lambda row: [_cell(row[column]) for column in columns],
        nothing=f"the metadata has no {name.replace('_', ' ')} here",
    )


def _cell(value: Any) -> str:  # noqa: ANN401  (any value of a table)
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list():
            return ",".join(_cell(item) for item in value)
        case {"host": host, "port": port, "name": name}:
            return f"{name}://{host}:{port}"
        case {"name": name, "min_supported_version": low, "max_supported_version": high}:
            return f"{name} {low}-{high}"
        case _:
            return str(value)
