"""The `async with` block of `LogWriter.transaction_async`."""

import asyncio
from types import TracebackType
from weakref import WeakValueDictionary

from cordwood._core import LogWriter, Transaction

__all__ = ["TransactionBlock"]

_PAUSE_SECONDS = 0.001
"""Between two attempts to get the turn. A task cannot wait for a thread's block without blocking the other tasks."""


class _Turn:
    """The turn of the tasks of one event loop with one transactional id of a writer, in the order of requests."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.owner: asyncio.Task[object] | None = None


_turns: WeakValueDictionary[tuple[int, int, str], _Turn] = WeakValueDictionary()
"""By the `id` of the loop and of the writer, and the transactional id. A block that waits or is open keeps its turn."""


class TransactionBlock:
    """Begins a transaction once no other block has its transactional id, and ends it with the block."""

    def __init__(self, writer: LogWriter, transactional_id: str, version: int) -> None:
        """See `LogWriter.transaction_async`, which checks the arguments."""
        self._begin = (writer, transactional_id, version)
        self._transaction: Transaction | None = None
        self._turn: _Turn | None = None

    async def __aenter__(self) -> Transaction:
        """Wait for the turn, and begin."""
        writer, transactional_id, _ = self._begin
        task = asyncio.current_task()
        turn = _turns.setdefault((id(asyncio.get_running_loop()), id(writer), transactional_id), _Turn())
        # a block within a block of its own task would wait for itself; the writer refuses it
        if turn.owner is not task:
            await turn.lock.acquire()
        try:
            self._transaction = await self._begun(id(task))
        except BaseException:
            if turn.owner is not task:
                turn.lock.release()
            raise
        self._turn, turn.owner = turn, task
        return self._transaction

    async def _begun(self, task: int) -> Transaction:
        """Begin once no thread, and no task of another loop, has a block with the transactional id."""
        writer, transactional_id, version = self._begin
        while True:
            transaction = writer._begin_in_task(transactional_id, version, task)  # noqa: SLF001
            if transaction is not None:
                return transaction
            await asyncio.sleep(_PAUSE_SECONDS)

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Commit, or abort after an exception, which an error of the abort does not replace."""
        transaction, self._transaction = self._transaction, None
        turn, self._turn = self._turn, None
        if transaction is None or turn is None:
            return
        try:
            if transaction.is_open:
                await (transaction.commit_async() if exc_type is None else transaction.abort_async())
        except Exception:
            if exc_type is None:
                raise
        finally:
            transaction._end_turn()  # noqa: SLF001
            turn.owner = None
            turn.lock.release()
