"""Exports that are killed: another reader never finds a record twice, and the next start loses none."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from cordwood.spark.jobs.ranges import Step
from spark.exporting import a_plan, go, seen, wanted, write_step


class KilledError(BaseException):
    """Not caught by `except Exception`."""


@contextmanager
def killed_at(call: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Raise before the n-th call that changes the disk; yields the names of the calls so far."""
    made: list[str] = []

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def stand_in(*arguments: Any, **named: Any) -> Any:
            made.append(name)
            if len(made) - 1 == call:
                raise KilledError(name)
            return real(*arguments, **named)

        return stand_in

    with monkeypatch.context() as patch:
        for owner, name in [
            (os, "fsync"),
            (Path, "mkdir"),
            (Path, "replace"),
            (Path, "open"),
            (json, "dump"),
            (shutil, "rmtree"),
        ]:
            patch.setattr(owner, name, counted(name, getattr(owner, name)))
        yield made


def test_an_export_killed_before_any_change_to_the_disk_continues_without_loss_or_duplicates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = a_plan(2, (0,))
    whole = wanted(plan)
    reached: set[str] = set()
    for call in itertools.count():
        output = tmp_path / str(call)
        output.mkdir()
        died = False
        with killed_at(call, monkeypatch) as calls:
            try:
                go(output, plan)
            except KilledError:
                died = True
        # another reader finds no record twice, and only records of the log
        assert seen(output) <= whole
        done = go(output, plan)
        assert seen(output) == whole, (call, calls[-1])
        reached.update(calls)
        assert done.rows == whole.total()
        assert not list((output / "_cordwood" / "staging").iterdir())
        if not died:
            break
    # all kinds of calls were reached
    assert reached == {"fsync", "mkdir", "replace", "open", "dump", "rmtree"}
    assert call > 40


def test_an_export_killed_twice_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = a_plan(2, (0,))
    with killed_at(-1, monkeypatch) as calls:
        go(tmp_path / "whole", plan)
    for first, second in itertools.product(range(8, len(calls), 11), range(1, 30, 6)):
        output = tmp_path / f"{first}-{second}"
        output.mkdir()
        for call in (first, second):
            with killed_at(call, monkeypatch), suppress(KilledError):
                go(output, plan)
            assert seen(output) <= wanted(plan)
        go(output, plan)
        assert seen(output) == wanted(plan), (first, second)


@pytest.mark.parametrize("after", range(3))
def test_a_writer_that_fails_half_way_publishes_nothing(tmp_path: Path, after: int) -> None:
    plan = a_plan(3)

    def dying(step: Step, staging: Path) -> None:
        write_step(step, staging)
        if step.number == after:
            next(staging.rglob("*.parquet")).unlink()
            raise KilledError

    output = tmp_path / "out"
    with pytest.raises(KilledError):
        go(output, plan, write=dying)
    assert seen(output).total() == 20 * after
    done = go(output, plan)
    assert seen(output) == wanted(plan)
    assert (done.ranges, done.skipped) == (2 * (3 - after), 2 * after)


def test_the_remaining_files_of_a_recorded_step_are_published(tmp_path: Path) -> None:
    # as after a power failure: the record is written, and some of the files are renamed
    plan = a_plan(1)
    output = tmp_path / "out"
    go(output, plan)
    record = json.loads((output / "_cordwood/steps/00000.json").read_text())
    staging = output / "_cordwood/staging" / record["staging"]
    for file in record["files"][1:]:
        staged = staging / file["staged"]
        staged.parent.mkdir(parents=True, exist_ok=True)
        (output / file["place"]).replace(staged)
    assert seen(output).total() < 20
    go(output, plan)
    assert seen(output) == wanted(plan)
