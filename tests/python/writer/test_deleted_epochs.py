"""`.deleted` files whose leader epochs differ from those of the log: which records were truncated, and which are lost.

A follower truncates its log to the end of its epoch at the leader, and continues with a later one. Within a cluster,
epochs never fall.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from batches import Rec, batch, write_partition
from batches import name as file_name

import cordwood as cw
from writer.test_deleted_files import POLICIES, evidence, named, repaired_twice


def write_epochs(path: Path, *epochs: tuple[int, int]) -> None:
    """Write the history of leader epochs: epochs and their start offsets."""
    lines = [0, len(epochs), *(f"{epoch} {start}" for epoch, start in epochs)]
    (path / "leader-epoch-checkpoint").write_text("".join(f"{line}\n" for line in lines))


def of_epoch(epoch: int, *offsets: int) -> list[bytes]:
    return [batch(offset, [Rec(b"%d in %d" % (offset, epoch))], leader_epoch=epoch) for offset in offsets]


def truncated_log(path: Path, *live: tuple[int, list[bytes]], deleted: list[bytes], at: int) -> Path:
    """Write live segments, the history of their epochs, and a `.deleted` one of epoch 3. Return its path."""
    write_partition(path, live)
    starts: dict[int, int] = {}
    for _, batches in live:
        for raw in batches:
            starts.setdefault(int.from_bytes(raw[12:16]), int.from_bytes(raw[:8]))
    write_epochs(path, *starts.items())
    file = path / file_name(at, ".log.deleted")
    file.write_bytes(b"".join(deleted))
    return file


def stays(file: Path) -> bool:
    """Return whether a writer, a repair with each policy and `verify` keep a `.deleted` file. They agree."""
    planned = named(cw.LogWriter.plan_recovery(file.parent).kept_files) == {file.name}
    assert planned == (file.name in evidence(file.parent))
    for number, policy in enumerate(POLICIES):
        copy = shutil.copytree(file.parent, file.parent.with_name(f"copy-{number}"))
        assert repaired_twice(copy, policy) == ({file.name} if planned else set())
        shutil.rmtree(copy)
    cw.LogWriter(file.parent).close()
    assert file.exists() == planned
    return planned


@pytest.mark.parametrize("written", [(2,), (2, 3), (2, 3, 4, 5)])
def test_a_segment_that_was_truncated_and_written_again_in_a_later_epoch_is_removed(
    tmp_path: Path, written: tuple[int, ...]
) -> None:
    """Also while the log is shorter than it was: no offset from 2 on is of the older epoch."""
    live = of_epoch(3, 0, 1) + of_epoch(5, *written)
    file = truncated_log(tmp_path / "orders-0", (0, live), deleted=of_epoch(3, 2, 3, 4), at=2)
    assert not stays(file)


def test_a_segment_that_was_truncated_after_its_first_records_is_removed(tmp_path: Path) -> None:
    live = [(0, of_epoch(3, 0, 1)), (2, of_epoch(5, 2))]
    file = truncated_log(tmp_path / "orders-0", *live, deleted=of_epoch(3, 0, 1, 2, 3, 4), at=0)
    assert not stays(file)


def test_a_segment_whose_records_are_lost_before_a_later_epoch_stays(tmp_path: Path) -> None:
    """Epoch 5 begins at offset 4: the log had 2 and 3 of epoch 3."""
    live = [(0, of_epoch(3, 0, 1)), (4, of_epoch(5, 4, 5))]
    file = truncated_log(tmp_path / "orders-0", *live, deleted=of_epoch(3, 2, 3, 4), at=2)
    assert stays(file)


def test_a_segment_at_whose_offsets_the_log_has_older_records_stays(tmp_path: Path) -> None:
    """As after the restore of an old copy: the records of epoch 3 are nowhere else."""
    live = [(0, of_epoch(1, 0, 1)), (2, of_epoch(1, 2, 3, 4)), (5, of_epoch(1, 5))]
    file = truncated_log(tmp_path / "orders-0", *live, deleted=of_epoch(3, 2, 3, 4), at=2)
    assert stays(file)


@pytest.mark.parametrize("text", [None, "0\n1\n3 0\n", "0\n1\nfive 2\n"])
def test_an_epoch_that_the_history_does_not_confirm_truncates_nothing(tmp_path: Path, text: str | None) -> None:
    """No checksum covers the epoch of a batch: it may be damaged."""
    live = of_epoch(3, 0, 1) + of_epoch(5, 2)
    file = truncated_log(tmp_path / "orders-0", (0, live), deleted=of_epoch(3, 2, 3, 4), at=2)
    history = file.with_name("leader-epoch-checkpoint")
    history.unlink() if text is None else history.write_text(text)
    assert named(cw.LogWriter.plan_recovery(file.parent).kept_files) == {file.name}


@pytest.mark.parametrize("epoch", [3, 1])
def test_a_segment_that_is_lost_between_live_ones_stays_also_with_a_flipped_bit_of_its_epoch(
    tmp_path: Path, epoch: int
) -> None:
    """A truncated record at offset 2 would have been written again before 3."""
    live = [(0, of_epoch(2, 0, 1)), (3, of_epoch(3, 3, 4))]
    file = truncated_log(tmp_path / "orders-0", *live, deleted=of_epoch(epoch, 2), at=2)
    write_epochs(file.parent, (2, 0), (3, 2))
    assert stays(file)
