"""A file of a replacement that is not committed and has the only copy of records; and strays beside lost segments."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import corpus
import pytest
from batches import Rec, batch, name

import cordwood as cw

CONFIG = cw.LogConfig(segment_bytes=4000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path, config=CONFIG) as writer:
        for number in range(200):
            writer.append("z" * 50 + str(number))
    return path


def bases(path: Path) -> list[int]:
    return sorted(int(file.stem) for file in path.glob("*.log"))


def rename(path: Path, base: int, suffix: str) -> None:
    for file in list(path.glob(f"{base:020}.*")):
        if file.suffix != ".snapshot":
            file.rename(file.with_name(file.name + suffix))


@pytest.mark.parametrize("place", [0, 1, -1])
def test_a_segment_that_is_the_only_copy_is_not_deleted(path: Path, place: int) -> None:
    base = bases(path)[place]
    content = (path / name(base)).read_bytes()
    rename(path, base, ".cleaned")
    with pytest.raises(cw.CorruptLogError), cw.LogWriter(path, config=CONFIG):
        pass
    assert (path / f"{name(base)}.cleaned").read_bytes() == content
    found = [finding for finding in cw.verify(path).findings if finding.code == "replacement_uncommitted"]
    [log] = [finding for finding in found if finding.file.endswith(".log.cleaned")]
    assert log.severity == "error"
    assert "remove the suffix" in log.advice
    assert not cw.verify(path).is_intact
    for file in path.glob("*.cleaned"):
        file.rename(file.with_suffix(""))
    assert cw.verify(path).is_intact
    with cw.LogWriter(path, config=CONFIG) as writer:
        assert writer.log_end_offset == 200


def damaged(content: bytes, how: str) -> bytes:
    if how == "flipped":
        return content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]
    if how == "flipped in the middle":
        middle = len(content) // 2
        return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    return content[:-10] if how == "torn" else content + bytes(100)


@pytest.mark.parametrize("how", ["flipped", "flipped in the middle", "torn", "before zeros"])
def test_a_damaged_only_copy_is_not_deleted(path: Path, how: str) -> None:
    base = bases(path)[1]
    rename(path, base, ".cleaned")
    log = path / f"{name(base)}.cleaned"
    log.write_bytes(damaged(log.read_bytes(), how))
    content = log.read_bytes()
    with pytest.raises(cw.CorruptLogError, match="its offsets in the segments"), cw.LogWriter(path, config=CONFIG):
        pass
    assert log.read_bytes() == content


@pytest.mark.parametrize("policy", ["torn_tail", "kafka", "salvage"])
def test_no_repair_removes_an_only_copy(tmp_path: Path, policy: str) -> None:
    part = corpus.partition("01-plain")
    path = tmp_path / part.path.name
    shutil.copytree(part.path, path)
    rename(path, 400, ".cleaned")
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    with pytest.raises(cw.CorruptLogError, match="offsets 400 to 806"):
        cw.repair(path, policy=policy, dry_run=False)
    assert {file.name: file.read_bytes() for file in path.iterdir() if file.name != ".cordwood.lock"} == before
    for finding in cw.verify(path).findings:
        assert "cordwood repair" not in (finding.advice or ""), finding.code


@pytest.mark.parametrize("policy", [None, "torn_tail", "kafka", "salvage"])
def test_an_only_copy_of_the_first_segment_is_not_removed(tmp_path: Path, policy: str | None) -> None:
    path = tmp_path / "orders-0"
    path.mkdir()
    records = [batch(offset, [Rec(b"%d" % offset)]) for offset in range(20)]
    (path / f"{name(0)}.cleaned").write_bytes(b"".join(records[:10]))
    (path / name(10)).write_bytes(b"".join(records[10:]))
    change = partial(cw.LogWriter, path) if policy is None else partial(cw.repair, path, policy=policy, dry_run=False)
    with pytest.raises(cw.CorruptLogError, match="offsets 0 to 9"):
        change()
    assert (path / f"{name(0)}.cleaned").exists()


def test_a_copy_of_a_damaged_segment_is_no_only_copy(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    path.mkdir()
    content = bytearray(b"".join(batch(offset, [Rec(b"%d" % offset)]) for offset in range(10)))
    content[200] ^= 1
    for suffix in ("", ".cleaned"):
        (path / f"{name(0)}{suffix}").write_bytes(content)
    (path / name(10)).write_bytes(batch(10, [Rec(b"10")]))
    plan = cw.repair(path, policy="salvage", dry_run=False)
    assert len(plan.lost_ranges) == 1
    assert not (path / f"{name(0)}.cleaned").exists()


def test_the_advice_for_an_only_copy_overwrites_no_segment(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    path.mkdir()
    records = [batch(offset, [Rec(b"%d" % offset)]) for offset in range(40)]
    (path / name(0)).write_bytes(b"".join(records[:10]))
    (path / name(30)).write_bytes(b"".join(records[30:]))
    (path / f"{name(0)}.cleaned").write_bytes(b"".join(records[5:30]))
    [finding] = [finding for finding in cw.verify(path).findings if finding.code == "replacement_uncommitted"]
    assert f"{name(0)} exists: move this file into a directory of its own" in finding.advice


def test_a_copy_of_a_broker_is_not_deleted(tmp_path: Path) -> None:
    part = corpus.partition("01-plain")
    path = tmp_path / part.path.name
    shutil.copytree(part.path, path)
    rename(path, 400, ".cleaned")
    with pytest.raises(cw.CorruptLogError, match="offsets 400 to 806"), cw.LogWriter(path):
        pass
    assert (path / f"{name(400)}.cleaned").exists()


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_stray_file_does_not_hide_a_lost_segment(path: Path, is_cut: bool) -> None:
    base = bases(path)[1]
    if is_cut:
        log = path / name(base)
        log.write_bytes(log.read_bytes()[:2000])
    else:
        for file in path.glob(f"{base:020}.*"):
            file.unlink()
    (path / f"{name(bases(path)[-2])}.cleaned").write_bytes(b"x")
    with pytest.raises(cw.CorruptLogError), cw.LogWriter(path, config=CONFIG):
        pass


def test_what_a_crash_of_a_compaction_leaves_is_deleted(path: Path) -> None:
    base = bases(path)[1]
    content = (path / name(base)).read_bytes()
    for number, left in enumerate((content, content[:-10], content[:50], b"")):
        (path / f"{name(base)}.cleaned").write_bytes(left)
        with cw.LogWriter(path, config=CONFIG) as writer:
            assert writer.log_end_offset == 200 + number
            writer.append("more")
        assert not list(path.glob("*.cleaned"))


def test_a_leftover_does_not_hide_what_a_deleted_file_has(tmp_path: Path) -> None:
    part = corpus.partition("01-plain")
    path = tmp_path / part.path.name
    shutil.copytree(part.path, path)
    rename(path, 0, ".deleted")
    shutil.copy(path / name(400), path / f"{name(400)}.cleaned")
    evidence = [text for finding in cw.verify(path).findings for text in finding.evidence]
    assert any("it has offsets 0 to 399" in text for text in evidence), evidence
    cw.repair(path, policy="salvage", dry_run=False)
    assert (path / f"{name(0)}.deleted").exists()


def test_the_advice_for_a_lost_end_ends(path: Path) -> None:
    last = bases(path)[-1]
    for file in path.glob(f"{last:020}.*"):
        file.unlink()
    assert "lost_end" in {finding.code for finding in cw.verify(path).findings}
    cw.repair(path, policy="salvage", dry_run=False)
    assert "lost_end" not in {finding.code for finding in cw.verify(path).findings}
    with cw.LogWriter(path, config=CONFIG) as writer:
        assert writer.log_end_offset == last


def test_a_plan_says_that_a_marker_may_be_lost(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path) as writer:
        transaction = writer.transaction("a")
        transaction.append("bad")
        transaction.abort()
        with writer.transaction("a") as transaction:
            transaction.append("good")
    [marker, _] = [row for row in cw.Log(path).batches().to_arrow().to_pylist() if row["is_control"]]
    content = bytearray((path / name(0)).read_bytes())
    # one bit would be corrected
    content[marker["position"] + 70] ^= 0x41
    (path / name(0)).write_bytes(content)
    [lost] = cw.repair(path, policy="salvage").lost_ranges
    assert "the marker of a transaction may have been there" in lost.reason
