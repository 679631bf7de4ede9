"""Logs whose timestamps are not in milliseconds, as Kafka's are, but in another unit."""

from collections.abc import Callable
from typing import Any

from cordwood._core import _other_unit

__all__ = ["in_milliseconds"]

_MILLISECONDS = {"seconds": 1000.0, "microseconds": 1e-3, "nanoseconds": 1e-6}


def in_milliseconds(profile: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Return a profile with times in ms, and the unit of the log's timestamps; `None` if they are in ms.

    They are in another unit if the first and the last are times of these decades in it.
    """
    times = profile["time_range"]
    units = {_other_unit(time) for time in times} if times is not None else {None}
    names = {None if unit is None else unit[0] for unit in units}
    (name,) = names if len(names) == 1 else (None,)
    if name is None:
        return profile, None
    factor = _MILLISECONDS[name]

    def whole(time: int) -> int:
        return int(time * factor)

    def both(times: tuple[int, int] | None) -> tuple[int, int] | None:
        return None if times is None else (whole(times[0]), whole(times[1]))

    def every(rows: list[dict[str, Any]], field: str, convert: Callable[[Any], Any]) -> list[dict[str, Any]]:
        return [row | {field: convert(row[field])} for row in rows]

    converted = {
        "time_range": both(times),
        "max_lateness": whole(profile["max_lateness"]),
        # bins are narrower than a millisecond in short logs
        "time_bin_width": profile["time_bin_width"] * factor,
        "time_bins": [(start * factor, *rest) for start, *rest in profile["time_bins"]],
        "offset_bins": [
            (records, size, both(of_bin), whole(lateness)) for records, size, of_bin, lateness in profile["offset_bins"]
        ],
        "segments": every(profile["segments"], "time_range", both),
        "open_transactions": every(profile["open_transactions"], "last_timestamp", whole),
    }
    return profile | converted, name
