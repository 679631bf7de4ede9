"""Logs that grow during a stream: new records, segments and partitions."""

from __future__ import annotations

from pathlib import Path

import pytest
from batches import name

from spark.streaming import EARLIEST, Engine, grow, offsets_of, rows_of


def test_records_segments_and_partitions_that_appear_are_picked_up(tmp_path: Path) -> None:
    grow(tmp_path / "t-0", 0, 0, 4)
    engine = Engine(tmp_path, **EARLIEST)
    assert engine.batch() == rows_of("t", 0, range(12))
    assert engine.batch() is None
    grow(tmp_path / "t-0", 0, 12, 1)
    assert engine.batch() == rows_of("t", 0, range(12, 15))
    grow(tmp_path / "t-0", 15, 15, 2)
    assert engine.batch() == rows_of("t", 0, range(15, 21))
    grow(tmp_path / "t-1", 5, 5, 1)
    grow(tmp_path / "t-0", 15, 21, 1)
    # its start is recorded before it is read
    assert engine.batch() == rows_of("t", 0, range(21, 24))
    assert engine.offsets == {"t": {"0": 24, "1": 5}}
    assert engine.batch() == rows_of("t", 1, range(5, 8))
    assert engine.offsets == {"t": {"0": 24, "1": 8}}
    grow(tmp_path / "u-0", 0, 0, 1)
    assert engine.batch() == []
    assert engine.batch() == rows_of("u", 0, range(3))
    assert engine.batch() is None


@pytest.mark.parametrize("start", ["latest", "earliest"])
def test_a_partition_that_appears_is_read_from_its_beginning_however_the_stream_began(
    tmp_path: Path, start: str
) -> None:
    """Also after a restart: a partition that is not in the checkpoint is new."""
    grow(tmp_path / "t-0", 0, 0, 4)
    engine = Engine(tmp_path, startingOffsets=start)
    first = engine.batch()
    assert first == (None if start == "latest" else rows_of("t", 0, range(12)))
    grow(tmp_path / "t-1", 0, 0, 2)
    restarted = Engine(tmp_path, startingOffsets=start, checkpoint=engine.at)
    assert restarted.batch() == []
    assert restarted.batch() == rows_of("t", 1, range(6))
    grow(tmp_path / "t-2", 0, 0, 1)
    assert restarted.batch() == []
    assert restarted.batch() == rows_of("t", 2, range(3))


def test_a_partition_without_a_segment_yet_is_waited_for(tmp_path: Path) -> None:
    """A broker creates the directory first."""
    grow(tmp_path / "t-0", 0, 0, 1)
    (tmp_path / "t-1").mkdir()
    engine = Engine(tmp_path, **EARLIEST)
    assert engine.batch() == rows_of("t", 0, range(3))
    (tmp_path / "t-1" / name(0)).touch()
    assert engine.batch() in (None, [])
    grow(tmp_path / "t-1", 0, 0, 1)
    assert engine.batch() == rows_of("t", 1, range(3))


def test_partitions_outside_the_subscription_do_not_appear(tmp_path: Path) -> None:
    grow(tmp_path / "t-0", 0, 0, 1)
    engine = Engine(tmp_path, subscribe="t", **EARLIEST)
    engine.batch()
    grow(tmp_path / "u-0", 0, 0, 1)
    assert engine.batch() is None


@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"])
def test_a_batch_that_is_half_written_waits_until_it_is_whole(tmp_path: Path, mode: str) -> None:
    """It is not damage in any mode: a writer may be writing it."""
    path = tmp_path / "t-0"
    grow(path, 0, 0, 2)
    engine = Engine(path, mode=mode, **EARLIEST)
    assert [row[:3] for row in engine.batch() or []] == rows_of("t", 0, range(6))
    for cut in (5, 30, -1):
        before = (path / name(0)).read_bytes()
        rest = grow(path, 0, 6, 1, tail=cut)
        assert engine.batch() is None
        with (path / name(0)).open("ab") as file:
            file.write(rest)
        assert offsets_of(engine.latest()) == {"t": {"0": 9}}
        (path / name(0)).write_bytes(before)
        engine = Engine(path, checkpoint=engine.at, mode=mode, **EARLIEST)
    grow(path, 0, 6, 1)
    assert [row[:3] for row in engine.batch() or []] == rows_of("t", 0, range(6, 9))


def test_what_is_planned_is_read_though_the_log_grows_meanwhile(tmp_path: Path) -> None:
    grow(tmp_path / "t-0", 0, 0, 2)
    engine = Engine(tmp_path, **EARLIEST)
    start, end = engine.at, engine.latest()
    grow(tmp_path / "t-0", 0, 6, 2)
    grow(tmp_path / "t-0", 12, 12, 2)
    assert engine.read(start, end) == rows_of("t", 0, range(6))
