"""Writes whose driver is killed, or whose disk fails, at every step of a commit: all of a write counts, or nothing."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import cordwood as cw
from cordwood.spark.errors import SparkLogError
from cordwood.spark.write import commit as commits
from spark.reading import refuses
from spark.writing import Sink, all_texts, left, texts

pytestmark = pytest.mark.python_source

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
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with stopped_at(stop, lambda: os._exit(KILLED)):
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
    return Sink(path, "value", "partition", topic="orders", **options)


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


def recover(path: Path) -> None:
    """What the next write does first."""
    commits.recover(str(path), ["orders"])


@pytest.mark.parametrize("overwrite", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_batch_whose_driver_is_killed_at_any_step_is_written_as_a_whole_or_not_at_all(
    root: Path, overwrite: bool
) -> None:
    after = ADDED if overwrite else BEFORE + ADDED
    staged = Staged(root, overwrite=overwrite)
    outcomes = set()
    for stop in itertools.count():
        killed = killed_at(stop, staged.commit)
        recover(staged.path)
        found = all_texts(staged.path)
        assert found in (BEFORE, after), (stop, found)
        assert not list(staged.path.rglob("*.part")), stop
        outcomes.add((killed, found == after))
        # the next write is not disturbed
        orders(staged.path).run(rows((1, "next")))
        assert all_texts(staged.path) == found + Counter(["next"]), stop
        assert not [found for found in cw.verify(staged.path / "orders-1").findings if found.severity != "info"], stop
        if not killed:
            break
        staged.put_back()
    assert outcomes == {(True, False), (True, True), (False, True)}
    assert stop > 25


@pytest.mark.parametrize("overwrite", [pytest.param(False, marks=pytest.mark.long), True])
def test_a_micro_batch_that_spark_repeats_after_a_kill_at_any_step_is_written_once(root: Path, overwrite: bool) -> None:
    after = ADDED if overwrite else BEFORE + ADDED
    staged = Staged(root, batch=1, overwrite=overwrite)
    for stop in itertools.count():
        killed = killed_at(stop, staged.commit)
        # Spark reads its own log of commits, which has no entry for this one
        orders(staged.path, batch=1, overwrite=overwrite).run(*NEW)
        assert all_texts(staged.path) == after, stop
        assert left(staged.path) == [], stop
        if not killed:
            break
        staged.put_back()
    orders(staged.path, batch=2).run(rows((0, "next")))
    assert all_texts(staged.path) == after + Counter(["next"]), stop
    assert stop > 25


def test_a_recovery_that_is_killed_at_any_step_is_repeated(root: Path) -> None:
    staged = Staged(root)
    steps = steps_of(staged.commit)
    # in the middle of the appends
    stop = [number for number, name in enumerate(steps) if name in {"append_batches", "flush"}][-2]
    for second in itertools.count():
        staged.put_back()
        assert killed_at(stop, staged.commit)
        assert all_texts(staged.path) > BEFORE
        killed = killed_at(second, lambda: recover(staged.path))
        recover(staged.path)
        assert all_texts(staged.path) == BEFORE, second
        if not killed:
            break
    assert second > 8


def test_a_disk_that_fails_at_any_step_leaves_a_write_as_a_whole_or_not_at_all(root: Path) -> None:
    def fail() -> None:
        raise OSError(28, "No space left on device")

    staged = Staged(root)
    outcomes = set()
    names = steps_of(staged.commit)
    for stop in range(len(names)):
        staged.put_back()
        told = ""
        with stopped_at(stop, fail):
            try:
                staged.commit()
            except (SparkLogError, OSError) as error:
                told = str(error)
        assert not told or "No space left" in told
        # without a recovery
        found = all_texts(staged.path)
        assert found in (BEFORE, BEFORE + ADDED), (stop, found)
        # after an error Spark writes again: only where it is not known whether the removal is durable, the write counts
        is_undecided = names[stop - 1 : stop + 1] == ["unlink", "fsync"]
        assert bool(told) == (found == BEFORE) or is_undecided, (stop, names[stop])
        if told:
            # as Spark does
            staged.sink.abort(staged.messages)
        recover(staged.path)
        assert all_texts(staged.path) == found, stop
        outcomes.add((bool(told), found == BEFORE))
    assert outcomes == {(True, True), (True, False), (False, False)}


def test_records_of_others_after_an_interrupted_commit_are_never_removed(root: Path) -> None:
    staged = interrupted(root)
    with cw.LogWriter(staged.path / "orders-0") as other:
        other.append("other")
    with refuses("CORDWOOD_UNFINISHED_WRITE", "orders-0", "unfinished"):
        orders(staged.path)
    assert texts(staged.path / "orders-0")[-1] == "other"
    (file,) = staged.path.rglob("unfinished/*.json")
    file.unlink()
    orders(staged.path).run(rows((0, "next")))
    assert texts(staged.path / "orders-0")[-2:] == ["other", "next"]


def test_an_interrupted_commit_that_cannot_be_taken_back_concerns_its_topics_only(root: Path) -> None:
    staged = interrupted(root)
    with cw.LogWriter(staged.path / "orders-0") as other:
        other.append("other")
    before = texts(staged.path / "orders-0")
    Sink(staged.path, "value", topic="payments").run([{"value": b"a"}])
    Sink(staged.path, "value", "topic").run([{"value": b"b", "topic": "payments"}])
    assert texts(staged.path / "payments-0") == ["a", "b"]
    with refuses("CORDWOOD_UNFINISHED_WRITE", "orders-0", "unfinished"):
        Sink(staged.path, "value", "topic").run([{"value": b"b", "topic": t} for t in ("payments", "orders")])
    assert (texts(staged.path / "payments-0"), texts(staged.path / "orders-0")) == (["a", "b"], before)


def test_a_driver_that_is_still_alive_and_commits_meanwhile_is_noticed(root: Path) -> None:
    """An earlier driver of the query ends its commit when the next one has looked and waits for the locks."""
    staged = Staged(root, batch=1)
    next_run = orders(staged.path, batch=1)
    messages = [next_run.stage(number, given) for number, given in enumerate(NEW)]
    with stopped_at(0, staged.commit) as steps:
        steps.only = "open"
        next_run.commit(messages)
    assert steps.made
    assert all_texts(staged.path) == BEFORE + ADDED


def interrupted(root: Path) -> Staged:
    """A write whose driver was killed after the first append."""
    staged = Staged(root)
    steps = steps_of(staged.commit)
    staged.put_back()
    assert killed_at(steps.index("append_batches") + 1, staged.commit)
    assert all_texts(staged.path) > BEFORE
    return staged


def test_an_interrupted_write_without_its_staged_logs_is_not_taken_back(root: Path) -> None:
    staged = interrupted(root)
    for path in staged.path.rglob("staged"):
        shutil.rmtree(path)
    found = all_texts(staged.path)
    with refuses("CORDWOOD_UNFINISHED_WRITE", "orders-0"):
        orders(staged.path)
    assert all_texts(staged.path) == found


def test_a_log_whose_start_was_moved_since_is_not_truncated(root: Path) -> None:
    staged = interrupted(root)
    with cw.LogWriter(staged.path / "orders-0") as other:
        other.delete_before(other.log_end_offset)
    with refuses("CORDWOOD_UNFINISHED_WRITE", "orders-0"):
        orders(staged.path)


def test_an_interrupted_write_whose_other_partition_is_locked_is_an_error(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "_LOCK_WAIT_SECONDS", 0.2)
    staged = interrupted(root)
    with cw.LogWriter(staged.path / "orders-2"), refuses("CORDWOOD_UNFINISHED_WRITE", "unfinished"):
        orders(staged.path).run(rows((0, "next")))
    orders(staged.path).run(rows((0, "next")))
    assert all_texts(staged.path) == BEFORE + Counter(["next"])


def test_a_partly_written_file_of_a_partition_that_cannot_be_opened_stays_and_disturbs_no_write(root: Path) -> None:
    orders(root).run(*OLD)
    files = [root / f"orders-{number}" / ".cordwood.spark" / "unfinished" / ".x.json.part" for number in (0, 1)]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{")
    (root / "orders-1" / "partition.metadata").write_text("damaged")
    # a process that writes such a file has the lock
    with cw.LogWriter(root / "orders-0"):
        recover(root)
        assert [file.exists() for file in files] == [True, True]
    orders(root).run(rows((0, "next")))
    assert [file.exists() for file in files] == [False, True]
    assert all_texts(root) == BEFORE + Counter(["next"])


def test_partitions_that_were_deleted_since_are_not_created(root: Path) -> None:
    staged = interrupted(root)
    shutil.rmtree(staged.path / "orders-2")
    recover(staged.path)
    assert all_texts(staged.path) == BEFORE
    assert sorted(path.name for path in staged.path.iterdir()) == ["orders-0", "orders-1"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 2, "changes": []}', "null"])
def test_a_damaged_file_of_a_commit_is_named(root: Path, text: str) -> None:
    orders(root).run(*OLD)
    file = root / "orders-0" / ".cordwood.spark" / "unfinished" / "x.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    with refuses("CORDWOOD_UNFINISHED_WRITE", str(file)):
        orders(root)
    file.unlink()
    orders(root).run(rows((0, "next")))
    assert all_texts(root) == BEFORE + Counter(["next"])
