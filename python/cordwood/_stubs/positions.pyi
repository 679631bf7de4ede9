"""Positions of consumers in a log."""

from collections.abc import Coroutine
from typing import Any, final

@final
class Position:
    """The position of a consumer in a log: the offset of the next record that it will process. Made by `Log.position`.

    It is a file inside the partition directory, `.cordwood.positions/` and the name, which Kafka ignores and `cw.copy`
    leaves out. It is not Kafka's offset of a consumer group, which is in the topic `__consumer_offsets`.

    Any number of processes may read. Processes of the user that committed first may commit. Of several commits the last
    one counts. A position is not changed when the log is truncated or when retention deletes records: the committed
    offset may then be outside the log, and reading from it is an `OffsetOutOfRangeError`. It may also be in the log
    again, above records that replaced those that were processed: after a truncation, or a power loss that took records
    which were not durable (`LogWriter.durable_offset`).
    """

    @property
    def name(self) -> str:
        """The name."""
    @property
    def offset(self) -> int | None:
        """The committed offset; `None` before the first commit. It is read from the file each time.

        *Errors*: `CorruptLogError` if the file is damaged or of another format.
        """
    @property
    def committed(self) -> CommittedOffset | None:
        """The committed offset and the time of the commit; `None` before the first commit. *Errors*: as `offset`."""
    def commit(self, offset: int) -> None:
        """Commit an offset: that of the last processed record, plus 1. It is durable when this returns.

        A reader, also after a crash, finds the offset committed before or this one. It may be lower than the one
        before. It must be in the log as it is now: at or above the log start offset, and at most the log end offset.

        *Cost*: one sync of the disk. The first commit under a name creates its file and needs space on the disk; later
        ones need none. It and the first one after a commit through another object have two syncs. *Errors*:
        `OffsetOutOfRangeError`; `LockedError` if commits of other processes take more than 10 seconds.

        >>> import shutil, tempfile
        >>> path = shutil.copytree("tests/golden/01-plain/orders-0", tempfile.mkdtemp() + "/orders-0")
        >>> position = cw.Log(path).position("billing")
        >>> position.commit(1500)
        >>> position.offset
        1500
        >>> position.commit(1501)
        Traceback (most recent call last):
        cordwood.errors.OffsetOutOfRangeError: offset 1501 is outside ...
        """
    def commit_async(self, offset: int) -> Coroutine[Any, Any, None]:
        """Commit as `commit`, in an event loop: other tasks run while a thread commits."""

@final
class CommittedOffset:
    """What is committed under the name of a `Position`."""

    @property
    def offset(self) -> int:
        """The offset of the next record to process."""
    @property
    def timestamp(self) -> int:
        """The time of the commit, in milliseconds since the epoch."""
