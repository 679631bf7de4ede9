"""`cordwood metadata`: topics, partitions, brokers and settings of a cluster, from `__cluster_metadata`."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import cordwood
from cordwood import Table
from cordwood.cli.exit_codes import FAILED, say
from cordwood.cli.path import parse_path
from cordwood.cli.tables import FormatOption, JsonOption, OnDamageOption, OutputOption, Shown, write
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
    path: Annotated[
        Path,
        typer.Argument(
            parser=parse_path,
            help="A data directory with __cluster_metadata-0, this partition directory, or a snapshot.",
        ),
    ],
    name: Annotated[Name, typer.Argument(metavar="TABLE", help="topics by default.")] = "topics",
    topic: Annotated[
        list[str] | None, typer.Option(help="Of topics, partitions and configs: only this topic. Can be repeated.")
    ] = None,
    on_damage: OnDamageOption = "raise",
    output_format: FormatOption = None,
    json: JsonOption = False,
    output: OutputOption = None,
) -> None:
    """Show the metadata of a KRaft cluster as of the end of its log.

    \b
    cordwood metadata /var/lib/kafka                         topics
    cordwood metadata /var/lib/kafka partitions --topic orders
    cordwood metadata /var/lib/kafka configs --json
    cordwood metadata /var/lib/kafka records                 the log itself, record by record
    cordwood metadata 00000000000000000084-0000000001.checkpoint brokers

    \b
    Tables: topics partitions brokers controllers configs features acls client_quotas
            scram_credentials delegation_tokens producer_ids errors records
    """  # noqa: D301
    if topic and name not in _TOPIC_COLUMNS:
        raise typer.BadParameter(f"--topic selects rows of {', '.join(_TOPIC_COLUMNS)}, not of {name}")
    errors: list[dict[str, Any]] = []
    if name == "records":
        table = cordwood.metadata_records(path, on_damage=on_damage)
    else:
        found = cordwood.metadata(path, on_damage=on_damage, topics=topic)
        table = getattr(found, name)
        errors = [] if name == "errors" else found.errors.to_dicts()
    write(table, _shown(table, name), path=path, json_lines=json, output_format=output_format, output=output)
    for error in errors[:_MOST_ERRORS]:
        say(f"offset {error['offset']}: {error['error']}")
    if errors:
        say(f"{several(len(errors), 'record')} could not be applied: the table may be wrong; the table errors has all")
        raise typer.Exit(FAILED)


_TOPIC_COLUMNS = ("topics", "partitions", "configs")
_MOST_ERRORS = 5
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
