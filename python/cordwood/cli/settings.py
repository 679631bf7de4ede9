"""Options of commands for the settings of a log."""

from collections.abc import Sequence
from pathlib import Path

import typer

from cordwood import LogConfig
from cordwood.cli.exit_codes import UsageError

__all__ = ["INTERVAL_SOURCES", "METADATA", "PROPERTIES", "SETTINGS", "YES", "settings", "settings_of", "source_of"]

INTERVAL_SOURCES = {
    "given": "as given",
    "topic": "the topic's",
    "inferred": "as the indexes show",
    "default": "Kafka's default",
}
"""The sources of an `index.interval.bytes`, in words."""

SETTINGS = typer.Option(
    "--set", metavar="NAME=VALUE", help="A setting, by Kafka's name, such as segment.bytes=1048576. Repeatable."
)
PROPERTIES = typer.Option("--properties", help="A topic's or a broker's properties file. --set takes precedence.")
METADATA = typer.Option(
    "--metadata",
    help="A data directory with __cluster_metadata-0, or a snapshot, for the topic's settings. [default: the "
    "partition's data directory]",
)
YES = typer.Option("--yes", help="Delete. Without this, only print what would be deleted.")


def settings(properties: Path | None, assignments: list[str] | None) -> LogConfig:
    """Read the settings of both options."""
    overrides = _overrides(assignments)
    if properties is None:
        return LogConfig.from_properties(overrides, kind="topic")
    return LogConfig.from_properties(properties, overrides=overrides)


def settings_of(
    path: Path,
    properties: Path | None,
    assignments: list[str] | None,
    metadata: Path | None = None,
    *,
    otherwise: Sequence[str] = (),
) -> LogConfig:
    """Read the settings of a partition's topic: what the options name, the metadata of its cluster, the defaults.

    *otherwise*: assignments that take the place of defaults if there is neither metadata nor a file of properties.
    """
    overrides = _overrides(assignments)
    known = LogConfig.from_metadata(path, metadata=metadata, properties=properties, overrides=overrides)
    if known is not None:
        return known
    return settings(properties, [*([] if properties is not None else otherwise), *(assignments or ())])


def source_of(path: Path, properties: Path | None, assignments: list[str] | None, metadata: Path | None = None) -> str:
    """Format where the settings of `settings_of` come from."""
    given = ["--set"] * bool(assignments) + ([] if properties is None else [str(properties)])
    if LogConfig.from_metadata(path, metadata=metadata) is not None:
        given.append(f"the topic's in the metadata of {path.parent if metadata is None else metadata}")
    elif properties is None:
        given.append("defaults, not this topic's settings")
    return ", then ".join(given)


def _overrides(assignments: list[str] | None) -> dict[str, str]:
    """Read the assignments of --set."""
    overrides = {}
    for assignment in assignments or ():
        name, equals, value = assignment.partition("=")
        if not equals:
            raise UsageError(f"--set: expected NAME=VALUE, such as retention.ms=86400000, found {assignment!r}")
        if name.strip() in overrides:
            raise UsageError(f"--set {name.strip()}: expected each setting at most once")
        overrides[name.strip()] = value.strip()
    return overrides
