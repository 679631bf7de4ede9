"""Ranges of offsets, and the steps of an export. Does not use Spark."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from cordwood import ConfigError
from cordwood._core import _open_log

__all__ = ["Range", "Step", "cut", "plan_steps"]

Io = Literal["auto", "mmap", "pread"]


@dataclass(frozen=True)
class Range:
    """A range of offsets of one partition, half-open."""

    topic: str | None
    """`None` if the directory is not named topic-partition."""

    partition: int | None
    """`None` if the directory is not named topic-partition."""

    path: str
    """The partition directory, absolute."""

    start_offset: int
    end_offset: int
    size: int = 0
    """Approximate size in the log, bytes; 0 if not computed."""

    @property
    def named(self) -> tuple[str, int]:
        """Topic and partition. *Errors*: `ConfigError` if the directory is not named topic-partition."""
        if self.topic is None or self.partition is None:
            raise ConfigError(
                f"{self.path}: expected a directory named topic-partition, such as orders-0, because offsets are "
                "given by topic and partition"
            )
        return self.topic, self.partition


@dataclass(frozen=True)
class Step:
    """The part of an export that one Spark job does: at most one range of each partition."""

    number: int
    ranges: tuple[Range, ...]

    @property
    def size(self) -> int:
        """Approximate number of bytes of the log that it reads."""
        return sum(part.size for part in self.ranges)


def cut(whole: Range, piece_bytes: int, io: Io) -> Iterator[Range]:
    """Cut a range at batch boundaries into pieces of about *piece_bytes*; an empty range has no pieces.

    The pieces contain every offset of the range exactly once.
    """
    start, end = whole.start_offset, whole.end_offset
    if start >= end:
        return
    splits = _open_log(whole.path, io=io, refresh=False).plan(piece_bytes, start_offset=start, end_offset=end)
    # the outer edges are the edges of the range, not of the first and the last batch
    edges = [start, *(split.start_offset for split in splits[1:]), end]
    sizes = [split.size for split in splits] or [0]
    for (low, high), size in zip(pairwise(edges), sizes, strict=True):
        yield replace(whole, start_offset=low, end_offset=high, size=size)


def plan_steps(ranges: Iterable[Range], *, piece_bytes: int, step_bytes: int, io: Io) -> list[Step]:
    """Cut ranges into steps of at most `step_bytes`, or of one piece if that is larger, in order.

    A step has at most one range of a partition, because the source's options can express only one.
    """
    steps: list[Step] = []
    taken: list[Range] = []
    size = 0
    for piece in (piece for whole in ranges for piece in cut(whole, piece_bytes, io)):
        if taken and size + piece.size > step_bytes:
            steps.append(Step(len(steps), tuple(taken)))
            taken, size = [], 0
        if taken and taken[-1].path == piece.path:
            last = taken.pop()
            taken.append(replace(last, end_offset=piece.end_offset, size=last.size + piece.size))
        else:
            taken.append(piece)
        size += piece.size
    if taken:
        steps.append(Step(len(steps), tuple(taken)))
    return steps
