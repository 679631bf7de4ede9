"""Files that replace another one when they are complete."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["replacing"]


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write a temporary file next to `path` and rename it to `path`, with owner, group and mode of the old file."""
    before = path.stat() if path.exists() else None
    if before is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    unfinished = path.with_name(f".cordwood-{os.urandom(8).hex()}.part")
    mode = 0o666 if before is None else stat.S_IMODE(before.st_mode)
    try:
        try:
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode & 0o666)
        except OSError as error:
            # the error names the directory: the temporary name means nothing to a user
            raise type(error)(error.errno, error.strerror, str(path.parent)) from None
        with os.fdopen(descriptor, "wb") as file:
            if before is not None:
                _keep_access(file.fileno(), before)
            yield file
            file.flush()
            # otherwise a power loss could leave an empty file in place of the old one
            os.fsync(file.fileno())
        try:
            unfinished.replace(path)
        except OSError as error:
            raise type(error)(error.errno, error.strerror, str(path)) from None
    finally:
        unfinished.unlink(missing_ok=True)


def _keep_access(descriptor: int, before: os.stat_result) -> None:
    """Give a new file the owner, group and mode of the old one, without granting rights to another user or group."""
    mode = stat.S_IMODE(before.st_mode)
    try:
        os.fchown(descriptor, before.st_uid, before.st_gid)
    except PermissionError:
        # only root may change the owner
        mode &= ~stat.S_ISUID
        try:
            os.fchown(descriptor, -1, before.st_gid)
        except PermissionError:
            mode &= ~(stat.S_IRWXG | stat.S_ISGID)
    os.fchmod(descriptor, mode)
