"""Times as strings, in the forms that the library and the command line accept."""

import re
import time
from datetime import UTC, date, datetime, timedelta, tzinfo

from cordwood._core import _other_unit

__all__ = ["FORMS", "TimeFormError", "in_words", "is_relative", "parse"]

FORMS = (
    "2024-05-01T10:00Z, 2024-05-01T12:00+02:00, 2024-05-01 (midnight UTC), -2h, -1h30m, now, or ms since the epoch "
    "(1714557600s is in seconds, with us and ns in smaller units)"
)
"""The forms that `parse` accepts, for help texts and errors."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNIT_MS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
# 19 digits are enough for every time within 64 bits
_AGO = re.compile(r"-(?:\d{1,19}[wdhms])+")
_SINCE_EPOCH = re.compile(r"(\d{1,19})(s|ms|us|ns)")
_UNITS = {"s": (1000, 1), "ms": (1, 1), "us": (1, 1000), "ns": (1, 1_000_000)}
_SUFFIXES = {"seconds": "s", "microseconds": "us", "nanoseconds": "ns"}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_INT64_END = 1 << 63


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

    A number without a unit is in ms. One that is a time of these decades only in another unit is an error.

    >>> parse("1970-01-01T00:00:01Z"), parse("1970-01-02"), parse("-1h30m", now_ms=5_400_005), parse("1714557600s")
    (1000, 86400000, 5, 1714557600000)
    """
    stripped = text.strip()
    if stripped.isascii() and stripped.isdigit():
        return _of_number(_in_range(int(stripped[:20]), text), text)
    since_epoch = _SINCE_EPOCH.fullmatch(stripped)
    if since_epoch is not None:
        factor, divisor = _UNITS[since_epoch[2]]
        count = int(since_epoch[1]) * factor
        return _in_range(-(-count // divisor) if rounds_up else count // divisor, text)
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    if stripped == "now":
        return now_ms
    if _AGO.fullmatch(stripped):
        ago = sum(int(count) * _UNIT_MS[unit] for count, unit in re.findall(r"(\d+)([wdhms])", stripped))
        return _in_range(now_ms - ago, text)
    try:
        if _DATE.fullmatch(stripped):
            day = date.fromisoformat(stripped)
            moment = datetime(day.year, day.month, day.day, tzinfo=zone or UTC)
        else:
            moment = datetime.fromisoformat(stripped)
    except ValueError:
        raise TimeFormError(text, f"a time in one of the forms {FORMS}") from None
    if moment.tzinfo is None and zone is not None:
        moment = moment.replace(tzinfo=zone)
    if moment.tzinfo is None:
        expected = f"a time with a time zone: add Z for UTC ({stripped}Z) or an offset ({stripped}+02:00)"
        raise TimeFormError(text, expected, lacks_zone=True)
    millisecond = timedelta(milliseconds=1)
    # a bound between two milliseconds selects the same records as the next whole millisecond
    up = -((_EPOCH - moment) // millisecond)
    return _in_range(up if rounds_up else (moment - _EPOCH) // millisecond, text)


def _of_number(timestamp: int, text: str) -> int:
    unit = _other_unit(timestamp)
    if unit is None:
        return timestamp
    name, milliseconds = unit
    number = text.strip()
    raise TimeFormError(
        text,
        f"milliseconds since the epoch, or a unit: in {name} it is {number}{_SUFFIXES[name]} "
        f"({in_words(milliseconds)}), in ms {number}ms",
    )


def is_relative(text: str) -> bool:
    """Return whether a string is another time at each moment.

    >>> is_relative("-2h"), is_relative("now"), is_relative("2024-05-01")
    (True, True, False)
    """
    stripped = text.strip()
    return stripped == "now" or _AGO.fullmatch(stripped) is not None


def _in_range(timestamp: int, text: str) -> int:
    if not 0 <= timestamp < _INT64_END:
        raise TimeFormError(text, "a time that Kafka can store, from 1970-01-01 to 2^63 - 1 ms")
    return timestamp


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
