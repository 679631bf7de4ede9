"""The command line, `cordwood`. `commands` has its commands. It needs the extra `cli`."""

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code: 0 done, 1 nothing found or an error, 2 usage, 130 Ctrl-C."""
    try:
        from cordwood.cli.run import run  # noqa: PLC0415  (a Ctrl-C may come while it is imported)

        return run(sys.argv[1:] if argv is None else list(argv))
    except KeyboardInterrupt:
        return 130
