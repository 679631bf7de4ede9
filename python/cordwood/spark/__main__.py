"""The entry point of `python -m cordwood.spark`: the jobs as commands. They need the extras `spark` and `cli`."""

import sys
from collections.abc import Sequence

from cordwood.spark.jar_file import jar

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. Returns the exit code: 0 done, 1 an error, 2 usage, 130 Ctrl-C."""
    argv = sys.argv[1:] if argv is None else list(argv)
    if argv == ["jar"]:
        # without the extras of the other commands
        try:
            sys.stdout.write(f"{jar()}\n")
        except FileNotFoundError as missing:
            sys.stderr.write(f"cordwood: {missing}\n")
            return 1
        return 0
    try:
        from cordwood.spark.jobs.commands import run  # noqa: PLC0415  (extras)

        return run(argv)
    except ModuleNotFoundError as missing:
        if missing.name not in {"typer", "rich", "pyspark", "pyarrow"}:
            raise
        sys.stderr.write(f'cordwood: these commands need {missing.name}: pip install "cordwood[cli,spark]"\n')
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
