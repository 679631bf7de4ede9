"""The size of a micro-batch: maximum, minimum, and everything available."""

from __future__ import annotations

from pathlib import Path

import corpus
import needs_pyspark  # noqa: F401
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadMaxRows, SupportsTriggerAvailableNow

from spark.reading import DATA, Row, data_parts
from spark.streaming import ALL, EARLIEST, Engine, expected, flat, grow, offsets_of, rows_of

PARTS = list(data_parts().values())


@settings(max_examples=25)
@given(st.lists(st.integers(1, 200), min_size=1, max_size=8))
def test_every_record_is_read_once_with_any_limits(limits: list[int]) -> None:
    engine = Engine(DATA, subscribe="cities,rivers.compact", **EARLIEST)
    rows: list[Row] = []
    for limit in limits:
        before = engine.offsets
        got = engine.batch(ReadMaxRows(limit))
        if got is None:
            break
        assert len(got) <= limit + 3  # each of the three partitions gets at least one
        assert any(engine.offsets[t][p] > before[t][p] for t in before for p in before[t])
        rows += got
    rows += engine.batch(ALL) or []
    wanted = [p for p in PARTS if p.topic in ("cities", "rivers.compact")]
    assert sorted(rows) == expected(*wanted)


def test_the_limit_is_shared_in_proportion_to_the_backlog() -> None:
    big, small = corpus.partition("01-plain"), corpus.partition("01-small")
    engine = Engine(big.path, small.path, **EARLIEST, maxOffsetsPerTrigger=187)
    assert engine.limit == ReadMaxRows(187)
    end = offsets_of(engine.latest())
    assert 145 <= end["orders"]["0"] <= 155
    assert 32 <= end["tickets"]["0"] <= 42
    assert sum(len(rows) for rows in engine.all()) == 1870


def test_every_partition_with_a_backlog_gets_at_least_one_offset(tmp_path: Path) -> None:
    """Otherwise a small partition would wait for a large one, and many equal ones would never advance."""
    big, small = corpus.partition("01-plain"), corpus.partition("15-one-record")
    engine = Engine(big.path, small.path, **EARLIEST, maxOffsetsPerTrigger=10)
    assert offsets_of(engine.latest())[small.topic] == {"0": 1}
    for number in range(5):
        grow(tmp_path / f"t-{number}", 0, 0, 1)
    assert len(Engine(tmp_path, **EARLIEST, maxOffsetsPerTrigger=2).all()) == 3


def test_without_a_limit_all_is_read_at_once_and_the_engine_may_lift_the_limit() -> None:
    part = corpus.partition("01-plain")
    assert Engine(part.path, **EARLIEST).limit == ALL
    assert [len(rows) for rows in Engine(part.path, **EARLIEST).all()] == [1500]
    engine = Engine(part.path, **EARLIEST, maxOffsetsPerTrigger=10)
    assert len(engine.batch(ALL) or []) == 1500


def test_available_now_ends_at_the_offsets_of_its_start(tmp_path: Path) -> None:
    grow(tmp_path / "t-0", 0, 0, 5)
    engine = Engine(tmp_path, maxOffsetsPerTrigger=4, **EARLIEST)
    assert isinstance(engine.reader, SupportsTriggerAvailableNow)
    engine.reader.prepareForTriggerAvailableNow()
    rows = engine.batch() or []
    grow(tmp_path / "t-0", 0, 15, 5)
    grow(tmp_path / "t-1", 0, 0, 5)
    rows += [row for more in engine.all(20) for row in more]
    assert rows == rows_of("t", 0, range(15))
    resumed = Engine(tmp_path, checkpoint=engine.at, **EARLIEST)
    resumed.reader.prepareForTriggerAvailableNow()
    wanted = [*rows_of("t", 0, range(15, 30)), *rows_of("t", 1, range(15))]
    assert flat(resumed.all()) == wanted


def test_min_offsets_wait_for_enough_records(tmp_path: Path) -> None:
    grow(tmp_path / "t-0", 0, 0, 2)
    engine = Engine(tmp_path, minOffsetsPerTrigger=10, maxTriggerDelay="1h", **EARLIEST)
    # the first micro-batch may run immediately, as in Spark's Kafka source, or wait
    engine.batch()
    engine.at = {"t": {"0": 6}}
    grow(tmp_path / "t-0", 0, 6, 2)
    assert engine.batch() is None
    grow(tmp_path / "t-0", 0, 12, 2)
    assert engine.batch() == rows_of("t", 0, range(6, 18))


def test_min_and_max_offsets_both_apply(tmp_path: Path) -> None:
    """Limits cannot be combined in Spark's interface: silently ignoring one would be worse than an error."""
    grow(tmp_path / "t-0", 0, 0, 1)
    engine = Engine(tmp_path, minOffsetsPerTrigger=5, maxOffsetsPerTrigger=7, maxTriggerDelay="1h", **EARLIEST)
    engine.batch()
    engine.at = {"t": {"0": 3}}
    grow(tmp_path / "t-0", 0, 3, 1)
    assert engine.batch() is None
    grow(tmp_path / "t-0", 0, 6, 4)
    assert engine.batch() == rows_of("t", 0, range(3, 10))
    assert engine.batch() == rows_of("t", 0, range(10, 17))
    assert engine.batch() is None


def test_available_now_does_not_wait_for_min_offsets(tmp_path: Path) -> None:
    """The query would never end."""
    grow(tmp_path / "t-0", 0, 0, 1)
    engine = Engine(tmp_path, minOffsetsPerTrigger=50, **EARLIEST)
    engine.reader.prepareForTriggerAvailableNow()
    assert flat(engine.all()) == rows_of("t", 0, range(3))
    grow(tmp_path / "t-0", 0, 3, 4)
    both = Engine(tmp_path, minOffsetsPerTrigger=8, maxOffsetsPerTrigger=9, checkpoint=engine.at, **EARLIEST)
    both.reader.prepareForTriggerAvailableNow()
    assert [len(rows) for rows in both.all()] == [9, 3]
