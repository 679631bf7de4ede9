"""Planning: how ranges of logs are cut into tasks.

A `Piece` is read by one task from its first to its last record; every record of the range lies in exactly one piece.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import cordwood as cw
from cordwood.spark.bounds import Bounds, coded, open_log
from cordwood.spark.options import SparkLogOptions
from cordwood.spark.partitions import PartitionDirectory

__all__ = ["Piece", "part_of", "plan_splits"]

_MOST_BYTES = 128 << 20
# below that a task costs more than what it reads
_LEAST_BYTES = 16 << 20
# what opening a log counts for where small pieces share a task
_OPENING_BYTES = 1 << 20
_ALL = (1 << 63) - 1
# with more offsets than so many times what a part may have, they are taken to leap
_DENSE = 1000


@dataclass(frozen=True)
class Piece:
    """A part of one partition that one task reads: a value without handles, the same in every process."""

    directory: PartitionDirectory
    split: cw.Split
    segments: tuple[tuple[int, int], ...]
    """Base offset and size in bytes of each segment it reads, as planned: by these a task sees that one is gone."""


def plan_splits(bounds: Iterable[Bounds], options: SparkLogOptions) -> list[tuple[Piece, ...]]:
    """Cut ranges into tasks of about the same size, the largest first; each is a tuple of pieces.

    A piece is cut at batch boundaries and holds at most `maxPartitionBytes` (or one batch); small pieces share a task.
    `minPartitions` makes the pieces smaller, so that there are at least so many (where there are so many records), and
    `maxRecordsPerPartition` cuts by offsets, if need be inside a batch, which two tasks then read.
    """
    if options.table == "segments":
        return _packed(list(_whole_segments(bounds, options)), options.max_partition_bytes or _MOST_BYTES)
    ranges = [bound for bound in bounds if bound.start_offset < bound.end_offset]
    coarse = [(bound, split) for bound in ranges for split in _plan(bound, _ALL, options)]
    total = sum(split.size for _, split in coarse)
    target = options.max_partition_bytes or min(_MOST_BYTES, max(_LEAST_BYTES, total // _cores()))
    if options.min_partitions is not None:
        target = min(target, max(1, total // options.min_partitions))
    fine = [(bound, part) for bound, split in coarse for part in _finer(bound, split, target, options)]
    if options.table == "records":
        most = options.max_records_per_partition
        if options.min_partitions is not None and len(fine) < options.min_partitions:
            offsets = sum(split.end_offset - split.start_offset for _, split in fine)
            most = min(most or _ALL, max(1, offsets // options.min_partitions))
        if most is not None:
            fine = [(bound, part) for bound, split in fine for part in _by_records(bound, split, most, options)]
    pieces = [_piece(bound, split, options) for bound, split in fine]
    alone = options.min_partitions is not None or options.max_records_per_partition is not None
    return _packed(pieces, 0 if alone else target)


def _plan(bound: Bounds, max_bytes: int, options: SparkLogOptions) -> list[cw.Split]:
    log = open_log(bound.directory, options)
    return coded(
        bound.directory,
        lambda: log.plan(
            max_bytes,
            start_offset=bound.start_offset,
            end_offset=bound.end_offset,
            start_time=bound.start_time,
            end_time=bound.end_time,
            isolation_level=options.isolation_level if options.table == "records" else "read_uncommitted",
        ),
    )


def _finer(bound: Bounds, split: cw.Split, target: int, options: SparkLogOptions) -> list[cw.Split]:
    if split.size <= target:
        return [split]
    part = replace(bound, start_offset=split.start_offset, end_offset=split.end_offset)
    return _plan(part, target, options)


def _by_records(bound: Bounds, split: cw.Split, most: int, options: SparkLogOptions) -> Iterator[cw.Split]:
    """Cut a split until no part has more offsets than `most`, at batch boundaries as long as there are any.

    Offsets may leap: a log of a few records can span billions, so parts are counted by what is there, not by offsets.
    """
    offsets = split.end_offset - split.start_offset
    if offsets <= most:
        yield split
        return
    # aim at the right size where offsets are dense, and halve where they leap
    target = split.size * most // offsets if offsets // most < _DENSE else split.size // 2
    part = replace(bound, start_offset=split.start_offset, end_offset=split.end_offset)
    parts = _plan(part, max(1, target), options) if split.size > 1 else []
    if len(parts) > 1:
        for smaller in parts:
            yield from _by_records(bound, smaller, most, options)
    else:
        yield from _inside_batch(bound, split, most, options)


def _inside_batch(bound: Bounds, split: cw.Split, most: int, options: SparkLogOptions) -> Iterator[cw.Split]:
    """Cut a split of one batch by its offsets, if it has all of them."""
    start, end = split.start_offset, split.end_offset
    log = open_log(bound.directory, options)
    header = coded(
        bound.directory, lambda: log.batches(start_offset=start, end_offset=start + 1, on_damage="skip").to_arrow()
    ).slice(0, 1)
    last, count = (header.column(name).to_pylist() for name in ("last_offset", "count"))
    base = header.column("base_offset").to_pylist()
    if not base or base[0] > start or count[0] is None or count[0] != last[0] - base[0] + 1 or last[0] - start < most:
        yield split
        return
    stop = min(end, last[0] + 1)
    parts = -(-(stop - start) // most)
    cuts = [start + (stop - start) * part // parts for part in range(parts)]
    for low, high in pairwise([*cuts, end]):
        yield part_of(split, low, high, split.size // parts)


def part_of(split: cw.Split, start_offset: int, end_offset: int, size: int) -> cw.Split:
    """Narrow a split to offsets inside it; what it knows of transactions holds there too."""
    return cw.Split(split.path, start_offset, end_offset, split.start_time, split.end_time, size, aborted=split.aborted)


def _whole_segments(bounds: Iterable[Bounds], options: SparkLogOptions) -> Iterator[Piece]:
    for bound in bounds:
        log = open_log(bound.directory, options)
        for segment in log.segments:
            following = log.segments.higher(segment.base_offset)
            end = log.log_end_offset if following is None else following.base_offset
            # an empty one at the end of the log lies in a range that reaches there
            begins = segment.base_offset < bound.end_offset or segment.base_offset == end == bound.end_offset
            if not begins or (end <= bound.start_offset and following is not None):
                continue
            start = min(max(segment.base_offset, log.log_start_offset), end)
            split = cw.Split(bound.path, start, end, size=segment.size)
            yield Piece(bound.directory, split, ((segment.base_offset, segment.size),))


def _piece(bound: Bounds, split: cw.Split, options: SparkLogOptions) -> Piece:
    log = open_log(bound.directory, options)
    read = log.segments.between(split.start_offset, split.end_offset)
    segments = coded(bound.directory, lambda: tuple((segment.base_offset, segment.size) for segment in read))
    return Piece(bound.directory, split, segments)


def _packed(pieces: list[Piece], target: int) -> list[tuple[Piece, ...]]:
    tasks: list[tuple[Piece, ...]] = []
    size = target
    for piece in pieces:
        cost = piece.split.size + _OPENING_BYTES
        if size + cost > target or not tasks:
            tasks.append(())
            size = 0
        tasks[-1] += (piece,)
        size += cost
    return sorted(tasks, key=lambda task: -sum(piece.split.size for piece in task))


def _cores() -> int:
    return len(os.sched_getaffinity(0))
