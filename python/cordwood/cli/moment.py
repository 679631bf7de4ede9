"""Times of the command line."""

from datetime import tzinfo

from cordwood.cli.exit_codes import UsageError
from cordwood.times import TimeFormError, parse

__all__ = ["parse_time", "with_unit"]


def parse_time(option: str, text: str, zone: tzinfo | None = None, *, has_tz: bool = False) -> int:
    """Parse the time of an option; return milliseconds since the epoch. *has_tz*: whether the command has `--tz`.

    *Errors*: `UsageError`, which names the option.
    """
    try:
        return parse(text, zone=zone)
    except TimeFormError as error:
        other = ", or give --tz" if has_tz and error.lacks_zone else ""
        raise UsageError(f"{option}: expected {error.expected}{other}, found {text!r}") from None


def with_unit(timestamp: int | None) -> str | None:
    """Return a parsed time as an argument of the core, which refuses some numbers without a unit."""
    return None if timestamp is None else f"{timestamp}ms"
