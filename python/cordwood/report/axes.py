"""The style of the pictures, and axes with sizes, offsets and times."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import matplotlib as mpl
import matplotlib.dates as mdates
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

from cordwood.quantities import bytes_in_words

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PURPLE",
    "RED",
    "SKY",
    "bytes_axis",
    "count_axis",
    "date_number",
    "ms_axis",
    "style",
    "time_axis",
]

# Okabe and Ito's colours, which people with colour blindness can tell apart
BLUE, SKY, GREEN, ORANGE, RED, PURPLE, GREY = (
    "#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d55e00", "#cc79a7", "#8a8f98",
)  # fmt: skip

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = 253_402_300_799_000
"""The last second of the year 9999, the end of what a datetime can hold."""

_MS = [(1, "ms"), (1000, "s"), (60_000, "min"), (3_600_000, "h"), (86_400_000, "d")]


def style(name: str) -> AbstractContextManager[None]:
    """Return the context in which a picture is drawn.

    The name makes the identifiers in an SVG different from other pictures on the page, and equal between runs.
    """
    settings: dict[Any, Any] = {
        "axes.spines.right": False,
        "axes.spines.top": False,
        "font.family": "sans-serif",
        "font.size": 9.0,
        "svg.fonttype": "none",
        "svg.hashsalt": name,
    }
    return mpl.rc_context(settings)


def date_number(timestamp: int) -> float:
    """Return a timestamp as matplotlib's number; later ones than the year 9999 are its last second."""
    moment = _EPOCH + timedelta(milliseconds=min(timestamp, _LAST))
    return float(mdates.date2num(moment))  # type: ignore[no-untyped-call]


class _ByteLocator(MultipleLocator):
    """Ticks at multiples of a power of two, at most six."""

    def __call__(self) -> Any:  # noqa: ANN401  (an array of NumPy)
        low, high = self.axis.get_view_interval()  # type: ignore[union-attr]
        step = 1
        while (high - low) / step > 6:  # noqa: PLR2004
            step *= 2
        self.set_params(base=step)
        return super().__call__()


def count_axis(axis: Axis) -> None:
    """Label counts and offsets with all their digits."""
    axis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{int(value):,}"))


def bytes_axis(axis: Axis) -> None:
    """Label sizes with their units."""
    axis.set_major_locator(_ByteLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: bytes_in_words(int(value)).replace(".0 ", " ")))


def ms_axis(axis: Axis, largest: int) -> float:
    """Label durations in a unit that suits the largest; return the number of ms in this unit."""
    size, unit = max((entry for entry in _MS if entry[0] * 2 <= max(largest, 2)), default=_MS[0])
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g} {unit}"))
    return float(size)


def time_axis(axes: Axes, side: str, limits: Sequence[int]) -> None:
    """Label times, UTC, on the axis `x` or `y`, between two timestamps."""
    axis = axes.xaxis if side == "x" else axes.yaxis
    locator = mdates.AutoDateLocator(tz=UTC, minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
    axis.set_major_locator(locator)
    axis.set_major_formatter(mdates.ConciseDateFormatter(locator, tz=UTC))  # type: ignore[no-untyped-call]
    first, last = (date_number(limit) for limit in limits)
    # a log whose records have one time still needs a range
    pad = max((last - first) * 0.02, 1 / 86_400_000)
    end = date_number(_LAST)
    (axes.set_xlim if side == "x" else axes.set_ylim)(min(first, end - 1) - pad, min(last + pad, end))
