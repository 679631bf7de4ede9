"""The output of records: standard output, a file, or a pipe or device.

A file is written under a temporary name in the same directory and renamed when it is complete, so that an incomplete
file is never visible. A pipe, a device and a descriptor that is already open (`/dev/fd/3`) are written directly.
"""

import io
import os
import signal
import stat
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import BinaryIO, NamedTuple

from cordwood.cli.exit_codes import UsageError
from cordwood.replaced_file import replacing

__all__ = ["Output", "output_of"]

_STANDARD_OUTPUT = "-"
_MAX_LINKS = 40
_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class _TerminatedError(BaseException):
    """A signal that terminates the process, as an exception, so that temporary files are removed first."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Output(NamedTuple):
    """The target of the option for output."""

    path: Path | None = None
    """The path as given; `None` for standard output."""

    replaced: Path | None = None
    """The file to replace or create, with symbolic links resolved; `None` for a target that is written directly."""

    descriptor: int | None = None
    """The descriptor of this process that the path refers to."""

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file, or a new one."""
        return self.replaced is not None

    @contextmanager
    def opened(self, *, binary: bool) -> Iterator[BinaryIO]:
        """Open it for writing. A file is created or replaced only if the block ends without an error."""
        if self.path is None:
            if binary and sys.stdout.isatty():
                raise UsageError("this format cannot be written to a terminal: use a file with -o, or a pipe")
            sys.stdout.flush()
            if isinstance(sys.stdout.buffer, io.FileIO):
                # python -u: an unbuffered file may write a part of what it is given, and the rest is not
                # written
                with os.fdopen(sys.stdout.fileno(), "wb", closefd=False) as file:
                    yield file
                return
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
            return
        with _named(self.path):
            if self.replaced is not None:
                with _raising_on_signals(), replacing(self.replaced) as file:
                    yield file
                return
            with os.fdopen(self._open_directly(self.path), "wb") as file:
                if binary and file.isatty():
                    raise UsageError(f"{self.path} is a terminal, and this format cannot be written to one")
                yield file

    def _open_directly(self, path: Path) -> int:
        """Open a target that is written directly. A duplicate of a descriptor shares its position with the original."""
        if self.descriptor is not None:
            return os.dup(self.descriptor)
        descriptor = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            # a file that another process has open: append to it
            os.lseek(descriptor, 0, os.SEEK_END)
        return descriptor


def output_of(path: Path | None, *partitions: str | Path) -> Output:
    """Resolve a path: `-` and `None` are standard output, links are followed. Nothing is created or opened.

    *Errors*: `UsageError` for a directory, and for a file in one of the partitions; `OSError`.
    """
    if path is None or str(path) == _STANDARD_OUTPUT:
        return Output()
    try:
        found = path.stat()
    except FileNotFoundError:
        found = None
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise UsageError(f"{path} is a directory; -o names a file, a pipe, or - for standard output")
    if found is None:
        return Output(path, _outside(partitions, path))
    # first, because a socket cannot be opened by its path under /dev/fd
    if _is_standard_output(found):
        return Output()
    named = _descriptor_of(path)
    is_of_this_process = named is not None and named[0] == Path("/proc/self").readlink().name
    if named is not None and is_of_this_process:
        if stat.S_ISREG(found.st_mode):
            _outside(partitions, path)
        return Output(path, descriptor=named[1])
    if named is not None or not stat.S_ISREG(found.st_mode):
        return Output(path)
    return Output(path, _outside(partitions, path))


def _outside(partitions: Sequence[str | Path], path: Path) -> Path:
    """Return the path with symbolic links resolved. *Errors*: `UsageError` if it is inside one of the partitions."""
    real = Path(os.path.realpath(path))
    folders = set(real.parents)
    if any(Path(partition).resolve() in folders for partition in partitions):
        raise UsageError(f"{path} is inside the partition, where nothing is ever written")
    return real


def _descriptor_of(path: Path) -> tuple[str, int] | None:
    """Return the process and the descriptor that a path such as `/dev/fd/3` refers to, with symbolic links resolved."""
    for _ in range(_MAX_LINKS):
        folder = Path(os.path.realpath(path.parent))
        match folder.parts:
            case ("/", "proc", process, "fd") | ("/", "proc", process, "task", _, "fd"):
                return process, int(path.name)
        link = folder / path.name
        if not link.is_symlink():
            return None
        path = folder / link.readlink()
    return None


def _is_standard_output(found: os.stat_result) -> bool:
    try:
        return os.path.samestat(found, os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError, AttributeError):
        # it is closed, or has no descriptor
        return False


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Add the output's path to errors of writing, which have no file name; errors of reading have one."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise type(error)(error.errno, error.strerror, str(path)) from error


@contextmanager
def _raising_on_signals() -> Iterator[None]:
    """Raise on a terminating signal; after the block's cleanup, terminate the process with the same signal."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def raise_terminated(number: int, _: FrameType | None) -> None:
        for other in handled:
            # a second signal must not interrupt the cleanup
            signal.signal(other, signal.SIG_IGN)
        raise _TerminatedError(number)

    # an ignored signal (nohup) stays ignored
    handled = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in handled:
        signal.signal(number, raise_terminated)
    try:
        yield
    except _TerminatedError as ended:
        signal.signal(ended.number, signal.SIG_DFL)
        os.kill(os.getpid(), ended.number)
        raise
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)
