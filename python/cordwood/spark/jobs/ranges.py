"""Ranges of offsets, and the steps that an export goes through them in. No Spark here."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from cordwood import ConfigError
from cordwood.spark.log_cache import open_cached

__all__ = ["Range", "Step", "cut", "plan_steps"]

Io = Literal["auto", "mmap", "pread"]


@dataclass(frozen=True)
class Range:
    """A range of offsets of one partition, half-open."""

    topic: str | None
    """`None` where the directory's name does not say it."""

    partition: int | None
    """`None` where the directory's name does not say it."""

    path: str
    """The partition directory, absolute."""

    start_offset: int
    end_offset: int
    size: int = 0
    """About how many bytes of the log it is; 0 where nobody asked."""

    @property
    def named(self) -> tuple[str, int]:
        """Topic and partition. *Errors*: `ConfigError` where the directory's name does not say them."""
        if self.topic is None or self.partition is None:
            raise ConfigError(
                f"{self.path}: offsets are written by topic and partition, which a directory's name says: expected "
                "a name such as orders-0"
            )
        return self.topic, self.partition


@dataclass(frozen=True)
class Step:
    """What is exported at once, by one Spark job: at most one range of a partition."""

    number: int
    ranges: tuple[Range, ...]

    @property
    def size(self) -> int:
        """About how many bytes of the log it reads."""
        return sum(part.size for part in self.ranges)


def cut(whole: Range, piece_bytes: int, io: Io) -> Iterator[Range]:
    """Cut a range at batch boundaries into pieces of about so many bytes; of an empty one nothing is left.

    Together the pieces hold every offset of the range once.
    """
    start, end = whole.start_offset, whole.end_offset
    if start >= end:
        return
    splits = open_cached(whole.path, io=io, refresh=False).plan(piece_bytes, start_offset=start, end_offset=end)
    # the outer edges are those of the range, wherever the first and the last batch lie
    edges = [start, *(split.start_offset for split in splits[1:]), end]
    sizes = [split.size for split in splits] or [0]
    for (low, high), size in zip(pairwise(edges), sizes, strict=True):
        yield replace(whole, start_offset=low, end_offset=high, size=size)


def plan_steps(ranges: Iterable[Range], *, piece_bytes: int, step_bytes: int, io: Io) -> list[Step]:
    """Cut ranges into steps of `step_bytes` at most, or of one piece where that is larger, in their order.

    What a partition has in a step is one range, as the source's options can say it.
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
