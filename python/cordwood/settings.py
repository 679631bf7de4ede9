"""The table of a log's settings: names, where a broker's file has them, and what is allowed.

The core has the same table (`src/config/settings.rs`); a test holds the two together.
"""

import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from cordwood.errors import ConfigError
from cordwood.types import TimestampType

__all__ = [
    "SETTINGS",
    "Allowed",
    "Flag",
    "Integer",
    "ListOf",
    "OneOf",
    "Ratio",
    "Setting",
    "Synonym",
    "refused",
    "shown",
]

# Java's String.trim: it takes control characters for blanks, and nothing above U+0020
_BLANKS = "".join(map(chr, range(33)))
_WHOLE_NUMBER = re.compile("[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INT = 2**31 - 1
_LONG = 2**63 - 1


def refused(name: str, expected: str, found: str) -> ConfigError:
    """Make the error for a setting that is not allowed."""
    sentence = f"{name}: expected {expected}, found {found}"
    return ConfigError(sentence, code="config", argument=name, expected=expected, found=found)


def shown(value: object, write: Callable[[object], str] = repr) -> str:
    """Write a value; its class where Python does not write it, as a number of very many digits."""
    try:
        return write(value)
    except ValueError:
        return type(value).__name__


@dataclass(frozen=True)
class Allowed(ABC):
    """What a setting's value may be; `str()` gives the words for it."""

    @abstractmethod
    def parse(self, text: str) -> object:
        """Read a value from properties; `ValueError` where it is of another type or out of range."""

    @abstractmethod
    def check(self, value: object) -> object:
        """Return the one form of a value given in Python; `ValueError` as above."""

    def text(self, value: object) -> str:
        """Write a value as Kafka does in properties."""
        return str(value)


@dataclass(frozen=True)
class Integer(Allowed):
    """A whole number from `least` to `most`, or `other`."""

    least: int
    most: int
    other: int | None = None

    def __str__(self) -> str:
        """Say the range."""
        other = "" if self.other is None else f", or {self.other}"
        return f"a whole number from {self.least} to {self.most}{other}"

    def parse(self, text: str) -> int:
        """Read it."""
        text = text.strip(_BLANKS)
        if not _WHOLE_NUMBER.fullmatch(text):
            raise ValueError(text)
        return self.check(int(text))

    def check(self, value: object) -> int:
        """Take what Python takes for an index, but no bool."""
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise ValueError(value)
        try:
            number = operator.index(value)
        except TypeError:
            # an array of NumPy's has the method, too
            raise ValueError(value) from None
        if not (self.least <= number <= self.most or number == self.other):
            raise ValueError(value)
        return number


@dataclass(frozen=True)
class Ratio(Allowed):
    """A number from 0 to 1."""

    def __str__(self) -> str:
        """Say the range."""
        return "a number from 0 to 1"

    def parse(self, text: str) -> float:
        """Read it."""
        text = text.strip(_BLANKS)
        if not _NUMBER.fullmatch(text):
            raise ValueError(text)
        return self.check(float(text))

    def check(self, value: object) -> float:
        """Take any number but a bool."""
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise ValueError(value)
        return float(value)


@dataclass(frozen=True)
class Flag(Allowed):
    """True or false."""

    def __str__(self) -> str:
        """Say the words."""
        return "true or false"

    def parse(self, text: str) -> bool:
        """Read it, whatever its case."""
        text = text.strip(_BLANKS).lower()
        if text not in {"true", "false"}:
            raise ValueError(text)
        return text == "true"

    def check(self, value: object) -> bool:
        """Take a bool only."""
        if not isinstance(value, bool):
            raise ValueError(value)  # noqa: TRY004 - all of them raise the same
        return value

    def text(self, value: object) -> str:
        """Write Java's word."""
        return "true" if value else "false"


@dataclass(frozen=True)
class OneOf(Allowed):
    """One of some words."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        """Say the words."""
        return f"one of {', '.join(self.words)}"

    def parse(self, text: str) -> object:
        """Read it."""
        return self.check(text.strip(_BLANKS))

    def check(self, value: object) -> object:
        """Take one of the words."""
        if value not in self.words:
            raise ValueError(value)
        return value


@dataclass(frozen=True)
class OneTimestampType(OneOf):
    """The name of a `TimestampType`, which is what it is in Python."""

    def check(self, value: object) -> TimestampType:
        """Take the name, or what it names."""
        name = value.name if isinstance(value, TimestampType) else value
        return TimestampType[str(super().check(name))]

    def text(self, value: object) -> str:
        """Write the name."""
        return TimestampType(value).name  # type: ignore[arg-type]


@dataclass(frozen=True)
class ListOf(Allowed):
    """Any of some words, none at all included; in Python a text with commas, in the order of `words`."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        """Say the words."""
        return f"any of {', '.join(self.words)}, separated by commas"

    def parse(self, text: str) -> str:
        """Read it."""
        text = text.strip(_BLANKS)
        given = [word.strip(_BLANKS) for word in text.split(",")] if text else []
        if not set(given) <= set(self.words):
            raise ValueError(text)
        return ",".join(word for word in self.words if word in given)

    def check(self, value: object) -> str:
        """Take a text."""
        if not isinstance(value, str):
            raise ValueError(value)  # noqa: TRY004 - all of them raise the same
        return self.parse(value)


@dataclass(frozen=True)
class Synonym:
    """A setting's name in a broker's file."""

    name: str

    factor: int = 1
    """How many of the setting's units one of its own is: 3,600,000 for hours."""

    allowed: Integer | None = None
    """What the broker allows for the number in the file, where that is not what the setting allows."""


@dataclass(frozen=True)
class Setting:
    """One setting of a log."""

    name: str
    """Kafka's name for a topic: `segment.bytes`."""

    allowed: Allowed
    """What it may be."""

    synonyms: tuple[Synonym, ...]
    """What a broker's file may call it; the first that is there wins."""

    @property
    def field(self) -> str:
        """Its name in `LogConfig`."""
        return self.name.replace(".", "_")


def _at_least(least: int) -> Integer:
    return Integer(least, _LONG)


def _int(least: int, most: int = _INT) -> Integer:
    return Integer(least, most)


def _any(name: str) -> Synonym:
    """Any number will do, if another name wins."""
    return Synonym(name, allowed=_at_least(-_LONG - 1))


def _hours(name: str, least: int) -> Synonym:
    return Synonym(name, 3_600_000, _int(least))


def _minutes(name: str, least: int) -> Synonym:
    return Synonym(name, 60_000, _int(least))


def _setting(name: str, allowed: Allowed, *synonyms: str | Synonym) -> Setting:
    given = (Synonym(synonym) if isinstance(synonym, str) else synonym for synonym in synonyms)
    return Setting(name, allowed, tuple(given))


_POLICIES = ("compact", "delete")
_COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")

SETTINGS = (
    # less than 1 MiB is `internal.segment.bytes` in properties; 14 is the least that Kafka ever allowed
    _setting("segment.bytes", _int(14), "log.segment.bytes"),
    _setting("segment.ms", _at_least(1), "log.roll.ms", _hours("log.roll.hours", 1)),
    _setting("segment.jitter.ms", _at_least(0), "log.roll.jitter.ms", _hours("log.roll.jitter.hours", 0)),
    _setting("segment.index.bytes", _int(4), "log.index.size.max.bytes"),
    _setting("index.interval.bytes", _int(0), "log.index.interval.bytes"),
    _setting("flush.messages", _at_least(1), "log.flush.interval.messages"),
    _setting("flush.ms", _at_least(0), "log.flush.interval.ms", _any("log.flush.scheduler.interval.ms")),
    _setting("retention.bytes", _at_least(-_LONG - 1), "log.retention.bytes"),
    _setting(
        "retention.ms",
        _at_least(-1),
        _any("log.retention.ms"),
        _minutes("log.retention.minutes", -_INT - 1),
        _hours("log.retention.hours", -_INT - 1),
    ),
    _setting("max.message.bytes", _int(0), "message.max.bytes"),
    _setting("delete.retention.ms", _at_least(0), "log.cleaner.delete.retention.ms"),
    _setting("min.compaction.lag.ms", _at_least(0), "log.cleaner.min.compaction.lag.ms"),
    _setting("max.compaction.lag.ms", _at_least(1), "log.cleaner.max.compaction.lag.ms"),
    _setting("min.cleanable.dirty.ratio", Ratio(), "log.cleaner.min.cleanable.ratio"),
    _setting("cleanup.policy", ListOf(_POLICIES), "log.cleanup.policy"),
    _setting("file.delete.delay.ms", _at_least(0), "log.segment.delete.delay.ms"),
    _setting("compression.type", OneOf(_COMPRESSION_TYPES), "compression.type"),
    _setting("compression.gzip.level", Integer(1, 9, -1), "compression.gzip.level"),
    _setting("compression.lz4.level", _int(1, 17), "compression.lz4.level"),
    _setting("compression.zstd.level", _int(-131_072, 22), "compression.zstd.level"),
    _setting("preallocate", Flag(), "log.preallocate"),
    _setting("message.timestamp.type", OneTimestampType(_TIMESTAMP_TYPES), "log.message.timestamp.type"),
    _setting("message.timestamp.before.max.ms", _at_least(0), "log.message.timestamp.before.max.ms"),
    _setting("message.timestamp.after.max.ms", _at_least(0), "log.message.timestamp.after.max.ms"),
    _setting("min.insync.replicas", _int(1), "min.insync.replicas"),
    _setting("unclean.leader.election.enable", Flag(), "unclean.leader.election.enable"),
)
