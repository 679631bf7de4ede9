"""Offsets between segments, which a missing segment had."""

from cordwood import Log, OffsetGap
from cordwood._core import _offsets_in_words

__all__ = ["missing_in_words", "missing_segments"]


def missing_segments(log: Log) -> list[OffsetGap]:
    """Return the gaps between segments, unless the log shows that it is compacted."""
    gaps = log.offset_gaps()
    return [] if not gaps or log.is_compacted else gaps


def missing_in_words(start_offset: int, end_offset: int) -> str:
    """Describe a gap between segments; *end_offset* is exclusive."""
    offsets = _offsets_in_words(start_offset, end_offset)
    return f"no segment contains {offsets}: unless the log is compacted, a segment is missing"
