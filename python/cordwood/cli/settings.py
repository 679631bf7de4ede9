"""Options of commands for the settings of a log."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import typer

from cordwood import ConfigError, CordwoodError, LogConfig, RebuildReport, RecoveryPlan
from cordwood.cli.exit_codes import UsageError
from cordwood.config import of_topic, stated_names
from cordwood.properties import read

__all__ = [
    "INTERVAL_SOURCES",
    "METADATA",
    "PROPERTIES",
    "SETTINGS",
    "YES",
    "Settings",
    "assigned",
    "interval_in_words",
    "settings_of",
]

_NOT_THE_TOPICS = "Kafka's defaults, not this topic's settings"
_NOBODYS = f"{_NOT_THE_TOPICS}; a broker's server.properties may say otherwise: give it with --properties"

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


class Settings(NamedTuple):
    """The settings of a partition, and where they are from."""

    config: LogConfig
    sources: dict[str, str]
    """The source in words of each setting that somebody has stated, by its name."""
    precedence: list[str]
    """The sources by descending precedence."""
    defaults: str
    """What the other settings are."""

    def source_of(self, names: Sequence[str]) -> str:
        """Format where some settings are from: the sources by descending precedence, and which are defaults."""
        sources = [source for source in self.precedence if source in {self.sources.get(name) for name in names}]
        unstated = [name for name in names if name not in self.sources]
        if not unstated:
            return ", then ".join(sources)
        if not sources:
            return self.defaults
        return f"{', then '.join(sources)}; {', '.join(unstated)}: {self.defaults}"


def settings_of(
    path: Path, properties: Path | None, assignments: list[str] | None, metadata: Path | None = None
) -> Settings:
    """Read the settings of a partition's topic: what the options name, the metadata of its cluster, the defaults.

    Damaged metadata of the data directory counts as none here: what uses the settings warns of it, or refuses them.
    """
    overrides = assigned(assignments)
    file = {} if properties is None else read(properties)
    try:
        found = of_topic(path, metadata, file, overrides)
    except ConfigError:
        raise
    except (CordwoodError, OSError):
        if metadata is not None:
            raise
        found = None
    named = stated_names(LogConfig.from_properties(overrides, kind="topic"))
    of_file = str(properties)
    if found is None:
        config = LogConfig.from_properties(file, overrides=overrides)
        sources = {name: "--set" if name in named else of_file for name in stated_names(config)}
        return Settings(config, sources, ["--set", of_file], _NOBODYS if properties is None else _NOT_THE_TOPICS)
    config, kinds = found
    where = path.parent if metadata is None else metadata
    words = {
        "override": of_file,
        "topic": f"the topic's in the metadata of {where}",
        "broker": f"the broker's in the metadata of {where}",
        "file": of_file,
    }
    stated = {name: kind for name, kind in kinds.items() if kind != "default"}
    sources = {name: "--set" if name in named else words[kind] for name, kind in stated.items()}
    # a topic's file is above the metadata, and a broker's below
    is_topics = any(kind == "override" and name not in named for name, kind in kinds.items())
    precedence = ["--set", *([of_file] if is_topics else []), words["topic"], words["broker"], of_file]
    is_known = properties is not None and not is_topics
    return Settings(config, sources, list(dict.fromkeys(precedence)), "Kafka's defaults" if is_known else _NOBODYS)


def interval_in_words(report: RebuildReport | RecoveryPlan) -> str:
    """Format the interval of the indexes that a rebuild or a recovery writes, and where it is from."""
    return f"index.interval.bytes {report.index_interval_bytes}, {INTERVAL_SOURCES[report.interval_source]}"


def assigned(assignments: list[str] | None) -> dict[str, str]:
    """Read the assignments of --set: a topic's settings.

    *Errors*: `UsageError`; `ConfigError` for a wrong setting.
    """
    overrides: dict[str, str] = {}
    for assignment in assignments or ():
        name, equals, value = assignment.partition("=")
        if not equals:
            raise UsageError(f"--set: expected NAME=VALUE, such as retention.ms=86400000, found {assignment!r}")
        if name.strip() in overrides:
            raise UsageError(f"--set {name.strip()}: expected each setting at most once")
        overrides[name.strip()] = value.strip()
    LogConfig.from_properties(overrides, kind="topic")
    return overrides
