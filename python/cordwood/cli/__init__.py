"""The command line: `cordwood ls · find · cat · trace · append · recover · truncate · apply-retention`.

It needs the extra `cli`.
"""

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code: 0 done, 1 nothing found or an error, 2 usage, 130 Ctrl-C."""
    try:
        from cordwood.cli.run import run  # noqa: PLC0415  (typer and rich are an extra)

        return run(sys.argv[1:] if argv is None else list(argv))
    except ModuleNotFoundError as missing:
        if missing.name not in {"typer", "rich"}:
            raise
        sys.stderr.write(f'cordwood: the command line needs {missing.name}: pip install "cordwood[cli]"\n')
        return 1
    except KeyboardInterrupt:
        return 130
