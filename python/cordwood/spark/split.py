"""Planning: ranges of logs are cut into tasks.

A `Piece` is read by one task, in order; every record of a range is in exactly one piece.
"""

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import cordwood as cw
from cordwood.spark.bounds import Bounds, open_log, with_codes
from cordwood.spark.errors import OFFSET_OUT_OF_RANGE, SEGMENT_GONE, SparkLogError
from cordwood.spark.options import SparkLogOptions
from cordwood.spark.partitions import PartitionDirectory

__all__ = ["Piece", "narrowed", "part_of", "plan_splits"]

_MAX_BYTES = 128 << 20
# for smaller tasks the overhead of a task exceeds the cost of reading
_MIN_BYTES = 16 << 20
# the cost of opening a log, in bytes, when small pieces share a task
_OPENING_BYTES = 1 << 20
# tolerance for cuts at batch boundaries
_BATCH_BYTES = 256 << 10
_ALL = (1 << 63) - 1
# if a piece has more offsets than this multiple of the maximum of a part, its offsets are treated as sparse
_DENSE = 1000


@dataclass(frozen=True)
class Piece:
    """A part of one partition that one task reads. It has no open handles and can be pickled."""

    directory: PartitionDirectory
    split: cw.Split
    """The planned segments are in it: the scan of a task compares the log with them."""
    is_first: bool = True
    """Whether this piece reports damage that begins before it, rather than the previous piece."""


def plan_splits(bounds: Iterable[Bounds], options: SparkLogOptions) -> list[tuple[Piece, ...]]:
    """Cut ranges into tasks of similar size, the largest first; each is a tuple of pieces.

    A piece is cut at batch boundaries and has at most `maxPartitionBytes` (or one batch); small pieces share a task.
    `minPartitions` makes the pieces smaller, so that there are at least that many (if there are enough records).
    `maxRecordsPerPartition` cuts by offsets, inside a batch if necessary, which two tasks then read.
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
        max_offsets = options.max_records_per_partition
        if options.min_partitions is not None and len(pieces) < options.min_partitions:
            offsets = sum(piece.split.end_offset - piece.split.start_offset for piece in pieces)
            max_offsets = min(max_offsets or _ALL, max(1, offsets // options.min_partitions))
        if max_offsets is not None:
            pieces = [smaller for piece in pieces for smaller in _by_records(piece, max_offsets, options)]
    is_alone = options.min_partitions is not None or options.max_records_per_partition is not None
    return _packed(pieces, 0 if is_alone else target)


def _coarse(bound: Bounds, options: SparkLogOptions) -> Iterator[Piece]:
    """Plan the whole range of a log as one piece (none if nothing in it is committed)."""
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
    # parts of equal size instead of some of maximum size and a small rest; each may vary by a batch
    limit = min(target, split.size // (split.size // target + 1) + _BATCH_BYTES)
    part_bound = Bounds(piece.directory, split.start_offset, split.end_offset)
    try:
        parts = _plan(part_bound, log, limit, options)
    except SparkLogError as error:
        if error.code not in (OFFSET_OUT_OF_RANGE, SEGMENT_GONE):
            raise
        # data removed in the meantime is reported when the piece is read
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
    return with_codes(bound.directory, plan)


def narrowed(piece: Piece, split: cw.Split) -> Piece:
    """Narrow a piece to a split of its range. It keeps the segments of the piece's plan, which may be older."""
    part = part_of(piece.split, split.start_offset, split.end_offset, split.size, split.aborted)
    return Piece(piece.directory, part, piece.is_first and split.start_offset == piece.split.start_offset)


def _by_records(piece: Piece, max_offsets: int, options: SparkLogOptions) -> Iterator[Piece]:
    """Cut a piece until no part has more than `max_offsets` offsets, at batch boundaries as long as there are any.

    Offsets may be sparse: a log with few records can span billions of offsets. A sparse piece is halved by size.
    """
    split = piece.split
    offsets = split.end_offset - split.start_offset
    if offsets <= max_offsets:
        yield piece
        return
    # if offsets are dense, cut to the estimated size; if they are sparse, halve
    target = split.size * max_offsets // offsets if offsets // max_offsets < _DENSE else split.size // 2
    parts = list(_finer(piece, max(1, target), options))
    if len(parts) > 1:
        for smaller in parts:
            yield from _by_records(smaller, max_offsets, options)
    else:
        yield from _inside_batch(piece, max_offsets, options)


def _inside_batch(piece: Piece, max_offsets: int, options: SparkLogOptions) -> Iterator[Piece]:
    """Cut a piece of one batch by its offsets."""
    split = piece.split
    start, end = split.start_offset, split.end_offset
    log = open_log(piece.directory, options, refresh=False)
    for header in with_codes(piece.directory, partial(_first_header, log, start)):
        base, last = header["base_offset"], header["last_offset"]
        stop = min(end, last + 1)
        is_small = header["count"] is not None and header["count"] <= max_offsets
        if base <= start and not is_small and stop - start < _DENSE * max_offsets:
            parts = -(-(stop - start) // max_offsets)
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
    """Narrow a split to a range of its offsets. *aborted*: by default all transactions of the split."""
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
        yield from with_codes(bound.directory, partial(_segments_of, bound, log))


def _segments_of(bound: Bounds, log: cw.Log) -> list[Piece]:
    pieces = []
    for segment in log.segments:
        following = log.segments.higher(segment.base_offset)
        end = log.log_end_offset if following is None else following.base_offset
        # a range up to the log end includes an empty last segment
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
