"""A log that lacks bytes in the middle: a batch is short, and whole ones follow behind the length in its header.

What says that the log went on, such as an index, hides none of them.
"""

from __future__ import annotations

import random
import shutil
import struct
from pathlib import Path

import pytest
from batches import Rec, batch, name

import cordwood as cw

RANDOM = random.Random(1)
SIZES = [500] * 20 + [1500, 2000, 300, 300, 300]
BATCHES = [batch(offset, [Rec(RANDOM.randbytes(size))]) for offset, size in enumerate(SIZES)]
SHORT = 20


def segment() -> bytes:
    """The batches, of which one lacks its end."""
    return b"".join(BATCHES[:SHORT]) + BATCHES[SHORT][:500] + b"".join(BATCHES[SHORT + 1 :])


def index(offset: int) -> bytes:
    """An entry for the batch with an offset, where it was before bytes were lost."""
    return struct.pack(">ii", offset, len(b"".join(BATCHES[:offset])))


def checkpoint(path: Path) -> None:
    (path.parent / "meta.properties").write_text("version=1\ncluster.id=a\nnode.id=1\n")
    (path.parent / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 25\n")


HINTS = {
    "nothing": lambda _: None,
    "an entry": lambda path: (path / name(0, ".index")).write_bytes(index(22)),
    "entries": lambda path: (path / name(0, ".index")).write_bytes(b"".join(map(index, (6, 12, 18, 22)))),
    "a far entry": lambda path: (path / name(0, ".index")).write_bytes(struct.pack(">ii", 24, 10**6)),
    "a recovery point": checkpoint,
}


@pytest.fixture(params=HINTS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "data" / "orders-0"
    path.mkdir(parents=True)
    (path / name(0)).write_bytes(segment())
    HINTS[request.param](path)
    return path


def test_readers_raise_or_skip_what_is_damaged(path: Path) -> None:
    log = cw.Log(path)
    assert log.log_end_offset == 25
    with pytest.raises(cw.CorruptLogError):
        log.scan().to_arrow()
    scan = log.scan(on_damage="skip", columns=["offset"])
    # the batch that begins inside the length of the damaged one may be in its value
    assert scan.to_arrow()["offset"].to_pylist() == [*range(20), 22, 23, 24]


def test_no_whole_batch_is_cut(path: Path) -> None:
    before = (path / name(0)).read_bytes()
    with pytest.raises(cw.CorruptLogError), cw.LogWriter(path):
        pass
    with pytest.raises(cw.CorruptLogError):
        cw.repair(path, policy="torn_tail", dry_run=False)
    assert (path / name(0)).read_bytes() == before
    assert "damaged_batch" in {finding.code for finding in cw.verify(path).findings}
    cw.repair(path, policy="salvage", dry_run=False)
    assert [record.offset for record in cw.Log(path).records()] == [*range(20), 22, 23, 24]


def test_whole_batches_between_two_damaged_ones_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    path.mkdir()
    for hint in (None, index(22)):
        damaged = bytearray(segment() + b"".join(batch(offset, [Rec(b"x" * 300)]) for offset in range(25, 28)))
        damaged[-2 * len(batch(25, [Rec(b"x" * 300)])) + 100] ^= 1
        (path / name(0)).write_bytes(damaged)
        (path / name(28)).write_bytes(batch(28, [Rec(b"28")]))
        if hint is not None:
            (path / name(0, ".index")).write_bytes(hint)
        scan = cw.Log(path).scan(on_damage="skip", columns=["offset"])
        assert scan.to_arrow()["offset"].to_pylist() == [*range(20), 22, 23, 24, 25, 27, 28]
    cw.repair(path, policy="salvage", dry_run=False)
    assert [record.offset for record in cw.Log(path).records()] == [*range(20), 22, 23, 24, 25, 27, 28]


def test_a_log_of_a_writer_is_not_copied_in_part_without_an_error(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path) as writer:
        for size in SIZES:
            writer.append(RANDOM.randbytes(size))
    log = path / name(0)
    rows = cw.Log(path).batches().to_arrow().to_pylist()
    content = log.read_bytes()
    log.write_bytes(content[: rows[SHORT]["position"] + 500] + content[rows[SHORT + 1]["position"] :])
    with pytest.raises(cw.CorruptLogError):
        cw.copy(path, tmp_path / "copy-0")
    shutil.rmtree(tmp_path / "copy-0", ignore_errors=True)
    with pytest.raises(cw.CorruptLogError):
        list(cw.Log(path).records())
    with pytest.raises(cw.CorruptLogError):
        cw.LogWriter(path)
