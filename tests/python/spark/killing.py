"""Commits of the sink whose driver is killed, or whose disk fails, before a step."""

from __future__ import annotations

import json
import os
import shutil
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

import cordwood as cw
from cordwood.spark.write import commit as commits
from cordwood.spark.write.journal import Journal
from spark.writing import Sink, all_texts

KILLED = 137


class Steps:
    """Counts the steps of a commit that change the disk, and does something before one of them."""

    def __init__(self, stop: int, act: Callable[[], None]) -> None:
        self.stop, self.act = stop, act
        self.only: str | None = None
        self.made: list[str] = []

    def step(self, name: str) -> None:
        if self.only not in {None, name}:
            return
        self.made.append(name)
        if len(self.made) - 1 == self.stop:
            self.act()

    def counted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def stand_in(*arguments: Any, **named: Any) -> Any:
            self.step(name)
            return real(*arguments, **named)

        return stand_in


def counting_writer(steps: Steps) -> Any:
    """A stand-in for `LogWriter`, whose changes are steps."""

    class Writer:
        plan_recovery = cw.LogWriter.plan_recovery

        def __init__(self, *arguments: Any, **named: Any) -> None:
            steps.step("open")
            self._real = cw.LogWriter(*arguments, **named)

        def __getattr__(self, name: str) -> Any:
            found = getattr(self._real, name)
            if name in {"append_batches", "flush", "roll", "truncate_to", "delete_before"}:
                return steps.counted(name, found)
            return found

        def close(self) -> None:
            steps.step("close")
            self._real.close()

    return Writer


@contextmanager
def stopped_at(stop: int, act: Callable[[], None]) -> Iterator[Steps]:
    """Do something before the n-th step."""
    steps = Steps(stop, act)
    with pytest.MonkeyPatch.context() as patch:
        # one at a time, so that the steps have an order
        patch.setattr(commits, "_AT_ONCE", 1)
        patch.setattr(commits, "LogWriter", counting_writer(steps))
        for owner, name in [(os, "fsync"), (Path, "mkdir"), (Path, "replace"), (Path, "unlink"), (Path, "rmdir")]:
            patch.setattr(owner, name, steps.counted(name, getattr(owner, name)))
        patch.setattr(shutil, "rmtree", steps.counted("rmtree", shutil.rmtree))
        patch.setattr(json, "dump", steps.counted("dump", json.dump))
        yield steps


def killed_at(stop: int, run: Callable[[], None]) -> bool:
    """Run in another process that is killed before a step. Returns whether it was."""
    return _killed(run, stopped_at(stop, lambda: os._exit(KILLED)))


def killed_before_it_counts(run: Callable[[], None]) -> None:
    """Run a commit in another process that is killed when all records are appended."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "finish", lambda *_: os._exit(KILLED))
        assert _killed(run, nullcontext())


def _killed(run: Callable[[], None], prepared: AbstractContextManager[object]) -> bool:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with prepared:
                run()
            code = 0
        except BaseException:  # noqa: BLE001  (for the message; the test fails)
            traceback.print_exc()
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in {0, KILLED}
    return code == KILLED


def steps_of(run: Callable[[], None]) -> list[str]:
    with stopped_at(-1, lambda: None) as steps:
        run()
    return steps.made


def rows(*pairs: tuple[int, str]) -> list[dict[str, Any]]:
    return [{"value": text.encode(), "partition": number} for number, text in pairs]


OLD = [rows((0, "old0"), (1, "old1"))]
NEW = [rows((0, "a"), (1, "b"), (2, "c")), rows((1, "d"), (0, "e"))]
BEFORE, ADDED = Counter(["old0", "old1"]), Counter("abcde")


def orders(path: Path, **options: Any) -> Sink:
    """A write to a topic of three partitions."""
    count = {} if (path / "orders-0").exists() else {"numPartitions": 3}
    return Sink(path, "value", "partition", topic="orders", **count, **options)


class Staged:
    """A write that is ready to be committed, in a directory that can be put back to that state."""

    def __init__(self, root: Path, batch: int | None = None, **options: Any) -> None:
        self.path, self._saved = root / "data", root / "saved"
        orders(self.path, batch=None if batch is None else batch - 1).run(*OLD)
        self.sink = orders(self.path, batch=batch, **options)
        self.messages = [self.sink.stage(number, given) for number, given in enumerate(NEW)]
        shutil.copytree(self.path, self._saved)

    def commit(self) -> None:
        self.sink.commit(self.messages)

    def put_back(self) -> None:
        shutil.rmtree(self.path)
        shutil.copytree(self._saved, self.path)


def interrupted_after_an_append(root: Path, **options: Any) -> Staged:
    """A write whose driver was killed after the first append."""
    staged = Staged(root, **options)
    steps = steps_of(staged.commit)
    staged.put_back()
    assert killed_at(steps.index("append_batches") + 1, staged.commit)
    assert all_texts(staged.path) > BEFORE
    return staged
