"""Planning: how ranges of logs are cut into tasks.

A `Piece` is read by one task from its first to its last record; every record of the range lies in exactly one piece.
"""

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import cordwood as cw
from cordwood.spark.bounds import Bounds, coded, open_log
from cordwood.spark.errors import OFFSET_OUT_OF_RANGE, SEGMENT_GONE, SparkLogError
from cordwood.spark.options import SparkLogOptions
from cordwood.spark.partitions import PartitionDirectory

__all__ = ["Piece", "narrowed", "part_of", "plan_splits"]

_MAX_BYTES = 128 << 20
# below that a task costs more than what it reads
_MIN_BYTES = 16 << 20
# what opening a log counts for where small pieces share a task
_OPENING_BYTES = 1 << 20
# what the cuts between batches may add up to
_BATCH_BYTES = 256 << 10
_ALL = (1 << 63) - 1
# with more offsets than so many times what a part may have, they are taken to leap
_DENSE = 1000


@dataclass(frozen=True)
class Piece:
    """A part of one partition that one task reads: a value without handles, the same in every process."""

    directory: PartitionDirectory
    split: cw.Split
    """Its segments are those of the plan: the scan of a task compares the log with them."""
    is_first: bool = True
    """Whether damage that begins before the piece is reported here, and not by the piece before."""


def plan_splits(bounds: Iterable[Bounds], options: SparkLogOptions) -> list[tuple[Piece, ...]]:
    """Cut ranges into tasks of about the same size, the largest first; each is a tuple of pieces.

    A piece is cut at batch boundaries and holds at most `maxPartitionBytes` (or one batch); small pieces share a task.
    `minPartitions` makes the pieces smaller, so that there are at least so many (where there are so many records), and
    `maxRecordsPerPartition` cuts by offsets, if need be inside a batch, which two tasks then read.
    """
    if options.table == "segments":
        return _packed(list(_whole_segments(bounds, options)), options.max_partition_bytes or _MAX_BYTES)
    # planned from the log as it was when the range was found
    coarse = [part for bound in bounds if bound.start_offset < bound.end_offset for part in _coarse(bound, options)]
    total = sum(piece.split.size for piece in coarse)
    target = options.max_partition_bytes or min(_MAX_BYTES, max(_MIN_BYTES, total // _cores()))
    if options.min_partitions is not None:
        target = min(target, max(1, total // options.min_partitions))
    pieces = [finer for piece in coarse for finer in _finer(piece, target, options)]
    if options.table == "records":
        most = options.max_records_per_partition
        if options.min_partitions is not None and len(pieces) < options.min_partitions:
            offsets = sum(piece.split.end_offset - piece.split.start_offset for piece in pieces)
            most = min(most or _ALL, max(1, offsets // options.min_partitions))
        if most is not None:
            pieces = [smaller for piece in pieces for smaller in _by_records(piece, most, options)]
    alone = options.min_partitions is not None or options.max_records_per_partition is not None
    return _packed(pieces, 0 if alone else target)


def _coarse(bound: Bounds, options: SparkLogOptions) -> Iterator[Piece]:
    """Plan the whole range of a log as one piece (none where nothing of it is committed)."""
    log = open_log(bound.directory, options, refresh=False)
    start = bound.start_offset
    if not options.fail_on_data_loss:
        start = max(start, min(log.log_start_offset, bound.end_offset))
    for split in _plan(replace(bound, start_offset=start), log, _ALL, options):
        yield Piece(bound.directory, split, not bound.continues and split.start_offset == start)


def _finer(piece: Piece, target: int, options: SparkLogOptions) -> Iterator[Piece]:
    if piece.split.size <= target:
        yield piece
        return
    log = open_log(piece.directory, options, refresh=False)
    split = piece.split
    # parts of one size, not some of the largest and a rest; a batch more or less may lie in each
    limit = min(target, split.size // (split.size // target + 1) + _BATCH_BYTES)
    part_bound = Bounds(piece.directory, split.start_offset, split.end_offset)
    try:
        parts = _plan(part_bound, log, limit, options)
    except SparkLogError as error:
        if error.code not in (OFFSET_OUT_OF_RANGE, SEGMENT_GONE):
            raise
        # what went meanwhile is noticed where the piece is read
        parts = [split]
    for part in parts:
        yield narrowed(piece, part)


def _plan(bound: Bounds, log: cw.Log, max_bytes: int, options: SparkLogOptions) -> list[cw.Split]:
    plan = partial(
        log.plan,
        max_bytes,
        start_offset=bound.start_offset,
        end_offset=bound.end_offset,
        isolation_level=options.isolation_level if options.table == "records" else "read_uncommitted",
    )
    return coded(bound.directory, plan)


def narrowed(piece: Piece, split: cw.Split) -> Piece:
    """Narrow a piece to a split of its range. The segments stay those of the piece's plan, which may be older."""
    part = part_of(piece.split, split.start_offset, split.end_offset, split.size, split.aborted)
    return Piece(piece.directory, part, piece.is_first and split.start_offset == piece.split.start_offset)


def _by_records(piece: Piece, most: int, options: SparkLogOptions) -> Iterator[Piece]:
    """Cut a piece until no part has more offsets than `most`, at batch boundaries as long as there are any.

    Offsets may leap: a log of a few records can span billions, so parts are counted by what is there, not by offsets.
    """
    split = piece.split
    offsets = split.end_offset - split.start_offset
    if offsets <= most:
        yield piece
        return
    # aim at the right size where offsets are dense, and halve where they leap
    target = split.size * most // offsets if offsets // most < _DENSE else split.size // 2
    parts = list(_finer(piece, max(1, target), options))
    if len(parts) > 1:
        for smaller in parts:
            yield from _by_records(smaller, most, options)
    else:
        yield from _inside_batch(piece, most, options)


def _inside_batch(piece: Piece, most: int, options: SparkLogOptions) -> Iterator[Piece]:
    """Cut a piece of one batch by its offsets."""
    split = piece.split
    start, end = split.start_offset, split.end_offset
    log = open_log(piece.directory, options, refresh=False)
    for header in coded(piece.directory, partial(_first_header, log, start)):
        base, last = header["base_offset"], header["last_offset"]
        stop = min(end, last + 1)
        is_small = header["count"] is not None and header["count"] <= most
        if base <= start and not is_small and stop - start < _DENSE * most:
            parts = -(-(stop - start) // most)
            cuts = [start + (stop - start) * part // parts for part in range(parts)]
            for low, high in pairwise([*cuts, end]):
                part = part_of(split, low, high, split.size // parts)
                yield replace(piece, split=part, is_first=piece.is_first and low == start)
            return
    yield piece


def _first_header(log: cw.Log, offset: int) -> list[dict[str, Any]]:
    scan = log.batches(start_offset=offset, end_offset=offset + 1, on_damage="skip")
    headers: list[dict[str, Any]] = (
        scan.to_arrow().select(["base_offset", "last_offset", "count"]).slice(0, 1).to_pylist()
    )
    return headers


def part_of(
    split: cw.Split,
    start_offset: int,
    end_offset: int,
    size: int,
    aborted: Sequence[tuple[int, int, int]] | None = None,
) -> cw.Split:
    """Narrow a split to offsets inside it. *aborted*: by default all transactions of the split."""
    bases = [segment.base_offset for segment in split.segments]
    first = max(bisect_right(bases, start_offset) - 1, 0)
    last = max(bisect_left(bases, end_offset), first + 1)
    return cw.Split(
        split.path,
        start_offset,
        end_offset,
        size=size,
        aborted=split.aborted if aborted is None else aborted,
        segments=split.segments[first:last],
    )


def _whole_segments(bounds: Iterable[Bounds], options: SparkLogOptions) -> Iterator[Piece]:
    for bound in bounds:
        log = open_log(bound.directory, options, refresh=False)
        yield from coded(bound.directory, partial(_segments_of, bound, log))


def _segments_of(bound: Bounds, log: cw.Log) -> list[Piece]:
    pieces = []
    for segment in log.segments:
        following = log.segments.higher(segment.base_offset)
        end = log.log_end_offset if following is None else following.base_offset
        # an empty one at the end of the log lies in a range that reaches there
        begins = segment.base_offset < bound.end_offset or segment.base_offset == end == bound.end_offset
        if begins and (end > bound.start_offset or following is None):
            start = min(max(segment.base_offset, log.log_start_offset), end)
            planned = cw.PlannedSegment(segment.base_offset, segment.size, is_last=following is None)
            split = cw.Split(bound.path, start, end, size=segment.size, segments=[planned])
            pieces.append(Piece(bound.directory, split))
    return pieces


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
