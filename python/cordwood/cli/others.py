"""What is in a data directory beside the partitions that are listed."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from cordwood import LogDir, LogNotFoundError, classify
from cordwood._core import _partition_parts
from cordwood.disk_usage import disk_bytes, disk_usage
from cordwood.quantities import bytes_in_words, several

__all__ = ["Other", "others_in", "others_in_words"]

_SHOWN_NAMES = 10
"""The names of foreign items in the summary; `--json` has all of them."""

_NOUNS = {
    "delete": "deleted partition",
    "future": "future partition",
    "stray": "stray partition",
    "foreign": "foreign item",
}


class Other(NamedTuple):
    """A partition that is not live, or a file or folder that is not Kafka's."""

    name: str
    directory: str
    kind: Literal["delete", "future", "stray", "foreign"]
    disk_bytes: int


def others_in(directory: LogDir) -> Iterator[Other]:
    """Yield what is beside the partitions of a `LogDir`. What vanishes meanwhile is left out."""
    for path in sorted(Path(directory.path).iterdir()):
        if path.name in directory:
            continue
        try:
            other = _other(path, directory.path)
        except (FileNotFoundError, LogNotFoundError):
            continue
        if other is not None:
            yield other


def _other(path: Path, directory: str) -> Other | None:
    """Return what a path is, if it is not Kafka's. *Errors*: those of a path that does not exist any more."""
    parts = _partition_parts(path.name)
    found = path.lstat()
    size = disk_usage(path).disk_bytes if path.is_dir() else disk_bytes(found)
    if parts is not None and parts[2] != "live" and path.is_dir():
        return Other(path.name, directory, parts[2], size)
    # a link to nothing is nobody's
    is_kafkas = path.exists() and classify(path).kind in {"offset_checkpoint", "meta_properties", "broker_file"}
    return None if is_kafkas else Other(path.name, directory, "foreign", size)


def others_in_words(others: Sequence[Other]) -> str:
    """Return their numbers and sizes by kind."""
    words = []
    for kind, noun in _NOUNS.items():
        found = [other for other in others if other.kind == kind]
        if found:
            size = bytes_in_words(sum(other.disk_bytes for other in found))
            names = [other.name for other in found[:_SHOWN_NAMES]]
            more = [f"and {len(found) - len(names):,} more"] if len(found) > len(names) else []
            listed = f" ({', '.join(names + more)})" if kind == "foreign" else ""
            words.append(f"{several(len(found), noun)}{listed}, {size}")
    return "; ".join(words)
