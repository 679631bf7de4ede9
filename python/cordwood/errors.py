"""The errors of cordwood.

All are subclasses of `CordwoodError`. Their attributes contain the file, the position in it, the offset, what was
expected and what was found. An error with a counterpart in Python (`FileNotFoundError`, `OSError`, `ValueError`) is
also a subclass of it. An error of the system (no permission, an I/O error) is a plain `OSError`.
"""

from typing import Any

__all__ = [
    "BatchTooLargeError",
    "ClosedError",
    "ConfigError",
    "CordwoodError",
    "CorruptLogError",
    "ForkedHandleError",
    "InternalError",
    "InvalidProducerEpochError",
    "InvalidRecordError",
    "LockedError",
    "LogChangedError",
    "LogNotFoundError",
    "OffsetOutOfRangeError",
    "OutOfOrderSequenceError",
    "PoisonedError",
    "RecordTooLargeError",
    "UnsupportedFormatError",
]


def _restore(cls: "type[CordwoodError]", message: str, place: dict[str, Any]) -> "CordwoodError":
    return cls(message, **place)


class CordwoodError(Exception):
    """The base class. `str()` is a sentence with the cause and what to do next.

    >>> error = CorruptLogError("bad checksum", file="0.log", position=61, offset=4)
    >>> str(error), error.position, error.expected
    ('bad checksum', 61, None)
    """

    code: str | None
    """A stable name of the kind of error, for programs: `"corrupt"`, `"offset_out_of_range"`, …"""

    file: str | None
    """The file or directory."""

    position: int | None
    """Bytes from the start of `file`; in an error of passed batches, bytes from the start of these."""

    offset: int | None
    """The offset (logical)."""

    log_start_offset: int | None
    """The first offset of the log, inclusive. Set in an `OffsetOutOfRangeError`, and in errors of `Log.follow`."""

    log_end_offset: int | None
    """The end of the log, exclusive. Set in an `OffsetOutOfRangeError`, and in errors of `Log.follow`."""

    expected: str | None
    """What was expected."""

    found: str | None
    """What was found."""

    producer_id: int | None
    """The producer id. Set only in an `OutOfOrderSequenceError` and an `InvalidProducerEpochError`."""

    producer_epoch: int | None
    """The epoch of the batch. Set only together with `producer_id`."""

    argument: str | None
    """The invalid argument or setting."""

    advice: str | None
    """What to do next. `args[0]` is the message without it."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        file: str | None = None,
        position: int | None = None,
        offset: int | None = None,
        log_start_offset: int | None = None,
        log_end_offset: int | None = None,
        expected: str | None = None,
        found: str | None = None,
        producer_id: int | None = None,
        producer_epoch: int | None = None,
        argument: str | None = None,
        advice: str | None = None,
    ) -> None:
        """Create the error. An unknown attribute is `None`."""
        super().__init__(message)
        self.code = code
        self.file = file
        self.position = position
        self.offset = offset
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.expected = expected
        self.found = found
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.argument = argument
        self.advice = advice

    def __str__(self) -> str:
        """Return the message and the advice, without the errno that `OSError` adds."""
        return f"{self.args[0]}; {self.advice}" if self.advice else str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the class, the message, the attributes and the notes (PEP 678)."""
        place = {
            "code": self.code,
            "file": self.file,
            "position": self.position,
            "offset": self.offset,
            "log_start_offset": self.log_start_offset,
            "log_end_offset": self.log_end_offset,
            "expected": self.expected,
            "found": self.found,
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
            "argument": self.argument,
            "advice": self.advice,
        }
        notes = getattr(self, "__notes__", None)
        return (_restore, (type(self), self.args[0], place), {"__notes__": notes} if notes else None)


class CorruptLogError(CordwoodError):
    """A file of a log has invalid bytes at `position` of `file`.

    `scan(on_damage="skip")` reads the rest.
    """


class OffsetOutOfRangeError(CordwoodError):
    """An offset is below the log start offset or above the log end offset.

    The attributes `log_start_offset` and `log_end_offset` contain these limits.
    """


class UnsupportedFormatError(CordwoodError):
    """This version does not support the format: a codec, a format version or a feature."""


class BatchTooLargeError(CordwoodError):
    """A batch is above the limit `max_batch_bytes` of a reader, as stored or decompressed.

    It is not damaged, and no reader leaves it out: read it with a higher limit. `expected` has the limit, and `found`
    the offsets of the batch and the bytes that it has at least.
    """


class InvalidRecordError(CordwoodError, ValueError):
    """A log does not accept a record, or bytes passed to `append_batches`.

    `argument` is `"raw"` if the bytes are not a valid batch, `"timestamp"` if a time is too far from the clock, and
    `"key"` if a key is missing in a compacted log. `position` is the position of the batch in the bytes. Damage in a
    file of a log is a `CorruptLogError`.
    """


class OutOfOrderSequenceError(CordwoodError, ValueError):
    """A batch passed to `append_batches` does not continue the sequences of its producer.

    A batch before it is missing, or it is an older batch than the last five again. `expected` is
    `"sequence N"`, with the next sequence of the producer. *Source*: Kafka `OutOfOrderSequenceException`.
    """


class InvalidProducerEpochError(CordwoodError, ValueError):
    """A batch passed to `append_batches` has a lower epoch than its producer had before: it is fenced.

    *Source*: Kafka `InvalidProducerEpochException`.
    """


class RecordTooLargeError(CordwoodError, ValueError):
    """A record or a batch is larger than `max.message.bytes`, a segment, or the maximum batch that can be read.

    `argument` is the setting that limits the size, or `None` for the maximum batch that can be read.
    """


class LogChangedError(CordwoodError):
    """A file was shortened, replaced or removed after the log was opened: open it again, or call `refresh()`."""


class LogNotFoundError(CordwoodError, FileNotFoundError):
    """There is no log at the path."""


class LockedError(CordwoodError, OSError):
    """Another process, or another handle of this process, holds the lock."""


class ClosedError(CordwoodError, ValueError):
    """A handle was used after it was closed. It is a `ValueError`, as for a closed file in Python."""


class ForkedHandleError(CordwoodError):
    """A handle was used in a forked child of the process that opened it."""


class PoisonedError(CordwoodError):
    """An earlier write or flush failed. The handle accepts no more writes: open the log again."""


class ConfigError(CordwoodError, ValueError):
    """An argument or a setting is not allowed."""


class InternalError(CordwoodError):
    """A bug in cordwood. Please report it."""
