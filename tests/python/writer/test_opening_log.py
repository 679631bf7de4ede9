"""What an opening writes to Python's logger `cordwood`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import NoReturn

import pytest

import cordwood as cw


def written(path: Path) -> Path:
    """A log of 20 records in several segments, closed cleanly."""
    with cw.LogWriter(path, config=cw.LogConfig(segment_bytes=500)) as writer:
        for _ in range(20):
            writer.append(b"x" * 50)
    return path


def torn(path: Path) -> Path:
    """As after a power loss: a torn write, and an index with space after its entries."""
    written(path)
    for suffix, tail in (("log", b"torn"), ("index", bytes(800))):
        with max(path.glob(f"*.{suffix}")).open("ab") as file:
            file.write(tail)
    (path / ".cordwood.clean").unlink()
    return path


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "cordwood")
    return caplog


def test_each_change_of_a_recovery_is_logged_once(tmp_path: Path, logged: pytest.LogCaptureFixture) -> None:
    path = torn(tmp_path / "orders-0")
    with cw.LogWriter(path) as writer:
        plan = writer.recovery
        assert plan is not None
        expected = [("WARNING", str(cut)) for cut in plan.cuts]
        expected += [("INFO", str(index)) for index in plan.rebuilt_indexes]
        assert len(plan.cuts) == len(plan.rebuilt_indexes) == 1
        assert [(record.levelname, record.getMessage()) for record in logged.records] == expected
        assert {record.name for record in logged.records} == {"cordwood"}
        writer.append(b"after")
        writer.reader().scan().to_arrow()
    cw.LogWriter(path).close()
    assert len(logged.records) == len(expected)


def test_an_opening_that_changes_nothing_logs_nothing(tmp_path: Path, logged: pytest.LogCaptureFixture) -> None:
    with cw.LogWriter(written(tmp_path / "orders-0")) as writer:
        assert writer.recovery is None
    assert logged.records == []


def test_a_plan_of_a_recovery_logs_nothing(tmp_path: Path, logged: pytest.LogCaptureFixture) -> None:
    assert not cw.LogWriter.plan_recovery(torn(tmp_path / "orders-0")).is_clean
    assert logged.records == []


def test_the_warnings_of_an_opening_are_logged(tmp_path: Path, logged: pytest.LogCaptureFixture) -> None:
    (tmp_path / "data").mkdir()
    path = written(tmp_path / "data" / "orders-0")
    (path.parent / "log-start-offset-checkpoint").write_text("0\n1\norders 0 999\n")
    (path / f"{999:020d}.log").mkdir()
    with cw.LogWriter(path) as writer:
        assert (writer.log_start_offset, writer.log_end_offset) == (0, 20)
    found = [record.getMessage() for record in logged.records]
    assert [record.levelname for record in logged.records] == ["WARNING"] * 2
    for words in ("log start offset 999 is outside the log", "not a file"):
        assert sum(words in message for message in found) == 1, found


def test_a_handler_that_fails_does_not_end_an_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class _Fails(logging.Handler):
        def handle(self, record: logging.LogRecord) -> NoReturn:
            raise RuntimeError(record.getMessage())

    logger, raised = logging.getLogger("cordwood"), list[object]()
    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: raised.append(unraisable.exc_value))
    monkeypatch.setattr(logger, "handlers", [_Fails()])
    with cw.LogWriter(torn(tmp_path / "orders-0")) as writer:
        assert writer.append(b"after").first_offset == 20
    assert "cut 4 bytes" in str(raised[0])
    assert capsys.readouterr().err == ""
