"""Values that are whole logs, in the damaged last batches of a log: no part of a value becomes a record."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import batches
import pytest
from batches import Rec

import cordwood as cw

OUTER = 12


def log_in_value(base: int, *, zeros: int = 0) -> bytes:
    inner = b"".join(batches.batch(base + n, [Rec(b"INNER", key=b"inner")]) for n in range(40))
    return inner + bytes(zeros)


def outer_batches(base: int, zeros: int) -> list[bytes]:
    return [batches.batch(n, [Rec(log_in_value(base, zeros=zeros), key=b"outer")]) for n in range(OUTER)]


def flipped(raw: bytes, position: int) -> bytes:
    return raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :]


def damaged(built: list[bytes]) -> Iterator[tuple[str, bytes, int]]:
    """Yield what was damaged, the log, and the number of outer records that are left before the damage."""
    rng = random.Random(7)
    before, last = b"".join(built[:-1]), built[-1]
    start = len(before)
    for size in (61, 164, 512):
        yield f"{size} zeros at the last batch", before + bytes(size) + last[size:], OUTER - 1
        yield (
            f"{size} other bytes at the last batch",
            before + b"\xff" + rng.randbytes(size - 1) + last[size:],
            OUTER - 1,
        )
    earlier = b"".join(built[:-2])
    both = flipped(built[-2], 900), flipped(last, len(last) - 900)
    yield "a bit in each of the last two", earlier + b"".join(both), OUTER - 2
    for cut in (1, 9, 500, 1234):
        yield f"a bit, and {cut} bytes cut off", earlier + both[0] + last[:-cut], OUTER - 2
    sector = start // 512 * 512
    whole = before + last
    yield (
        "the sector with the end of one and the head of the last",
        whole[:sector] + bytes(512) + whole[sector + 512 :],
        OUTER - 2,
    )


@pytest.mark.parametrize("zeros", [0, 100])
@pytest.mark.parametrize("base", [0, 5, OUTER, 1000])
def test_no_part_of_a_value_becomes_a_record(tmp_path: Path, base: int, zeros: int) -> None:
    for number, (damage, raw, left) in enumerate(damaged(outer_batches(base, zeros))):
        # if the lengths of the record are lost too, zeros at the end of the file may be those of a lost
        # sector
        if zeros and damage.startswith(("164", "512", "the sector")):
            continue
        partition = tmp_path / f"{number}" / "orders-0"
        partition.mkdir(parents=True)
        (partition / f"{0:020}.log").write_bytes(raw)
        log = cw.Log(partition)
        found = [record.key for record in log.records(on_damage="skip")]
        assert found == [b"outer"] * left, damage
        assert log.log_end_offset == left, damage
        assert [record.offset for record in log.follow(start_offset=0, timeout=0)] == list(range(left)), damage
        assert log.scan(last=2).to_arrow()["offset"].to_pylist() == [left - 2, left - 1], damage
        plan = cw.repair(partition, policy="salvage")
        assert plan.log_end_offset == left, damage
        with cw.LogWriter(partition) as writer:
            assert writer.log_end_offset == left, damage


def test_batches_after_many_damaged_ones_are_read(tmp_path: Path) -> None:
    built = [batches.batch(n, [Rec(b"v" * 900)]) for n in range(3000)]
    for n in range(10, 50):
        built[n] = flipped(built[n], 500)
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (partition / f"{0:020}.log").write_bytes(b"".join(built))
    log = cw.Log(partition)
    assert log.log_end_offset == 3000
    assert [record.offset for record in log.records(on_damage="skip")] == [*range(10), *range(50, 3000)]


@pytest.mark.parametrize("zeros", [0, 1, 400, 500, 600, 5000])
@pytest.mark.parametrize("base", [-5, 0, 1, 1000, 100_000])
def test_an_intact_last_batch_after_a_lost_sector_shows_what_is_in_a_value(
    tmp_path: Path, base: int, zeros: int
) -> None:
    """The values end in zeros, as copies of preallocated segments do."""
    built = []
    for offset in range(OUTER):
        inner = [batches.batch(offset + base + n, [Rec(b"y" * 1500, key=b"inner")]) for n in range(6)]
        built.append(batches.batch(offset, [Rec(b"".join(inner) + bytes(zeros), key=b"outer")]))
    border = sum(len(raw) for raw in built[:10])
    raw = bytearray(b"".join(built))
    raw[border - 1024 : border + 1024] = bytes(2048)
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (partition / f"{0:020}.log").write_bytes(raw)
    log = cw.Log(partition)
    # where the lost bytes of the first batch were zero, it is intact
    first_lost = 9 if raw[border - 1024 : border] != b"".join(built)[border - 1024 : border] else 10
    assert log.log_end_offset == OUTER
    assert [record.offset for record in log.records(on_damage="skip")] == [*range(first_lost), 11]
    assert [record.key for record in log.records(last=1)] == [b"outer"]
    (lost,) = cw.repair(partition, policy="salvage").lost_ranges
    assert (lost.start_offset, lost.end_offset) == (first_lost, 11)
