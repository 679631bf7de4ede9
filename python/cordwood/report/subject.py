"""What a report is about: the profile of a log, and the files of its directory."""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cordwood import Log
from cordwood._core import _Profiler

__all__ = ["FILE_KINDS", "Subject", "subject_of"]

STEP_BYTES = 32 << 20
"""The bytes that are read between two calls of the function that shows progress."""

FILE_KINDS = {
    ".log": "records (.log)",
    ".index": "offset indexes (.index)",
    ".timeindex": "time indexes (.timeindex)",
    ".txnindex": "transaction indexes (.txnindex)",
    ".snapshot": "producer snapshots (.snapshot)",
}
"""The kinds of files that are shown by their suffix; all others are one kind."""

OTHER_FILES = "other files"


@dataclass(frozen=True)
class Subject:
    """The numbers of a report."""

    path: str
    """The partition directory."""

    profile: dict[str, Any]
    """The fields of the struct `Profile` in Rust."""

    file_bytes: dict[str, int]
    """The bytes of the files in the directory, by the kind of the file."""

    warnings: list[str]
    """The warnings of the log."""

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
    return Subject(log.path, profiler.finish(), _file_bytes(Path(log.path)), log.warnings)


def _file_bytes(directory: Path) -> dict[str, int]:
    """Add up the sizes of regular files, also those in folders such as quarantine."""
    sums = dict.fromkeys([*FILE_KINDS.values(), OTHER_FILES], 0)
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                found = Path(folder, name).lstat()
            except FileNotFoundError:
                # deleted since it was listed
                continue
            if stat.S_ISREG(found.st_mode):
                is_live = Path(folder) == directory
                kind = FILE_KINDS.get(Path(name).suffix, OTHER_FILES) if is_live else OTHER_FILES
                sums[kind] += found.st_size
    return {kind: size for kind, size in sums.items() if size > 0}
