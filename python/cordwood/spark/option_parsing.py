"""Parsing and formatting of option values. Spark passes every value as a string.

Each parser takes an option's name and its string, and raises `CORDWOOD_BAD_OPTION` if the string is not allowed.
"""

import json
import re
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias

from cordwood.spark.errors import BAD_OPTION, SparkLogError, bad_option
from cordwood.spark.topic_pattern import TopicPatternError, topic_pattern

__all__ = [
    "EARLIEST",
    "LATEST",
    "Offsets",
    "PartitionName",
    "by_topic",
    "check_entries",
    "choice",
    "number",
    "read_assign",
    "read_cleanup_policy",
    "read_delay",
    "read_ending_offsets",
    "read_names",
    "read_path",
    "read_paths",
    "read_pattern",
    "read_starting_offsets",
    "read_text",
    "read_timestamps",
    "read_truth",
    "write_assign",
    "write_offsets",
    "write_text",
]

PartitionName: TypeAlias = tuple[str, int]
"""Topic and partition."""

Offsets: TypeAlias = dict[PartitionName, int]

_Names: TypeAlias = AbstractSet[tuple[str | None, int | None]]

EARLIEST = -2
"""In offsets: the log start offset."""

LATEST = -1
"""In offsets: the log end offset (for `read_committed` the last stable offset)."""


def read_text(_option: str, text: str) -> str:
    """Return the string unchanged."""
    return text


def read_names(option: str, text: str) -> tuple[str, ...]:
    """Read names separated by commas."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise bad_option(option, "names with commas between them", text)
    return names


def number(minimum: int) -> Callable[[str, str], int]:
    """Return a parser of whole numbers, *minimum* or more."""

    def read(option: str, text: str) -> int:
        # int() alone would accept 1_000 and digits of other scripts
        found = int(text) if re.fullmatch(r"\s*[+-]?[0-9]{1,19}\s*", text) else minimum - 1
        if not minimum <= found < 1 << 63:
            raise bad_option(option, f"a whole number, {minimum} or more", text)
        return found

    return read


def choice(*choices: str) -> Callable[[str, str], str]:
    """Return a parser of one of the *choices*, case-insensitive."""
    by_name = {name.lower(): name for name in choices}

    def read(option: str, text: str) -> str:
        try:
            return by_name[text.lower()]
        except KeyError:
            raise bad_option(option, "one of " + ", ".join(choices), text) from None

    return read


def read_truth(option: str, text: str) -> bool:
    """Read `true` or `false`."""
    return choice("true", "false")(option, text) == "true"


def read_cleanup_policy(option: str, text: str) -> str:
    """Read Kafka's list of policies: `compact` if the list contains it, otherwise `delete`."""
    policies = [choice("delete", "compact")(option, policy.strip()) for policy in text.split(",")]
    return "compact" if "compact" in policies else "delete"


def read_pattern(option: str, text: str) -> str:
    """Check a regular expression for topics."""
    try:
        topic_pattern(text)
    except TopicPatternError as error:
        expected = f"a regular expression that Java and Python read in the same way ({error})"
        raise bad_option(option, expected, text) from None
    return text


def read_paths(option: str, text: str) -> tuple[str, ...]:
    """Read a JSON list of paths."""
    paths = _json(option, text, '["data", "more"]')
    if not isinstance(paths, list) or not all(isinstance(path, str) and path for path in paths):
        raise bad_option(option, 'a JSON list of paths, such as ["data", "more"]', text)
    return tuple(paths)


def read_path(option: str, text: str) -> tuple[str, ...]:
    """Read one path."""
    if not text:
        raise bad_option(option, "a path", text)
    return (text,)


_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def read_delay(option: str, text: str) -> int:
    """Read a duration such as `15m`, as milliseconds."""
    match = re.fullmatch(r"\s*(\d+)\s*(ms|s|m|min|h|d)\s*", text.lower())
    if match is None:
        raise bad_option(option, "a time such as 500ms, 30s, 15m, 1h", text)
    return int(match[1]) * _UNITS[match[2]]


def _json(option: str, text: str, example: str) -> Any:  # noqa: ANN401  (any JSON value)
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise bad_option(option, "each name once", text)
        return found

    try:
        return json.loads(text, object_pairs_hook=once)
    except ValueError as error:
        raise bad_option(option, f"JSON such as {example} ({error})", text) from None


def _by_partition(option: str, text: str, minimum: int) -> Offsets:
    example = '{"orders":{"0":23,"1":42}}'
    found = _json(option, text, example)
    read: Offsets = {}
    for topic, numbers in found.items() if isinstance(found, dict) else ():
        for partition, number in numbers.items() if isinstance(numbers, dict) else ():
            if re.fullmatch(r"\d{1,10}", partition) and type(number) is int and minimum <= number < 1 << 63:
                read[topic, int(partition)] = number
                continue
            raise bad_option(
                option, f"offsets or times of {minimum} or more by partition: {example}", {partition: number}
            )
    if not read or len({topic for topic, _ in read}) != len(found):
        raise bad_option(option, f"JSON such as {example}", text)
    return read


def read_starting_offsets(option: str, text: str) -> Offsets | str:
    """Read `earliest`, `latest` or offsets by partition."""
    if text.strip().lower() in ("earliest", "latest"):
        return text.strip().lower()
    return _by_partition(option, text, EARLIEST)


def read_ending_offsets(option: str, text: str) -> Offsets | str:
    """Read `latest` or offsets by partition."""
    if text.strip().lower() == "latest":
        return "latest"
    # -2 (earliest) is not allowed as an end, as in Spark's Kafka source
    return _by_partition(option, text, LATEST)


def read_timestamps(option: str, text: str) -> Offsets:
    """Read milliseconds by partition."""
    return _by_partition(option, text, 0)


def read_assign(option: str, text: str) -> frozenset[PartitionName]:
    """Read partitions by topic."""
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


def check_entries(option: str, named: _Names, wanted: _Names, expected: str) -> None:
    """Check that an option names exactly the partitions that it must name."""
    found = [
        f"{which} for {', '.join(sorted(_in_words(*name) for name in names))}"
        for which, names in (("none", wanted - named), ("one", named - wanted))
        if names
    ]
    if found:
        raise SparkLogError(BAD_OPTION, f"{option}: expected an entry for {expected}, found {' and '.join(found)}")


def _in_words(topic: str | None, partition: int | None) -> str:
    return "a directory that is not named topic-partition" if topic is None else f"{topic}-{partition}"


def by_topic(offsets: Offsets) -> dict[str, dict[str, int]]:
    """Nest offsets by topic and partition as Spark's Kafka source does, in a fixed order."""
    nested: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        nested.setdefault(topic, {})[str(partition)] = offset
    return nested


def write_offsets(offsets: Offsets | str) -> str:
    """Format offsets by partition, or `earliest` or `latest`.

    >>> write_offsets({("orders", 1): 7, ("orders", 0): 23})
    '{"orders":{"0":23,"1":7}}'
    """
    return offsets if isinstance(offsets, str) else json.dumps(by_topic(offsets), separators=(",", ":"))


def write_assign(assign: frozenset[PartitionName]) -> str:
    """Format partitions by topic, in a fixed order."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(assign):
        by_topic.setdefault(topic, []).append(partition)
    return json.dumps(by_topic, separators=(",", ":"))


def write_text(value: object) -> str:
    """Format a number, a boolean or a string."""
    return str(value).lower() if isinstance(value, bool) else str(value)
