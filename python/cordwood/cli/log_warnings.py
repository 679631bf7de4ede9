"""The warnings of the logs that a command reads."""

import sys
from pathlib import Path

import typer

from cordwood import CordwoodError, Log
from cordwood.cli.terminal import escape

__all__ = ["opened"]


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
            sys.stderr.write(f"warning: {escape(' '.join(warning.split()))}\n")
