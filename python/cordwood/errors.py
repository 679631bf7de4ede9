"""Every error that cordwood raises of its own.

All are children of `CordwoodError` and carry where and what: the file, the position in it, the offset, what was
expected and what was found. Where Python has a word for it (`FileNotFoundError`, `OSError`, `ValueError`), the error
is that as well. What the system itself refuses (no permission, an I/O error) stays an `OSError`.
"""

from typing import Any

__all__ = [
    "ConfigError",
    "CordwoodError",
    "CorruptLogError",
    "ForkedHandleError",
    "InternalError",
    "LockedError",
    "LogChangedError",
    "LogNotFoundError",
    "OffsetOutOfRangeError",
    "PoisonedError",
    "UnsupportedFormatError",
]


def _restore(cls: "type[CordwoodError]", message: str, place: dict[str, Any]) -> "CordwoodError":
    return cls(message, **place)


class CordwoodError(Exception):
    """The base of every error of cordwood's own. `str()` is a sentence that says what is wrong, and what to do.

    >>> error = CorruptLogError("bad checksum", file="0.log", position=61, offset=4)
    >>> str(error), error.position, error.expected
    ('bad checksum', 61, None)
    """

    code: str | None
    """A stable name for the kind of error, for programs: `"corrupt"`, `"offset_out_of_range"`, …"""

    file: str | None
    """The file or directory that the error speaks of."""

    position: int | None
    """Bytes from the start of `file`."""

    offset: int | None
    """The offset (logical) that the error speaks of."""

    expected: str | None
    """What was wanted."""

    found: str | None
    """What was there."""

    argument: str | None
    """The argument or the setting that is not allowed."""

    advice: str | None
    """What to do next, in the words of this interface. `args[0]` is the sentence without it."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        file: str | None = None,
        position: int | None = None,
        offset: int | None = None,
        expected: str | None = None,
        found: str | None = None,
        argument: str | None = None,
        advice: str | None = None,
    ) -> None:
        """Make the error; whatever is not known stays `None`."""
        super().__init__(message)
        self.code = code
        self.file = file
        self.position = position
        self.offset = offset
        self.expected = expected
        self.found = found
        self.argument = argument
        self.advice = advice

    def __str__(self) -> str:
        """Return the message and the advice; an `OSError` would put its errno before them."""
        return f"{self.args[0]}; {self.advice}" if self.advice else str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a recipe: the class, the message, the attributes. Notes (PEP 678) are kept."""
        place = {
            "code": self.code,
            "file": self.file,
            "position": self.position,
            "offset": self.offset,
            "expected": self.expected,
            "found": self.found,
            "argument": self.argument,
            "advice": self.advice,
        }
        notes = getattr(self, "__notes__", None)
        return (_restore, (type(self), self.args[0], place), {"__notes__": notes} if notes else None)


class CorruptLogError(CordwoodError):
    """Bytes of a log or of an index break the format; `file` and `position` say where.

    `scan(on_damage="skip")` reads what is left.
    """


class OffsetOutOfRangeError(CordwoodError):
    """An offset below the log start offset, or above the log end offset."""


class UnsupportedFormatError(CordwoodError):
    """Bytes that may be right, but of a kind that this version cannot read."""


class LogChangedError(CordwoodError):
    """A file was shortened, replaced or removed since the log was opened: open it again, or call `refresh()`."""


class LogNotFoundError(CordwoodError, FileNotFoundError):
    """There is no log at the path."""


class LockedError(CordwoodError, OSError):
    """Another process, or another handle of this one, holds the lock."""


class ForkedHandleError(CordwoodError):
    """A handle that cannot be used in a forked child was used in one."""


class PoisonedError(CordwoodError):
    """A write or a flush failed before; the handle takes no more."""


class ConfigError(CordwoodError, ValueError):
    """An argument or a setting that is not allowed."""


class InternalError(CordwoodError):
    """A fault of cordwood itself. Please report it."""
