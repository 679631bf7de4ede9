"""`.deleted` files, which a broker leaves if it stops within a minute of retention or compaction.

Kafka's loader deletes all of them. A writer deletes those whose records are in the log, or below its start.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

import commands
import pytest

import cordwood as cw

SUFFIXES = ("log", "index", "timeindex")


def write(path: Path) -> list[int]:
    """Write three segments of two records. Return their base offsets."""
    with cw.LogWriter(path) as writer:
        for number in range(3):
            writer.append(b"a")
            writer.append(b"b")
            if number < 2:
                writer.roll()
        return [segment.base_offset for segment in writer.reader().segments]


def files(path: Path) -> set[str]:
    return {file.name for file in path.iterdir() if ".deleted" in file.name}


def mark(path: Path, base: int, *, copy: bool) -> set[str]:
    """Rename the files of a segment as a broker does, or copy them. Return the new names."""
    for suffix in SUFFIXES:
        file = path / f"{base:020}.{suffix}"
        target = file.with_name(f"{file.name}.deleted")
        shutil.copy(file, target) if copy else file.rename(target)
    return {f"{base:020}.{suffix}.deleted" for suffix in SUFFIXES}


def named(paths: list[str]) -> set[str]:
    return {Path(path).name for path in paths}


def test_deleted_files_of_retention_are_removed_and_planned(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    first, second, _ = write(path)
    with cw.LogWriter(path) as writer:
        kept = {name: (path / name).read_bytes() for name in (f"{first:020}.log", f"{first:020}.index")}
        writer.delete_before(second)
        writer.apply_retention()
    for name, content in kept.items():
        (path / f"{name}.deleted").write_bytes(content)
    (path / f"{second:020}.snapshot.deleted").write_bytes(b"")
    expected = files(path)
    assert len(expected) == 3
    plan = cw.LogWriter.plan_recovery(path)
    changes = [change for change in plan.file_changes if change.reason == "deleted"]
    assert ({Path(change.file).name for change in changes}, plan.kept_files) == (expected, [])
    assert all("marked as deleted" in str(change) for change in changes)
    assert files(path) == expected
    before = [record.offset for record in cw.Log(path).records()]
    cw.LogWriter(path).close()
    assert files(path) == set()
    assert [record.offset for record in cw.Log(path).records()] == before


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_deleted_segment_whose_records_are_in_the_log_is_removed(tmp_path: Path, number: int) -> None:
    path = tmp_path / "orders-0"
    bases = write(path)
    mark(path, bases[number], copy=True)
    cw.LogWriter(path).close()
    assert files(path) == set()
    assert [record.offset for record in cw.Log(path).records()] == list(range(6))


def test_the_only_copy_of_records_stays_and_is_named(tmp_path: Path) -> None:
    """As after a crash of the cleaner whose replacement is lost: a segment has only its `.deleted` files."""
    path = tmp_path / "orders-0"
    bases = write(path)
    kept = mark(path, bases[1], copy=False)
    covered = mark(path, bases[0], copy=True)
    contents = {name: (path / name).read_bytes() for name in kept}
    (path / ".cordwood.clean").unlink()
    plan = cw.LogWriter.plan_recovery(path)
    assert (named(plan.kept_files), files(path)) == (kept, kept | covered)
    done = commands.cordwood("recover", path)
    assert all(name in done.stdout.decode() for name in kept | covered)
    cw.LogWriter(path).close()
    assert {name: (path / name).read_bytes() for name in files(path)} == contents


@pytest.mark.parametrize("policy", ["torn_tail", "kafka", "salvage"])
def test_a_repair_keeps_the_only_copy_of_records_and_names_it(
    tmp_path: Path, policy: Literal["torn_tail", "kafka", "salvage"]
) -> None:
    path = tmp_path / "orders-0"
    bases = write(path)
    kept = mark(path, bases[1], copy=False)
    covered = mark(path, bases[0], copy=True)
    (path / ".cordwood.clean").unlink()
    contents = {name: (path / name).read_bytes() for name in kept}
    done = commands.cordwood("repair", path, "--policy", policy.replace("_", "-"))
    assert all(
        f"{path / name}: stays, because its records may be nowhere else" in done.stdout.decode() for name in kept
    )
    plan = cw.repair(path, policy=policy, dry_run=False)
    assert (named(plan.kept_files), files(path)) == (kept, kept)
    assert {Path(action.file).name for action in plan.actions if action.kind == "remove_file"} >= covered
    assert {name: (path / name).read_bytes() for name in kept} == contents
    found = {Path(finding.file).name: finding.evidence for finding in cw.verify(path).findings}
    offsets = f"it has offsets {bases[1]} to {bases[2] - 1}, not all of which are in a segment"
    assert found[f"{bases[1]:020}.log.deleted"] == [f"{offsets}: without .deleted it is a segment again"]
    # taken back as the advice says
    for name in kept:
        (path / name).rename(path / name.removesuffix(".deleted"))
    assert [record.offset for record in cw.Log(path).records()] == list(range(6))
    assert not cw.repair(path, policy=policy, dry_run=True).kept_files


def test_salvage_keeps_a_deleted_segment_whose_live_records_are_damaged(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    bases = write(path)
    kept = mark(path, bases[1], copy=True)
    (path / ".cordwood.clean").unlink()
    live = path / f"{bases[1]:020}.log"
    content = bytearray(live.read_bytes())
    content[-1] ^= 0xFF
    live.write_bytes(content)
    plan = cw.repair(path, policy="salvage", dry_run=False)
    assert (named(plan.kept_files), files(path)) == (kept, kept)


@pytest.mark.parametrize("change", ["cut", "flipped"])
def test_a_deleted_segment_with_damage_stays(tmp_path: Path, change: str) -> None:
    """Its offsets are not known."""
    path = tmp_path / "orders-0"
    bases = write(path)
    kept = mark(path, bases[0], copy=True)
    file = path / f"{bases[0]:020}.log.deleted"
    content = bytearray(file.read_bytes())
    if change == "cut":
        del content[-5:]
    else:
        content[16] ^= 0xFF
    file.write_bytes(content)
    cw.LogWriter(path).close()
    assert files(path) == kept


def test_a_log_with_deleted_files_alone_is_refused_and_they_stay(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path) as writer:
        writer.append(b"a")
    kept = mark(path, 0, copy=False)
    for name in (".cordwood.checkpoint", ".cordwood.durable", ".cordwood.clean"):
        (path / name).unlink(missing_ok=True)
    for opening in (cw.LogWriter.plan_recovery, cw.LogWriter):
        with pytest.raises(cw.CorruptLogError, match="because the partition had one"):
            opening(path)
    assert files(path) == kept
