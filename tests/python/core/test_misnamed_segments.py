"""A segment whose file has the name of another one: its batches are below its base offset.

Somebody renamed it, or copied a segment under a second name. The records are all there, so that no reader ends
without an error, and no repair removes them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import commands
import corpus
import pytest
from batches import Rec, batch, name

import cordwood as cw

RECORDS = [batch(offset, [Rec(b"%d" % offset)]) for offset in range(10)]


def renamed(path: Path) -> None:
    """The only segment, which begins at 0, with a higher number in its name."""
    (path / name(100)).write_bytes(b"".join(RECORDS))


def copied(path: Path) -> None:
    """The first segment, and a copy of it with the name of the one after it."""
    for base_offset in (0, 10):
        (path / name(base_offset)).write_bytes(b"".join(RECORDS))


def before_others(path: Path) -> None:
    """A segment with the wrong name that is not the last."""
    renamed(path)
    (path / name(200)).write_bytes(batch(200, [Rec(b"200")]))


MISNAMED = pytest.mark.parametrize("damage", [renamed, copied, before_others])


@pytest.fixture
def path(tmp_path: Path, damage: Callable[[Path], None]) -> Path:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    damage(partition)
    return partition


def misnamed(path: Path) -> Path:
    return path / name(10 if (path / name(10)).exists() else 100)


@MISNAMED
@pytest.mark.parametrize(
    "read",
    [
        lambda log: log.scan().to_arrow(),
        lambda log: list(log.records()),
        lambda log: log.scan(threads=2).to_arrow(),
        lambda log: log.batches().to_arrow(),
        lambda log: log.scan(columns=["offset"], check_crcs=False).to_arrow(),
    ],
)
def test_readers_raise(path: Path, read: Callable[[cw.Log], object]) -> None:
    with pytest.raises(cw.CorruptLogError, match=misnamed(path).name) as raised:
        read(cw.Log(path))
    assert raised.value.position == 0


@pytest.mark.parametrize("damage", [renamed, copied])
def test_look_ups_above_the_end_raise(path: Path) -> None:
    log = cw.Log(path)
    end = log.log_end_offset
    for look in (
        lambda: log.locate(end),
        lambda: log.offset_for_time(2_000_000_000_000),
        lambda: log.scan(start_offset=end).to_arrow(),
    ):
        with pytest.raises(cw.CorruptLogError, match=misnamed(path).name):
            look()


@MISNAMED
def test_the_command_line_fails(path: Path, tmp_path: Path) -> None:
    for command in (("cat", path), ("count", path), ("copy", path, tmp_path / "copied-0")):
        done = commands.cordwood(*command)
        assert done.returncode != 0, command
        assert misnamed(path).name in done.stderr.decode()
    skipped = cw.Log(path).scan(on_damage="skip")
    skipped.to_arrow()
    assert [(range_.file, range_.start_position) for range_ in skipped.damaged_ranges] == [(str(misnamed(path)), 0)]


@MISNAMED
@pytest.mark.parametrize("policy", ["torn_tail", "kafka", "salvage"])
def test_no_repair_removes_the_records(path: Path, policy: str) -> None:
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    with pytest.raises(cw.CorruptLogError, match="rename"):
        cw.repair(path, policy=policy, dry_run=False)
    after = {file.name: file.read_bytes() for file in path.iterdir() if file.name != ".cordwood.lock"}
    assert after == before
    with pytest.raises(cw.CordwoodError), cw.LogWriter(path):
        pass


@MISNAMED
def test_verify_names_the_right_name(path: Path) -> None:
    [finding] = [found for found in cw.verify(path).findings if found.severity == "error"]
    assert finding.code == "misnamed_segment"
    assert finding.file == str(misnamed(path))
    assert name(0) in finding.advice


def test_a_renamed_segment_is_mended_by_the_advice(tmp_path: Path) -> None:
    part = corpus.partition("01-small")
    path = tmp_path / part.path.name
    shutil.copytree(part.path, path)
    whole = cw.Log(path)
    expected = [record.offset for record in whole.records()]
    last = whole.segments[-1]
    assert last.base_offset > 0 or len(whole.segments) == 1
    wrong = last.base_offset + 1000
    for file in path.glob(f"{last.base_offset:020}.*"):
        file.rename(file.with_name(f"{wrong:020}{file.suffix}"))
    [finding] = [found for found in cw.verify(path).findings if found.code == "misnamed_segment"]
    assert f"{last.base_offset:020}.log" in finding.advice
    for file in path.glob(f"{wrong:020}.*"):
        if file.suffix == ".log":
            file.rename(file.with_name(f"{last.base_offset:020}.log"))
        else:
            file.unlink()
    cw.rebuild_indexes(path, dry_run=False)
    assert [record.offset for record in cw.Log(path).records()] == expected
    assert not [found for found in cw.verify(path).findings if found.severity == "error"]
