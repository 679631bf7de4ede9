"""What a report is about: the profile of a log, and the files of its directory."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cordwood import Log, LogNotFoundError, classify
from cordwood._core import _Profiler
from cordwood.disk_usage import disk_bytes, files_in
from cordwood.report.time_unit import in_milliseconds

__all__ = ["FILE_KINDS", "Subject", "subject_of"]

STEP_BYTES = 32 << 20
"""The bytes that are read between two calls of the function that shows progress."""

FILE_KINDS = {
    "log": "records (.log)",
    "offset_index": "offset indexes (.index)",
    "time_index": "time indexes (.timeindex)",
    "transaction_index": "transaction indexes (.txnindex)",
    "producer_snapshot": "producer snapshots (.snapshot)",
}
"""What a picture calls the kinds of files, by their names in `PathInfo`; all others are one kind."""

OTHER_FILES = "other files"


@dataclass(frozen=True)
class Subject:
    """The numbers of a report."""

    path: str
    """The partition directory."""

    profile: dict[str, Any]
    """The fields of the struct `Profile` in Rust."""

    file_bytes: dict[str, int]
    """What the files of the directory take on the disk, bytes by the kind of the file."""

    warnings: list[str]
    """The warnings of the log."""

    time_unit: str | None = None
    """The unit of the timestamps if it is not ms, as in Kafka; the times of the profile are in ms all the same."""

    @property
    def time_range(self) -> tuple[int, int] | None:
        """The range of the timestamps, ms; `None` if no record has one."""
        return self.profile["time_range"]  # type: ignore[no-any-return]

    def shown_times(self) -> tuple[int, int, int] | None:
        """Return the range of time that pictures show, and the number of records outside it.

        A few records with a wrong time would leave no room for the others: if 99.8 % of the records are within a
        twentieth of the whole range, only that part is shown.
        """
        if self.time_range is None:
            return None
        first, last = self.time_range
        width, bins = self.profile["time_bin_width"], self.profile["time_bins"]
        total = sum(records for _, records, _ in bins)
        margin = total // 1000
        low, below = _trimmed(bins, margin)
        high, above = _trimmed(bins[::-1], margin)
        if bins[low][0] > bins[len(bins) - 1 - high][0]:
            return first, last, 0
        start, end = max(first, bins[low][0]), min(last, bins[len(bins) - 1 - high][0] + width)
        return (start, end, below + above) if (end - start) * 20 < last - first else (first, last, 0)


def _trimmed(bins: list[tuple[int, int, int]], margin: int) -> tuple[int, int]:
    """Return how many bins at the start have at most `margin` records together, and the number of these."""
    skipped = 0
    for place, (_, records, _) in enumerate(bins):
        if skipped + records > margin:
            return place, skipped
        skipped += records
    return 0, 0


def subject_of(log: Log, on_progress: Callable[[int], None]) -> Subject:
    """Read a log. The function is called with the bytes that were read so far."""
    profiler = _Profiler(log)
    while (read := profiler.advance(STEP_BYTES)) is not None:
        on_progress(read)
    profile, unit = in_milliseconds(profiler.finish())
    return Subject(log.path, profile, _file_bytes(Path(log.path)), log.warnings, unit)


def _file_bytes(directory: Path) -> dict[str, int]:
    """Add up what the files take on the disk, those in folders such as quarantine included."""
    sums = dict.fromkeys([*FILE_KINDS.values(), OTHER_FILES], 0)
    for path, found in files_in(directory):
        sums[_kind_of(Path(path), directory)] += disk_bytes(found)
    return {kind: size for kind, size in sums.items() if size > 0}


def _kind_of(path: Path, directory: Path) -> str:
    if path.parent != directory:
        return OTHER_FILES
    try:
        info = classify(path)
    except LogNotFoundError:
        # deleted since it was listed
        return OTHER_FILES
    return FILE_KINDS.get(info.kind, OTHER_FILES) if info.state == "live" else OTHER_FILES
