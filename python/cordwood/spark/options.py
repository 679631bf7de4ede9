"""The options of the source: those of Spark's Kafka source, and cordwood's own.

Options that Spark's Kafka source has keep their names, meanings and defaults. Spark passes options as strings, with
their names in lower case.
"""

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from cordwood._core import _nearest
from cordwood.spark.errors import bad_option
from cordwood.spark.option_parsing import (
    EARLIEST,
    LATEST,
    Offsets,
    PartitionName,
    check_entries,
    choice,
    number,
    read_assign,
    read_cleanup_policy,
    read_delay,
    read_ending_offsets,
    read_names,
    read_path,
    read_paths,
    read_pattern,
    read_starting_offsets,
    read_text,
    read_timestamps,
    read_truth,
    write_assign,
    write_offsets,
    write_text,
)

__all__ = ["EARLIEST", "LATEST", "PartitionName", "SparkLogOptions"]

_logger = logging.getLogger("cordwood")

# Spark's Kafka source passes these to its consumer; without a broker they have no effect
_BROKER_ONLY = re.compile(r"kafka\..*|groupidprefix|kafkaconsumer\..*|fetchoffset\..*")
_BROKER_ONLY_NAMES = (
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)

# One edit is allowed for this many letters. max.partition.fetch.bytes, a name of Kafka's clients, has 8 edits in 25
# letters.
_MISSPELT_LETTERS = 4


@dataclass(frozen=True, kw_only=True)
class SparkLogOptions:
    """The checked options of one read. `None` if not given.

    Offsets are absolute, starts inclusive and ends exclusive; times are milliseconds since the epoch.
    """

    paths: tuple[str, ...]
    """Data directories and partition directories, or globs of them."""

    subscribe: tuple[str, ...] | None = None
    """These topics."""
    subscribe_pattern: str | None = None
    """Topics whose name contains a match of this regular expression (`topic_pattern`), except internal ones."""
    exclude_internal_topics: bool | None = None
    """Whether internal topics are excluded unless named. `None`: with `subscribe_pattern`, as in Spark's source."""
    assign: frozenset[PartitionName] | None = None
    """These partitions."""

    starting_offsets: Offsets | Literal["earliest", "latest"] | None = None
    starting_timestamp: int | None = None
    starting_offsets_by_timestamp: Offsets | None = None
    starting_offsets_by_timestamp_strategy: Literal["error", "latest"] = "error"
    ending_offsets: Offsets | Literal["latest"] | None = None
    ending_timestamp: int | None = None
    ending_offsets_by_timestamp: Offsets | None = None
    fail_on_data_loss: bool = True

    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_partition_bytes: int | None = None
    """`None`: 128 MiB, or less if some cores would have no task otherwise."""
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 15 * 60 * 1000

    table: Literal["records", "batches", "segments"] = "records"
    columns: tuple[str, ...] | None = None
    include_headers: bool = False
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
    cleanup_policy: Literal["delete", "compact"] | None = None
    """Kafka's `cleanup.policy` of the topics: whether compaction may have left gaps between segments. `None`: the
    files decide (`Log.is_compacted`)."""
    mode: Literal["FAILFAST", "DROPMALFORMED", "PERMISSIVE"] = "FAILFAST"
    max_batch_rows: int = 20_000
    max_batch_bytes: int = 8 << 20
    io: Literal["auto", "mmap", "pread"] = "pread"
    """`pread` by default: if a mapped file is shortened, the worker is killed by a signal."""

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> "SparkLogOptions":
        """Check options as Spark passes them; names are case-insensitive.

        *Errors*: `SparkLogError` with `CORDWOOD_BAD_OPTION` for an unknown option, with the nearest name, or all names
        if none is similar; for a misspelt option of the source after the prefix `kafka.`, where the settings of a
        consumer are accepted without effect; for a value that is not allowed; and for options that contradict each
        other.

        >>> SparkLogOptions.from_options({"path": "data", "startingoffsets": '{"orders":{"0":23}}'}).starting_offsets
        {('orders', 0): 23}
        """
        given: dict[str, Any] = {}
        ignored = []
        for key, text in options.items():
            option = _OPTIONS.get(key.lower())
            if option is not None:
                value = option.read(option.name, text)
                if given.setdefault(option.field, value) != value:
                    raise bad_option(option.name, f"the value of its other name, {given[option.field]!r}", text)
            elif _BROKER_ONLY.fullmatch(key.lower()):
                _check_brokers(key, text)
                ignored.append(key)
            else:
                names = [known.name for known in _OPTIONS.values()]
                meant = _nearest(key, [*names, *_BROKER_ONLY_NAMES])
                expected = f"a known option (did you mean {meant}?)" if meant else f"one of {', '.join(names)}"
                raise bad_option(key, expected, text)
        if ignored:
            _logger.warning("ignored, because files are read and not a broker: %s", ", ".join(ignored))
        given["paths"] = given.pop("path", ()) + given.get("paths", ())
        if not given["paths"]:
            raise bad_option("path", "a data directory, a partition directory, or a glob: .load(path)", None)
        checked = cls(**given)
        checked._check_together()
        return checked

    def to_options(self) -> dict[str, str]:
        """Return the options as strings, from which `from_options` returns an equal object."""
        texts = {}
        defaults = {field.name: field.default for field in fields(self)}
        for option in {option.field: option for option in _OPTIONS.values()}.values():
            value = getattr(self, option.field, None)
            if option.field == "path" or value is None or value == defaults[option.field]:
                continue
            texts[option.name] = option.write(value)
        return texts

    def offsets_by_name(self) -> Iterator[tuple[str, Offsets]]:
        """Yield the options with an offset or a time for each partition, with their names."""
        for name, offsets in (
            ("startingOffsets", self.starting_offsets),
            ("startingOffsetsByTimestamp", self.starting_offsets_by_timestamp),
            ("endingOffsets", self.ending_offsets),
            ("endingOffsetsByTimestamp", self.ending_offsets_by_timestamp),
        ):
            if isinstance(offsets, dict):
                yield name, offsets

    @property
    def has_end(self) -> bool:
        """Whether an end is given, which only a batch query may have."""
        return any((self.ending_offsets, self.ending_timestamp is not None, self.ending_offsets_by_timestamp))

    def _check_together(self) -> None:
        which = {"subscribe": self.subscribe, "subscribePattern": self.subscribe_pattern, "assign": self.assign}
        named = [name for name, value in which.items() if value is not None]
        if len(named) > 1:
            raise bad_option(" and ".join(named), "at most one of subscribe, subscribePattern and assign", len(named))
        # both may be given, as in Spark's Kafka source: the minimum decides when a micro-batch begins, the maximum
        # where it ends
        lowest, highest = self.min_offsets_per_trigger, self.max_offsets_per_trigger
        if lowest is not None and highest is not None and lowest > highest:
            raise bad_option("minOffsetsPerTrigger", f"at most maxOffsetsPerTrigger ({highest})", lowest)
        given = list(self.offsets_by_name())
        for name, offsets in given[1:]:
            check_entries(name, offsets.keys(), given[0][1].keys(), f"each partition that {given[0][0]} names")
        if self.table != "records" and self.columns is not None:
            raise bad_option("columns", "no columns with table=batches or table=segments (use select)", self.columns)


@dataclass(frozen=True)
class _Option:
    """An option: its name, its field, and the functions that parse and format it."""

    name: str
    field: str
    read: Callable[[str, str], Any] = read_text
    write: Callable[[Any], str] = write_text


def _check_brokers(key: str, text: str) -> None:
    """Refuse an option of the source that is misspelt or has the prefix `kafka.`: it would silently have no effect."""
    name = key.lower().removeprefix("kafka.")
    meant = _nearest(name, [known.removeprefix("kafka.") for known in _OPTIONS], _MISSPELT_LETTERS)
    if meant is not None:
        known = _OPTIONS.get(meant) or _OPTIONS[f"kafka.{meant}"]
        raise bad_option(key, f"a known option (did you mean {known.name}?)", text)


_COMMA: Callable[[Any], str] = ",".join
_ISOLATION = choice("read_uncommitted", "read_committed")

_OPTIONS = {
    option.name.lower(): option
    for option in (
        _Option("path", "path", read_path),
        _Option("paths", "paths", read_paths, lambda paths: json.dumps(list(paths))),
        _Option("subscribe", "subscribe", read_names, _COMMA),
        _Option("subscribePattern", "subscribe_pattern", read_pattern),
        _Option("assign", "assign", read_assign, write_assign),
        _Option("kafka.exclude.internal.topics", "exclude_internal_topics", read_truth),
        _Option("excludeInternalTopics", "exclude_internal_topics", read_truth),
        _Option("startingOffsets", "starting_offsets", read_starting_offsets, write_offsets),
        _Option("startingTimestamp", "starting_timestamp", number(0)),
        _Option("startingOffsetsByTimestamp", "starting_offsets_by_timestamp", read_timestamps, write_offsets),
        _Option(
            "startingOffsetsByTimestampStrategy",
            "starting_offsets_by_timestamp_strategy",
            choice("error", "latest"),
        ),
        _Option("endingOffsets", "ending_offsets", read_ending_offsets, write_offsets),
        _Option("endingTimestamp", "ending_timestamp", number(0)),
        _Option("endingOffsetsByTimestamp", "ending_offsets_by_timestamp", read_timestamps, write_offsets),
        _Option("failOnDataLoss", "fail_on_data_loss", read_truth),
        _Option("minPartitions", "min_partitions", number(1)),
        _Option("maxRecordsPerPartition", "max_records_per_partition", number(1)),
        _Option("maxPartitionBytes", "max_partition_bytes", number(1)),
        _Option("maxOffsetsPerTrigger", "max_offsets_per_trigger", number(1)),
        _Option("minOffsetsPerTrigger", "min_offsets_per_trigger", number(1)),
        _Option("maxTriggerDelay", "max_trigger_delay_ms", read_delay, lambda ms: f"{ms}ms"),
        _Option("table", "table", choice("records", "batches", "segments")),
        _Option("columns", "columns", read_names, _COMMA),
        _Option("includeHeaders", "include_headers", read_truth),
        _Option("kafka.isolation.level", "isolation_level", _ISOLATION),
        _Option("isolationLevel", "isolation_level", _ISOLATION),
        _Option("cleanupPolicy", "cleanup_policy", read_cleanup_policy),
        _Option("mode", "mode", choice("FAILFAST", "DROPMALFORMED", "PERMISSIVE")),
        _Option("maxBatchRows", "max_batch_rows", number(1)),
        _Option("maxBatchBytes", "max_batch_bytes", number(1)),
        _Option("io", "io", choice("auto", "mmap", "pread")),
    )
}
