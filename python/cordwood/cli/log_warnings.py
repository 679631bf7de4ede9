"""Warnings about the logs that a command reads and writes."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from cordwood import Log
from cordwood.cli.terminal import escape

__all__ = ["log_to_stderr", "opened", "silent_log"]

_LOGGER = logging.getLogger("cordwood")


def opened(context: typer.Context, path: Path) -> Log:
    """Open a log. When the command ends, the end of the log is found, so that its warnings are written in any case."""
    log = Log(path)
    context.call_on_close(lambda: log.warnings)
    return log


class _Lines(logging.Handler):
    """Writes each warning of the core to stderr once, as a line."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._written: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        warning = record.getMessage()
        if warning not in self._written:
            self._written.add(warning)
            sys.stderr.write(f"warning: {escape(' '.join(warning.split()))}\n")


@contextmanager
def log_to_stderr() -> Iterator[None]:
    """Write the core's warnings to stderr: those of the logs that are read, and what an opening recovered."""
    handler = _Lines()
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
