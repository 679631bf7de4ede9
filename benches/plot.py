"""Draw the sweeps of a record as SVG files beside it: `make bench-sweeps`.

The same record gives the same bytes.
"""

import argparse
import csv
import math
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

RECORD = Path(__file__).parent / "record"
# Okabe and Ito's colours, which people with colour blindness can tell apart, without yellow; all are clear on
# white
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#000000"]
MARKERS = ["o", "s", "^", "D", "v", "x"]


@dataclass(frozen=True)
class Panel:
    """One diagram: a sweep of the record, and the units of its axes."""

    sweep: str
    title: str
    size: str
    cost: str
    in_bytes: bool = False


@dataclass(frozen=True)
class Drawing:
    """One SVG file."""

    name: str
    panels: list[Panel]


def of_batches(sweep: str, title: str, cost: str) -> Panel:
    """A panel of logs with batches of several sizes."""
    return Panel(sweep, title, "size of a batch, bytes", cost, in_bytes=True)


def of_index(sweep: str, title: str) -> Panel:
    """A panel of look-ups in an index."""
    return Panel(sweep, title, "size of the index, bytes", "ns per look-up", in_bytes=True)


DRAWINGS = [
    Drawing(
        "segments",
        [
            Panel("segments/floor", "the segment of an offset", "segments", "ns per look-up"),
            Panel("segments/locate", "the batch of an offset", "segments", "ns per look-up"),
            Panel("segments/offset_for_time", "the offset of a time", "segments", "ns per look-up"),
        ],
    ),
    Drawing(
        "offset-index",
        [
            of_index("offset-index/tail", "offset index, last 1,024 entries"),
            of_index("offset-index/uniform", "offset index, all entries"),
        ],
    ),
    Drawing(
        "time-index",
        [
            of_index("time-index/tail", "time index, last 1,024 entries"),
            of_index("time-index/uniform", "time index, all entries"),
        ],
    ),
    Drawing(
        "batches",
        [
            of_batches("batches/headers", "every header", "ns per batch"),
            of_batches("batches/columns", "records into columns", "ns per record"),
            of_batches("batches/locate", "the batch of an offset", "ns per look-up"),
        ],
    ),
    Drawing("records", [Panel("records/columns", "records into columns", "records of a batch", "ns per record")]),
]


@dataclass(frozen=True)
class Point:
    """One line of the record, times in ns."""

    size: int
    median: float
    smallest: float
    largest: float


# the points of each arm of each sweep
Record = dict[str, dict[str, list[Point]]]


def read(path: Path) -> Record:
    """The points of a record."""
    sweeps: Record = defaultdict(lambda: defaultdict(list))
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            point = Point(int(row["size"]), float(row["median_ns"]), float(row["min_ns"]), float(row["max_ns"]))
            sweeps[row["sweep"]][row["arm"]].append(point)
    return sweeps


def binary_size(size: int) -> str:
    """A number of bytes with its unit."""
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size} B"


def nanoseconds(time: float, _: int | None = None) -> str:
    """A time without an exponent."""
    return f"{time:g}" if time < 1 else f"{time:,.0f}"


def draw_panel(axes: Axes, panel: Panel, arms: dict[str, list[Point]]) -> None:
    """One line for each arm: medians, with bars from the smallest to the largest turn."""
    for (arm, points), colour, marker in zip(arms.items(), COLOURS, MARKERS, strict=False):
        medians = [point.median for point in points]
        spread = (
            [point.median - point.smallest for point in points],
            [point.largest - point.median for point in points],
        )
        axes.errorbar(
            [point.size for point in points],
            medians,
            yerr=spread,
            label=arm,
            color=colour,
            marker=marker,
            markersize=4,
            linewidth=1.4,
            elinewidth=0.8,
            capsize=2,
        )
    axes.set_xscale("log", base=2 if panel.in_bytes else 10)
    axes.set_yscale("log")
    axes.set_title(panel.title)
    axes.set_xlabel(panel.size)
    axes.set_ylabel(panel.cost)
    sizes = sorted({point.size for points in arms.values() for point in points})
    axes.set_xticks(sizes, [binary_size(size) if panel.in_bytes else f"{size:,}" for size in sizes], fontsize="small")
    # whole decades, so that a small range has labels too
    least = min(point.smallest for points in arms.values() for point in points)
    most = max(point.largest for points in arms.values() for point in points)
    axes.set_ylim(10 ** math.floor(math.log10(least)), 10 ** math.ceil(math.log10(most)))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(nanoseconds))
    axes.minorticks_off()
    axes.grid(visible=True, which="major", color="#d0d0d0", linewidth=0.6)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2, fontsize="small", frameon=False)


def draw(drawing: Drawing, record: Record, path: Path) -> None:
    """Write one SVG file."""
    figure = Figure(figsize=(5.2 * len(drawing.panels), 4.2), layout="constrained")
    axes = figure.subplots(1, len(drawing.panels), squeeze=False)[0]
    for panel, panel_axes in zip(drawing.panels, axes, strict=True):
        draw_panel(panel_axes, panel, record[panel.sweep])
    figure.savefig(path, metadata={"Date": None, "Creator": None})


def main() -> None:
    """Draw one record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("record", type=Path, nargs="?", help="the CSV; without it, the newest in benches/record")
    parser.add_argument("--to", type=Path, default=RECORD, help="the folder of the SVG files")
    arguments = parser.parse_args()
    path = arguments.record or max(RECORD.glob("*-sweeps.csv"))
    # an opaque background, so that the text is as clear on a dark page as on a light one; ids that do not
    # change
    mpl.rcParams.update({"svg.hashsalt": "cordwood", "svg.fonttype": "none", "savefig.facecolor": "white"})
    record = read(path)
    for drawing in DRAWINGS:
        target = arguments.to / f"sweep-{drawing.name}.svg"
        draw(drawing, record, target)
        print(target)


if __name__ == "__main__":
    main()
