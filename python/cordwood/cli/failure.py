"""How a command ends: an exit code, and at most one paragraph on stderr."""

import errno
import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec

import typer

from cordwood import ConfigError, CordwoodError
from cordwood.cli.terminal import escape
from cordwood.cli.times import TimeFormError

__all__ = ["FAILED", "INTERRUPTED", "USAGE", "NothingFoundError", "UsageError", "exit_code_of", "stop_when_unread"]

FAILED, USAGE, INTERRUPTED = 1, 2, 130

_P = ParamSpec("_P")


class UsageError(ValueError):
    """Arguments that do not go together."""


class NothingFoundError(LookupError):
    """The question was right and the answer is: nothing."""


def say(paragraph: str) -> None:
    """Write one paragraph to stderr."""
    sys.stderr.write(f"cordwood: {escape(' '.join(paragraph.split()))}\n")


def exit_code_of(error: BaseException) -> int:
    """Say what went wrong; returns the exit code."""
    match error:
        case KeyboardInterrupt() | typer.Abort():
            return INTERRUPTED
        case typer.TyperException():
            say(error.format_message() + " (--help shows what is possible)")
            return error.exit_code
        case UsageError() | TimeFormError() | ConfigError():
            say(str(error))
            return USAGE
        case NothingFoundError() | CordwoodError():
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
    """End a command quietly when its reader is gone (`cordwood cat … | head`)."""

    @functools.wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except OSError as error:
            if error.errno != errno.EPIPE:
                raise
            # what is still buffered has nowhere to go; without this Python complains when it exits
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    return run
