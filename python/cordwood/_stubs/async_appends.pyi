"""What `LogWriter.append_async` needs: an append whose flush is awaited apart from it."""

from typing import final

from cordwood._stubs.record import Appended

@final
class _Unflushed:
    """An append that is in the log, and perhaps not durable yet."""

    @property
    def must_wait(self) -> bool:
        """Whether the append is acknowledged only by a flush that has not happened yet."""
    @property
    def writer(self) -> int:
        """A number that all appends of the same writer share, and no others while the writer exists."""
    @property
    def order(self) -> tuple[int, int]:
        """The order in which appends of a writer become durable: after `wait()` of one, none below it has to wait."""
    def wait(self) -> None:
        """Return when the append is acknowledged. Flush if no other thread does.

        *Errors*: `OSError` of the flush; `PoisonedError` after an earlier one.
        """
    def appended(self) -> Appended:
        """Return what was appended, and whether it is durable now. *Errors*: `PoisonedError` if it had to wait."""
