"""`.deleted` files, which a broker leaves if it stops within a minute of retention or compaction.

Kafka's loader deletes all of them. A writer deletes those whose records are in the log, or below its start.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Literal

import commands
import pytest
from batches import Rec, batch, write_partition
from batches import name as file_name

import cordwood as cw

Policy = Literal["torn_tail", "kafka", "salvage"]
POLICIES: tuple[Policy, ...] = ("torn_tail", "kafka", "salvage")
RENAME = "without .deleted it is a segment again"
COPY = "to read its records, copy it to a directory of its own, without .deleted"
REPLACE = "move the files of the segment out of the directory, then remove .deleted from the names of these"
OR_REMOVE = "if its records are not needed, remove it, because a writer keeps it"
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


def flip(file: Path, position: int, mask: int = 0xFF) -> None:
    content = bytearray(file.read_bytes())
    content[position] ^= mask
    file.write_bytes(content)


def evidence(path: Path) -> dict[str, list[str]]:
    """Return what `verify` says about each file that is marked as deleted."""
    findings = [finding for finding in cw.verify(path).findings if finding.code == "deleted_file"]
    return {Path(finding.file).name: finding.evidence for finding in findings if finding.evidence}


def repaired_twice(path: Path, policy: Policy) -> set[str]:
    """Repair a log. Return the `.deleted` files that stay, which a second repair and a writer leave, too."""
    planned = cw.repair(path, policy=policy, dry_run=True)
    plan = cw.repair(path, policy=policy, dry_run=False)
    assert (planned.actions, planned.kept_files) == (plan.actions, plan.kept_files)
    kept = files(path)
    assert named(plan.kept_files) == kept
    again = cw.repair(path, policy=policy, dry_run=False)
    assert (again.is_clean, named(again.kept_files), files(path)) == (True, kept, kept)
    cw.LogWriter(path).close()
    assert files(path) == kept
    return kept


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


@pytest.mark.parametrize("policy", POLICIES)
def test_a_repair_keeps_the_only_copy_of_records_and_names_it(tmp_path: Path, policy: Policy) -> None:
    path = tmp_path / "orders-0"
    bases = write(path)
    kept = mark(path, bases[1], copy=False)
    covered = mark(path, bases[0], copy=True)
    (path / ".cordwood.clean").unlink()
    contents = {name: (path / name).read_bytes() for name in kept}
    done = commands.cordwood("repair", path, "--policy", policy)
    assert all(
        f"{path / name}: stays, because its records may be nowhere else" in done.stdout.decode() for name in kept
    )
    plan = cw.repair(path, policy=policy, dry_run=False)
    assert (named(plan.kept_files), files(path)) == (kept, kept)
    assert {Path(action.file).name for action in plan.actions if action.kind == "remove_file"} >= covered
    assert {name: (path / name).read_bytes() for name in kept} == contents
    offsets = f"it has offsets {bases[1]} to {bases[2] - 1}, not all of which are in undamaged batches of a segment"
    assert evidence(path) == {f"{bases[1]:020}.log.deleted": [f"{offsets}: {RENAME}; {OR_REMOVE}"]}
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
    flip(path / f"{bases[1]:020}.log", -1)
    assert repaired_twice(path, "salvage") == kept


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


def test_a_deleted_segment_that_seems_to_end_below_the_log_start_stays_if_its_checksum_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path) as writer:
        for _ in range(12):
            writer.append(b"x")
        writer.roll()
        writer.append(b"y")
        writer.delete_before(10)
    deleted = path / file_name(8, ".log.deleted")
    deleted.write_bytes(batch(8, [Rec(b"x")] * 2))
    assert not cw.LogWriter.plan_recovery(path).kept_files
    # the last offset: 11 becomes 9
    deleted.write_bytes(batch(8, [Rec(b"x")] * 4))
    flip(deleted, 26, 2)
    assert named(cw.LogWriter.plan_recovery(path).kept_files) == {deleted.name}
    cw.LogWriter(path).close()
    assert deleted.exists()


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


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_writer_keeps_a_deleted_segment_whose_live_records_are_damaged(tmp_path: Path, is_clean: bool) -> None:
    """Its headers are right, and the writer reads no more of a sealed segment for any other reason."""
    path = tmp_path / "orders-0"
    bases = write(path)
    kept = mark(path, bases[0], copy=True)
    if not is_clean:
        (path / ".cordwood.clean").unlink()
    flip(path / f"{bases[0]:020}.log", -1)
    assert named(cw.LogWriter.plan_recovery(path).kept_files) == kept
    cw.LogWriter(path).close()
    assert files(path) == kept
    [found] = evidence(path).values()
    assert found[0].startswith("it has offsets 0 to 1, not all of which are in undamaged batches of a segment: ")
    assert REPLACE in found[0]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_damaged_copy_of_a_live_segment_is_not_to_be_renamed(tmp_path: Path, policy: Policy) -> None:
    path = tmp_path / "orders-0"
    bases = write(path)
    kept = mark(path, bases[2], copy=True)
    flip(path / f"{bases[2]:020}.log.deleted", -1)
    [found] = evidence(path).values()
    assert found[0].startswith("it is damaged or cannot be read, and may have records that are in no segment: ")
    assert COPY in found[0]
    assert repaired_twice(path, policy) == kept


@pytest.mark.parametrize("policy", POLICIES)
def test_a_segment_that_a_compaction_merged_into_another_is_removed(tmp_path: Path, policy: Policy) -> None:
    """The last record of the second one is superseded: the merged segment ends at the next one."""
    merged = [batch(0, [Rec(b"a"), Rec(b"c", offset_delta=2)], last_offset_delta=2)]
    path = write_partition(tmp_path / "orders-0", [(0, merged), (4, [batch(4, [Rec(b"e")])])])
    (path / file_name(2, ".log.deleted")).write_bytes(batch(2, [Rec(b"c"), Rec(b"d")]))
    assert cw.Log(path).is_compacted
    assert evidence(path) == {}
    assert not cw.LogWriter.plan_recovery(path).kept_files
    assert repaired_twice(path, policy) == set()
    assert [record.offset for record in cw.Log(path).records()] == [0, 2, 4]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_segment_that_a_compaction_lost_stays(tmp_path: Path, policy: Policy) -> None:
    """The segment before has nothing of it, so that nothing shows that it was merged into that one."""
    before = [batch(0, [Rec(b"b", offset_delta=1)], last_offset_delta=1)]
    path = write_partition(tmp_path / "orders-0", [(0, before), (4, [batch(4, [Rec(b"e")])])])
    (path / file_name(2, ".log.deleted")).write_bytes(batch(2, [Rec(b"c"), Rec(b"d")]))
    assert cw.Log(path).is_compacted
    [found] = evidence(path).values()
    assert COPY in found[0]
    assert repaired_twice(path, policy) == {file_name(2, ".log.deleted")}


@pytest.mark.parametrize("policy", POLICIES)
def test_the_copy_of_a_segment_that_lost_its_end_stays_also_in_a_compacted_log(tmp_path: Path, policy: Policy) -> None:
    """A compaction of another segment says nothing about this one."""
    rewritten = [batch(0, [Rec(b"b", offset_delta=1)], last_offset_delta=1)]
    whole = [batch(offset, [Rec(b"c")]) for offset in (2, 3, 4)]
    path = write_partition(tmp_path / "orders-0", [(0, rewritten), (2, whole[:1]), (5, [batch(5, [Rec(b"e")])])])
    (path / file_name(2, ".log.deleted")).write_bytes(b"".join(whole))
    assert cw.Log(path).is_compacted
    assert COPY in evidence(path)[file_name(2, ".log.deleted")][0]
    assert repaired_twice(path, policy) == {file_name(2, ".log.deleted")}


def test_a_deleted_segment_above_the_end_of_the_log_is_not_to_be_renamed(tmp_path: Path) -> None:
    """A follower's truncation leaves it; with its epoch, the batches of the log would seem damaged."""
    live = [batch(0, [Rec(b"a")], leader_epoch=1), batch(1, [Rec(b"b")], leader_epoch=5)]
    path = write_partition(tmp_path / "orders-0", [(0, live)])
    (path / file_name(2, ".log.deleted")).write_bytes(batch(2, [Rec(b"c")], leader_epoch=3))
    [found] = evidence(path).values()
    assert COPY in found[0]
    assert RENAME not in found[0]


def test_salvage_of_a_compacted_log_keeps_the_copy_of_what_it_takes_out(tmp_path: Path) -> None:
    """Afterwards, the offsets that it took out look like those of superseded records."""
    live = [batch(0, [Rec(b"b", offset_delta=1)], last_offset_delta=1), *(batch(n, [Rec(b"c")]) for n in (2, 3))]
    path = write_partition(tmp_path / "orders-0", [(0, live), (4, [batch(4, [Rec(b"e")])])])
    (path / file_name(0, ".log.deleted")).write_bytes(b"".join(live))
    flip(path / file_name(0), len(live[0]) + len(live[1]) - 1)
    assert repaired_twice(path, "salvage") == {file_name(0, ".log.deleted")}
    assert [record.offset for record in cw.Log(path).records()] == [1, 3, 4]
    assert COPY in evidence(path)[file_name(0, ".log.deleted")][0]


def test_a_deleted_segment_that_overlaps_a_live_one_is_not_to_be_renamed(tmp_path: Path) -> None:
    """After the rename, offsets would go back from one segment to the next."""
    live = [batch(offset, [Rec(b"x")]) for offset in (0, 2)]
    path = write_partition(tmp_path / "orders-0", [(0, live), (4, [batch(4, [Rec(b"e")])])])
    (path / file_name(1, ".log.deleted")).write_bytes(b"".join(batch(offset, [Rec(b"x")]) for offset in (1, 2)))
    [found] = evidence(path).values()
    assert found[0].startswith("it has offsets 1 to 2, not all of which are in undamaged batches of a segment: ")
    assert COPY in found[0]


def test_the_cut_of_the_policy_kafka_keeps_the_copy_of_a_segment_that_it_removes(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    bases = write(path)
    kept = mark(path, bases[2], copy=True)
    removed = mark(path, bases[0], copy=True)
    for marker in (".cordwood.clean", ".cordwood.durable", ".cordwood.checkpoint"):
        (path / marker).unlink(missing_ok=True)
    flip(path / f"{bases[1]:020}.log", -1)
    assert repaired_twice(path, "kafka") == kept
    assert not removed & files(path)
    assert [record.offset for record in cw.Log(path).records()] == [0, 1, 2]


def test_salvage_removes_the_copy_of_a_segment_whose_header_it_corrects(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    bases = write(path)
    mark(path, bases[1], copy=True)
    (path / ".cordwood.clean").unlink()
    flip(path / f"{bases[1]:020}.log", 7, 1 << 6)
    assert repaired_twice(path, "salvage") == set()
    assert [record.offset for record in cw.Log(path).records()] == list(range(6))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_repair_keeps_what_a_broker_was_deleting_as_a_writer_does(tmp_path: Path, policy: Policy) -> None:
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=x\n")
    path = tmp_path / "orders-0"
    bases = write(path)
    kept = mark(path, bases[0], copy=False)
    for file in path.glob(".cordwood.*"):
        file.unlink()
    (tmp_path / "log-start-offset-checkpoint").unlink(missing_ok=True)
    (path / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    assert named(cw.LogWriter.plan_recovery(path).kept_files) == kept
    assert repaired_twice(path, policy) == kept


@pytest.mark.parametrize("kind", ["directory", "link", "fifo", "unreadable"])
def test_what_is_no_readable_file_hides_no_other_finding(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "orders-0"
    bases = write(path)
    (path / f"{bases[1]:020}.log").rename(tmp_path / "taken")
    (path / ".cordwood.clean").unlink()
    before = {finding.code for finding in cw.verify(path).findings}
    odd = path / f"{bases[0]:020}.log.deleted"
    if kind == "directory":
        odd.mkdir()
    elif kind == "link":
        odd.symlink_to(path / f"{bases[0]:020}.log")
    elif kind == "fifo":
        os.mkfifo(odd)
    else:
        shutil.copy(path / f"{bases[0]:020}.log", odd)
        odd.chmod(0)
        if os.access(odd, os.R_OK):
            pytest.skip("this user may read every file")
    found = {finding.code for finding in cw.verify(path).findings}
    assert found - before <= {"not_a_file", "linked_file", "deleted_file"}
    assert before <= found
    for policy in ("kafka", "salvage"):
        assert cw.repair(path, policy=policy, dry_run=False).is_applied
        assert cw.repair(path, policy=policy, dry_run=False).is_clean
    assert os.path.lexists(odd)
    cw.LogWriter(path).close()
    assert os.path.lexists(odd)


def test_the_copy_of_what_salvage_took_out_stays_without_quarantine(tmp_path: Path) -> None:
    """`verify` says that `quarantine/` can be removed."""
    live = [batch(0, [Rec(b"b", offset_delta=1)], last_offset_delta=1), *(batch(n, [Rec(b"c")]) for n in (2, 3))]
    path = write_partition(tmp_path / "orders-0", [(0, live), (4, [batch(4, [Rec(b"e")])])])
    kept = {file_name(0, ".log.deleted")}
    (path / file_name(0, ".log.deleted")).write_bytes(b"".join(live))
    flip(path / file_name(0), len(live[0]) + len(live[1]) - 1)
    cw.repair(path, policy="salvage", dry_run=False)
    shutil.rmtree(path / "quarantine")
    assert named(cw.LogWriter.plan_recovery(path).kept_files) == kept
    assert evidence(path).keys() == kept
    for policy in POLICIES:
        assert named(cw.repair(path, policy=policy, dry_run=False).kept_files) == kept
    # also if the note of it is damaged, as the next opening writes it again
    flip(path / ".cordwood.kept", 3)
    for _ in range(2):
        cw.LogWriter(path).close()
        assert files(path) == kept
    # the records themselves are what releases it
    (path / file_name(0)).write_bytes(b"".join(live))
    for index in path.glob(f"{0:020}.*index"):
        index.unlink()
    (path / ".cordwood.clean").unlink()
    cw.LogWriter(path).close()
    assert (files(path), (path / ".cordwood.kept").exists()) == (set(), False)


def test_a_file_that_stays_is_read_again_only_if_a_file_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    bases = write(path)
    kept = mark(path, bases[0], copy=True)
    live = path / f"{bases[0]:020}.log"
    flip(live, -1)
    cw.LogWriter(path).close()
    before = live.stat()
    # well again, which nothing but its bytes shows
    flip(live, -1)
    os.utime(live, ns=(before.st_atime_ns, before.st_mtime_ns))
    for _ in range(2):
        assert named(cw.LogWriter.plan_recovery(path).kept_files) == kept
        with cw.LogWriter(path) as writer:
            # what is appended cannot be one of its records
            writer.append(b"c")
    assert evidence(path) == {}
    os.utime(live)
    assert cw.LogWriter.plan_recovery(path).kept_files == []
    cw.LogWriter(path).close()
    assert files(path) == set()


def test_the_advice_about_a_damaged_segment_restores_it_from_its_deleted_file(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    bases = write(path)
    kept = mark(path, bases[1], copy=True)
    flip(path / f"{bases[1]:020}.log", -1)
    cw.LogWriter(path).close()
    [found] = evidence(path).values()
    assert REPLACE in found[0]
    for name in kept:
        (path / name).rename(path / name.removesuffix(".deleted"))
    assert [finding for finding in cw.verify(path).findings if finding.severity != "info"] == []
    assert [record.offset for record in cw.Log(path).records()] == list(range(6))
    cw.LogWriter(path).close()
    assert not (path / ".cordwood.kept").exists()


def test_the_deleted_file_of_a_damaged_segment_that_has_other_records_does_not_replace_it(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    bases = write(path)
    deleted = path / f"{bases[1]:020}.log.deleted"
    deleted.write_bytes(batch(bases[1], [Rec(b"a")]))
    flip(path / f"{bases[1]:020}.log", 30)
    assert COPY in evidence(path)[deleted.name][0]


def test_a_deleted_file_that_was_kept_is_no_original_of_a_later_compaction(tmp_path: Path) -> None:
    """The compaction has removed its originals when the process ended; the file that stayed is older."""
    segments = [(base, [batch(base, [Rec(b"%d" % base), Rec(b"%d" % (base + 1))])]) for base in (0, 2, 4, 6)]
    path = write_partition(tmp_path / "orders-0", segments)
    kept = {f"{2:020}.log.deleted"}
    (path / f"{2:020}.log").rename(path / f"{2:020}.log.deleted")
    cw.LogWriter(path).close()
    assert files(path) == kept
    (path / ".cordwood.clean").unlink()
    replaced = [path / f"{base:020}.log" for base in (0, 4)]
    (path / f"{0:020}.log.swap").write_bytes(b"".join(file.read_bytes() for file in replaced))
    for file in replaced:
        for suffix in SUFFIXES:
            file.with_suffix(f".{suffix}").unlink()
    expected = [0, 1, 4, 5, 6, 7]
    assert [record.offset for record in cw.Log(path).records()] == expected
    cw.LogWriter(path).close()
    assert [record.offset for record in cw.Log(path).records()] == expected
    assert files(path) == kept
