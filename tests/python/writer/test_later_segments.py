"""A sealed segment that ends in a torn batch, before segments whose first batches are damaged, too.

Intact batches follow in those: a writer cuts nothing, and refuses the log.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
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


CONFIG = cw.LogConfig(segment_bytes=1000)


def written(path: Path, count: int = 60, *, flush: str = "always") -> Path:
    """A log of several segments, as a crash of its writer leaves it."""
    with cw.LogWriter(path.with_name("live-0"), config=CONFIG, flush=flush) as writer:
        for number in range(count):
            writer.append(f"v{number}")
        shutil.copytree(writer.path, path)
    return path


def bases(path: Path) -> list[int]:
    return sorted(int(file.stem) for file in path.glob("*.log"))


def without(path: Path, base_offset: int) -> None:
    for file in path.glob(f"{base_offset:020}.*"):
        file.unlink()


@pytest.mark.parametrize("is_closed", [False, True])
@pytest.mark.parametrize("is_torn", [False, True])
@pytest.mark.parametrize("renamed_by", [(-1, 1000), (-1, 1), (-2, 1000), (-2, 1)])
@pytest.mark.parametrize("flush", ["always", "none"])
def test_a_writer_cuts_no_intact_batch_because_of_a_name(
    tmp_path: Path, is_closed: bool, is_torn: bool, renamed_by: tuple[int, int], flush: str
) -> None:
    place, distance = renamed_by
    path = written(tmp_path / "orders-0", flush=flush)
    if is_closed:
        path = tmp_path / "live-0"
    base = bases(path)[place]
    (path / name(base)).rename(path / name(base + distance))
    for file in path.glob(f"{base:020}.*"):
        file.unlink()
    if is_torn and place == -2:
        with (path / name(bases(path)[-2 if distance == 1000 else -1])).open("ab") as log:
            log.write(batch(60, [Rec(b"torn")])[:-5])
    before = {file.name: file.read_bytes() for file in path.glob("*.log")}
    # below the recovery point, a writer may open the log and leave the segment as it is
    with suppress(cw.CordwoodError), cw.LogWriter(path, config=CONFIG):
        pass
    after = {file.name: file.read_bytes() for file in path.glob("*.log")}
    if is_torn and distance == 1 and after != before:
        # the torn batch, and nothing else
        [cut] = [log for log in before if after[log] != before[log]]
        assert before[cut] == after[cut] + batch(60, [Rec(b"torn")])[:-5]
        return
    assert after == before
    assert not (path / "quarantine").exists()


def test_a_copy_under_a_high_name_does_not_raise_the_end(tmp_path: Path) -> None:
    path = written(tmp_path / "orders-0")
    shutil.copy(path / name(0), path / name(1000))
    with pytest.raises(cw.CorruptLogError, match=name(1000)), cw.LogWriter(path, config=CONFIG):
        pass


@pytest.mark.parametrize(
    ("base_offset", "content"),
    [
        (1000, b"xyz" * 50),
        (1000, b""),
    ],
)
def test_the_name_of_an_empty_segment_does_not_hide_lost_records(
    tmp_path: Path, base_offset: int, content: bytes
) -> None:
    path = written(tmp_path / "orders-0")
    last = bases(path)[-1]
    without(path, last)
    (path / name(base_offset)).write_bytes(content)
    with pytest.raises(cw.CorruptLogError, match="a log that ends at offset 60 or above"):
        cw.LogWriter(path, config=CONFIG)


def test_an_unsynced_segment_above_the_end_is_removed(tmp_path: Path) -> None:
    path = written(tmp_path / "orders-0")
    (path / name(1000)).write_bytes(b"xyz" * 50)
    with cw.LogWriter(path, config=CONFIG) as writer:
        assert writer.log_end_offset == 60
    assert [file.read_bytes() for file in (path / "quarantine").iterdir()] == [b"xyz" * 50]


@pytest.mark.parametrize("is_clean", [False, True])
def test_a_log_that_was_truncated_inside_a_batch_is_opened_after_a_roll(tmp_path: Path, is_clean: bool) -> None:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path) as writer:
        writer.append_many([b"a"] * 20)
        writer.append_many([b"b"] * 20)
        writer.truncate_to(30)
        writer.roll()
    if not is_clean:
        (path / ".cordwood.clean").unlink()
    with cw.LogWriter(path) as writer:
        assert writer.log_end_offset == 30
