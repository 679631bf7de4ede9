"""The files of a directory, as they are on the disk."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DiskUsage", "disk_bytes", "disk_usage", "files_in"]

_BLOCK_BYTES = 512
"""The unit of `st_blocks`, whatever the blocks of the file system are."""


@dataclass(frozen=True)
class DiskUsage:
    """The files of a directory, those in its folders included."""

    files: int
    """Their number."""

    bytes: int
    """Their sizes together."""

    disk_bytes: int
    """What they take on the disk: less than `bytes` for files with holes, such as the index of the last segment."""

    modified: int | None
    """The time of the last change of a file, milliseconds since the epoch; `None` without a file."""


def disk_usage(path: Path) -> DiskUsage:
    """Add up the files of a directory. Those that vanish meanwhile or cannot be read are left out."""
    files = size = on_disk = 0
    modified: int | None = None
    for _, found in files_in(path):
        files += 1
        size += found.st_size
        on_disk += disk_bytes(found)
        changed = found.st_mtime_ns // 1_000_000
        modified = changed if modified is None else max(modified, changed)
    return DiskUsage(files, size, on_disk, modified)


def disk_bytes(found: os.stat_result) -> int:
    """Return what a file takes on the disk."""
    return found.st_blocks * _BLOCK_BYTES


def files_in(path: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Return the files of a directory, those in its folders included, with the path of each.

    Those that vanish meanwhile or cannot be read are left out. Symbolic links are not followed.
    """
    folders = [str(path)]
    while folders:
        try:
            entries = list(os.scandir(folders.pop()))
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                    continue
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            yield entry.path, found
