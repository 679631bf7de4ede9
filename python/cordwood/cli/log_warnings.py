"""Warnings about the logs that a command reads and writes."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cordwood import CordwoodError, Log
from cordwood.cli.limits import DEFAULT_MAX_BATCH_BYTES
from cordwood.cli.terminal import escape

if TYPE_CHECKING:
    import typer

__all__ = ["log_to_stderr", "opened", "silent_log"]

_LOGGER = logging.getLogger("cordwood")


def opened(context: "typer.Context", path: Path, max_batch_bytes: int = DEFAULT_MAX_BATCH_BYTES) -> Log:
    """Open a log whose warnings are written to stderr when the command ends, if they were not logged before."""
    log = Log(path, max_batch_bytes=max_batch_bytes)
    context.call_on_close(lambda: _write(log))
    return log


def _write(log: Log) -> None:
    """Log the warnings, except one that is the error that ends the command."""
    error = sys.exception()
    error_text = str(error.args[0]) if isinstance(error, CordwoodError) else None
    for warning in log.warnings:
        if warning != error_text:
            _LOGGER.warning("%s", warning)


class _Lines(logging.Handler):
    """Writes each warning of the core to stderr once, as a line."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._written: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        warning = record.getMessage()
        # a closed stderr is None
        if warning not in self._written and sys.stderr is not None:
            self._written.add(warning)
            sys.stderr.write(f"warning: {escape(' '.join(warning.split()))}\n")


@contextmanager
def log_to_stderr() -> Iterator[None]:
    """Write the core's warnings to stderr: about the logs that are read, and what an opening recovered."""
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
