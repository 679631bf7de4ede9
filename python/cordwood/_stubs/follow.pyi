"""What following a log needs: notification of changes, and a position that was reached in a log."""

from collections.abc import Sequence
from typing import final

from cordwood._stubs.arguments import FilePath
from cordwood._stubs.log import Log

def _watch_directories(paths: Sequence[FilePath]) -> tuple[int, list[int]]:
    """Return an inotify descriptor for changes of the files in these directories, and the number of each of them.

    The caller closes the descriptor; reading from it does not wait. *Errors*: an `OSError`, also if the system's limit
    of watched directories is reached.
    """

def _is_being_truncated(log: Log) -> bool:
    """Return whether a writer was truncating the log when it was opened, or a crash interrupted that."""

@final
class _LogPosition:
    """An offset of a log, with the topic's id and the leader epoch and checksum of the batch before it."""

    def __new__(cls, log: Log, offset: int) -> _LogPosition: ...
    def mismatch(self, log: Log) -> str | None:
        """Return how a later state of the log differs at this offset; `None` if it is the same log.

        The offset must be in the range of that log.
        """
