"""The exit codes of the commands, and their error messages on stderr."""

import errno
import functools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ParamSpec

from cordwood import (
    BatchTooLargeError,
    ConfigError,
    CordwoodError,
    CorruptLogError,
    LogChangedError,
    LogDir,
    LogNotFoundError,
    PoisonedError,
    RecordTooLargeError,
    classify,
)
from cordwood.cli.terminal import drop_output, escape

__all__ = [
    "FAILED",
    "INTERRUPTED",
    "SKIPPING_DAMAGE",
    "USAGE",
    "WITH_MAX_BATCH_BYTES",
    "FailedError",
    "NothingFoundError",
    "UsageError",
    "error_in_words",
    "exit_code_of",
    "say",
    "sentence",
    "stop_when_unread",
]

# options of the commands by the library's argument
_OPTIONS = {
    "clean": "--clean or --unclean",
    "columns": "--columns",
    "destination": "--into",
    "end_offset": "--end-offset",
    "end_time": "--until",
    "flush": "--flush",
    "grep": "--grep",
    "isolation_level": "--isolation",
    "key_decoder_class": "--key-decoder-class",
    "last": "--last",
    "max_batch_bytes": "--max-batch-bytes",
    "leader_epoch": "--leader-epoch",
    "now": "--now",
    "on_damage": "--on-damage",
    "start_offset": "--start-offset",
    "start_time": "--since",
    "topic_id": "--topic-id",
    "value_decoder_class": "--value-decoder-class",
}

FAILED, USAGE, INTERRUPTED = 1, 2, 130

SKIPPING_DAMAGE = frozenset({"cat", "copy", "count", "groups", "metadata", "transactions"})
"""The commands with the option `--on-damage`."""

WITH_MAX_BATCH_BYTES = frozenset(
    {
        "append",
        "apply-retention",
        "cat",
        "compact",
        "copy",
        "count",
        "diff",
        "dump",
        "find",
        "groups",
        "ls",
        "metadata",
        "positions",
        "producers",
        "recover",
        "reindex",
        "repair",
        "report",
        "transactions",
        "truncate",
        "verify",
    }
)
"""The commands with the option `--max-batch-bytes`."""

_P = ParamSpec("_P")


class UsageError(ValueError):
    """Arguments that cannot be combined, or that do not have the expected form."""


class UnreadOutputError(ValueError):
    """The reader of a named output, such as a FIFO, closed it."""


class FailedError(Exception):
    """The command has written what failed."""


class NothingFoundError(LookupError):
    """The arguments are valid and nothing matches them."""


def say(paragraph: str) -> None:
    """Write one paragraph to stderr, if it is open."""
    # a closed stderr is None; if its reader has closed it, the command ends as it would with one
    if sys.stderr is not None:
        with suppress(BrokenPipeError):
            sys.stderr.write(f"cordwood: {escape(' '.join(paragraph.split()))}\n")


_LOOK = "cordwood verify --explain shows what is damaged, and cordwood repair what can be saved"


def sentence(error: CordwoodError, command: str) -> str:
    """Return the message of an error of a command, with advice for the command line."""
    facts = str(error.args[0])
    match error:
        case ConfigError(argument=str() as argument) if option := _OPTIONS.get(argument.partition("[")[0]):
            return f"{option}: expected {error.expected}, found {error.found}"
        # repair itself names the policies that mend it
        case CorruptLogError() if error.advice and command != "repair":
            skips = "--on-damage skip leaves it out"
            advice = skips if command in SKIPPING_DAMAGE else _LOOK
        case BatchTooLargeError() if command in WITH_MAX_BATCH_BYTES:
            advice = "--max-batch-bytes raises the limit"
        case LogNotFoundError(code="no_segment"):
            advice = "cordwood ls shows the partitions of a data directory"
        case RecordTooLargeError(argument=str() as setting):
            advice = f"--set {setting}=BYTES raises the limit"
        case LogChangedError() | PoisonedError():
            advice = "run the command again"
        case _:
            return facts
    return f"{facts}; {advice}"


def error_in_words(error: CordwoodError | OSError, command: str) -> str:
    """Return the message of an error of a command about one of several partitions."""
    match error:
        case CordwoodError():
            return sentence(error, command)
        case OSError(filename=str() as file, strerror=str() as reason):
            return f"{file}: {reason}"
    return str(error)


def exit_code_of(error: BaseException, argv: Sequence[str]) -> int:
    """Write the message of an error of this command line to stderr; return the exit code."""
    code = _code_of_end(error)
    if code is not None:
        return code
    error = _of_parent(error)
    match error:
        case UsageError():
            say(str(error))
            return USAGE
        case CordwoodError():
            say(sentence(error, argv[0] if argv else ""))
            return USAGE if isinstance(error, ConfigError) or _is_missing(error, argv) else FAILED
        case NothingFoundError():
            say(str(error))
        case ModuleNotFoundError(name="typer" | "rich" as name):
            say(f'the command line needs {name}: pip install "cordwood[cli]"')
        case ModuleNotFoundError(name="pyarrow"):
            say('this needs pyarrow: pip install "cordwood[cli,arrow]"')
        case ModuleNotFoundError(name="matplotlib"):
            say('this needs matplotlib: pip install "cordwood[cli,report]"')
        case OSError():
            say(error_in_words(error, "") or type(error).__name__)
        case ImportError() | ValueError() | MemoryError():
            say(str(error) or type(error).__name__)
        case _:
            say(f"a bug in cordwood, please report it: {type(error).__name__}: {error}")
    return FAILED


def _of_parent(error: BaseException) -> BaseException:
    """Return the error that names the data directory to give, if that of a path is about the folder above it."""
    match error:
        case LogNotFoundError(code="no_segment", file=str() as path):
            pass
        case ConfigError(argument="path", found=str() as path) if Path(path).is_dir():
            # of verify
            pass
        case _:
            return error
    try:
        if classify(path).kind != "partition":
            LogDir(path)
    except ConfigError as named:
        return named
    except (CordwoodError, OSError):
        pass
    return error


def _is_missing(error: CordwoodError, argv: Sequence[str]) -> bool:
    """Return whether a path of the command line, or a folder on the way to it, does not exist or is of another kind.

    A file that is missing elsewhere, such as a partition that was deleted meanwhile, is not wrong usage.
    """
    if not isinstance(error, LogNotFoundError) or error.code != "log_not_found" or error.file is None:
        return False
    missing = Path(error.file).absolute()
    given = [Path(word).absolute() for word in argv if word]
    return any(missing == path or missing in path.parents for path in given)


def _code_of_end(error: BaseException) -> int | None:
    """Return the exit code of what ends a command; `None` for other errors."""
    match error:
        case KeyboardInterrupt():
            return INTERRUPTED
        case FailedError():
            return FAILED
    # without typer no error is one of its own
    typer = sys.modules.get("typer")
    if typer is None:
        return None
    if isinstance(error, typer.Abort):
        return INTERRUPTED
    if isinstance(error, typer.TyperException):
        # typer reads values with pydantic, whose messages begin with the class of an exception
        say(error.format_message().replace(": Value error, ", ": ", 1) + " (see --help)")
    return int(error.exit_code) if isinstance(error, typer.TyperException | typer.Exit) else None


def stop_when_unread(command: Callable[_P, None]) -> Callable[_P, None]:
    """End a command without a message when the reader of standard output closed it (`cordwood cat … | head`)."""

    @functools.wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        if sys.stdout is None:
            # standard output is closed: writing to it fails, and no other file gets its descriptor
            sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
        with _until_unread():
            try:
                command(*args, **kwargs)
            except BaseException:
                # the end of the command stays the same, such as an exit code
                with _until_unread():
                    sys.stdout.flush()
                raise
            sys.stdout.flush()

    return run


@contextmanager
def _until_unread() -> Iterator[None]:
    """End the block when the reader of standard output closed it; name standard output in its other errors."""
    try:
        yield
    except OSError as error:
        # only errors of standard output have no file name
        if error.filename is not None or error.errno is None:
            if error.errno == errno.EPIPE:
                # typer exits without a message on a broken pipe
                raise UnreadOutputError(f"{error.filename}: {error.strerror}") from error
            raise
        # otherwise Python would write the buffered output again at exit, and report the same error
        drop_output()
        if error.errno != errno.EPIPE:
            raise type(error)(error.errno, error.strerror, "standard output") from error
