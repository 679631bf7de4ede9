"""Logs whose leader epochs fall, as after a restored backup under another cluster: a consumer reads all records."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import cordwood
from epoch_logs import FALLS, write

import cordwood as cw

# one wrong epoch, which no checksum covers: the segments, and the offset of the batch
WRONG = {
    "lower than those around it": ([[5, 5, 4, 5, 5]], 2),
    "higher than those around it": ([[5, 5, 13, 5, 5]], 2),
    "of the last batch": ([[5, 5, 5, 4]], 3),
    "of the first batch": ([[7, 5, 5, 5]], 0),
    "of the first batch of a segment": ([[5, 5], [4, 5, 5]], 2),
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


@pytest.mark.parametrize("name", WRONG)
def test_one_wrong_epoch_is_damage(tmp_path: Path, name: str) -> None:
    partition = tmp_path / "orders-0"
    segments, wrong = WRONG[name]
    write(partition, segments)
    (finding,) = [finding for finding in cw.verify(partition).findings if finding.severity == "error"]
    assert (finding.code, finding.start_offset) == ("damaged_batch", wrong)
