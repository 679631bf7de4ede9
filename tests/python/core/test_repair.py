"""`repair` and `carve` from Python: what the Rust tests do not see."""

from __future__ import annotations

import shutil
from pathlib import Path

import corpus
import pytest

import cordwood as cw

DAMAGED = corpus.GOLDEN / "damaged" / "flip-record" / "tickets-0"
INTACT = corpus.GOLDEN / "01-small" / "tickets-0"


def copied(source: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(source, tmp_path / source.name))


def records(path: Path) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value) for record in cw.Log(path).records()]


def test_a_dry_run_is_the_default_and_changes_nothing(tmp_path: Path) -> None:
    path = copied(DAMAGED, tmp_path)
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    plan = cw.repair(path, policy="salvage")
    assert not plan.is_applied
    assert not plan.is_clean
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before


def test_a_repair_keeps_every_other_record_and_the_bytes_that_it_takes_out(tmp_path: Path) -> None:
    path = copied(DAMAGED, tmp_path)
    damaged = next(path.glob("*285.log")).read_bytes()
    done = cw.repair(path, policy="salvage", dry_run=False)
    assert done.is_applied
    [lost] = done.lost_ranges
    assert records(path) == [record for record in records(INTACT) if record[0] != lost.start_offset]
    assert lost.quarantine is not None
    assert Path(lost.quarantine).read_bytes() == damaged[lost.start_position : lost.end_position]
    assert cw.repair(path, policy="salvage").is_clean


def test_damage_that_is_no_torn_write_is_an_error_that_names_the_policies() -> None:
    with pytest.raises(cw.CorruptLogError, match=r"salvage.*kafka") as raised:
        cw.repair(DAMAGED)
    assert raised.value.offset == 302


def test_a_wrong_policy_is_named() -> None:
    with pytest.raises(
        cw.ConfigError, match=r'policy: expected "torn_tail" or "kafka" or "salvage", found "torn-tail"'
    ):
        cw.repair(DAMAGED, policy="torn-tail")  # type: ignore[arg-type]


def test_a_log_with_a_writer_is_not_repaired(tmp_path: Path) -> None:
    path = tmp_path / "notes-0"
    with cw.LogWriter(path) as writer:
        writer.append(b"value")
        with pytest.raises(cw.LockedError):
            cw.repair(path)


def test_an_image_is_carved_into_partitions(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(b"\x07" * 999 + b"".join(file.read_bytes() for file in sorted(INTACT.glob("*.log"))))
    report = cw.carve(image, tmp_path / "found")
    [run] = report.runs
    assert (run.first_offset, run.last_offset, run.records, run.confidence) == (0, 369, 370, "high")
    assert run.pieces[0].start_position == 999
    assert run.directory == str(tmp_path / "found" / "carved-0")
    assert records(Path(run.directory)) == records(INTACT)
    with pytest.raises(cw.ConfigError, match=r"destination: expected a new or an empty directory"):
        cw.carve(image, tmp_path / "found")
