"""`diff`: two replicas, and modified copies of one."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import corpus
import pytest

import cordwood as cw

LEADER, FOLLOWER = (corpus.GOLDEN / f"21-replica-{role}" / "copied-0" for role in ("leader", "follower"))
# of the segment in the middle
BASE = 43


def state(path: Path) -> dict[str, tuple[int, int, bytes]]:
    entries = sorted(path.rglob("*"))
    return {
        str(e): (e.stat().st_mtime_ns, e.stat().st_ctime_ns, e.read_bytes() if e.is_file() else b"") for e in entries
    }


def log_of(path: Path, base_offset: int) -> Path:
    return path / f"{base_offset:020}.log"


def batches(log: Path) -> list[tuple[int, int, int]]:
    """The position, size and base offset of each batch."""
    content, found, position = log.read_bytes(), [], 0
    while position < len(content):
        offset, length = struct.unpack_from(">qi", content, position)
        found.append((position, 12 + length, offset))
        position += 12 + length
    return found


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLLOWER, tmp_path / "copied-0"))


def written(path: Path, records: list[tuple[int, bytes]]) -> Path:
    """A log with a batch for each leader epoch and value."""
    path.parent.mkdir()
    for epoch in sorted({epoch for epoch, _ in records}):
        with cw.LogWriter(path, leader_epoch=epoch) as writer:
            for number, (own, value) in enumerate(records):
                if own == epoch:
                    writer.append(value, key=b"k", timestamp=1_700_000_000_000 + number)
    return path


def test_a_follower_has_the_records_of_its_leader() -> None:
    before = state(LEADER), state(FOLLOWER)
    found = cw.diff(LEADER, str(FOLLOWER))
    assert (found.is_same, found.first, found.other_form, found.same_records) == (True, None, None, 0)
    assert found.same_batches == sum(len(batches(log)) for log in LEADER.glob("*.log"))
    assert [replica.path for replica in found.replicas] == [str(path.absolute()) for path in (LEADER, FOLLOWER)]
    for replica in found.replicas:
        assert replica.log_end_offset == replica.truncated_to == found.end_offset == cw.Log(LEADER).log_end_offset
        assert (replica.leader_epochs, replica.warnings) == ([(0, 0)], [])
    assert before == (state(LEADER), state(FOLLOWER))
    assert found == cw.diff(LEADER, FOLLOWER)
    assert hash(found) == hash(cw.diff(LEADER, FOLLOWER))


@pytest.mark.parametrize("is_first", [True, False])
def test_a_flipped_byte_is_damage_of_one_replica(copied: Path, is_first: bool) -> None:
    log = log_of(copied, BASE)
    position, size, offset = batches(log)[3]
    content = bytearray(log.read_bytes())
    content[position + size - 1] ^= 1
    log.write_bytes(content)
    found = cw.diff(copied, LEADER) if is_first else cw.diff(LEADER, copied)
    first = found.first
    assert first is not None
    assert (first.field, first.cause, first.offset, found.end_offset) == ("damage", "damage", offset, offset)
    damaged, intact = first.damage if is_first else reversed(first.damage)
    assert intact is None
    assert damaged is not None
    assert (damaged.file, damaged.start_position, damaged.end_position) == (str(log), position, position + size)
    assert cw.diff(LEADER, copied, end_offset=offset).is_same
    assert cw.diff(LEADER, copied, start_offset=500).is_same


@pytest.mark.parametrize("into_batch", [0, 30])
def test_a_cut_tail_is_no_difference(copied: Path, into_batch: int) -> None:
    log = log_of(copied, 500)
    position, _, offset = batches(log)[-2]
    log.write_bytes(log.read_bytes()[: position + into_batch])
    found = cw.diff(LEADER, copied)
    assert (found.is_same, found.end_offset) == (True, offset)
    leader, follower = found.replicas
    assert leader.log_end_offset > follower.log_end_offset == offset
    assert (leader.truncated_to, follower.truncated_to) == (offset, offset)
    # the index, whose last entries point behind the end, is another one
    torn = [warning for warning in follower.warnings if warning.startswith(str(log))]
    assert bool(torn) == bool(into_batch)


def test_deleted_segments_at_the_start_are_no_difference(copied: Path) -> None:
    for file in copied.glob("00000000000000000000.*"):
        file.unlink()
    found = cw.diff(LEADER, copied)
    assert (found.is_same, found.start_offset, found.replicas[1].log_start_offset) == (True, BASE, BASE)


def test_another_epoch_of_the_same_records_is_another_form(copied: Path) -> None:
    log = log_of(copied, 500)
    content = bytearray(log.read_bytes())
    [*_, (_, _, offset), _, _] = batches(log)
    for position, _, base_offset in batches(log):
        if base_offset >= offset:
            # the checksum does not cover the leader epoch
            struct.pack_into(">i", content, position + 12, 7)
    log.write_bytes(content)
    found = cw.diff(LEADER, copied)
    assert found.is_same
    form = found.other_form
    assert form is not None
    assert (form.leader_epoch, form.codec, form.batches, form.producer) == (True, False, False, False)
    assert (form.header, form.bytes) == (False, False)
    assert form.offset >= offset
    assert found.same_records > 0


def test_another_value_is_shown_with_its_byte_in_both_files(tmp_path: Path) -> None:
    values = [b"value %d" % number for number in range(20)]
    one = written(tmp_path / "a" / "orders-0", [(0, value) for value in values])
    values[7] = b"valuX 7"
    other = written(tmp_path / "b" / "orders-0", [(0, value) for value in values])
    found = cw.diff(one, other)
    first = found.first
    assert first is not None
    assert (first.offset, first.field, first.cause) == (7, "value", "unknown")
    assert first.damage == (None, None)
    assert first.different_byte is not None
    logs = [log_of(path, 0) for path in (one, other)]
    for place, log, byte, value in zip(first.places, logs, first.different_byte, (b"value 7", b"valuX 7"), strict=True):
        assert place is not None
        assert (place.file, place.value, place.key, place.leader_epoch) == (str(log), value, b"k", 0)
        position, size, _ = next(batch for batch in batches(log) if batch[0] == place.position)
        assert position + 21 <= byte < position + size
        assert place.timestamp == 1_700_000_000_007
    # what a search in the bytes finds: the checksum first, then the letter
    contents = [log.read_bytes() for log in logs]
    differing = [at for at, (left, right) in enumerate(zip(*contents, strict=True)) if left != right]
    assert first.different_byte == (differing[-1], differing[-1])
    assert contents[0][differing[-1] :].startswith(b"e 7")


def test_leader_epochs_that_part_explain_a_difference(tmp_path: Path) -> None:
    shared = [(0, b"%d" % number) for number in range(5)]
    one = written(tmp_path / "a" / "orders-0", [*shared, *((1, b"new %d" % number) for number in range(4))])
    other = written(tmp_path / "b" / "orders-0", [*shared, *((0, b"old %d" % number) for number in range(3))])
    found = cw.diff(one, other)
    first = found.first
    assert first is not None
    assert (first.offset, first.field, first.cause) == (5, "value", "epochs")
    leader, follower = found.replicas
    assert (leader.leader_epochs, follower.leader_epochs) == ([(0, 0), (1, 5)], [(0, 0)])
    assert follower.truncated_to == 5
    assert [place and place.leader_epoch for place in first.places] == [1, 0]


def test_a_removed_batch_is_a_missing_record() -> None:
    found = cw.diff(corpus.GOLDEN / "01-small" / "tickets-0", corpus.GOLDEN / "damaged/batch-removed/tickets-0")
    first = found.first
    assert first is not None
    assert (first.field, first.cause, first.different_byte) == ("record", "unknown", None)
    assert [place is None for place in first.places] == [False, True]


@pytest.mark.parametrize(
    ("limits", "argument"),
    [
        ({"start_offset": -1}, "start_offset"),
        ({"end_offset": -1}, "end_offset"),
        ({"start_offset": 2**63}, "start_offset"),
        ({"start_offset": 5000}, "start_offset"),
        ({"start_offset": 10, "end_offset": 5}, "start_offset"),
    ],
)
def test_wrong_offsets_are_named(limits: dict[str, int], argument: str) -> None:
    with pytest.raises(cw.ConfigError, match=argument) as raised:
        cw.diff(LEADER, FOLLOWER, **limits)
    assert raised.value.argument == argument


def test_replicas_without_an_offset_in_common_are_refused(copied: Path) -> None:
    with pytest.raises(cw.ConfigError, match="offsets in common"):
        cw.diff(corpus.GOLDEN / "15-one-record" / "one-record-0", corpus.GOLDEN / "18-far-base" / "far.base-0")
    with pytest.raises(cw.ConfigError, match="offsets in common"):
        cw.diff(LEADER, corpus.GOLDEN / "15-empty" / "nothing-yet-0")
    assert cw.diff(*[corpus.GOLDEN / "15-empty" / "nothing-yet-0"] * 2).is_same
    with pytest.raises(cw.LogNotFoundError):
        cw.diff(copied, copied / "nowhere")
    with pytest.raises(TypeError, match="b: expected"):
        cw.diff(copied, 5)  # type: ignore[arg-type]
