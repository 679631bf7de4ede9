"""A segment whose file has the name of another one: somebody renamed it, or copied it under a second name.

The records are all there, so that no reader ends without an error, and no repair removes them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import commands
import corpus
import pytest
from batches import Rec, batch, name

import cordwood as cw

# above what a relative offset can be
FAR = 5 * 10**9
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


def with_damage(path: Path) -> None:
    """A renamed segment with a flipped bit in its first batch."""
    content = bytearray(b"".join(RECORDS))
    content[len(RECORDS[0]) - 2] ^= 1
    (path / name(100)).write_bytes(content)


def with_later_damage(path: Path) -> None:
    """A renamed segment with a flipped bit in its second batch."""
    content = bytearray(b"".join(RECORDS))
    content[len(RECORDS[0]) + len(RECORDS[1]) - 2] ^= 1
    (path / name(100)).write_bytes(content)


def with_zeros(path: Path) -> None:
    """A renamed segment of one batch in a preallocated file."""
    (path / name(100)).write_bytes(RECORDS[0] + bytes(1000))


def torn(path: Path) -> None:
    """A renamed segment of one batch, and a part of another."""
    (path / name(100)).write_bytes(RECORDS[0] + RECORDS[1][:40])


def with_gaps(path: Path) -> None:
    """A renamed segment that a compaction has left with gaps around the name."""
    (path / name(10)).write_bytes(b"".join(RECORDS[offset] for offset in (0, 3, 4, 7)) + batch(12, [Rec(b"12")]))


def of_one_batch(path: Path) -> None:
    """A renamed segment of one batch, which has the offset in the name."""
    (path / name(10)).write_bytes(batch(0, [Rec(b"%d" % offset) for offset in range(20)]))


MISNAMED = pytest.mark.parametrize(
    "damage",
    [renamed, copied, before_others, with_damage, with_later_damage, with_zeros, torn, with_gaps, of_one_batch],
)


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


@MISNAMED
def test_splits_are_not_planned_without_an_error(path: Path) -> None:
    log = cw.Log(path)
    with pytest.raises(cw.CorruptLogError, match=misnamed(path).name):
        [log.scan(split=split).to_arrow() for split in log.plan(1 << 20)]
    with pytest.raises(cw.CorruptLogError, match=misnamed(path).name):
        cw.LogDir(path.parent).scan().to_arrow()


@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("damage", [renamed, copied, with_damage])
def test_a_follower_does_not_wait_for_ever(path: Path, isolation_level: str) -> None:
    with pytest.raises(cw.CorruptLogError, match=misnamed(path).name):
        list(cw.Log(path).follow(timeout=5, isolation_level=isolation_level))


@pytest.mark.parametrize("damage", [renamed, copied, with_damage, with_zeros])
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
    # an offset above the end is wrong usage, not damage
    end = cw.Log(path).log_end_offset
    for on_damage in ("skip", "raise"):
        with pytest.raises(cw.OffsetOutOfRangeError):
            cw.Log(path).scan(start_offset=end + 1, on_damage=on_damage)


@MISNAMED
@pytest.mark.parametrize("policy", ["torn_tail", "kafka", "salvage"])
def test_no_repair_removes_the_records(path: Path, policy: str) -> None:
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    with pytest.raises(cw.CorruptLogError, match="its name is wrong"):
        cw.repair(path, policy=policy, dry_run=False)
    after = {file.name: file.read_bytes() for file in path.iterdir() if file.name != ".cordwood.lock"}
    assert after == before
    with pytest.raises(cw.CordwoodError), cw.LogWriter(path):
        pass


@MISNAMED
def test_verify_names_the_right_name(path: Path) -> None:
    [finding] = [found for found in cw.verify(path).findings if found.code == "misnamed_segment"]
    assert finding.file == str(misnamed(path))
    is_copy = (path / name(0)).exists()
    assert ("compare its records with those of" if is_copy else "rename") in finding.advice
    assert name(0) in finding.advice


def write(path: Path, segments: Mapping[int, Iterable[int]]) -> Path:
    path.mkdir()
    for base_offset, offsets in segments.items():
        content = b"".join(batch(offset, [Rec(b"%d" % offset)]) for offset in offsets)
        (path / name(base_offset)).write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("segments", "wrong", "right"),
    [
        ({0: range(10), 10: range(10, 20), 15: range(20, 30)}, 15, 20),
        ({0: range(10), 10: range(10, 20), 5: range(20, 30)}, 5, 20),
        ({0: range(10), 7: range(10, 20), 20: range(20, 30)}, 7, 10),
        ({0: range(10), 10: range(10, 20), 15: range(20, 30), 20: range(20, 30)}, 15, None),
        ({0: range(10), 100: range(10, 20)}, 100, 10),
        ({0: range(10), 11: range(10, 20)}, 11, 10),
        ({0: range(10), 13: range(10, 20), 20: range(20, 30)}, 13, 10),
        ({FAR: range(FAR, FAR + 10), 2 * FAR: range(FAR + 10, FAR + 20)}, 2 * FAR, FAR + 10),
        ({FAR: range(FAR, FAR + 10), 2 * FAR: range(FAR, FAR + 10)}, 2 * FAR, None),
        ({0: range(100), 1000: range(50, 60)}, 1000, None),
        ({0: range(10), 5: range(0), 10: range(10, 20)}, 5, None),
        ({0: range(20), 8: range(8, 12), 20: range(20, 30)}, 8, None),
        # with gaps, as a compaction leaves them
        ({0: range(100), 105: [100, 103, 104, 107, 110, 112]}, 105, 100),
        ({0: range(100), 150: [100, 103, 104, 107, 110, 112]}, 150, 100),
        ({0: range(100), 105: [100, 103, 104, 107, 110, 112], 120: range(120, 130)}, 105, 100),
        ({0: range(0, 100, 3), 1000: range(102, 2000, 40)}, 1000, 102),
    ],
)
def test_the_advice_names_a_segment_that_has_the_offsets(
    tmp_path: Path, segments: dict[int, Iterable[int]], wrong: int, right: int | None
) -> None:
    path = write(tmp_path / "orders-0", segments)
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    [finding] = [found for found in cw.verify(path).findings if found.code == "misnamed_segment"]
    assert finding.file == str(path / name(wrong))
    errors = {found.code for found in cw.verify(path).findings if found.severity == "error"}
    assert right is None or errors <= {"misnamed_segment", "offset_gap"}
    if wrong == 5 and not segments[5]:
        assert errors == {"misnamed_segment"}
    for policy in ("torn_tail", "kafka", "salvage"):
        with pytest.raises(cw.CorruptLogError, match=name(wrong)):
            cw.repair(path, policy=policy, dry_run=False)
    after = {file.name: file.read_bytes() for file in path.iterdir() if file.name != ".cordwood.lock"}
    assert after == before
    if right is None:
        assert "out of the partition" in finding.advice
        if segments[wrong]:  # it may have records of its own
            assert "copy those that only this file has" in finding.advice
        (path / name(wrong)).unlink()
    else:
        assert f"rename the .log to {name(right)}" in finding.advice
        (path / name(wrong)).rename(path / name(right))
    offsets = sorted({offset for those in segments.values() for offset in those})
    assert [record.offset for record in cw.Log(path).records()] == offsets
    has_gaps = len(offsets) <= offsets[-1] - offsets[0]
    errors = {found.code for found in cw.verify(path).findings if found.severity == "error"}
    assert errors <= ({"offset_gap"} if has_gaps else set())


def test_the_advice_for_exchanged_names_overwrites_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "orders-0", {0: range(10), 10: range(20, 30), 20: range(10, 20), 30: range(30, 40)})
    [finding] = [found for found in cw.verify(path).findings if found.code == "misnamed_segment"]
    assert finding.file == str(path / name(20))
    assert f"{name(10)} has the batches of another segment: give that one its own name first" in finding.advice
    (path / name(10)).rename(path / "exchanged")
    (path / name(20)).rename(path / name(10))
    (path / "exchanged").rename(path / name(20))
    assert [record.offset for record in cw.Log(path).records()] == list(range(40))
    assert not [found for found in cw.verify(path).findings if found.severity == "error"]


@pytest.mark.parametrize("content", [bytes(1000), b"garbage" * 30])
@pytest.mark.parametrize("is_torn", [False, True])
@pytest.mark.parametrize("policy", ["torn_tail", "kafka", "salvage"])
def test_a_file_without_a_batch_inside_the_offsets_of_another_cuts_nothing(
    tmp_path: Path, content: bytes, policy: str, is_torn: bool
) -> None:
    path = write(tmp_path / "orders-0", {0: range(10)})
    if is_torn:
        with (path / name(0)).open("ab") as log:
            log.write(RECORDS[0][:-5])
    (path / name(7)).write_bytes(content)
    [finding] = [found for found in cw.verify(path).findings if found.severity == "error"]
    assert (finding.code, finding.file) == ("misnamed_segment", str(path / name(7)))
    assert finding.advice == "move the file out of the partition: no valid batch was found in it"
    with pytest.raises(cw.CorruptLogError, match=name(7)):
        cw.repair(path, policy=policy, dry_run=False)
    (path / name(7)).unlink()
    assert [record.offset for record in cw.Log(path).records()] == list(range(10))


@pytest.mark.parametrize("place", [0, -1])
def test_a_damaged_segment_inside_the_offsets_of_another_cuts_nothing(tmp_path: Path, place: int) -> None:
    path = write(tmp_path / "orders-0", {0: range(10), 7: range(10, 20)})
    flip(path / name(7), RECORDS[0], place)
    [finding] = [found for found in cw.verify(path).findings if found.code == "misnamed_segment"]
    assert f"rename the .log to {name(10)}" in finding.advice
    with pytest.raises(cw.CorruptLogError, match=name(7)):
        cw.repair(path, policy="salvage", dry_run=False)


def flip(log: Path, record: bytes, place: int) -> None:
    """Flip a bit in a batch of a segment whose batches all have this size, or one byte more."""
    content = bytearray(log.read_bytes())
    content[len(record) - 4 if place == 0 else -4] ^= 1
    log.write_bytes(content)


def test_the_advice_overwrites_no_segment_whose_first_batch_is_damaged(tmp_path: Path) -> None:
    path = write(tmp_path / "orders-0", {0: range(10), 10: range(10, 30), 30: range(10, 20)})
    flip(path / name(10), RECORDS[0], 0)
    [finding] = [found for found in cw.verify(path).findings if found.code == "misnamed_segment"]
    assert f"compare its records with those of {name(10)}" in finding.advice
    path = write(tmp_path / "payments-0", {0: range(10), 10: range(20, 30), 20: range(10, 20), 30: range(30, 40)})
    flip(path / name(10), RECORDS[0], 0)
    [finding] = [found for found in cw.verify(path).findings if found.code == "misnamed_segment"]
    assert "give that one its own name first" in finding.advice
    path = write(tmp_path / "refunds-0", {0: range(10), 10: range(0), 20: range(10, 20)})
    [finding] = [found for found in cw.verify(path).findings if found.code == "misnamed_segment"]
    assert (
        f"{name(10)} exists, and no valid batch was found in it: move it out of the partition first" in finding.advice
    )


def test_a_replica_that_has_all_offsets_of_the_other_is_salvaged(tmp_path: Path) -> None:
    path = write(tmp_path / "orders-0", {0: range(20), 8: range(8, 30), 30: range(30, 40)})
    cw.repair(path, policy="salvage", dry_run=False)
    assert [record.offset for record in cw.Log(path).records()] == list(range(40))


def test_stale_batches_at_the_start_of_a_segment_are_damage(tmp_path: Path) -> None:
    path = write(tmp_path / "orders-0", {0: range(100), 100: [50, 51, *range(102, 120)]})
    assert {found.code for found in cw.verify(path).findings if found.severity == "error"} == {"damaged_batch"}
    cw.repair(path, policy="salvage", dry_run=False)
    assert [record.offset for record in cw.Log(path).records()] == [*range(100), *range(102, 120)]


@pytest.mark.parametrize("bit", range(32))
def test_a_flipped_bit_of_the_first_offset_is_damage(tmp_path: Path, bit: int) -> None:
    path = write(tmp_path / "orders-0", {0: range(100), 100: range(100, 101)})
    content = bytearray((path / name(100)).read_bytes())
    content[7 - bit // 8] ^= 1 << bit % 8
    (path / name(100)).write_bytes(content)
    assert "misnamed_segment" not in {found.code for found in cw.verify(path).findings}
    cw.repair(path, policy="salvage", dry_run=True)


def test_a_torn_batch_whose_value_is_a_log_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    path.mkdir()
    (path / name(100)).write_bytes(batch(100, [Rec(b"".join(RECORDS))])[:-10])
    assert {found.code for found in cw.verify(path).findings if found.severity == "error"} == {"torn_tail"}
    assert list(cw.Log(path).records()) == []
    with cw.LogWriter(path) as writer:
        assert writer.log_end_offset == 100


@pytest.mark.parametrize(
    ("case", "right", "wrong"),
    [
        ("01-plain", 807, 808),
        ("01-plain", 0, 1),
        ("01-plain", 1217, 1230),
        ("17-v0-snappy", 0, 1000),
        ("17-v0-none", 0, 1000),
        ("17-v1-gzip", 0, 1000),
        ("12-compacted", 0, 1000),
        ("18-leaps", 0, 1000),
        ("18-far-base", 5000000933, 5000000936),
    ],
)
def test_a_renamed_segment_of_kafka_is_no_damage(tmp_path: Path, case: str, right: int, wrong: int) -> None:
    part = corpus.partition(case)
    path = tmp_path / part.path.name
    shutil.copytree(part.path, path)
    for file in list(path.glob(f"{right:020}.*")):
        file.rename(file.with_name(f"{wrong:020}{file.suffix}"))
    [finding] = [found for found in cw.verify(path).findings if found.code == "misnamed_segment"]
    # a compaction may have removed the first offsets
    first = {"12-compacted": 45}.get(case, right)
    assert f"rename the .log to {name(first)}" in finding.advice
    assert "damaged_batch" not in {found.code for found in cw.verify(path).findings}
    for policy in ("torn_tail", "kafka"):  # of the first segment, the start is missing, too
        with pytest.raises(cw.CorruptLogError):
            cw.repair(path, policy=policy, dry_run=False)
    with pytest.raises(cw.CorruptLogError, match="its name is wrong"):
        cw.repair(path, policy="salvage", dry_run=False)


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
