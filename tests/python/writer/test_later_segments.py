"""A sealed segment that ends in a torn batch, before segments whose first batches are damaged, too.

Intact batches follow in those: a writer cuts nothing, and refuses the log.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import corpus
import pytest
from batches import Rec, batch, name

import cordwood as cw
from cordwood.cli import main


def segment(start: int, end: int) -> list[bytes]:
    return [batch(offset, [Rec(b"%d" % offset), Rec(b"%d" % (offset + 1))]) for offset in range(start, end, 2)]


def flipped(path: Path) -> None:
    change(path, lambda content: content[:70] + bytes([content[70] ^ 0x40]) + content[71:])


def without_a_page(path: Path) -> None:
    change(path, lambda content: bytes(64) + content[64:])


def of_another_magic(path: Path) -> None:
    change(path, lambda content: content[:16] + b"\x07" + content[17:])


def renamed(path: Path) -> None:
    path.rename(path.with_name(name(25)))


def far_renamed(path: Path) -> None:
    path.rename(path.with_name(name(1000)))


def change(path: Path, how: Callable[[bytes], bytes]) -> None:
    path.write_bytes(how(path.read_bytes()))


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("damage", [flipped, without_a_page, of_another_magic, renamed, far_renamed])
def test_intact_batches_after_a_torn_segment_are_not_cut(
    tmp_path: Path, damage: Callable[[Path], None], zeros: bool
) -> None:
    path = tmp_path / "orders-0"
    path.mkdir()
    (path / name(0)).write_bytes(b"".join(segment(0, 10)))
    torn = b"".join(segment(10, 20))
    (path / name(10)).write_bytes(torn + bytes(500) if zeros else torn[:-69])
    (path / name(20)).write_bytes(b"".join(segment(20, 30)))
    damage(path / name(20))
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    with pytest.raises(cw.CordwoodError), cw.LogWriter(path):
        pass
    assert main(["recover", "--yes", str(path)]) == 1
    after = {file.name: file.read_bytes() for file in path.iterdir() if file.name != ".cordwood.lock"}
    assert after == before


def test_a_torn_segment_before_empty_and_torn_ones_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    path.mkdir()
    (path / name(0)).write_bytes(b"".join(segment(0, 10))[:-10])
    (path / name(10)).write_bytes(segment(10, 12)[0][:-5])
    (path / name(12)).write_bytes(b"")
    with cw.LogWriter(path) as writer:
        assert writer.log_end_offset == 8


def test_a_lost_page_of_a_real_log_cuts_no_intact_batch(tmp_path: Path) -> None:
    part = corpus.partition("01-plain")
    path = tmp_path / part.path.name
    shutil.copytree(part.path, path)
    change(path / name(807), lambda content: content[:-50])
    change(path / name(1217), lambda content: bytes(4096) + content[4096:])
    offsets = [record.offset for record in cw.Log(path).records(on_damage="skip")]
    assert max(offsets) == 1499
    with pytest.raises(cw.CorruptLogError), cw.LogWriter(path):
        pass
    assert [record.offset for record in cw.Log(path).records(on_damage="skip")] == offsets
