"""Where records go to: standard output, or a file that appears only when it is complete."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from cordwood.cli.failure import UsageError

__all__ = ["destination"]


@contextmanager
def destination(path: Path | None, partition: str, *, binary: bool) -> Iterator[BinaryIO]:
    """Open the output; a file is written beside its name and renamed at the end, so that no half of one is left."""
    if path is None:
        if binary and sys.stdout.isatty():
            raise UsageError("this format is not for terminals: give a file with -o, or a pipe")
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if path.resolve().parent == Path(partition).resolve():
        raise UsageError(f"{path} lies inside the partition, and nothing is ever written there")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with unfinished.open("xb") as file:
            yield file
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
