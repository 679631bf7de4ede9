"""Errors that survive the way from a worker to the driver as text.

Spark hands on only the text of an exception. So each message of this source begins with a fixed code, then where it
happened, then what was wrong; `parse` reads that back.

| code | what happened |
|---|---|
| `CORDWOOD_NOT_FOUND` | no such path, or no partition that matches |
| `CORDWOOD_BAD_OPTION` | an option, a schema or a path that is not allowed |
| `CORDWOOD_OFFSET_OUT_OF_RANGE` | an offset below the log start or above the log end |
| `CORDWOOD_TIME_NOT_FOUND` | no record is that late |
| `CORDWOOD_CORRUPT_BATCH` | bytes that break the format |
| `CORDWOOD_UNSUPPORTED` | what this version cannot do: a codec or version that it cannot read, writing |
| `CORDWOOD_SEGMENT_GONE` | data is lost: what was planned or read so far is gone, shortened or replaced, or a gap |
| `CORDWOOD_IO` | the system refused: no permission, an I/O error |
| `CORDWOOD_INTERNAL` | a fault of cordwood itself |
"""

import re
from pathlib import PurePath
from typing import Any

from cordwood.errors import (
    ConfigError,
    CordwoodError,
    CorruptLogError,
    LogChangedError,
    LogNotFoundError,
    OffsetOutOfRangeError,
    UnsupportedFormatError,
)

__all__ = ["SparkLogError", "bad_option", "parse"]

BAD_OPTION = "CORDWOOD_BAD_OPTION"
CORRUPT_BATCH = "CORDWOOD_CORRUPT_BATCH"
INTERNAL = "CORDWOOD_INTERNAL"
IO = "CORDWOOD_IO"
NOT_FOUND = "CORDWOOD_NOT_FOUND"
OFFSET_OUT_OF_RANGE = "CORDWOOD_OFFSET_OUT_OF_RANGE"
SEGMENT_GONE = "CORDWOOD_SEGMENT_GONE"
TIME_NOT_FOUND = "CORDWOOD_TIME_NOT_FOUND"
UNSUPPORTED = "CORDWOOD_UNSUPPORTED"

_CODES: tuple[tuple[type[Exception], str], ...] = (
    (CorruptLogError, CORRUPT_BATCH),
    (OffsetOutOfRangeError, OFFSET_OUT_OF_RANGE),
    (LogNotFoundError, NOT_FOUND),
    (LogChangedError, SEGMENT_GONE),
    (UnsupportedFormatError, UNSUPPORTED),
    (ConfigError, BAD_OPTION),
    (CordwoodError, INTERNAL),
    (OSError, IO),
)

# a topic may hold dots, dashes and digits, so the partition is what follows the last dash
_MESSAGE = re.compile(
    r"\[(?P<code>CORDWOOD_[A-Z_]+)\]"
    r"(?: (?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d+)"
    r"(?: segment (?P<segment>\d+))?(?: position (?P<position>\d+))?:)?"
    r" (?P<reason>[^\n]*)"
)


class SparkLogError(CordwoodError):
    """An error of the Spark source, with its code and its place.

    `code` is one of the module's table, `topic` and `partition` say which log, `segment` is the segment's base offset
    and `position` counts bytes from the start of its `.log`; each is `None` where it is not known.
    """

    topic: str | None
    partition: int | None
    segment: int | None
    reason: str

    def __init__(  # noqa: PLR0913  (an error carries all that is known)
        self,
        code: str,
        reason: str,
        *,
        topic: str | None = None,
        partition: int | None = None,
        segment: int | None = None,
        position: int | None = None,
    ) -> None:
        """Make the error; the message is put together from all of it."""
        place = ""
        if topic is not None and partition is not None:
            place = f" {topic}-{partition}"
            place += "" if segment is None else f" segment {segment}"
            place += "" if position is None else f" position {position}"
            place += ":"
        super().__init__(f"[{code}]{place} {reason}", code=code, position=position)
        self.topic = topic
        self.partition = partition
        self.segment = segment
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a recipe."""
        place = {
            "topic": self.topic,
            "partition": self.partition,
            "segment": self.segment,
            "position": self.position,
        }
        return (_restore, (str(self.code), self.reason, place))

    @classmethod
    def of(
        cls, error: Exception, *, topic: str | None = None, partition: int | None = None, code: str | None = None
    ) -> "SparkLogError":
        """Give an error of the core its code (or another `code`) and the log that it happened in."""
        found = code or next(code for kind, code in _CODES if isinstance(error, kind))
        file = getattr(error, "file", None)
        stem = PurePath(file).name.partition(".")[0] if file else ""
        segment = int(stem) if stem.isdecimal() else None
        facts, advice = str(error), ""
        if isinstance(error, CordwoodError):
            # the advice is that of the Python interface
            facts = str(error.args[0])
            advice = "; mode=DROPMALFORMED reads what is left" if error.advice and found == CORRUPT_BATCH else ""
        # one line, so that it can be told from the traceback around it
        reason = " ".join(facts.split()) + advice
        position = getattr(error, "position", None)
        return cls(found, reason, topic=topic, partition=partition, segment=segment, position=position)


def _restore(code: str, reason: str, place: dict[str, Any]) -> SparkLogError:
    return SparkLogError(code, reason, **place)


def bad_option(option: str, expected: str, found: object) -> SparkLogError:
    """Make the error for an option that is not allowed."""
    return SparkLogError(BAD_OPTION, f"{option}: expected {expected}, found {found!r}")


def parse(error: BaseException | str) -> SparkLogError | None:
    """Read code and place back from an exception that Spark raised, or from its text; `None` where there is no code.

    >>> error = parse("... [CORDWOOD_CORRUPT_BATCH] orders-3 segment 400 position 61: bad checksum")
    >>> error.code, error.topic, error.partition, error.segment, error.position
    ('CORDWOOD_CORRUPT_BATCH', 'orders', 3, 400, 61)
    """
    text = error if isinstance(error, str) else _text(error)
    match = _MESSAGE.search(text)
    if match is None:
        return None
    number = {name: None if (digits := match[name]) is None else int(digits) for name in _NUMBERS}
    return SparkLogError(match["code"], match["reason"], topic=match["topic"], **number)


_NUMBERS = ("partition", "segment", "position")


def _text(error: BaseException) -> str:
    """All that an exception says: Spark keeps the worker's traceback apart from the message."""
    parameters = getattr(error, "getMessageParameters", None)
    found = parameters() if callable(parameters) else None
    return "\n".join([str(error), *(str(value) for value in (found or {}).values())])
