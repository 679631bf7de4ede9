"""Warnings about the logs that a command reads and writes."""

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
    """Open a log and write its warnings to stderr when the command ends, with or without an error."""
    log = Log(path)
    context.call_on_close(lambda: _write(log))
    return log


def _write(log: Log) -> None:
    """Write each warning once, as a line, except a warning that is also the error that ends the command."""
    error = sys.exception()
    error_text = str(error.args[0]) if isinstance(error, CordwoodError) else None
    for warning in dict.fromkeys(log.warnings):
        if warning != error_text:
            _write_line(warning)


def _write_line(warning: str) -> None:
    sys.stderr.write(f"warning: {escape(' '.join(warning.split()))}\n")


class _Lines(logging.Handler):
    """Writes each record of the core's logger as a line."""

    def emit(self, record: logging.LogRecord) -> None:
        _write_line(record.getMessage())


@contextmanager
def log_to_stderr() -> Iterator[None]:
    """Write the core's log messages to stderr, such as what recovery changed when a log was opened."""
    handler = _Lines(logging.WARNING)
    _LOGGER.addHandler(handler)
    try:
        yield
    finally:
        _LOGGER.removeHandler(handler)


@contextmanager
def silent_log() -> Iterator[None]:
    """Suppress the core's log messages, for a command that prints them itself."""
    was_disabled, _LOGGER.disabled = _LOGGER.disabled, True
    try:
        yield
    finally:
        _LOGGER.disabled = was_disabled
