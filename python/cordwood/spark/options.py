"""What a user may ask of the source: the options of Spark's Kafka source, and ours.

Names, meanings and defaults are those of Spark's Kafka source wherever it has the thing. Spark gives options as text,
with their names in lower case.
"""

import difflib
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

from cordwood.spark.errors import bad_option

__all__ = ["EARLIEST", "LATEST", "PartitionName", "SparkLogOptions"]

PartitionName: TypeAlias = tuple[str, int]
"""Topic and partition."""

Offsets: TypeAlias = dict[PartitionName, int]

EARLIEST = -2
"""In offsets: the log start offset."""

LATEST = -1
"""In offsets: the log end offset (for `read_committed` the last stable offset)."""

_logger = logging.getLogger("cordwood")

# Spark's Kafka source hands these to its consumer; without a broker they mean nothing
_BROKER_ONLY = re.compile(r"kafka\..*|groupidprefix|kafkaconsumer\..*|fetchoffset\..*")


@dataclass(frozen=True, kw_only=True)
class SparkLogOptions:
    """The options of one reading, checked. `None` where the user did not say.

    Offsets are absolute, starts inclusive and ends exclusive; times are milliseconds since the epoch.
    """

    paths: tuple[str, ...]
    """Data directories and partition directories, or globs of them."""

    subscribe: tuple[str, ...] | None = None
    """These topics."""
    subscribe_pattern: str | None = None
    """Topics whose whole name matches this regular expression."""
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
    """`None`: 128 MiB, and less where that would leave cores without work."""
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 15 * 60 * 1000

    table: Literal["records", "batches", "segments"] = "records"
    columns: tuple[str, ...] | None = None
    include_headers: bool = False
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
    mode: Literal["FAILFAST", "DROPMALFORMED", "PERMISSIVE"] = "FAILFAST"
    max_batch_rows: int = 20_000
    max_batch_bytes: int = 8 << 20
    io: Literal["auto", "mmap", "pread"] = "pread"
    """`pread` here: a file that somebody shortens under a mapping would end the worker by a signal."""

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> "SparkLogOptions":
        """Check options as Spark gives them; names may have any case.

        *Errors*: `SparkLogError` with `CORDWOOD_BAD_OPTION` for an unknown option, which names the nearest one, for a
        value that is not allowed, and for options that contradict each other.

        >>> SparkLogOptions.from_options({"path": "data", "startingoffsets": '{"orders":{"0":23}}'}).starting_offsets
        {('orders', 0): 23}
        """
        given: dict[str, Any] = {}
        idle = []
        for key, text in options.items():
            option = _OPTIONS.get(key.lower())
            if option is not None:
                value = option.read(option.name, text)
                if given.setdefault(option.field, value) != value:
                    raise bad_option(option.name, f"the same as its other name says, {given[option.field]!r}", text)
            elif _BROKER_ONLY.fullmatch(key.lower()):
                idle.append(key)
            else:
                names = {name.lower(): name for name in (known.name for known in _OPTIONS.values())}
                nearest = difflib.get_close_matches(key.lower(), names, n=1, cutoff=0)[0]
                raise bad_option(key, f"a known option (did you mean {names[nearest]}?)", text)
        if idle:
            _logger.warning(
                "without effect, because no broker is asked: %s (files are read, of the option path)", ", ".join(idle)
            )
        given["paths"] = given.pop("path", ()) + given.get("paths", ())
        if not given["paths"]:
            raise bad_option("path", "a data directory, a partition directory, or a glob: .load(path)", None)
        checked = cls(**given)
        checked._check_together()
        return checked

    def to_options(self) -> dict[str, str]:
        """Give the options back as text; `from_options` makes the same of them."""
        texts = {}
        defaults = {field.name: field.default for field in fields(self)}
        for option in {option.field: option for option in _OPTIONS.values()}.values():
            value = getattr(self, option.field, None)
            if option.field == "path" or value is None or value == defaults[option.field]:
                continue
            texts[option.name] = option.write(value)
        return texts

    def offsets_by_name(self) -> Iterator[tuple[str, Offsets]]:
        """Give the options that say an offset or a time for each partition, with their names."""
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
        """Whether an end is given, which only a reading has that ends."""
        return any((self.ending_offsets, self.ending_timestamp is not None, self.ending_offsets_by_timestamp))

    def _check_together(self) -> None:
        which = {"subscribe": self.subscribe, "subscribePattern": self.subscribe_pattern, "assign": self.assign}
        named = [name for name, value in which.items() if value is not None]
        if len(named) > 1:
            raise bad_option(" and ".join(named), "at most one of subscribe, subscribePattern and assign", len(named))
        lowest, highest = self.min_offsets_per_trigger, self.max_offsets_per_trigger
        if lowest is not None and highest is not None and lowest > highest:
            raise bad_option("minOffsetsPerTrigger", f"at most maxOffsetsPerTrigger ({highest})", lowest)
        given = list(self.offsets_by_name())
        for name, offsets in given[1:]:
            wrong = set(offsets) ^ set(given[0][1])
            if wrong:
                names = ", ".join(sorted(f"{topic}-{partition}" for topic, partition in wrong))
                raise bad_option(name, f"the partitions that {given[0][0]} names", names)
        if self.table != "records" and self.columns is not None:
            raise bad_option("columns", "no columns with table=batches or table=segments (select them)", self.columns)


def _text(_option: str, text: str) -> str:
    return text


def _names(option: str, text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise bad_option(option, "names with commas between them", text)
    return names


def _number(least: int) -> Callable[[str, str], int]:
    def read(option: str, text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number < 1 << 63:
            raise bad_option(option, f"a whole number, {least} or more", text)
        return number

    return read


def _choice(*choices: str, ignore_case: bool = True) -> Callable[[str, str], str]:
    by_name = {choice.lower() if ignore_case else choice: choice for choice in choices}

    def read(option: str, text: str) -> str:
        try:
            return by_name[text.lower() if ignore_case else text]
        except KeyError:
            raise bad_option(option, "one of " + ", ".join(choices), text) from None

    return read


def _truth(option: str, text: str) -> bool:
    return _choice("true", "false")(option, text) == "true"


def _pattern(option: str, text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise bad_option(option, f"a regular expression ({error})", text) from None
    return text


def _paths(option: str, text: str) -> tuple[str, ...]:
    paths = _json(option, text, '["data", "more"]')
    if not isinstance(paths, list) or not all(isinstance(path, str) and path for path in paths):
        raise bad_option(option, 'a JSON list of paths, such as ["data", "more"]', text)
    return tuple(paths)


def _path(option: str, text: str) -> tuple[str, ...]:
    if not text:
        raise bad_option(option, "a path", text)
    return (text,)


_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def _delay(option: str, text: str) -> int:
    match = re.fullmatch(r"\s*(\d+)\s*(ms|s|m|min|h|d)\s*", text.lower())
    if match is None:
        raise bad_option(option, "a time such as 500ms, 30s, 15m, 1h", text)
    return int(match[1]) * _UNITS[match[2]]


def _json(option: str, text: str, example: str) -> Any:  # noqa: ANN401  (JSON is anything)
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise bad_option(option, "each name once", text)
        return found

    try:
        return json.loads(text, object_pairs_hook=once)
    except ValueError as error:
        raise bad_option(option, f"JSON such as {example} ({error})", text) from None


def _by_partition(option: str, text: str, least: int) -> Offsets:
    example = '{"orders":{"0":23,"1":42}}'
    found = _json(option, text, example)
    read: Offsets = {}
    for topic, numbers in found.items() if isinstance(found, dict) else ():
        for partition, number in numbers.items() if isinstance(numbers, dict) else ():
            if re.fullmatch(r"\d{1,10}", partition) and type(number) is int and least <= number < 1 << 63:
                read[topic, int(partition)] = number
                continue
            raise bad_option(
                option, f"offsets or times of {least} or more by partition: {example}", {partition: number}
            )
    if not read or len({topic for topic, _ in read}) != len(found):
        raise bad_option(option, f"JSON such as {example}", text)
    return read


def _starting_offsets(option: str, text: str) -> Offsets | str:
    if text.strip().lower() in ("earliest", "latest"):
        return text.strip().lower()
    return _by_partition(option, text, EARLIEST)


def _ending_offsets(option: str, text: str) -> Offsets | str:
    if text.strip().lower() == "latest":
        return "latest"
    # -2 is no end, as in Spark's Kafka source
    return _by_partition(option, text, LATEST)


def _timestamps(option: str, text: str) -> Offsets:
    return _by_partition(option, text, 0)


def _assign(option: str, text: str) -> frozenset[PartitionName]:
    example = '{"orders":[0,1]}'
    found = _json(option, text, example)
    read = set()
    for topic, partitions in found.items() if isinstance(found, dict) else ():
        for partition in partitions if isinstance(partitions, list) else [None]:
            if type(partition) is not int or partition < 0:
                raise bad_option(option, f"partition numbers by topic: {example}", text)
            read.add((topic, partition))
    if not read:
        raise bad_option(option, f"JSON such as {example}", text)
    return frozenset(read)


def _write_offsets(offsets: Offsets | str) -> str:
    if isinstance(offsets, str):
        return offsets
    by_topic: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        by_topic.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(by_topic, separators=(",", ":"))


def _write_assign(assign: frozenset[PartitionName]) -> str:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(assign):
        by_topic.setdefault(topic, []).append(partition)
    return json.dumps(by_topic, separators=(",", ":"))


def _write_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class _Option:
    """An option: its name, the field that it fills, how it is read and written."""

    name: str
    field: str
    read: Callable[[str, str], Any] = _text
    write: Callable[[Any], str] = _write_text


_COMMA: Callable[[Any], str] = ",".join
_ISOLATION = _choice("read_uncommitted", "read_committed")

_OPTIONS = {
    option.name.lower(): option
    for option in (
        _Option("path", "path", _path),
        _Option("paths", "paths", _paths, lambda paths: json.dumps(list(paths))),
        _Option("subscribe", "subscribe", _names, _COMMA),
        _Option("subscribePattern", "subscribe_pattern", _pattern),
        _Option("assign", "assign", _assign, _write_assign),
        _Option("startingOffsets", "starting_offsets", _starting_offsets, _write_offsets),
        _Option("startingTimestamp", "starting_timestamp", _number(0)),
        _Option("startingOffsetsByTimestamp", "starting_offsets_by_timestamp", _timestamps, _write_offsets),
        _Option(
            "startingOffsetsByTimestampStrategy",
            "starting_offsets_by_timestamp_strategy",
            _choice("error", "latest"),
        ),
        _Option("endingOffsets", "ending_offsets", _ending_offsets, _write_offsets),
        _Option("endingTimestamp", "ending_timestamp", _number(0)),
        _Option("endingOffsetsByTimestamp", "ending_offsets_by_timestamp", _timestamps, _write_offsets),
        _Option("failOnDataLoss", "fail_on_data_loss", _truth),
        _Option("minPartitions", "min_partitions", _number(1)),
        _Option("maxRecordsPerPartition", "max_records_per_partition", _number(1)),
        _Option("maxPartitionBytes", "max_partition_bytes", _number(1)),
        _Option("maxOffsetsPerTrigger", "max_offsets_per_trigger", _number(1)),
        _Option("minOffsetsPerTrigger", "min_offsets_per_trigger", _number(1)),
        _Option("maxTriggerDelay", "max_trigger_delay_ms", _delay, lambda ms: f"{ms}ms"),
        _Option("table", "table", _choice("records", "batches", "segments")),
        _Option("columns", "columns", _names, _COMMA),
        _Option("includeHeaders", "include_headers", _truth),
        _Option("kafka.isolation.level", "isolation_level", _ISOLATION),
        _Option("isolationLevel", "isolation_level", _ISOLATION),
        _Option("mode", "mode", _choice("FAILFAST", "DROPMALFORMED", "PERMISSIVE")),
        _Option("maxBatchRows", "max_batch_rows", _number(1)),
        _Option("maxBatchBytes", "max_batch_bytes", _number(1)),
        _Option("io", "io", _choice("auto", "mmap", "pread")),
    )
}
