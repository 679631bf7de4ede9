"""Logs whose leader epochs fall, as after a restored backup under another cluster: a consumer reads all records."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from commands import cordwood
from epoch_logs import FALLS, write

import cordwood as cw

# one wrong epoch, which no checksum covers: the segments, and the offset of the batch
WRONG = {
    "lower than those around it": ([[5, 5, 4, 5, 5]], 2),
    "higher than those around it": ([[5, 5, 13, 5, 5]], 2),
    "of the first batch of a segment": ([[5, 5], [4, 5, 5]], 2),
    "of the first batch of a segment, higher": ([[2, 2], [5, 2, 2]], 2),
    "of the last batch of a segment": ([[5, 5, 4], [5, 5]], 2),
    "of the last batch of a segment, higher": ([[2, 2, 5], [2, 2]], 2),
    "of the only batch of a segment": ([[5, 5], [4], [5, 5]], 2),
}


@pytest.mark.parametrize("name", FALLS)
@pytest.mark.parametrize("is_indexed", [True, False])
def test_all_records_are_read_copied_and_kept_where_epochs_fall(tmp_path: Path, name: str, is_indexed: bool) -> None:
    partition = tmp_path / "orders-0"
    values = write(partition, FALLS[name])
    if is_indexed:
        cw.rebuild_indexes(partition, dry_run=False)
    log = cw.Log(partition)
    assert log.log_end_offset == len(values)
    assert log.scan().to_arrow()["value"].to_pylist() == values
    assert [record.value for record in log.records()] == values
    assert log.scan(on_damage="skip", threads=2).to_arrow()["value"].to_pylist() == values
    for offset in range(len(values)):
        assert log.locate(offset).batch_base_offset == offset
        assert log.scan(start_offset=offset).to_arrow()["value"].to_pylist() == values[offset:]
    shown = cordwood("cat", str(partition), "--columns", "value")
    assert (shown.returncode, len(shown.stdout.splitlines())) == (0, len(values))
    cw.copy(partition, tmp_path / "copy")
    assert cw.Log(tmp_path / "copy").scan().to_arrow()["value"].to_pylist() == values

    findings = cw.verify(partition).findings
    assert not [finding for finding in findings if finding.severity == "error"]
    assert "leader_epochs_fall" in {finding.code for finding in findings}
    assert not cw.repair(partition, policy="salvage").lost_ranges
    with cw.LogWriter(partition) as writer:
        assert writer.append(b"new").first_offset == len(values)
    assert cw.Log(partition).scan().to_arrow()["value"].to_pylist() == [*values, b"new"]
    assert not [finding for finding in cw.verify(partition).findings if finding.severity == "error"]


def test_records_are_kept_wherever_segments_end(tmp_path: Path) -> None:
    random = Random(1)
    for trial in range(60):
        # a run of two batches or more for each epoch
        epochs = [epoch for _ in range(random.randint(2, 4)) for epoch in [random.randint(0, 7)] * random.randint(2, 3)]
        segments: list[list[int]] = [[]]
        for epoch in epochs:
            segments[-1].append(epoch)
            if random.random() < 0.4:
                segments.append([])
        partition = tmp_path / str(trial) / "orders-0"
        values = write(partition, [segment for segment in segments if segment])
        log = cw.Log(partition)
        assert log.scan(columns=["value"]).to_arrow()["value"].to_pylist() == values, segments
        for offset in range(len(values)):
            assert log.locate(offset).batch_base_offset == offset, segments
            assert log.scan(start_offset=offset).to_arrow()["value"].to_pylist() == values[offset:], segments
        assert not [finding for finding in cw.verify(partition).findings if finding.severity == "error"], segments
        assert not cw.repair(partition, policy="salvage").lost_ranges, segments
        cw.copy(partition, tmp_path / str(trial) / "copy")


@pytest.mark.parametrize("name", WRONG)
def test_one_wrong_epoch_is_damage(tmp_path: Path, name: str) -> None:
    partition = tmp_path / "orders-0"
    segments, wrong = WRONG[name]
    write(partition, segments)
    (finding,) = [finding for finding in cw.verify(partition).findings if finding.severity == "error"]
    assert (finding.code, finding.start_offset) == ("damaged_batch", wrong)
    # the checksum is right, and a consumer reads the record
    assert not cw.repair(partition, policy="salvage", dry_run=False).lost_ranges
    assert len(cw.Log(partition).scan().to_arrow()) == sum(map(len, segments))
    assert not [finding for finding in cw.verify(partition).findings if finding.severity == "error"]


@pytest.mark.parametrize(("epochs", "wrong"), [([5, 5, 5, 4], 3), ([7, 5, 5, 5], 0)])
def test_an_epoch_at_an_end_of_the_log_that_the_file_contradicts_is_an_error(
    tmp_path: Path, epochs: list[int], wrong: int
) -> None:
    partition = tmp_path / "orders-0"
    values = write(partition, [epochs])
    (partition / "leader-epoch-checkpoint").write_text("0\n1\n5 0\n")
    (finding,) = [finding for finding in cw.verify(partition).findings if finding.severity == "error"]
    assert (finding.code, finding.start_offset) == ("leader_epoch_mismatch", wrong)
    assert cw.Log(partition).scan().to_arrow()["value"].to_pylist() == values


@pytest.mark.parametrize("file", ["0\n1\n5 0\n", "0\n1\n2 3\n"])
def test_the_file_that_a_broker_leaves_where_epochs_fall_is_no_error(tmp_path: Path, file: str) -> None:
    partition = tmp_path / "orders-0"
    write(partition, [[5, 5, 5, 2, 2]])
    # after a recovery, and after an append
    (partition / "leader-epoch-checkpoint").write_text(file)
    assert not [finding for finding in cw.verify(partition).findings if finding.severity == "error"]
    with cw.LogWriter(partition) as writer:
        writer.append(b"new")
    assert (partition / "leader-epoch-checkpoint").read_text() == "0\n1\n2 3\n"


@pytest.mark.parametrize("segments", [[[0, 1, 2, 2, 1, 1]], [[0, 1], [2, 2], [1, 1]]])
@pytest.mark.parametrize(
    "entries",
    [
        [(0, 0), (1, 1), (2, 2)],  # of a broker that recovered the log
        [(0, 0), (1, 4)],  # of one that appended its batches
    ],
)
def test_what_a_broker_keeps_of_epochs_that_fall_is_left(
    tmp_path: Path, segments: list[list[int]], entries: list[tuple[int, int]]
) -> None:
    partition = tmp_path / "orders-0"
    write(partition, segments)
    cw.rebuild_indexes(partition, dry_run=False)
    lines = "".join(f"{epoch} {start}\n" for epoch, start in entries)
    (partition / "leader-epoch-checkpoint").write_text(f"0\n{len(entries)}\n{lines}")
    assert not [finding for finding in cw.verify(partition).findings if finding.severity == "error"]
    for policy in ("torn_tail", "salvage"):
        assert "replace_leader_epochs" not in {action.kind for action in cw.repair(partition, policy=policy).actions}
    with cw.LogWriter(partition):
        pass
    assert not [finding for finding in cw.verify(partition).findings if finding.severity == "error"]
    assert cw.repair(partition).is_clean


def test_a_repair_of_epochs_that_fall_is_complete(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    write(partition, [[0, 1], [2, 2], [1, 1]])
    (partition / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n7 3\n")
    cw.repair(partition, dry_run=False)
    assert cw.repair(partition).is_clean
    assert not [finding for finding in cw.verify(partition).findings if finding.severity == "error"]
