"""The `async with` block of `LogWriter.transaction_async`."""

import asyncio
from types import TracebackType

from cordwood._core import LogWriter, Transaction

__all__ = ["TransactionBlock"]

_PAUSE_SECONDS = 0.001
"""Between two attempts to get the turn. A task cannot wait for a thread's block without blocking the other tasks."""


class TransactionBlock:
    """Begins a transaction once no other block has its transactional id, and ends it with the block."""

    def __init__(self, writer: LogWriter, transactional_id: str, version: int) -> None:
        """See `LogWriter.transaction_async`, which checks the arguments."""
        self._begin = (writer, transactional_id, version)
        self._transaction: Transaction | None = None

    async def __aenter__(self) -> Transaction:
        """Wait for the turn, and begin."""
        writer, transactional_id, version = self._begin
        task = id(asyncio.current_task())
        while True:
            transaction = writer._begin_in_task(transactional_id, version, task)  # noqa: SLF001
            if transaction is not None:
                self._transaction = transaction
                return transaction
            await asyncio.sleep(_PAUSE_SECONDS)

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Commit, or abort after an exception, which an error of the abort does not replace."""
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            return
        try:
            if transaction.is_open:
                await (transaction.commit_async() if exc_type is None else transaction.abort_async())
        except Exception:
            if exc_type is None:
                raise
        finally:
            transaction._end_turn()  # noqa: SLF001
