"""The files of a directory, as they are on the disk."""

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DiskUsage", "disk_usage"]

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
    files = size = blocks = 0
    modified: int | None = None
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
            files += 1
            size += found.st_size
            blocks += found.st_blocks
            changed = found.st_mtime_ns // 1_000_000
            modified = changed if modified is None else max(modified, changed)
    return DiskUsage(files, size, blocks * _BLOCK_BYTES, modified)
