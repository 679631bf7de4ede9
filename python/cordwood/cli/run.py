"""Running a command line."""

import os
from collections.abc import Sequence

from cordwood.cli.commands import COMPLETION_VARIABLE, HEADINGS, WITHOUT_WARNINGS, function_of
from cordwood.cli.direct import arguments_of
from cordwood.cli.exit_codes import exit_code_of, stop_when_unread
from cordwood.cli.terminal import print_any_text

__all__ = ["run"]


def run(argv: Sequence[str]) -> int:
    """Run a command; return the exit code."""
    try:
        print_any_text()
        if argv and argv[0] in WITHOUT_WARNINGS:
            return _run(argv)
        from cordwood.cli.log_warnings import log_to_stderr  # noqa: PLC0415  (logging takes a while to import)

        with log_to_stderr():
            return _run(argv)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  (the outermost handler: a message, no traceback)
        return exit_code_of(error, argv)


def _run(argv: Sequence[str]) -> int:
    if argv and argv[0] in HEADINGS and COMPLETION_VARIABLE not in os.environ:
        command = function_of(argv[0])
        arguments = arguments_of(command, argv[1:])
        if arguments is not None:
            stop_when_unread(command)(**arguments)
            return 0
    return _run_typer(argv)


def _run_typer(argv: Sequence[str]) -> int:
    from cordwood.cli.app import app  # noqa: PLC0415  (see `direct`)
    from cordwood.cli.completion import complete_if_asked  # noqa: PLC0415

    complete_if_asked()
    try:
        code = app(args=list(argv) or ["--help"], prog_name="cordwood", standalone_mode=False)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):
            # rich ends with it if the reader of the help closed standard output
            return 0
        raise
    return code if isinstance(code, int) else 0
