"""How a command ends: an exit code, and at most one paragraph on stderr."""

import errno
import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec

import typer

from cordwood import ConfigError, CordwoodError, CorruptLogError, LogChangedError, LogNotFoundError, PoisonedError
from cordwood.cli.terminal import escape
from cordwood.times import TimeFormError

__all__ = [
    "FAILED",
    "INTERRUPTED",
    "USAGE",
    "NothingFoundError",
    "UsageError",
    "exit_code_of",
    "say",
    "sentence",
    "stop_when_unread",
]

# what the commands call an argument of the library
_OPTIONS = {
    "columns": "--columns",
    "end_offset": "--end-offset",
    "end_time": "--until",
    "flush": "--flush",
    "isolation_level": "--isolation",
    "leader_epoch": "--leader-epoch",
    "now": "--now",
    "on_damage": "--on-damage",
    "start_offset": "--start-offset",
    "start_time": "--since",
    "topic_id": "--topic-id",
}

FAILED, USAGE, INTERRUPTED = 1, 2, 130

_P = ParamSpec("_P")


class UsageError(ValueError):
    """Arguments that do not go together."""


class UnreadOutputError(ValueError):
    """The reader of a named output, such as a FIFO, is gone."""


class NothingFoundError(LookupError):
    """The question was right and the answer is: nothing."""


def say(paragraph: str) -> None:
    """Write one paragraph to stderr."""
    sys.stderr.write(f"cordwood: {escape(' '.join(paragraph.split()))}\n")


def sentence(error: CordwoodError) -> str:
    """Say what is wrong, and what to do about it from here."""
    facts = str(error.args[0])
    match error:
        case ConfigError(argument=str() as argument) if argument in _OPTIONS:
            return f"{_OPTIONS[argument]}: expected {error.expected}, found {error.found}"
        case CorruptLogError() if error.advice:
            return f"{facts}; cordwood cat --on-damage skip reads what is left"
        case LogNotFoundError(code="no_segment"):
            return f"{facts}; cordwood ls shows the partitions of a data directory"
        case LogChangedError() | PoisonedError():
            return f"{facts}; run the command again"
    return facts


def exit_code_of(error: BaseException) -> int:
    """Say what went wrong; returns the exit code."""
    match error:
        case KeyboardInterrupt() | typer.Abort():
            return INTERRUPTED
        case typer.TyperException():
            say(error.format_message() + " (--help shows what is possible)")
            return error.exit_code
        case UsageError() | TimeFormError():
            say(str(error))
            return USAGE
        case CordwoodError():
            say(sentence(error))
            return USAGE if isinstance(error, ConfigError) else FAILED
        case NothingFoundError():
            say(str(error))
        case ModuleNotFoundError(name="pyarrow"):
            say('this needs pyarrow: pip install "cordwood[cli,arrow]"')
        case OSError(filename=str() as file, strerror=str() as reason):
            say(f"{file}: {reason}")
        case OSError() | ImportError() | ValueError() | MemoryError():
            say(str(error) or type(error).__name__)
        case _:
            say(f"a fault of cordwood itself, please report it: {type(error).__name__}: {error}")
    return FAILED


def stop_when_unread(command: Callable[_P, None]) -> Callable[_P, None]:
    """End a command quietly when the reader of standard output is gone (`cordwood cat … | head`)."""

    @functools.wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        if sys.stdout is None:
            # it is closed: an error for what is written to it, and nothing else gets its descriptor
            sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except OSError as error:
            # all that is read, and every other output, has a name
            if error.filename is not None or error.errno is None:
                if error.errno == errno.EPIPE:
                    # typer exits without a message on a broken pipe
                    raise UnreadOutputError(f"{error.filename}: {error.strerror}") from error
                raise
            # what is still buffered has nowhere to go; without this Python complains when it exits
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if error.errno != errno.EPIPE:
                raise type(error)(error.errno, error.strerror, "standard output") from error

    return run
