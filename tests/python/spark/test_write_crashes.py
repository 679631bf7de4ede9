"""Writes whose driver is killed, or whose disk fails, at every step of a commit: all of a write counts, or nothing."""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from pathlib import Path

import pytest

import cordwood as cw
from cordwood.spark.errors import SparkLogError
from cordwood.spark.write import commit as commits
from spark.killing import (
    ADDED,
    BEFORE,
    NEW,
    OLD,
    Staged,
    interrupted_after_an_append,
    killed_at,
    orders,
    rows,
    steps_of,
    stopped_at,
)
from spark.reading import refuses
from spark.writing import Sink, all_texts, left, texts

pytestmark = pytest.mark.python_source


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
        # after an error Spark writes again: only where it is not known whether the removal is durable, the
        # write counts
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
    staged = interrupted_after_an_append(root)
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
    staged = interrupted_after_an_append(root)
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


def test_an_interrupted_write_without_its_staged_logs_is_not_taken_back(root: Path) -> None:
    staged = interrupted_after_an_append(root)
    for path in staged.path.rglob("staged"):
        shutil.rmtree(path)
    found = all_texts(staged.path)
    with refuses("CORDWOOD_UNFINISHED_WRITE", "orders-0"):
        orders(staged.path)
    assert all_texts(staged.path) == found


def test_a_write_whose_records_were_all_deleted_since_is_ended(root: Path) -> None:
    staged = interrupted_after_an_append(root)
    with cw.LogWriter(staged.path / "orders-0") as other:
        other.delete_before(other.log_end_offset)
    orders(staged.path).run(rows((0, "next")))
    assert all_texts(staged.path) == Counter(["old1", "next"])


def test_an_interrupted_write_whose_other_partition_is_locked_is_an_error(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "_LOCK_WAIT_SECONDS", 0.2)
    staged = interrupted_after_an_append(root)
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
    staged = interrupted_after_an_append(root)
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
