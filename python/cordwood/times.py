"""Times as strings, in the forms that the library and the command line accept."""

import re
from datetime import UTC, datetime, timedelta, tzinfo

from cordwood._core import _parse_time, _time_forms

__all__ = ["FORMS", "TimeFormError", "in_words", "is_relative", "parse"]

FORMS = _time_forms()
"""The forms that `parse` accepts, for help texts and errors."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_AGO = re.compile(r"-(?:\d{1,19}[wdhms])+")


class TimeFormError(ValueError):
    """A string that is not a time.

    *expected* describes the expected form; *lacks_zone*: whether it would be a time with a time zone.
    """

    def __init__(self, text: str, expected: str, *, lacks_zone: bool = False) -> None:
        """Create the error for a string."""
        super().__init__(f"expected {expected}, found {text!r}")
        self.expected = expected
        self.lacks_zone = lacks_zone


def parse(text: str, now_ms: int | None = None, zone: tzinfo | None = None, *, rounds_up: bool = True) -> int:
    """Parse a time; return milliseconds since the epoch. *Errors*: `TimeFormError`.

    *zone*: of a time without a zone, which is an error otherwise, and of a date, which is midnight UTC otherwise.
    *rounds_up*: what is done with a fraction of a millisecond. A bound is rounded up, the time of a record down.

    A number without a unit is in ms. One that is a time of these decades only in another unit is an error, and one that
    looks like a date or a year.

    >>> parse("1970-01-01T00:00:01Z"), parse("1970-01-02"), parse("-1h30m", now_ms=5_400_005), parse("1714557600s")
    (1000, 86400000, 5, 1714557600000)
    """
    return _parse_time(text, now_ms, zone, rounds_up=rounds_up)


def is_relative(text: str) -> bool:
    """Return whether a string is another time at each moment.

    >>> is_relative("-2h"), is_relative("now"), is_relative("2024-05-01")
    (True, True, False)
    """
    stripped = text.strip()
    return stripped == "now" or _AGO.fullmatch(stripped) is not None


def in_words(timestamp: int, zone: tzinfo = UTC) -> str:
    """Format a time for a person: ISO with milliseconds; `none` for -1; ms if a datetime cannot hold it.

    >>> in_words(1700000000024), in_words(-1)
    ('2023-11-14T22:13:20.024Z', 'none')
    """
    if timestamp == -1:
        return "none"
    try:
        moment = (_EPOCH + timedelta(milliseconds=timestamp)).astimezone(zone)
    except OverflowError:
        return f"{timestamp} ms"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
