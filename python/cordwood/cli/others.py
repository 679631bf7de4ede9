"""What is in a data directory beside the partitions that are listed."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from cordwood import LogDir, LogNotFoundError
from cordwood._core import _data_directory_entry
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
        kind = _data_directory_entry(path.name, path.is_dir())
        if path.name in directory or kind == "live" or kind == "known":  # noqa: PLR1714  (mypy does not narrow by a set)
            continue
        try:
            size = disk_usage(path).disk_bytes if path.is_dir() else disk_bytes(path.lstat())
        except (FileNotFoundError, LogNotFoundError):
            # a broker deletes and renames files
            continue
        yield Other(path.name, directory.path, kind, size)


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
