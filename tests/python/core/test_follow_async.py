"""`async for` over `Log.follow`."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

import cordwood as cw
from core.following import append, new_log, open_watches, without_inotify


@pytest.mark.parametrize("is_polling", [False, True])
def test_async_for_returns_new_records_while_other_tasks_run(
    tmp_path: Path, is_polling: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_polling:
        without_inotify(monkeypatch)

    async def main(writer: cw.LogWriter) -> list[int]:
        async def appends() -> None:
            for _ in range(5):
                await asyncio.sleep(0.02)
                append(writer, 2)
                writer.roll()

        task = asyncio.create_task(appends())
        found = []
        threads = threading.active_count()
        async for record in cw.Log(tmp_path / "t-0").follow(timeout=30):
            found.append(record.offset)
            assert threading.active_count() == threads
            if len(found) == 13:
                break
        await task
        return found

    with new_log(tmp_path / "t-0", 3) as writer:
        assert asyncio.run(main(writer)) == list(range(13))
    assert open_watches() == 0


def test_async_for_ends_at_the_timeout_at_an_error_and_at_close(tmp_path: Path) -> None:
    async def main(writer: cw.LogWriter) -> None:
        log = cw.Log(tmp_path / "t-0")
        assert [record.offset async for record in log.follow(timeout=0)] == [0, 1, 2]
        assert [record.offset async for record in log.follow(timeout=0.05)] == [0, 1, 2]
        records = log.follow(3)
        waiting = asyncio.ensure_future(anext(records, None))
        await asyncio.sleep(0.05)
        with pytest.raises(RuntimeError, match="another task is waiting"):
            await anext(records)
        records.close()
        assert await waiting is None
        records = log.follow(3)
        # a task that is cancelled loses no record
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(records), 0.02)
        append(writer, 1)
        assert (await anext(records)).offset == 3
        asyncio.get_running_loop().call_later(0.02, writer.truncate_to, 1)
        with pytest.raises(cw.LogChangedError):
            await anext(records)

    with new_log(tmp_path / "t-0", 3) as writer:
        asyncio.run(main(writer))
    assert open_watches() == 0
