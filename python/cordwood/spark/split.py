"""Planning: which offsets of which partitions are read, and how that is cut into tasks. Pure, but for looking at logs.

The driver asks names, sizes and indexes; it reads no record. A `Piece` is read by one task from its first to its last
record; every record of the range lies in exactly one piece.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TypeVar

import cordwood as cw
from cordwood.spark.errors import OFFSET_OUT_OF_RANGE, TIME_NOT_FOUND, SparkLogError, bad_option
from cordwood.spark.options import EARLIEST, LATEST, Offsets, PartitionName, SparkLogOptions
from cordwood.spark.partitions import PartitionDirectory, find_partitions
from cordwood.spark.worker import open_cached

__all__ = ["Bounds", "Piece", "plan_splits", "resolve"]

_logger = logging.getLogger("cordwood")

_MOST_BYTES = 128 << 20
# below that a task costs more than what it reads
_LEAST_BYTES = 16 << 20
# what opening a log counts for where small pieces share a task
_OPENING_BYTES = 1 << 20
_ALL = (1 << 63) - 1
# with more offsets than so many times what a part may have, they are taken to leap
_DENSE = 1000

_T = TypeVar("_T")


@dataclass(frozen=True)
class Bounds:
    """What is read of one partition: offsets `[start_offset, end_offset)`, of these the times `[start_time, end_time)`.

    `None` is no bound; a record without a time lies outside every range of times.
    """

    directory: PartitionDirectory
    start_offset: int
    end_offset: int
    start_time: int | None = None
    end_time: int | None = None

    @property
    def path(self) -> str:
        """The partition directory, absolute."""
        return self.directory.path

    @property
    def topic(self) -> str | None:
        """The topic; `None` where the directory's name does not say it."""
        return self.directory.topic

    @property
    def partition(self) -> int | None:
        """The partition; `None` where the directory's name does not say it."""
        return self.directory.partition


@dataclass(frozen=True)
class Piece:
    """A part of one partition that one task reads: a value without handles, the same in every process."""

    directory: PartitionDirectory
    split: cw.Split
    segments: tuple[tuple[int, int], ...]
    """Base offset and size in bytes of each segment it reads, as planned: by these a task sees that one is gone."""
    is_first: bool
    """Whether the range begins with it: damage that begins before it is reported here."""


def resolve(options: SparkLogOptions, directories: Iterable[PartitionDirectory] | None = None) -> list[Bounds]:
    """Find the offsets to read of each partition, by the options, as the logs are now.

    *Errors*: `CORDWOOD_BAD_OPTION` where the JSON of offsets names other partitions than those that are chosen;
    `CORDWOOD_OFFSET_OUT_OF_RANGE` for an offset outside its log (with `failOnDataLoss=false` it is clipped, with a
    warning); `CORDWOOD_TIME_NOT_FOUND`; those of opening a log.
    """
    chosen = list(find_partitions(options) if directories is None else directories)
    start = options.starting_offsets or "earliest"
    if start == "latest":
        raise bad_option("startingOffsets", "earliest or offsets (latest is for streams)", start)
    if isinstance(start, dict) and LATEST in start.values():
        raise bad_option("startingOffsets", "offsets, or -2 for the earliest (-1 is for streams)", LATEST)
    for name, offsets in (
        ("startingOffsets", start),
        ("startingOffsetsByTimestamp", options.starting_offsets_by_timestamp),
        ("endingOffsets", options.ending_offsets),
        ("endingOffsetsByTimestamp", options.ending_offsets_by_timestamp),
    ):
        if isinstance(offsets, dict):
            check_names(name, offsets, chosen)
    return [_bounds_of(directory, options) for directory in chosen]


def check_names(option: str, offsets: Offsets, chosen: Iterable[PartitionDirectory]) -> None:
    """Refuse offsets for other partitions than those that are read, or for some of them only."""
    there = {(directory.topic, directory.partition) for directory in chosen}
    wrong = there ^ set(offsets)
    if wrong:
        names = ", ".join(sorted(f"{topic}-{partition}" for topic, partition in wrong))
        raise bad_option(option, "an entry for each partition that is read, and no other", names)


def starting_offset(directory: PartitionDirectory, options: SparkLogOptions, default: str) -> int:
    """Find the offset that the options begin with: by the time of all, by a partition's time, or by its offset."""
    log = open_log(directory, options)
    name: PartitionName = (directory.topic or "", directory.partition or 0)
    time = options.starting_timestamp
    if time is None and options.starting_offsets_by_timestamp is not None:
        time = options.starting_offsets_by_timestamp.get(name)
    if time is not None:
        found = log.offset_for_time(time)
        if found is not None:
            return found.offset
        if options.starting_offsets_by_timestamp_strategy == "latest":
            return end_of(log, options)
        reason = f"no record at or after {time} ms (startingOffsetsByTimestampStrategy=latest begins at the end)"
        raise SparkLogError(TIME_NOT_FOUND, reason, topic=directory.topic, partition=directory.partition)
    start = options.starting_offsets or default
    named = {"earliest": EARLIEST, "latest": LATEST}
    # a partition that appeared after the offsets were written is read from its beginning
    offset = start.get(name, EARLIEST) if isinstance(start, dict) else named[start]
    if offset == LATEST:
        return end_of(log, options)
    return log.log_start_offset if offset == EARLIEST else _inside(offset, "start", log, directory, options)


def end_of(log: cw.Log, options: SparkLogOptions) -> int:
    """Give the end of what can be read now: the log end offset, or for `read_committed` the last stable offset."""
    if options.isolation_level == "read_uncommitted":
        return log.log_end_offset
    if options.mode == "FAILFAST":
        return log.last_stable_offset
    # where damage hides how a transaction ended, a plan knows how far one may read who passes over damage
    splits = log.plan(_ALL, isolation_level="read_committed")
    return splits[-1].end_offset if splits else log.log_start_offset


def open_log(directory: PartitionDirectory, options: SparkLogOptions) -> cw.Log:
    """Open a log to plan with; its errors get their codes."""
    return coded(directory, partial(open_cached, directory.path, io=options.io))


def plan_splits(bounds: Iterable[Bounds], options: SparkLogOptions) -> list[tuple[Piece, ...]]:
    """Cut ranges into tasks of about the same size, the largest first; each is a tuple of pieces.

    A piece is cut at batch boundaries and holds at most `maxPartitionBytes` (or one batch); small pieces share a task.
    `minPartitions` makes the pieces smaller, so that there are at least so many (where there are so many records), and
    `maxRecordsPerPartition` cuts by offsets, if need be inside a batch, which two tasks then read.
    """
    ranges = [bound for bound in bounds if bound.start_offset < bound.end_offset]
    if options.table == "segments":
        return _packed(list(_whole_segments(ranges, options)), options.max_partition_bytes or _MOST_BYTES)
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


def _bounds_of(directory: PartitionDirectory, options: SparkLogOptions) -> Bounds:
    def find() -> Bounds:
        start = starting_offset(directory, options, "earliest")
        end = _ending_offset(directory, options)
        return Bounds(directory, start, max(start, end))

    return coded(directory, find)


def _ending_offset(directory: PartitionDirectory, options: SparkLogOptions) -> int:
    log = open_log(directory, options)
    name: PartitionName = (directory.topic or "", directory.partition or 0)
    time = options.ending_timestamp
    if time is None and options.ending_offsets_by_timestamp is not None:
        time = options.ending_offsets_by_timestamp[name]
    if time is not None:
        found = log.offset_for_time(time)
        return end_of(log, options) if found is None else found.offset
    offset = options.ending_offsets[name] if isinstance(options.ending_offsets, dict) else LATEST
    if offset != LATEST:
        return _inside(offset, "end", log, directory, options)
    for warning in log.warnings:
        _logger.warning("%s", warning)
    return end_of(log, options)


def _inside(offset: int, which: str, log: cw.Log, directory: PartitionDirectory, options: SparkLogOptions) -> int:
    start, end = log.log_start_offset, log.log_end_offset
    if start <= offset <= end:
        return offset
    reason = f"{which} offset {offset} lies outside the log, which holds offsets {start} to {end} (exclusive)"
    place = {"topic": directory.topic, "partition": directory.partition}
    if options.fail_on_data_loss:
        advice = "; failOnDataLoss=false reads what is there"
        raise SparkLogError(OFFSET_OUT_OF_RANGE, reason + advice, topic=directory.topic, partition=directory.partition)
    _logger.warning("[%s] %s: %s; clipped", OFFSET_OUT_OF_RANGE, directory.path, reason, extra={"context": place})
    return min(max(offset, start), end)


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
    if not base or count[0] is None or count[0] != last[0] - base[0] + 1 or last[0] - start < most:
        yield split
        return
    stop = min(end, last[0] + 1)
    parts = -(-(stop - start) // most)
    cuts = [start + (stop - start) * part // parts for part in range(parts)]
    for low, high in pairwise([*cuts, end]):
        yield cw.Split(split.path, low, high, split.start_time, split.end_time, split.size // parts)


def _whole_segments(ranges: Iterable[Bounds], options: SparkLogOptions) -> Iterator[Piece]:
    for bound in ranges:
        log = open_log(bound.directory, options)
        for segment in log.segments.between(bound.start_offset, bound.end_offset):
            following = log.segments.higher(segment.base_offset)
            end = log.log_end_offset if following is None else following.base_offset
            start = max(segment.base_offset, log.log_start_offset)
            split = cw.Split(bound.path, min(start, end), end, size=segment.size)
            yield Piece(bound.directory, split, ((segment.base_offset, segment.size),), is_first=True)


def _piece(bound: Bounds, split: cw.Split, options: SparkLogOptions) -> Piece:
    log = open_log(bound.directory, options)
    read = log.segments.between(split.start_offset, split.end_offset)
    segments = coded(bound.directory, lambda: tuple((segment.base_offset, segment.size) for segment in read))
    return Piece(bound.directory, split, segments, split.start_offset == bound.start_offset)


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


def coded(directory: PartitionDirectory, ask: Callable[[], _T]) -> _T:
    """Ask a log something; its errors get their codes, and the partition's name."""
    try:
        return ask()
    except (cw.CordwoodError, OSError) as error:
        raise SparkLogError.of(error, topic=directory.topic, partition=directory.partition) from error
