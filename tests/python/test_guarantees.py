"""The check of the guarantees reports a guarantee without a test, and a figure below its floor."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import guarantees

RIG: dict[str, Any] = {
    "shows": "what is tried",
    "guarantees": [1],
    "run": "crash explore::all",
    "at_least": {"images": 1000},
    "exactly": {"lost": 0},
}


class Known(guarantees.Tests):
    def __init__(self) -> None:
        self.rust = {"rust writer::one", "crash explore::all", "crash explore::some"}
        self.ignored = {"crash explore::all", "crash explore::some"}
        self.python = ["tests/python/test_a.py::test_one[1]", "tests/python/test_a.py::test_two"]


def wrong(*tests: str, **rig: Any) -> list[str]:
    promised = {"guarantee": [{"title": "Loss", "promises": [{"says": "Nothing is lost.", "tests": list(tests)}]}]}
    return guarantees.wrong_names(promised, [guarantees.Rig(**{**RIG, **rig})], Known())


def test_existing_tests_are_found_with_and_without_parameters() -> None:
    assert (
        wrong("rust writer::one", "crash explore::all", "python test_a.py::test_one", "python test_a.py::test_two")
        == []
    )


@pytest.mark.parametrize(
    "test", ["rust writer::on", "crash writer::one", "python test_a.py::test_on", "python test_b.py::test_one", "one"]
)
def test_a_missing_test_is_reported(test: str) -> None:
    assert wrong(test) == [f"there is no such test: {test}"]


def test_a_sentence_without_a_test_and_a_test_that_is_never_run_are_reported() -> None:
    assert wrong() == ["no test: Nothing is lost."]
    assert wrong("crash explore::some") == ["nothing runs this test: crash explore::some"]


def test_a_rig_without_tests_is_reported() -> None:
    assert wrong("rust writer::one", run="crash faults::") == ["there is no such test: crash faults::"]
    assert wrong("rust writer::one", guarantees=[2]) == ["there is no guarantee 2"]


def test_a_figure_below_its_floor_or_missing_is_reported() -> None:
    rig = guarantees.Rig(**RIG)
    assert rig.check({"images": 1000, "lost": 0}) == []
    assert rig.check({"images": 999, "lost": 0}) == ["crash explore::all: expected images >= 1,000, found 999"]
    assert rig.check({"images": 1000, "lost": 1}) == ["crash explore::all: expected lost == 0, found 1"]
    assert rig.check({"lost": 0}) == ["crash explore::all: expected images >= 1,000, found None"]


def test_the_page_agrees_with_the_guarantees() -> None:
    promised = tomllib.loads((guarantees.ROOT / "tests" / "guarantees.toml").read_text())
    rigs = [guarantees.Rig(**rig) for rig in promised["rig"]]
    assert guarantees.wrong_page(promised, rigs) == []
    promised["guarantee"][0]["promises"][0]["says"] = "All is well."
    rigs[0].exactly["lost"] = 1
    assert len(guarantees.wrong_page(promised, rigs)) == 2
