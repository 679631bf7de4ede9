"""The journal of an export, and which later starts may continue it."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path

import corpus
import pytest

from cordwood.spark.jobs.errors import ExportError
from cordwood.spark.jobs.exporting import export
from cordwood.spark.jobs.journal import Journal, Plan
from spark.exporting import PLAIN, a_plan, begin_by_hand, go


def test_a_second_export_to_the_same_output_is_refused(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with journal.locked(), pytest.raises(ExportError, match="another export is writing"), Journal(tmp_path).locked():
        pass
    with journal.locked():
        pass


def test_a_file_system_without_locks_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with Journal(tmp_path).locked():
        pass


def test_a_plan_of_another_version_is_refused(tmp_path: Path) -> None:
    go(tmp_path / "out", a_plan())
    path = tmp_path / "out/_cordwood/export.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(ExportError, match="has the format 99"):
        go(tmp_path / "out", a_plan())


def test_a_plan_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    plan = Plan(["/data"], {"mode": "PERMISSIVE"}, {"/data/orders-0": "abc"}, "{}", "{}", a_plan().steps)
    with journal.locked():
        journal.begin(plan)
    assert journal.plan() == plan


def test_other_options_are_refused_by_name(tmp_path: Path) -> None:
    output = tmp_path / "out"
    begin_by_hand(PLAIN.path, output, startingTimestamp=1_700_000_010_000)
    for options, message in [
        ({}, r"begun with startingTimestamp=1700000010000, not with no startingTimestamp"),
        ({"startingTimestamp": 5}, r"begun with startingTimestamp=1700000010000, not with startingTimestamp=5"),
        (
            {"startingTimestamp": 1_700_000_010_000, "isolationLevel": "read_committed"},
            r"begun with no isolationLevel, not with isolationLevel=read_committed",
        ),
    ]:
        with pytest.raises(ExportError, match=message):
            export(None, PLAIN.path, output, **options)  # type: ignore[arg-type]
    with pytest.raises(ExportError, match="begun with path="):
        export(None, corpus.partition("01-small").path, output, startingTimestamp=1_700_000_010_000)  # type: ignore[arg-type]


def test_options_that_change_no_row_may_change(tmp_path: Path) -> None:
    output = tmp_path / "out"
    begin_by_hand(PLAIN.path, output)
    begin_by_hand(PLAIN.path, output, maxPartitionBytes=10_000, io="mmap", maxBatchRows=7)
    begin_by_hand(PLAIN.path, output, **{"kafka.isolation.level": "read_uncommitted"})


def test_options_may_be_relaxed_but_not_tightened(tmp_path: Path) -> None:
    output = tmp_path / "out"
    begin_by_hand(PLAIN.path, output)
    begin_by_hand(PLAIN.path, output, failOnDataLoss=False)
    begin_by_hand(PLAIN.path, output, mode="DROPMALFORMED")
    begin_by_hand(PLAIN.path, output)
    with pytest.raises(ExportError, match="not with mode=PERMISSIVE"):
        export(None, PLAIN.path, output, mode="PERMISSIVE")  # type: ignore[arg-type]
    begin_by_hand(PLAIN.path, tmp_path / "lenient", failOnDataLoss=False)
    with pytest.raises(ExportError, match="begun with failOnDataLoss=false, not with no failOnDataLoss"):
        export(None, PLAIN.path, tmp_path / "lenient")  # type: ignore[arg-type]


def test_a_topic_that_was_created_again_is_refused(tmp_path: Path, copied: Callable[[Path], Path]) -> None:
    path = copied(PLAIN.path)
    begin_by_hand(path, tmp_path / "out")
    metadata = path / "partition.metadata"
    metadata.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    with pytest.raises(ExportError, match="now belongs to another topic"):
        export(None, path, tmp_path / "out")  # type: ignore[arg-type]


def test_the_offsets_stay_those_of_the_first_start(tmp_path: Path, copied: Callable[[Path], Path]) -> None:
    path = copied(PLAIN.path)
    last = max(path.glob("*.log"))
    whole = last.read_bytes()
    last.write_bytes(whole[: len(whole) // 2 + 7])
    begin_by_hand(path, tmp_path / "out")
    planned = (tmp_path / "out/_cordwood/export.json").read_text()
    assert "1500" not in json.loads(planned)["ending_offsets"]
    last.write_bytes(whole)
    begin_by_hand(path, tmp_path / "out")
    assert (tmp_path / "out/_cordwood/export.json").read_text() == planned
