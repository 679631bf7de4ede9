"""Options of commands for the settings of a log."""

from pathlib import Path

import typer

from cordwood import LogConfig
from cordwood.cli.exit_codes import UsageError

__all__ = ["PROPERTIES", "SETTINGS", "YES", "settings"]

SETTINGS = typer.Option(
    "--set", metavar="NAME=VALUE", help="A setting, by Kafka's name, such as segment.bytes=1048576. Repeatable."
)
PROPERTIES = typer.Option("--properties", help="A topic's or a broker's properties file. --set takes precedence.")
YES = typer.Option("--yes", help="Delete. Without this, only print what would be deleted.")


def settings(properties: Path | None, assignments: list[str] | None) -> LogConfig:
    """Read the settings of both options."""
    overrides = {}
    for assignment in assignments or ():
        name, equals, value = assignment.partition("=")
        if not equals:
            raise UsageError(f"--set: expected NAME=VALUE, such as retention.ms=86400000, found {assignment!r}")
        if name.strip() in overrides:
            raise UsageError(f"--set {name.strip()}: expected each setting at most once")
        overrides[name.strip()] = value.strip()
    if properties is None:
        return LogConfig.from_properties(overrides, kind="topic")
    return LogConfig.from_properties(properties, overrides=overrides)
