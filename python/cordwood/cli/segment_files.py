"""`.log` files on the command line: the part of a partition that is in them."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cordwood import Log, LogNotFoundError, classify
from cordwood.cli.exit_codes import NothingFoundError, UsageError
from cordwood.cli.log_warnings import silent_log

__all__ = ["SegmentFiles", "segment_files"]


class SegmentFiles(NamedTuple):
    """Segments of a partition that follow each other."""

    partition: Path
    """The partition directory."""

    start_offset: int
    """The first offset, inclusive."""

    end_offset: int
    """The end, exclusive."""

    base_offsets: list[int]
    """The base offsets of the segments, in order."""

    def within(self, start_offset: int | None, end_offset: int | None) -> tuple[int, int]:
        """Return the part of a range of offsets that is in these segments. *Errors*: `NothingFoundError`."""
        start = self.start_offset if start_offset is None else max(start_offset, self.start_offset)
        end = self.end_offset if end_offset is None else min(end_offset, self.end_offset)
        if start > end:
            raise NothingFoundError(
                f"the files have the offsets {self.start_offset} to {self.end_offset} (exclusive), none of the range"
            )
        return start, end


def segment_files(paths: Sequence[Path], max_batch_bytes: int) -> SegmentFiles | None:
    """Return the segments of paths to `.log` files; `None` if no path is one.

    *Errors*: `UsageError` if others are among them, or if they are not successive segments of one partition.
    """
    files = [path for path in paths if _is_segment(path)]
    if not files:
        return None
    partitions = {path.absolute().parent for path in files}
    if len(files) < len(paths) or len(partitions) > 1:
        raise UsageError("expected either .log files of one partition, or partition directories and data directories")
    (partition,) = partitions
    bases = sorted({int(path.name.removesuffix(".log")) for path in files})
    with silent_log():
        log = Log(partition, max_batch_bytes=max_batch_bytes)
        segments = log.segments.between(bases[0], bases[-1] + 1)
    found = [segment.base_offset for segment in segments]
    if found != bases:
        missing = sorted(set(found) ^ set(bases))
        raise UsageError(
            f"{partition}: expected .log files of segments that follow each other; not so the segment with the base "
            f"offset {missing[0]}"
        )
    start = max(log.log_start_offset, bases[0])
    return SegmentFiles(partition, start, max(start, segments[-1].end_offset), bases)


def _is_segment(path: Path) -> bool:
    try:
        named = classify(path)
    except (LogNotFoundError, OSError):
        # opening it says what is wrong
        return False
    return named.kind == "log" and named.state == "live"
