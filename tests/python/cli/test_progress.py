"""The progress of a call that does not say how far it is."""

from __future__ import annotations

import io
import time

import pytest

from cordwood.cli import progress


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
