"""Checks of output paths: a job writes to its own directory, never into a log or a Kafka data directory."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from cordwood._core import _has_segments
from cordwood.spark.jobs.errors import OutputError
from cordwood.spark.partitions import local_path

__all__ = ["local_output", "new_output"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")


def local_output(output: str | os.PathLike[str], source: Iterable[str]) -> Path:
    """Return the absolute path of an output directory; links are not resolved.

    *Errors*: `OutputError` for a URL that is not a local path, and for a directory inside the *source* or inside a
    Kafka directory.
    """
    text = os.fspath(output)
    if scheme := _scheme(text):
        message = (
            f"{text}: expected a directory that the driver and the executors can open, found the scheme {scheme}, "
            "which this version does not support; export to a shared disk, and copy from there"
        )
        raise OutputError(message, code="export_output", file=text)
    target = Path(local_path(text)).absolute()
    real = target.resolve()
    for path in source:
        if real.is_relative_to(Path(path).resolve()):
            message = f"{target} is inside {path}, and nothing is ever written there: choose another output"
            raise OutputError(message, code="export_output", file=str(target))
    for folder in (real, *real.parents):
        if _is_kafkas(folder):
            message = f"{target} is inside Kafka's {folder}, where nothing is ever written: choose another output"
            raise OutputError(message, code="export_output", file=str(target))
    return target


def new_output(output: str, source: Iterable[str]) -> None:
    """Check that an output that Spark writes itself is a new directory.

    *Errors*: `OutputError`. Other paths than local ones are not checked.
    """
    if _scheme(output):
        return
    target = local_output(output, source)
    if os.path.lexists(target):
        message = f"{target} is there already, and nothing is replaced: choose a new directory"
        raise OutputError(message, code="export_foreign", file=str(target))


def _scheme(text: str) -> str | None:
    scheme = _SCHEME.match(text)
    return None if scheme is None or scheme[1] == "file" else scheme[1]


def _is_kafkas(folder: Path) -> bool:
    """Whether a directory is a partition or a data directory. A broker stops if it finds an unknown directory there."""
    try:
        if _has_segments(str(folder)):
            return True
        names = [entry.name for entry in folder.iterdir()]
        is_marked = ".lock" in names or any(name.endswith("-checkpoint") for name in names)
        return "meta.properties" in names or (is_marked and any(_holds_segments(folder / name) for name in names))
    except OSError:
        # it does not exist yet, or cannot be read
        return False


def _holds_segments(folder: Path) -> bool:
    try:
        return folder.is_dir() and _has_segments(str(folder))
    except OSError:
        return False
