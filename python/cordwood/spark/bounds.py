"""Resolution of the options to ranges of offsets, from the current logs.

The driver reads names, sizes and indexes. It reads no records, and batch headers only to find committed offsets.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import cordwood as cw
from cordwood.spark.errors import OFFSET_OUT_OF_RANGE, TIME_NOT_FOUND, SparkLogError, bad_option
from cordwood.spark.log_cache import open_cached
from cordwood.spark.option_parsing import check_entries
from cordwood.spark.options import EARLIEST, LATEST, PartitionName, SparkLogOptions
from cordwood.spark.partitions import PartitionDirectory, find_partitions

__all__ = ["Bounds", "check_names", "check_start", "end_of", "open_log", "resolve", "starting_offset", "with_codes"]

_logger = logging.getLogger("cordwood")

_ALL = (1 << 63) - 1

_T = TypeVar("_T")


@dataclass(frozen=True)
class Bounds:
    """The range of one partition to read: offsets `[start_offset, end_offset)`."""

    directory: PartitionDirectory
    start_offset: int
    end_offset: int
    continues: bool = False
    """Whether it continues an earlier range, whose reading reported damage that extends into this one."""

    @property
    def path(self) -> str:
        """The partition directory, absolute."""
        return self.directory.path

    @property
    def topic(self) -> str | None:
        """The topic; `None` if the directory is not named topic-partition."""
        return self.directory.topic

    @property
    def partition(self) -> int | None:
        """The partition; `None` if the directory is not named topic-partition."""
        return self.directory.partition


def resolve(options: SparkLogOptions) -> Iterator[Bounds]:
    """Yield the range to read of each partition, from the options and the current logs.

    *Errors*: `CORDWOOD_BAD_OPTION` if the JSON of offsets names other partitions than those that are read;
    `CORDWOOD_OFFSET_OUT_OF_RANGE` for an offset outside its log (with `failOnDataLoss=false` it is clipped, with a
    warning); `CORDWOOD_TIME_NOT_FOUND`; those of opening a log.
    """
    check_start(options)
    chosen = find_partitions(options)
    check_names(options, chosen)
    return (_bounds_of(directory, options) for directory in chosen)


def check_start(options: SparkLogOptions) -> None:
    """Refuse a start that is only allowed for a stream."""
    start = options.starting_offsets
    if start == "latest":
        raise bad_option("startingOffsets", "earliest or offsets (latest is for streams)", start)
    if isinstance(start, dict) and LATEST in start.values():
        raise bad_option("startingOffsets", "offsets, or -2 for the earliest (-1 is for streams)", LATEST)


def check_names(options: SparkLogOptions, chosen: Iterable[PartitionDirectory], *, is_whole: bool = True) -> None:
    """Refuse offsets for partitions that are not read; with *is_whole* also if a partition that is read has none.

    With `failOnDataLoss=false`, offsets for a missing partition are ignored.
    """
    existing = {(directory.topic, directory.partition) for directory in chosen}
    for option, offsets in options.offsets_by_name():
        known = existing & offsets.keys()
        named = set(offsets) if options.fail_on_data_loss else known
        wanted = existing if is_whole else known
        check_entries(option, named, wanted, "each partition that is read, and no other")


def starting_offset(log: cw.Log, directory: PartitionDirectory, options: SparkLogOptions, default: str) -> int:
    """Return the start offset by the options: by the global time, by the partition's time, or by its offset."""
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
        reason = f"no record at or after {time} ms (startingOffsetsByTimestampStrategy=latest starts at the end)"
        raise SparkLogError(TIME_NOT_FOUND, reason, topic=directory.topic, partition=directory.partition)
    start = options.starting_offsets or default
    named = {"earliest": EARLIEST, "latest": LATEST}
    # a partition that appeared after the offsets were written is read from its beginning
    offset = start.get(name, EARLIEST) if isinstance(start, dict) else named[start]
    if offset == LATEST:
        return end_of(log, options)
    return log.log_start_offset if offset == EARLIEST else _inside(offset, "start", log, directory, options)


def end_of(log: cw.Log, options: SparkLogOptions) -> int:
    """Return the current end: the log end offset, or for `read_committed` the last stable offset."""
    if options.isolation_level == "read_uncommitted":
        return log.log_end_offset
    if options.mode == "FAILFAST":
        return log.last_stable_offset
    # damage may hide the end of a transaction: a plan has the last stable offset of a scan that skips damage
    splits = log.plan(_ALL, isolation_level="read_committed")
    return splits[-1].end_offset if splits else log.log_start_offset


def open_log(directory: PartitionDirectory, options: SparkLogOptions, *, refresh: bool = True) -> cw.Log:
    """Open a log for planning: the current one, or without *refresh* the cached one. Errors have Spark codes."""
    return with_codes(directory, partial(open_cached, directory.path, io=options.io, refresh=refresh))


def _bounds_of(directory: PartitionDirectory, options: SparkLogOptions) -> Bounds:
    log = open_log(directory, options)

    def find() -> Bounds:
        start = starting_offset(log, directory, options, "earliest")
        end = _ending_offset(log, directory, options)
        return Bounds(directory, start, max(start, end))

    return with_codes(directory, find)


def _ending_offset(log: cw.Log, directory: PartitionDirectory, options: SparkLogOptions) -> int:
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
    return end_of(log, options)


def _inside(offset: int, which: str, log: cw.Log, directory: PartitionDirectory, options: SparkLogOptions) -> int:
    start, end = log.log_start_offset, log.log_end_offset
    if start <= offset <= end:
        return offset
    reason = f"{which} offset {offset} is outside the log, which has offsets {start} to {end} (exclusive)"
    place = {"topic": directory.topic, "partition": directory.partition}
    if options.fail_on_data_loss:
        advice = "; failOnDataLoss=false reads the existing offsets"
        raise SparkLogError(OFFSET_OUT_OF_RANGE, reason + advice, topic=directory.topic, partition=directory.partition)
    _logger.warning("[%s] %s: %s; clipped", OFFSET_OUT_OF_RANGE, directory.path, reason, extra={"context": place})
    return min(max(offset, start), end)


def with_codes(directory: PartitionDirectory, call: Callable[[], _T]) -> _T:
    """Call a function that uses a log; convert its errors to errors with Spark codes and the partition's name."""
    try:
        return call()
    except SparkLogError:
        raise
    except (cw.CordwoodError, OSError) as error:
        raise SparkLogError.of(error, topic=directory.topic, partition=directory.partition) from error
