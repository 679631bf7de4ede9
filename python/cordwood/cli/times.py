"""Times as people write and read them."""

import re
import time
from datetime import UTC, date, datetime, timedelta

__all__ = ["FORMS", "TimeFormError", "in_words", "parse"]

FORMS = "2024-05-01T10:00Z, 2024-05-01T12:00+02:00, 2024-05-01 (midnight UTC), -2h, -1h30m, now, or ms since the epoch"
"""What `parse` takes, for help texts and errors."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNIT_MS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
# no more digits than a time within 64 bits can need
_AGO = re.compile(r"-(?:\d{1,19}[wdhms])+")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_INT64_END = 1 << 63


class TimeFormError(ValueError):
    """A time that cannot be read; the message is a sentence."""


def parse(text: str, now_ms: int | None = None) -> int:
    """Read a time; returns milliseconds since the epoch.

    >>> parse("1970-01-01T00:00:01Z"), parse("1970-01-02"), parse("-1h30m", now_ms=5_400_005)
    (1000, 86400000, 5)
    """
    text = text.strip()
    if text.isascii() and text.isdigit():
        return _in_range(int(text[:20]), text)
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    if text == "now":
        return now_ms
    if _AGO.fullmatch(text):
        ago = sum(int(count) * _UNIT_MS[unit] for count, unit in re.findall(r"(\d+)([wdhms])", text))
        return _in_range(now_ms - ago, text)
    try:
        if _DATE.fullmatch(text):
            day = date.fromisoformat(text)
            moment = datetime(day.year, day.month, day.day, tzinfo=UTC)
        else:
            moment = datetime.fromisoformat(text)
    except ValueError:
        raise TimeFormError(f"{text!r} is not a time; write one of: {FORMS}") from None
    if moment.tzinfo is None:
        raise TimeFormError(f"{text!r} says no time zone: add Z for UTC ({text}Z) or an offset ({text}+02:00)")
    # a bound between two milliseconds: no record is there, so the next one is the same bound
    return _in_range(-((_EPOCH - moment) // timedelta(milliseconds=1)), text)


def _in_range(timestamp: int, text: str) -> int:
    if not 0 <= timestamp < _INT64_END:
        raise TimeFormError(f"{text!r} lies outside what Kafka can store: from 1970-01-01 to 2^63 - 1 ms")
    return timestamp


def in_words(timestamp: int) -> str:
    """Write a time for a person: ISO in UTC to the millisecond; `none` for -1; the number where no calendar has it.

    >>> in_words(1700000000024), in_words(-1)
    ('2023-11-14T22:13:20.024Z', 'none')
    """
    if timestamp == -1:
        return "none"
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp)
    except OverflowError:
        return f"{timestamp} ms"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
