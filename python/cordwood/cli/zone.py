"""The option `--tz`."""

import importlib.resources
import zoneinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import typer

from cordwood._core import _Zone
from cordwood.cli.exit_codes import UsageError

__all__ = ["TZ", "TZ_OF_INPUT", "core_zone", "zone_of"]


def _complete(incomplete: str) -> list[str]:
    return sorted(name for name in zoneinfo.available_timezones() if name.startswith(incomplete))


TZ = typer.Option(
    "--tz",
    metavar="ZONE",
    autocompletion=_complete,
    help="The time zone of times that are given without one, and of times in text output: Europe/Berlin. "
    "By default UTC for output, and none for input.",
)


TZ_OF_INPUT = typer.Option(
    "--tz",
    metavar="ZONE",
    autocompletion=_complete,
    help="The time zone of times that are given without one: Europe/Berlin. By default none.",
)
"""Of a command that prints no time."""


def zone_of(name: str | None) -> ZoneInfo | None:
    """Return a time zone of the system, or of the package tzdata. *Errors*: `UsageError`."""
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, zoneinfo.ZoneInfoNotFoundError):
        raise UsageError(f"--tz: expected the name of a time zone, such as Europe/Berlin, found {name!r}") from None


def core_zone(zone: ZoneInfo | None) -> _Zone | None:
    """Return the same zone for the core: from the same file."""
    return None if zone is None else _Zone(zone.key, _file(zone.key))


def _file(name: str) -> bytes:
    for folder in zoneinfo.TZPATH:
        path = Path(folder, name)
        if path.is_file():
            return path.read_bytes()
    return importlib.resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
