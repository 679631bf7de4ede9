"""Errors of the Spark source. Spark passes only their text from a Python worker to the driver.

`str()` of each error has two parts, on one line: a sentence, and a JSON object with the code and the place. `parse`
reads the object:

    [CORDWOOD_CORRUPT_BATCH] orders-3 segment 400 position 61: bad checksum | cordwood: {"code": …, "topic": …}

| code | what happened |
|---|---|
| `CORDWOOD_NOT_FOUND` | no such path, or no partition that matches |
| `CORDWOOD_BAD_OPTION` | an option, a schema or a path is not allowed |
| `CORDWOOD_OFFSET_OUT_OF_RANGE` | an offset is below the log start or above the log end |
| `CORDWOOD_TIME_NOT_FOUND` | no record has this time or a later one |
| `CORDWOOD_CORRUPT_BATCH` | bytes are not valid in the format |
| `CORDWOOD_BATCH_TOO_LARGE` | a batch is above `maxLogBatchBytes`, or a cell above a limit of `decode_batches` |
| `CORDWOOD_UNSUPPORTED` | this version does not support it: a codec, a version of the format, writing |
| `CORDWOOD_SEGMENT_GONE` | data is lost: a planned segment was deleted, shortened or replaced, or offsets are missing |
| `CORDWOOD_INVALID_RECORD` | a row is no record of a log: too large, a timestamp far in the future, a key missing |
| `CORDWOOD_PRODUCER_REFUSED` | a batch of a producer is fenced, or does not continue its sequences |
| `CORDWOOD_LOCKED` | a broker or another writer has a log that is to be written |
| `CORDWOOD_UNFINISHED_WRITE` | a write was interrupted, and its records cannot be taken back |
| `CORDWOOD_IO` | an error of the system: no permission, an I/O error |
| `CORDWOOD_INTERNAL` | a bug in cordwood |
"""

import json
from pathlib import PurePath
from typing import Any

from cordwood._core import _is_segment_file
from cordwood.errors import (
    BatchTooLargeError,
    ClosedError,
    ConfigError,
    CordwoodError,
    CorruptLogError,
    ForkedHandleError,
    InternalError,
    InvalidProducerEpochError,
    InvalidRecordError,
    LockedError,
    LogChangedError,
    LogNotFoundError,
    OffsetOutOfRangeError,
    OutOfOrderSequenceError,
    PoisonedError,
    RecordTooLargeError,
    UnsupportedFormatError,
)

__all__ = ["SparkLogError", "bad_option", "parse"]

BAD_OPTION = "CORDWOOD_BAD_OPTION"
BATCH_TOO_LARGE = "CORDWOOD_BATCH_TOO_LARGE"
CORRUPT_BATCH = "CORDWOOD_CORRUPT_BATCH"
INTERNAL = "CORDWOOD_INTERNAL"
INVALID_RECORD = "CORDWOOD_INVALID_RECORD"
IO = "CORDWOOD_IO"
LOCKED = "CORDWOOD_LOCKED"
NOT_FOUND = "CORDWOOD_NOT_FOUND"
OFFSET_OUT_OF_RANGE = "CORDWOOD_OFFSET_OUT_OF_RANGE"
PRODUCER_REFUSED = "CORDWOOD_PRODUCER_REFUSED"
SEGMENT_GONE = "CORDWOOD_SEGMENT_GONE"
TIME_NOT_FOUND = "CORDWOOD_TIME_NOT_FOUND"
UNFINISHED_WRITE = "CORDWOOD_UNFINISHED_WRITE"
UNSUPPORTED = "CORDWOOD_UNSUPPORTED"

_CODES: tuple[tuple[type[Exception], str], ...] = (
    (CorruptLogError, CORRUPT_BATCH),
    (BatchTooLargeError, BATCH_TOO_LARGE),
    (OffsetOutOfRangeError, OFFSET_OUT_OF_RANGE),
    (LogNotFoundError, NOT_FOUND),
    (LogChangedError, SEGMENT_GONE),
    (LockedError, LOCKED),
    (RecordTooLargeError, INVALID_RECORD),
    (InvalidRecordError, INVALID_RECORD),
    (OutOfOrderSequenceError, PRODUCER_REFUSED),
    (InvalidProducerEpochError, PRODUCER_REFUSED),
    (PoisonedError, IO),
    (UnsupportedFormatError, UNSUPPORTED),
    (ConfigError, BAD_OPTION),
    (ClosedError, INTERNAL),
    (ForkedHandleError, INTERNAL),
    (InternalError, INTERNAL),
    (CordwoodError, INTERNAL),
    (OSError, IO),
)

_MARK = " | cordwood: "
_PLACE = ("topic", "partition", "segment", "position")
_DECODER = json.JSONDecoder()


class SparkLogError(CordwoodError):
    """An error of the Spark source, with its code and its place.

    `code` is one of the codes in this module's documentation. `topic` and `partition` name the log, `segment` is the
    base offset of the segment, and `position` is in bytes from the start of its `.log`; each is `None` if unknown.
    """

    topic: str | None
    partition: int | None
    segment: int | None
    reason: str

    def __init__(  # noqa: PLR0913  (all parts of the place)
        self,
        code: str,
        reason: str,
        *,
        topic: str | None = None,
        partition: int | None = None,
        segment: int | None = None,
        position: int | None = None,
    ) -> None:
        """Create the error and its sentence."""
        # one line, because `parse` searches line by line
        reason = " ".join(reason.splitlines())
        place = {"topic": topic, "partition": partition, "segment": segment, "position": position}
        super().__init__(_start(code, place) + reason, code=code, position=position)
        self.topic = topic
        self.partition = partition
        self.segment = segment
        self.reason = reason

    @property
    def sentence(self) -> str:
        """The sentence, without the JSON object."""
        return str(self.args[0])

    def __str__(self) -> str:
        """Return the sentence and the JSON object that `parse` reads."""
        place = {name: value for name in _PLACE if (value := getattr(self, name)) is not None}
        return f"{self.sentence}{_MARK}{json.dumps({'code': self.code, **place})}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the code, the reason and the place."""
        return (_restore, (str(self.code), self.reason, {name: getattr(self, name) for name in _PLACE}))

    @classmethod
    def of(
        cls, error: Exception, *, topic: str | None = None, partition: int | None = None, code: str | None = None
    ) -> "SparkLogError":
        """Convert an error of the core: with its code (or the given `code`) and the log where it occurred."""
        found = code or next(code for kind, code in _CODES if isinstance(error, kind))
        file = getattr(error, "file", None)
        name = PurePath(file).name if file else ""
        segment = int(name.partition(".")[0]) if _is_segment_file(name) else None
        facts, advice = str(error), ""
        if isinstance(error, CordwoodError):
            # without the advice, which is for the Python API
            facts = str(error.args[0])
            advice = "; mode=DROPMALFORMED reads the rest" if error.advice and found == CORRUPT_BATCH else ""
        reason = " ".join(facts.split()) + advice
        position = getattr(error, "position", None)
        return cls(found, reason, topic=topic, partition=partition, segment=segment, position=position)


def _restore(code: str, reason: str, place: dict[str, Any]) -> SparkLogError:
    return SparkLogError(code, reason, **place)


def bad_option(option: str, expected: str, found: object) -> SparkLogError:
    """Create the error for an invalid option."""
    return SparkLogError(BAD_OPTION, f"{option}: expected {expected}, found {found!r}")


def parse(error: BaseException | str) -> SparkLogError | None:
    """Parse the source's error from an exception raised by Spark, or from its text; `None` for any other error.

    >>> failed = SparkLogError("CORDWOOD_CORRUPT_BATCH", "bad checksum", topic="orders", partition=3, segment=400)
    >>> error = parse(f"Job aborted: {failed} SQLSTATE: 38000")
    >>> error.code, error.topic, error.partition, error.segment, error.position
    ('CORDWOOD_CORRUPT_BATCH', 'orders', 3, 400, None)
    """
    text = error if isinstance(error, str) else _text(error)
    for line in text.split("\n"):
        sentence, mark, rest = line.rpartition(_MARK)
        if mark and (found := _place_of(rest)) is not None:
            code, place = found
            _, start, reason = sentence.partition(_start(code, place))
            return SparkLogError(code, reason if start else sentence, **place)
    return None


def _start(code: str, place: dict[str, Any]) -> str:
    """Return the start of a sentence, before the reason."""
    topic, partition = place["topic"], place["partition"]
    if topic is None or partition is None:
        return f"[{code}] "
    words = [f" {name} {place[name]}" for name in ("segment", "position") if place[name] is not None]
    return f"[{code}] {topic}-{partition}{''.join(words)}: "


def _place_of(text: str) -> tuple[str, dict[str, Any]] | None:
    """Parse the JSON object at the start of a text; `None` if it is not that of an error."""
    try:
        fields, _ = _DECODER.raw_decode(text)
    except ValueError:
        return None
    match fields:
        case {"code": str() as code}:
            return code, {name: fields.get(name) for name in _PLACE}
    return None


def _text(error: BaseException) -> str:
    """Return all texts of an exception: Spark stores the traceback of a worker separately from the message."""
    parameters = getattr(error, "getMessageParameters", None)
    found = parameters() if callable(parameters) else None
    return "\n".join([str(error), *(str(value) for value in (found or {}).values())])
