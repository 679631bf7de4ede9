"""Counts of the records of a range, from batch headers if these are exact."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import corpus
import needs_pyspark  # noqa: F401
import pytest

import cordwood as cw
from cordwood._core import _Query, _SourceOptions, _Task
from cordwood.spark.errors import CORRUPT_BATCH, SEGMENT_GONE, SparkLogError
from cordwood.spark.jobs.counting import CountSource, _RecountSource
from spark.reading import made, source

PLAIN = corpus.partition("01-plain")


def query(path: Path, **options: str) -> _Query:
    return _Query(_SourceOptions({"path": str(path), **options}))


def planned(path: Path, start: int, end: int, **options: str) -> tuple[_Query, list[_Task]]:
    """The tasks of a range of a partition."""
    topic, _, number = path.name.rpartition("-")
    bounds = {
        f"{name}Offsets": json.dumps({topic: {number: at}}) for name, at in (("starting", start), ("ending", end))
    }
    given = query(path, **bounds, **options)
    return given, given.plan()[1]


def counted(path: Path, start: int, end: int, **options: str) -> int:
    given, tasks = planned(path, start, end, **options)
    return sum(given.count(piece.task) for task in tasks for piece in task.pieces)


@pytest.mark.parametrize("part", corpus.partitions(), ids=str)
def test_counts_are_those_of_the_corpus(part: corpus.Partition) -> None:
    log = cw.Log(part.path)
    start, end = log.log_start_offset, log.log_end_offset
    spans = {(start, end), (start + 1, end), (start, end - 1), ((2 * start + end) // 3, (start + 2 * end) // 3)}
    for low, high in spans:
        if not start <= low <= high <= end:
            continue
        in_span = [r for r in corpus.visible(part) if low <= r.offset < high]
        for options in ({}, {"mode": "DROPMALFORMED"}, {"failOnDataLoss": "false"}):
            assert counted(part.path, low, high, **options) == len(in_span), (low, high, options)
    stable = log.last_stable_offset
    for low in {start, min(start + 5, stable)}:
        committed = [r for r in corpus.committed(part, end) if low <= r.offset < stable]
        assert counted(part.path, low, stable, isolationLevel="read_committed") == len(committed), low


def gone(path: Path, base_offset: int) -> None:
    for file in path.glob(f"{base_offset:020}.*"):
        file.unlink()


@pytest.mark.parametrize(("base_offset", "left"), [(0, 1100), (400, 1093), (1217, 1217)])
def test_a_segment_that_was_removed_after_planning_is_an_error(
    copied: Callable[[Path], Path], caplog: pytest.LogCaptureFixture, base_offset: int, left: int
) -> None:
    path = copied(PLAIN.path)
    strict, tasks = planned(path, 0, 1500, maxPartitionBytes="100000000")
    gone(path, base_offset)
    with pytest.raises(SparkLogError, match="orders-0") as caught:
        strict.count(tasks[0])
    assert caught.value.code == SEGMENT_GONE
    lenient = query(path, failOnDataLoss="false")
    assert lenient.count(tasks[0]) == left
    assert SEGMENT_GONE in caplog.text


def test_a_segment_that_was_shortened_after_planning_is_an_error(copied: Callable[[Path], Path]) -> None:
    path = copied(PLAIN.path)
    strict, tasks = planned(path, 0, 1500)
    last = max(path.glob("*.log"))
    os.truncate(last, last.stat().st_size - 1)
    with pytest.raises(SparkLogError, match="shortened") as caught:
        strict.count(tasks[0])
    assert caught.value.code == SEGMENT_GONE
    lenient = query(path, failOnDataLoss="false")
    assert lenient.count(tasks[0]) == cw.Log(path).log_end_offset


def test_records_deleted_inside_a_batch_after_planning_are_not_counted(copied: Callable[[Path], Path]) -> None:
    path = copied(PLAIN.path)
    lenient, tasks = planned(path, 0, 1500, failOnDataLoss="false")
    (path.parent / "log-start-offset-checkpoint").write_text("0\n1\norders 0 103\n")
    assert sum(map(lenient.count, tasks)) == 1397


def test_a_second_count_does_not_repeat_warnings(caplog: pytest.LogCaptureFixture) -> None:
    """An export counts the records that it has just written with warnings about damage."""
    path = corpus.GOLDEN / "damaged" / "flip-record" / "tickets-0"
    for kind, warnings in ((CountSource, 1), (_RecountSource, 0)):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "cordwood"):
            found = made(kind(source(path, mode="DROPMALFORMED").options))
            assert sum(table["records"].to_pylist()[0] for table in found.tables()) == 369
        assert len(caplog.records) == warnings
    assert not logging.getLogger("cordwood").disabled


def test_a_count_without_a_missing_topic_warns_of_it_once(caplog: pytest.LogCaptureFixture) -> None:
    options = {"subscribe": "cities,towns", "failOnDataLoss": "false"}
    with caplog.at_level(logging.WARNING, "cordwood"):
        found = made(CountSource(source(corpus.GOLDEN / "16-data-dir", **options).options))
        assert {topic for table in found.tables() for topic in table["topic"].to_pylist()} == {"cities"}
    assert len([record for record in caplog.records if "towns" in record.getMessage()]) == 1


def test_a_partition_without_records_is_counted(tmp_path: Path) -> None:
    shutil.copytree(corpus.partition("15-one-record").path, tmp_path / "t-0")
    found = made(CountSource(source(tmp_path, startingOffsets={"t": {"0": 1}}).options))
    rows = [row for table in found.tables() for row in table.to_pylist()]
    assert rows == [{"topic": "t", "partition": 0, "records": 0, "offsetGap": 0}]


@pytest.mark.parametrize("left", [[], ["00000000000000000000.index"]], ids=["just created", "lost"])
def test_a_count_skips_a_partition_that_was_just_created_and_fails_for_one_that_lost_its_segments(
    tmp_path: Path, left: list[str]
) -> None:
    shutil.copytree(corpus.partition("15-one-record").path, tmp_path / "t-0")
    (tmp_path / "t-1").mkdir()
    for file in ["leader-epoch-checkpoint", *left]:
        (tmp_path / "t-1" / file).touch()
    options = source(tmp_path).options
    if left:
        with pytest.raises(SparkLogError, match="t-1") as caught:
            made(CountSource(options))
        assert caught.value.code == SEGMENT_GONE
        return
    assert {row["partition"] for table in made(CountSource(options)).tables() for row in table.to_pylist()} == {0}


@pytest.mark.parametrize("path", sorted(corpus.GOLDEN.glob("damaged/*/*-[0-9]*/")), ids=lambda path: path.parent.name)
def test_damage_is_counted_as_it_is_read(path: Path) -> None:
    log = cw.Log(path)
    # a missing segment is not damage
    compacted = {"cleanupPolicy": "compact"}
    start, end = log.log_start_offset, log.log_end_offset
    for mode, on_damage in (("FAILFAST", "raise"), ("DROPMALFORMED", "skip"), ("PERMISSIVE", "skip")):
        try:
            rows = log.scan(columns=["offset"], on_damage=on_damage).to_arrow().num_rows
        except cw.CorruptLogError:
            with pytest.raises(SparkLogError) as caught:
                counted(path, start, end, mode=mode, **compacted)
            assert caught.value.code == CORRUPT_BATCH
            continue
        for piece_bytes in (1, 1_000, 10_000, 1 << 30):
            assert counted(path, start, end, mode=mode, maxPartitionBytes=str(piece_bytes), **compacted) == rows, (
                mode,
                piece_bytes,
            )
