"""The warnings of the logs that a command reads and writes."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from cordwood import CordwoodError, Log
from cordwood.cli.terminal import escape

__all__ = ["log_to_stderr", "opened", "silent_log"]

_LOGGER = logging.getLogger("cordwood")


def opened(context: typer.Context, path: Path) -> Log:
    """Open a log whose warnings are written to stderr when the command ends, with or without an error."""
    log = Log(path)
    context.call_on_close(lambda: _write(log))
    return log


def _write(log: Log) -> None:
    """Write each warning once, as a line. One that is the error by which the command ends is left out."""
    error = sys.exception()
    said = str(error.args[0]) if isinstance(error, CordwoodError) else None
    for warning in dict.fromkeys(log.warnings):
        if warning != said:
            _write_line(warning)


def _write_line(warning: str) -> None:
    sys.stderr.write(f"warning: {escape(' '.join(warning.split()))}\n")


class _Lines(logging.Handler):
    """Writes what the core logs, as a line of its warnings."""

    def emit(self, record: logging.LogRecord) -> None:
        _write_line(record.getMessage())


@contextmanager
def log_to_stderr() -> Iterator[None]:
    """Write the core's warnings, such as what an opening recovered, to stderr."""
    handler = _Lines(logging.WARNING)
    _LOGGER.addHandler(handler)
    try:
        yield
    finally:
        _LOGGER.removeHandler(handler)


@contextmanager
def silent_log() -> Iterator[None]:
    """Keep the core's warnings back, for a command that shows them itself."""
    was_disabled, _LOGGER.disabled = _LOGGER.disabled, True
    try:
        yield
    finally:
        _LOGGER.disabled = was_disabled
