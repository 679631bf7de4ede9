"""The pictures of a report. Each function draws one on empty axes; `PANELS` lists them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from cordwood.quantities import bytes_in_words, several
from cordwood.report.axes import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    bytes_axis,
    count_axis,
    date_number,
    ms_axis,
    time_axis,
)
from cordwood.report.subject import Subject

__all__ = ["PANELS", "Panel"]


@dataclass(frozen=True)
class Panel:
    """One picture."""

    name: str
    """A name for the page: the `id` of the picture."""

    title: str
    caption: str
    """How to read it."""

    draw: Callable[[Axes, Subject], str | None]
    """Draws it. If there is nothing to draw, returns a sentence that says so."""

    is_wide: bool = False
    """Whether it has the whole width of the page, and not half of it."""


def _offset_limits(axes: Axes, profile: dict[str, Any]) -> None:
    start, end = profile["log_start_offset"], profile["log_end_offset"]
    axes.set_xlim(start, max(end, start + 1))
    count_axis(axes.xaxis)
    axes.set_xlabel("offset")


def _map(axes: Axes, subject: Subject) -> str | None:
    profile = subject.profile
    transactions = [(entry["first_offset"], entry["last_offset"] + 1) for entry in profile["aborted_transactions"]]
    end = profile["log_end_offset"]
    opened = [(entry["first_offset"], end) for entry in profile["open_transactions"]]
    damage = [
        (entry["start_offset"], end if entry["end_offset"] is None else entry["end_offset"])
        for entry in profile["damaged_ranges"]
    ]
    segments = [(entry["base_offset"], entry["end_offset"]) for entry in profile["segments"]]
    rows = [
        ("segments", [], BLUE),
        ("missing offsets", profile["gaps"], GREY),
        ("aborted", transactions, ORANGE),
        ("open transactions", opened, PURPLE),
        ("damage", damage, RED),
    ]
    # a range of few offsets must stay visible
    narrowest = max((end - profile["log_start_offset"]) / 600, 0.5)
    for row, (_, ranges, colour) in enumerate(rows):
        bars = [(start, max(stop - start, narrowest)) for start, stop in ranges]
        axes.broken_barh(bars, (-row - 0.38, 0.76), facecolors=colour)
    for place, (start, stop) in enumerate(segments):
        axes.broken_barh([(start, stop - start)], (-0.38, 0.76), facecolors=BLUE if place % 2 == 0 else SKY)
    axes.set_yticks([-row for row in range(len(rows))], [name for name, _, _ in rows])
    axes.set_ylim(-len(rows) + 0.4, 0.6)
    axes.tick_params(axis="y", length=0)
    _offset_limits(axes, profile)
    return None


def _segments(axes: Axes, subject: Subject) -> str | None:
    shown = subject.shown_times()
    profile = subject.profile
    if shown is None:
        return "No record has a timestamp."
    start, width = profile["log_start_offset"], profile["offset_bin_width"]
    for place, (_, _, times, _) in enumerate(profile["offset_bins"]):
        if times is not None:
            left = start + place * width
            low, high = (date_number(time) for time in times)
            axes.plot([left, left + width], [low, high], color=BLUE, linewidth=1.4, solid_capstyle="round")
    for segment in profile["segments"][1:]:
        axes.axvline(segment["base_offset"], color=GREY, linewidth=0.6, alpha=0.6)
    time_axis(axes, "y", shown[:2])
    axes.set_ylabel(_time_label(subject))
    _offset_limits(axes, profile)
    _name_outside(axes, shown[2])
    return None


def _time_label(subject: Subject) -> str:
    return "timestamp, UTC" if subject.time_unit is None else f"timestamp (stored in {subject.time_unit}), UTC"


def _name_outside(axes: Axes, outside: int) -> None:
    if outside:
        text = f"{several(outside, 'record')} outside the shown times"
        axes.set_title(text, fontsize=8, color=RED, loc="right")


def _rate(axes: Axes, subject: Subject) -> str | None:
    shown = subject.shown_times()
    if shown is None:
        return "No record has a timestamp."
    width = subject.profile["time_bin_width"]
    first, last, outside = shown
    # at most some 200 steps, each of whole bins
    step = width * max(1, -(-(last - first) // (200 * width)))
    sums: dict[int, int] = {}
    for start, records, _ in subject.profile["time_bins"]:
        if first - width <= start <= last:
            # not a whole number in a log whose timestamps are not in ms
            place = int(start // step)
            sums[place] = sums.get(place, 0) + records
    keys = range(min(sums), max(sums) + 1)
    edges = [date_number(key * step) for key in [*keys, keys[-1] + 1]]
    seconds = max(step / 1000, 0.001)
    axes.stairs([sums.get(key, 0) / seconds for key in keys], edges, fill=True, color=BLUE)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("records a second")
    time_axis(axes, "x", (max(0, keys[0] * step), (keys[-1] + 1) * step))
    axes.set_xlabel(_time_label(subject))
    _name_outside(axes, outside)
    return None


def _lateness(axes: Axes, subject: Subject) -> str | None:
    profile = subject.profile
    if profile["late_records"] == 0:
        return "No record has a timestamp below that of an earlier record."
    unit = ms_axis(axes.yaxis, profile["max_lateness"])
    start, width = profile["log_start_offset"], profile["offset_bin_width"]
    late = [bin_[3] / unit for bin_ in profile["offset_bins"]]
    axes.stairs(late, [start + place * width for place in range(len(late) + 1)], fill=True, color=ORANGE)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("behind")
    _offset_limits(axes, profile)
    return None


def _files(axes: Axes, subject: Subject) -> str | None:
    kinds = list(subject.file_bytes.items())[::-1]
    if not kinds:
        return "The files take no space."
    axes.barh([kind for kind, _ in kinds], [size for _, size in kinds], color=BLUE, height=0.7)
    for place, (_, size) in enumerate(kinds):
        axes.text(size, place, f" {bytes_in_words(size)}", va="center", fontsize=8)
    axes.set_xlim(0, max(size for _, size in kinds) * 1.18)
    axes.tick_params(axis="y", length=0)
    bytes_axis(axes.xaxis)
    return None


def _segment_sizes(axes: Axes, subject: Subject) -> str | None:
    profile = subject.profile
    bins = profile["offset_bins"]
    if not bins:
        return "The log is empty."
    # fewer bins than there are: a batch counts where it begins, and narrow bins would show single batches
    merged = -(-len(bins) // 96)
    start, width = profile["log_start_offset"], profile["offset_bin_width"] * merged
    sizes = [sum(bin_[1] for bin_ in bins[place : place + merged]) for place in range(0, len(bins), merged)]
    axes.stairs(sizes, [start + place * width for place in range(len(sizes) + 1)], fill=True, color=GREEN)
    axes.set_ylabel(f"for {several(width, 'offset')}")
    bytes_axis(axes.yaxis)
    axes.set_ylim(bottom=0)
    _offset_limits(axes, profile)
    return None


def _sizes(name: str, what: str) -> Callable[[Axes, Subject], str | None]:
    def draw(axes: Axes, subject: Subject) -> str | None:
        counts = subject.profile[name]
        if not counts:
            return "The log is empty."
        first = next(place for place, count in enumerate(counts) if count)
        shown = counts[first:]
        axes.bar(range(len(shown)), shown, color=BLUE, width=0.92)
        labels = [_size_label(first + place, in_bytes=name != "batch_records") for place in range(len(shown))]
        step = -(-len(labels) // 9)
        axes.set_xticks(range(0, len(labels), step), labels[::step], fontsize=8)
        count_axis(axes.yaxis)
        axes.set_ylabel(what)
        return None

    return draw


def _size_label(power: int, *, in_bytes: bool) -> str:
    low = 0 if power == 0 else 1 << (power - 1)
    return f"{bytes_in_words(low).replace('.0 ', ' ') if in_bytes else f'{low:,}'}{'' if power < 2 else '…'}"  # noqa: PLR2004


def _compression(axes: Axes, subject: Subject) -> str | None:
    codecs = subject.profile["codecs"]
    if not codecs:
        return "The log is empty."
    names = [codec["codec"] for codec in codecs][::-1]
    for shift, field, colour in ((0.2, "uncompressed_bytes", SKY), (-0.2, "stored_bytes", BLUE)):
        sizes = [codec[field] for codec in codecs][::-1]
        label = field.replace("_bytes", "")
        axes.barh([place + shift for place in range(len(names))], sizes, height=0.38, color=colour, label=label)
    for place, codec in enumerate(codecs[::-1]):
        ratio = codec["uncompressed_bytes"] / codec["stored_bytes"]
        text = f" {ratio:.2f} : 1, {several(codec['batches'], 'batch').replace('batchs', 'batches')}"
        axes.text(max(codec["uncompressed_bytes"], codec["stored_bytes"]), place, text, va="center", fontsize=8)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlim(right=axes.get_xlim()[1] * 1.3)
    axes.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    bytes_axis(axes.xaxis)
    return None


def _density(axes: Axes, subject: Subject) -> str | None:
    segments = subject.profile["segments"]
    drawn = False
    for field, colour, marker, label in (
        ("time_entries", ORANGE, "s", "time index"),
        ("offset_entries", BLUE, ".", "offset index"),
    ):
        points = [(s["base_offset"], s["bytes"] / s[field]) for s in segments if s[field]]
        if points:
            drawn = True
            axes.plot(*zip(*points, strict=True), marker, color=colour, markersize=6, label=label)
    if not drawn:
        return "No index has an entry."
    axes.legend(frameon=False, fontsize=8)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.2)
    bytes_axis(axes.yaxis)
    axes.set_ylabel("of the .log for an entry")
    _offset_limits(axes, subject.profile)
    return None


PANELS = [
    Panel(
        "map",
        "The log by offset",
        "From the log start offset to the log end offset. Segments alternate in colour. Missing offsets are in no "
        "batch: compaction leaves such gaps, and so does damage.",
        _map,
        is_wide=True,
    ),
    Panel(
        "times",
        "Timestamps by offset",
        "A line that rises is in order. A vertical line starts a segment.",
        _segments,
        is_wide=True,
    ),
    Panel("rate", "Record rate", "Records by their timestamps, without transaction markers.", _rate),
    Panel(
        "lateness",
        "Timestamps out of order",
        "How far a record's timestamp is below the largest before it in the log.",
        _lateness,
    ),
    Panel("bytes", "Bytes by offset", "The stored bytes of the batches.", _segment_sizes),
    Panel(
        "files",
        "Bytes on disk",
        "What all files of the directory take on the disk.",
        _files,
    ),
    Panel(
        "batch-sizes",
        "Batches by size",
        "Each bar begins at the size under it and ends at twice that size.",
        _sizes("batch_sizes", "batches"),
    ),
    Panel(
        "batch-records",
        "Batches by records",
        "The number of records in a batch.",
        _sizes("batch_records", "batches"),
    ),
    Panel("record-sizes", "Records by size", "The bytes of key and value.", _sizes("record_sizes", "records")),
    Panel(
        "compression",
        "Compression",
        "The bytes of the batches of each codec, as stored and without compression.",
        _compression,
    ),
    Panel(
        "density",
        "Index density",
        "Bytes of the .log for one index entry, by segment. A look-up reads about this much without a warm cache.",
        _density,
    ),
]
