"""Writes that were interrupted: what they have left, and what an undo removes."""

from __future__ import annotations

import itertools
import json
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import commands
import pytest

import cordwood as cw
from cordwood.spark import undo_write, unfinished_writes
from spark.killing import (
    ADDED,
    BEFORE,
    Staged,
    interrupted_after_an_append,
    killed_at,
    killed_before_it_counts,
    orders,
    rows,
    steps_of,
)
from spark.reading import refuses
from spark.writing import Sink, all_texts, left, texts, values

pytestmark = pytest.mark.python_source


def undo_all(path: Path) -> int:
    """Undo all writes; return how many there were."""
    found = [write for write in unfinished_writes(path) if write.state != "committed"]
    for write in found:
        assert undo_write(path, write.id).is_undone is False
        done = undo_write(path, write.id, dry_run=False)
        assert done.is_undone
        assert done.partitions == write.partitions
    assert [write for write in unfinished_writes(path) if write.state != "committed"] == []
    return len(found)


def ends(path: Path) -> dict[str, int]:
    return {one.name: cw.Log(one).log_end_offset for one in sorted(path.iterdir()) if list(one.glob("*.log"))}


@pytest.mark.parametrize("overwrite", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("batch", [None, pytest.param(1, marks=pytest.mark.long)])
def test_after_a_kill_at_any_step_an_undo_leaves_all_partitions_as_before(
    root: Path, overwrite: bool, batch: int | None
) -> None:
    after = ADDED if overwrite else BEFORE + ADDED
    staged = Staged(root, batch=batch, overwrite=overwrite)
    before = ends(staged.path)
    undone = 0
    for stop in itertools.count():
        killed = killed_at(stop, staged.commit)
        visible = all_texts(staged.path)
        writes = unfinished_writes(staged.path)
        # records that readers see are those that the list names
        pending = [write for write in writes if write.state == "interrupted"]
        if pending:
            assert sum(write.records for write in pending) == visible.total() - BEFORE.total(), stop
        undone += undo_all(staged.path)
        found = all_texts(staged.path)
        if pending or found == BEFORE:
            assert (found, ends(staged.path)) == (BEFORE, before), stop
        else:
            # an overwrite that counts deletes the older records later
            assert after <= found <= BEFORE + ADDED, stop
        orders(staged.path).run(rows((1, "next")))
        assert all_texts(staged.path) == (BEFORE if found == BEFORE else after) + Counter(["next"]), stop
        assert unfinished_writes(staged.path) == []
        if not killed:
            break
        staged.put_back()
    assert undone > 8


def test_after_a_kill_at_any_step_of_an_undo_it_is_repeated(root: Path) -> None:
    staged = interrupted_after_an_append(root)
    saved = root / "interrupted"
    shutil.copytree(staged.path, saved)
    for stop in itertools.count():
        killed = killed_at(stop, lambda: undo_all(staged.path) and None)
        undo_all(staged.path)
        assert all_texts(staged.path) == BEFORE, stop
        if not killed:
            break
        shutil.rmtree(staged.path)
        shutil.copytree(saved, staged.path)
    assert stop > 8


def test_the_list_describes_a_write(root: Path) -> None:
    start = time.time_ns() // 1_000_000 - 1000
    staged = interrupted_after_an_append(root, batch=1)
    (write,) = unfinished_writes(str(staged.path))
    assert (write.state, write.topics, write.batch, write.is_overwrite) == ("interrupted", ["orders"], 1, False)
    assert write.id == f"{write.query}-1"
    assert start <= write.begun_ms <= time.time_ns() // 1_000_000
    assert write.records == all_texts(staged.path).total() - BEFORE.total() > 0
    assert [(one.topic, one.partition, one.start_offset) for one in write.partitions] == [
        ("orders", 0, 1),
        ("orders", 1, 1),
        ("orders", 2, 0),
    ]
    assert not any(one.is_kept for one in write.partitions)
    (root / "empty").mkdir()
    assert unfinished_writes(root / "empty") == []


def test_records_that_others_appended_meanwhile_stay(root: Path) -> None:
    staged = interrupted_after_an_append(root)
    (write,) = unfinished_writes(staged.path)
    own = [one.partition for one in write.partitions if one.records]
    assert own == [0]
    for number in (0, 2):
        with cw.LogWriter(staged.path / f"orders-{number}") as other:
            other.append("other")
    before = texts(staged.path / "orders-0")
    with refuses("CORDWOOD_UNFINISHED_WRITE", "orders-0", "cordwood spark-writes"):
        orders(staged.path)
    done = undo_write(staged.path, write.id, dry_run=False)
    assert [(one.partition, one.is_kept, one.others, one.records > 0) for one in done.partitions] == [
        (0, True, 1, True),
        (1, False, 0, False),
        (2, True, 1, False),
    ]
    assert (texts(staged.path / "orders-0"), texts(staged.path / "orders-2")) == (before, ["other"])
    # the write is ended, and the next ones are not refused
    orders(staged.path).run(rows((0, "next")))
    assert texts(staged.path / "orders-0") == [*before, "next"]
    assert unfinished_writes(staged.path) == []
    assert left(staged.path) == []


def moved_away(staged: Staged) -> Callable[[], None]:
    """Move staged logs away, of records of the first partition. Returns what puts them back."""
    place = staged.path / "orders-0" / ".cordwood.spark" / "staged"
    away = staged.path.parent / "away"
    place.rename(away)
    return lambda: shutil.move(away, place) and None


@pytest.mark.parametrize("batch", [None, 1])
def test_an_undo_that_cannot_tell_the_records_apart_does_not_end_the_write(root: Path, batch: int | None) -> None:
    staged = interrupted_after_an_append(root, batch=batch)
    put_back = moved_away(staged)
    found = all_texts(staged.path)
    (write,) = unfinished_writes(staged.path)
    done = undo_write(staged.path, write.id, dry_run=False)
    assert not done.is_undone
    assert [one.partition for one in done.partitions if one.error is not None] == [0]
    assert all_texts(staged.path) == found
    # it is not forgotten: neither the list nor a write, which would add what it has again
    assert [one.id for one in unfinished_writes(staged.path)] == [write.id]
    with refuses("CORDWOOD_UNFINISHED_WRITE", "orders-0"):
        staged.commit()
    put_back()
    assert undo_write(staged.path, write.id, dry_run=False).is_undone
    assert all_texts(staged.path) == BEFORE
    assert unfinished_writes(staged.path) == []
    assert left(staged.path) == []


def test_an_undo_in_part_is_repeated_for_the_rest(root: Path) -> None:
    """The staged logs of one task are out of reach: the partitions of the other are truncated."""
    staged = Staged(root)
    killed_before_it_counts(staged.commit)
    before = all_texts(staged.path)
    assert before == BEFORE + ADDED
    (lost,) = staged.path.rglob("task-1.*")
    away = root / "away"
    lost.rename(away)
    (write,) = unfinished_writes(staged.path)
    done = undo_write(staged.path, write.id, dry_run=False)
    assert (done.is_undone, [one.partition for one in done.partitions if one.error]) == (False, [0, 1])
    assert all_texts(staged.path) == before - Counter("c")
    away.rename(lost)
    done = undo_write(staged.path, write.id, dry_run=False)
    assert (done.is_undone, [one.records for one in done.partitions]) == (True, [2, 2, 0])
    assert all_texts(staged.path) == BEFORE


@pytest.mark.parametrize("deleted", [1, 2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("batch", [None, 1])
@pytest.mark.parametrize("by_undo", [True, False])
def test_records_of_a_write_are_told_apart_though_its_first_ones_were_deleted(
    root: Path, deleted: int, batch: int | None, by_undo: bool
) -> None:
    """The log is: one old record, then of the write a batch of three records and one of two."""
    path = root / "data"
    Sink(path, topic="orders", batch=None if batch is None else 0).run(values("old"))
    sink = Sink(path, topic="orders", batch=batch)
    messages = [sink.stage(0, values("a", "b", "c")), sink.stage(1, values("d", "e"))]
    killed_before_it_counts(lambda: sink.commit(messages))
    with cw.LogWriter(path / "orders-0") as other:
        assert other.log_end_offset == 6
        other.delete_before(min(deleted, 6))
        if deleted == 7:
            other.append("other")
    (write,) = unfinished_writes(path)
    (one,) = write.partitions
    assert (one.error, one.records, one.others) == (None, 6 - min(deleted, 6), int(deleted == 7))
    if by_undo:
        assert undo_write(path, write.id, dry_run=False).is_undone
        assert texts(path / "orders-0") == (["other"] if deleted == 7 else [])
    elif deleted == 7:
        with refuses("CORDWOOD_UNFINISHED_WRITE", "orders-0"):
            sink.commit(messages)
    else:
        sink.commit(messages)
        assert texts(path / "orders-0") == list("abcde")


def test_where_the_start_is_in_a_batch_of_others_nothing_is_removed(root: Path) -> None:
    """Records that another program has appended at the same offsets, after a truncation, are not the write's."""
    staged = interrupted_after_an_append(root)
    with cw.LogWriter(staged.path / "orders-0") as other:
        other.truncate_to(1)
        other.append_many(["x", "y", "z"])
        other.delete_before(2)
    (write,) = unfinished_writes(staged.path)
    assert [(one.records, one.others) for one in write.partitions if one.partition == 0] == [(0, 2)]
    undo_write(staged.path, write.id, dry_run=False)
    assert texts(staged.path / "orders-0") == ["y", "z"]


def test_a_write_that_is_running_is_not_undone(root: Path) -> None:
    staged = interrupted_after_an_append(root)
    found = all_texts(staged.path)
    with cw.LogWriter(staged.path / "orders-2"):
        (write,) = unfinished_writes(staged.path)
        assert write.state == "running"
        for dry_run in (True, False):
            with refuses("CORDWOOD_LOCKED", "end that process first"):
                undo_write(staged.path, write.id, dry_run=dry_run)
    assert all_texts(staged.path) == found


def test_an_overwrite_that_counts_is_not_undone(root: Path) -> None:
    staged = Staged(root, overwrite=True)
    steps = steps_of(staged.commit)
    staged.put_back()
    assert killed_at(steps.index("delete_before"), staged.commit)
    (write,) = unfinished_writes(staged.path)
    assert (write.state, write.records) == ("committed", ADDED.total())
    with refuses("CORDWOOD_UNFINISHED_WRITE", "found one that counts"):
        undo_write(staged.path, write.id, dry_run=False)
    orders(staged.path).run(rows((0, "next")))
    assert all_texts(staged.path) == ADDED + Counter(["next"])


def test_wrong_arguments_are_named(root: Path) -> None:
    staged = interrupted_after_an_append(root)
    (write,) = unfinished_writes(staged.path)
    with refuses("CORDWOOD_NOT_FOUND", write.id, "'other'"):
        undo_write(staged.path, "other")
    for call in (lambda: unfinished_writes(root / "none"), lambda: undo_write(root / "none", "x")):
        with pytest.raises(cw.LogNotFoundError):
            call()
    with pytest.raises(cw.CordwoodError, match="orders-0"):
        unfinished_writes(staged.path / "orders-0")


def test_the_command_lists_and_undoes(root: Path) -> None:
    def run(*words: object) -> tuple[int, str, str]:
        done = commands.cordwood("spark-writes", *words)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    staged = interrupted_after_an_append(root)
    found = all_texts(staged.path)
    (write,) = unfinished_writes(staged.path)
    code, out, error = run(staged.path)
    assert (code, error) == (1, "")
    assert write.id in out
    assert "interrupted" in out
    code, out, _ = run(staged.path, "--json")
    (told,) = json.loads(out)["writes"]
    assert (code, told["id"], told["records"]) == (1, write.id, write.records)
    code, out, _ = run(staged.path, "--undo", write.id)
    assert (code, all_texts(staged.path)) == (1, found)
    assert "truncated to offset 1" in out
    assert "--apply" in out
    code, _, error = run(staged.path, "--apply")
    assert (code, "--undo" in error) == (2, True)
    code, out, _ = run(staged.path, "--undo", write.id, "--apply")
    assert (code, all_texts(staged.path)) == (0, BEFORE)
    assert "the write was undone" in out
    assert run(staged.path)[:2] == (0, f"{staged.path}: no unfinished write of Spark\n")
    code, _, error = run(staged.path, "--undo", write.id)
    assert (code, write.id in error) == (1, True)
    code, _, error = run(staged.path / "orders-0")
    assert (code, "expected a data directory" in error) == (2, True)


def test_the_command_says_that_a_write_is_not_ended(root: Path) -> None:
    staged = interrupted_after_an_append(root)
    put_back = moved_away(staged)
    (write,) = unfinished_writes(staged.path)
    done = commands.cordwood("spark-writes", staged.path, "--undo", write.id, "--apply")
    out = " ".join(done.stdout.decode().split())
    assert done.returncode == 1
    assert "not all of the write was undone; it is not ended" in out
    assert "repeat the command" in out
    assert f"remove {write.file}" in out
    put_back()
    assert commands.cordwood("spark-writes", staged.path, "--undo", write.id, "--apply").returncode == 0
    assert all_texts(staged.path) == BEFORE


def test_the_command_says_what_stays(root: Path) -> None:
    staged = interrupted_after_an_append(root)
    with cw.LogWriter(staged.path / "orders-0") as other:
        other.append("other")
    (write,) = unfinished_writes(staged.path)
    done = commands.cordwood("spark-writes", staged.path, "--undo", write.id, "--yes", "--json")
    (kept,) = [one for one in json.loads(done.stdout)["partitions"] if one["others"]]
    assert (done.returncode, kept["partition"], kept["others"]) == (1, 0, 1)
    assert texts(staged.path / "orders-0")[-1] == "other"


def test_an_undo_of_a_write_to_a_new_topic_leaves_no_record(root: Path) -> None:
    options: dict[str, Any] = {"topic": "orders", "numPartitions": 3}
    Sink(root / "data", "value", topic="others").run([{"value": b"x"}])
    sink = Sink(root / "data", "value", "partition", **options)
    messages = [sink.stage(0, rows((0, "a"), (1, "b"), (2, "c")))]
    saved = root / "saved"
    shutil.copytree(root / "data", saved)
    for stop in itertools.count():
        killed = killed_at(stop, lambda: sink.commit(messages))
        undo_all(root / "data")
        found = all_texts(root / "data")
        assert found in (Counter("x"), Counter("xabc")), stop
        Sink(root / "data", "value", "partition", **options).run(rows((2, "next")))
        assert all_texts(root / "data") == found + Counter(["next"]), stop
        if not killed:
            break
        shutil.rmtree(root / "data")
        shutil.copytree(saved, root / "data")


def test_a_copy_warns_of_a_write_that_is_not_ended(root: Path) -> None:
    """The copy has what the write has appended, and nothing that takes it back."""
    staged = interrupted_after_an_append(root)
    (write,) = unfinished_writes(staged.path)
    advice = f"cordwood spark-writes {staged.path} --undo {write.id} --apply"
    report = cw.copy(staged.path, root / "copied")
    (warning,) = report.warnings
    assert write.id in warning
    assert advice in warning
    # the file of the write is beside another partition
    assert [advice in one for one in cw.copy(staged.path / "orders-2", root / "orders-2").warnings] == [True]
    done = commands.cordwood("copy", staged.path, root / "again")
    assert (done.returncode, advice in done.stdout.decode()) == (0, True)
    with cw.LogWriter(staged.path / "others-0") as other:
        other.append("x")
    assert cw.copy(staged.path, root / "others", topics=["others"]).warnings == []
    undo_write(staged.path, write.id, dry_run=False)
    assert cw.copy(staged.path, root / "whole").warnings == []


def test_verify_names_a_write_that_was_interrupted(root: Path) -> None:
    staged = interrupted_after_an_append(root)
    (write,) = unfinished_writes(staged.path)
    found = [one for one in cw.verify(staged.path).findings if one.code == "spark_write_unfinished"]
    assert [(one.severity, one.file, write.id in one.found) for one in found] == [("warning", write.file, True)]
    with cw.LogWriter(staged.path / "orders-0"):
        assert "spark_write_unfinished" not in {one.code for one in cw.verify(staged.path).findings}
    undo_write(staged.path, write.id, dry_run=False)
    assert "spark_write_unfinished" not in {one.code for one in cw.verify(staged.path).findings}
