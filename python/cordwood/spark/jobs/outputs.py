"""Checks of output paths: a job writes to its own directory, never into a log or a Kafka data directory."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from cordwood import classify
from cordwood._core import _local_path
from cordwood.spark.jobs.errors import OutputError

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
    target = Path(_local_path(text)).absolute()
    real = target.resolve()
    for path in source:
        if real.is_relative_to(Path(path).resolve()):
            message = f"{target} is inside {path}, where nothing is ever written: choose another output"
            raise OutputError(message, code="export_output", file=str(target))
    for folder in (real, *real.parents):
        if _is_kafka_directory(folder):
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
        message = f"{target} exists, and is not replaced: choose a new directory"
        raise OutputError(message, code="export_foreign", file=str(target))


def _scheme(text: str) -> str | None:
    scheme = _SCHEME.match(text)
    return None if scheme is None or scheme[1] == "file" else scheme[1]


def _is_kafka_directory(folder: Path) -> bool:
    """Whether a directory is a partition or a broker's data directory.

    A broker does not start if it finds an unknown directory in its data directory. `classify` also reports a data
    directory for copied partitions without a broker's files, and for a file `.lock` alone, which other programs use,
    too: an output next to those is allowed.
    """
    kind = _kind(folder)
    if kind != "data_directory":
        return kind == "partition"
    kinds = {_kind(entry) for entry in folder.iterdir()}
    is_of_broker = "offset_checkpoint" in kinds or (folder / ".lock").exists()
    return "meta_properties" in kinds or ("partition" in kinds and is_of_broker)


def _kind(path: Path) -> str | None:
    try:
        return classify(path).kind
    except OSError:
        # it does not exist, or cannot be read
        return None
