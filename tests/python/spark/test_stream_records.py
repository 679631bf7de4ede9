"""The records of a stream: each is read once, with any micro-batches and restarts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import corpus
import pytest
from batches import write_partition
from tables import first_difference

from spark.reading import DATA, NAMES, Row, kafka_rows, source, struct
from spark.streaming import EARLIEST, Engine, expected, flat, grow


@pytest.mark.parametrize("part", [p for p in corpus.partitions() if p.case != "18-leaps"], ids=str)
def test_a_stream_from_the_earliest_offset_gives_every_record_once(part: corpus.Partition) -> None:
    found = Engine(part.path, **EARLIEST, maxOffsetsPerTrigger=800).all()
    assert first_difference(flat(found), expected(part)) == ""


@pytest.mark.parametrize("limit", [None, 1, 7, 100])
def test_nothing_is_lost_or_duplicated_when_the_query_restarts_between_all_micro_batches(limit: int | None) -> None:
    """Each micro-batch has its own engine, which has the last offset only from the checkpoint."""
    part = corpus.partition("15-one-record") if limit == 1 else corpus.partition("23-truncated")
    options = {**EARLIEST, **({} if limit is None else {"maxOffsetsPerTrigger": limit})}
    at: dict[str, Any] | None = None
    rows: list[Row] = []
    for _ in range(400):
        engine = Engine(part.path, checkpoint=at, **options)
        got = engine.batch()
        at = engine.at
        if got is None:
            break
        assert got
        rows += got
    assert rows == expected(part)


def test_a_restart_at_any_micro_batch_repeats_it_exactly() -> None:
    """Spark plans a micro-batch again if its offsets were logged and its end was not committed."""
    options = {**EARLIEST, "subscribe": "cities,rivers.compact", "maxOffsetsPerTrigger": 90}
    engine = Engine(DATA, **options)
    steps = [engine.at]
    batches = []
    while (rows := engine.batch()) is not None:
        steps.append(engine.at)
        batches.append(rows)
    assert len(batches) > 5
    for start, end, rows in zip(steps, steps[1:], batches, strict=False):
        again_engine = Engine(DATA, checkpoint=start, **options)
        assert sorted(again_engine.read(start, end)) == sorted(rows)


def test_a_range_without_records_reads_nothing() -> None:
    engine = Engine(DATA, **EARLIEST)
    assert len(engine.reader.partitions(engine.at, engine.at)) <= 1
    assert engine.read(engine.at, engine.at) == []


@pytest.mark.parametrize("split", [{"maxPartitionBytes": 2000}, {"minPartitions": 7}, {"maxRecordsPerPartition": 9}])
def test_micro_batches_are_split_like_batches(split: dict[str, int]) -> None:
    part = corpus.partition("21-follower")
    engine = Engine(part.path, isolationLevel="read_committed", maxOffsetsPerTrigger=500, **split, **EARLIEST)
    assert len(engine.reader.partitions(engine.at, engine.latest())) > 5
    assert flat(engine.all()) == kafka_rows(part, corpus.committed(part, part.opened["logEndOffset"]), NAMES)


def test_read_committed_streams_stop_at_the_last_stable_offset() -> None:
    part = corpus.partition("11-transactions")
    engine = Engine(part.path, isolationLevel="read_committed", maxOffsetsPerTrigger=50, **EARLIEST)
    found = flat(engine.all())
    assert found == kafka_rows(part, corpus.committed(part, part.opened["logEndOffset"]), NAMES)
    assert engine.offsets == {"payments": {"0": part.opened["lastStableOffset"]}}


def test_a_stream_of_a_generated_log_reads_the_same_as_a_batch(tmp_path: Path) -> None:
    """A check of `grow`, on which the tests of streams depend."""
    path = write_partition(tmp_path / "t-0", [])
    grow(path, 0, 0, 3)
    grow(path, 9, 9, 1)
    found = source(path).reader(schema=struct("offset"))
    tables = [batch.column(0).to_pylist() for split in found.partitions() for batch in found.read(split)]
    assert sorted(offset for table in tables for offset in table) == list(range(12))
