"""The progress of a call that does not say how far it is."""

from __future__ import annotations

import io
import time
from typing import Any

import corpus
import pytest

import cordwood as cw
from cordwood.cli import main, progress


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("seconds", "is_shown"), [(0.0, False), (0.3, True)])
def test_work_is_named_once_it_takes_long(monkeypatch: pytest.MonkeyPatch, seconds: float, is_shown: bool) -> None:
    monkeypatch.setattr(progress, "_QUIET_SECONDS", 0.05)
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with progress.elapsed("reading data"):
        time.sleep(seconds)
    assert ("reading data" in terminal.getvalue()) == is_shown


def test_nothing_is_shown_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_QUIET_SECONDS", 0.0)
    nothing = io.StringIO()
    monkeypatch.setattr("sys.stderr", nothing)
    with progress.elapsed("reading data"):
        time.sleep(0.1)
    assert nothing.getvalue() == ""


def test_a_plan_of_a_broker_that_takes_long_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    path = corpus.GOLDEN / "01-small" / "tickets-0"
    plan = cw.plan_kafka_load

    def slow(*args: Any, **keywords: Any) -> cw.KafkaLoad:
        time.sleep(0.3)
        return plan(*args, **keywords)

    monkeypatch.setattr(cw, "plan_kafka_load", slow)
    monkeypatch.setattr(progress, "_QUIET_SECONDS", 0.05)
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    assert main(["verify", str(path), "--as-kafka", "--clean"]) == 0
    assert f"reading {path}" in terminal.getvalue().replace("\n", "")
