"""Streams as the engine of Spark drives them: offsets, limits, restarts, and logs that grow, shrink and appear."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import corpus
import pytest
from batches import Rec, batch, name, write_partition
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StringType, StructField, StructType
from spark_reading import Plan, again, data_parts, kafka_rows, refuses, source, struct
from tables import first_difference
from test_damaged import EXACT, Damage

from cordwood.spark import errors

NAMES = ("topic", "partition", "offset")
DATA = corpus.GOLDEN / "16-data-dir"
ALL = ReadAllAvailable()

Row = tuple[Any, ...]


def through_json(offset: dict[str, Any]) -> dict[str, Any]:
    """Spark keeps offsets as text."""
    return dict(json.loads(json.dumps(offset)))


class Engine:
    """One run of a query: what Spark's engine asks of a stream reader, and in which order."""

    def __init__(self, *paths: Path | str, checkpoint: dict[str, Any] | None = None, **options: Any) -> None:
        self.data = again(source(*paths, **options))
        self.schema = struct(*NAMES)
        if options.get("mode") == "PERMISSIVE":
            self.schema = StructType([*self.schema.fields, StructField("_error", StringType())])
        self.reader = self.data.streamReader(schema=self.schema)
        # a query that is started again is not asked where to begin
        self.at = through_json(self.reader.initialOffset()) if checkpoint is None else checkpoint
        self.limit: ReadLimit = self.reader.getDefaultReadLimit()

    def latest(self, limit: ReadLimit | None = None) -> dict[str, Any]:
        return through_json(self.reader.latestOffset(self.at, self.limit if limit is None else limit))

    def read(self, start: dict[str, Any], end: dict[str, Any]) -> list[Row]:
        """The rows between two offsets; every task has a reader of its own."""
        splits = self.reader.partitions(start, end)
        assert isinstance(splits, list)
        found = Plan(self.data, self.schema, self.reader, splits)
        return [row for piece in found.pieces() for row in piece]

    def batch(self, limit: ReadLimit | None = None) -> list[Row] | None:
        """One micro-batch; `None` where there is nothing new, which Spark sees by the text."""
        end = self.latest(limit)
        if json.dumps(end) == json.dumps(self.at):
            return None
        rows = self.read(self.at, end)
        self.reader.commit(end)
        self.at = end
        return rows

    def all(self, most: int = 500) -> list[list[Row]]:
        found = []
        while (rows := self.batch()) is not None:
            found.append(rows)
            assert len(found) <= most
        return found


def flat(found: list[list[Row]]) -> list[Row]:
    return sorted(row for rows in found for row in rows)


def expected(*parts: corpus.Partition) -> list[Row]:
    return sorted(row for part in parts for row in kafka_rows(part, corpus.visible(part), NAMES))


EARLIEST = {"startingOffsets": "earliest"}
PARTS = list(data_parts().values())


def test_offsets_are_those_of_kafkas_own_json() -> None:
    engine = Engine(DATA, subscribe="cities", **EARLIEST)
    assert engine.at == {"cities": {"0": 0, "1": 31}}
    assert engine.latest() == {"cities": {"0": 268, "1": 150}}


def test_a_stream_begins_at_the_latest_offset_unless_told_otherwise() -> None:
    assert Engine(DATA, subscribe="cities").at == {"cities": {"0": 268, "1": 150}}
    assert Engine(DATA, subscribe="cities").batch() is None
    offsets = {"cities": {"0": -1, "1": -2}}
    assert Engine(DATA, subscribe="cities", startingOffsets=offsets).at == {"cities": {"0": 268, "1": 31}}
    offsets = {"cities": {"0": 7, "1": 149}}
    assert Engine(DATA, subscribe="cities", startingOffsets=offsets).at == offsets


def test_a_stream_may_begin_at_a_time() -> None:
    part = corpus.partition("01-plain")
    time = corpus.visible(part)[700].timestamp
    found = corpus.first_at_or_after(corpus.visible(part), time)
    assert found is not None
    assert Engine(part.path, startingTimestamp=time).at == {"orders": {"0": found.offset}}
    by_partition = {"orders": {"0": time}}
    assert Engine(part.path, startingOffsetsByTimestamp=by_partition).at == {"orders": {"0": found.offset}}
    late = {"startingTimestamp": 4_000_000_000_000}
    assert Engine(part.path, startingOffsetsByTimestampStrategy="latest", **late).at == {"orders": {"0": 1500}}
    with refuses("CORDWOOD_TIME_NOT_FOUND"):
        Engine(part.path, **late)


@pytest.mark.parametrize("part", [p for p in corpus.partitions() if p.case != "18-leaps"], ids=str)
def test_a_stream_from_the_earliest_offset_gives_every_record_once(part: corpus.Partition) -> None:
    found = Engine(part.path, **EARLIEST, maxOffsetsPerTrigger=800).all()
    assert first_difference(flat(found), expected(part)) == ""


@pytest.mark.parametrize("limit", [None, 1, 7, 100])
def test_nothing_is_lost_or_doubled_when_the_query_restarts_between_all_micro_batches(limit: int | None) -> None:
    """Each micro-batch has an engine of its own that knows the last offset from the checkpoint only."""
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
    """Spark plans a micro-batch again whose offsets were logged and whose end was not committed."""
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


@settings(max_examples=25)
@given(st.lists(st.integers(1, 200), min_size=1, max_size=8))
def test_whatever_limits_the_engine_gives_every_record_comes_once(limits: list[int]) -> None:
    engine = Engine(DATA, subscribe="cities,rivers.compact", **EARLIEST)
    rows: list[Row] = []
    for limit in limits:
        before = engine.at
        got = engine.batch(ReadMaxRows(limit))
        if got is None:
            break
        assert len(got) <= limit + 3  # at least one of each of the three
        assert any(engine.at[t][p] > before[t][p] for t in before for p in before[t])
        rows += got
    rows += engine.batch(ALL) or []
    wanted = [p for p in PARTS if p.topic in ("cities", "rivers.compact")]
    assert sorted(rows) == expected(*wanted)


def test_the_limit_is_shared_in_proportion_to_the_backlog() -> None:
    big, small = corpus.partition("01-plain"), corpus.partition("01-small")
    engine = Engine(big.path, small.path, **EARLIEST, maxOffsetsPerTrigger=187)
    assert engine.limit == ReadMaxRows(187)
    end = engine.latest()
    assert 145 <= end["orders"]["0"] <= 155
    assert 32 <= end["tickets"]["0"] <= 42
    assert sum(len(rows) for rows in engine.all()) == 1870


def test_whoever_has_a_backlog_gets_at_least_one_however_small_the_limit(tmp_path: Path) -> None:
    """Otherwise a small partition would wait for a large one, and many equal ones for ever."""
    big, small = corpus.partition("01-plain"), corpus.partition("15-one-record")
    engine = Engine(big.path, small.path, **EARLIEST, maxOffsetsPerTrigger=10)
    assert engine.latest()[small.topic] == {"0": 1}
    for number in range(5):
        grow(tmp_path / f"t-{number}", 0, 0, 1)
    assert len(Engine(tmp_path, **EARLIEST, maxOffsetsPerTrigger=2).all()) == 3


def test_without_a_limit_all_is_read_at_once_and_the_engine_may_lift_the_limit() -> None:
    part = corpus.partition("01-plain")
    assert Engine(part.path, **EARLIEST).limit == ALL
    assert [len(rows) for rows in Engine(part.path, **EARLIEST).all()] == [1500]
    engine = Engine(part.path, **EARLIEST, maxOffsetsPerTrigger=10)
    assert len(engine.batch(ALL) or []) == 1500


def grow(path: Path, base: int, first: int, count: int, *, tail: int | None = None) -> bytes:
    """Append batches of three records to the segment `base`, or begin it; `tail` cuts off the last bytes."""
    raws = [
        batch(first + 3 * n, [Rec(b"v%d" % (first + 3 * n + i), timestamp=first + 3 * n + i) for i in range(3)])
        for n in range(count)
    ]
    data = b"".join(raws)
    path.mkdir(parents=True, exist_ok=True)
    with (path / name(base)).open("ab") as file:
        file.write(data[:tail])
    return data if tail is None else data[tail:]


def rows_of(topic: str, number: int, offsets: range) -> list[Row]:
    return [(topic, number, offset) for offset in offsets]


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
    # where it begins is written down before it is read
    assert engine.batch() == rows_of("t", 0, range(21, 24))
    assert engine.at == {"t": {"0": 24, "1": 5}}
    assert engine.batch() == rows_of("t", 1, range(5, 8))
    assert engine.at == {"t": {"0": 24, "1": 8}}
    grow(tmp_path / "u-0", 0, 0, 1)
    assert engine.batch() == []
    assert engine.batch() == rows_of("u", 0, range(3))
    assert engine.batch() is None


def test_retention_of_a_partition_that_appeared_is_noticed_by_a_micro_batch_that_is_done_again(tmp_path: Path) -> None:
    grow(tmp_path / "t-0", 0, 0, 1)
    engine = Engine(tmp_path, **EARLIEST)
    engine.batch()
    grow(tmp_path / "t-1", 0, 0, 1)
    grow(tmp_path / "t-1", 3, 3, 1)
    # where it begins is written down before it is read
    assert engine.batch() == []
    assert engine.at == {"t": {"0": 3, "1": 0}}
    end = engine.reader.latestOffset(engine.at, ReadAllAvailable())
    assert end == {"t": {"0": 3, "1": 6}}
    (tmp_path / "t-1" / name(0)).unlink()
    again = Engine(tmp_path, checkpoint=engine.at, **EARLIEST)
    with refuses("CORDWOOD_SEGMENT_GONE", "t-1", "0"):
        again.reader.partitions(engine.at, end)


def test_a_log_that_was_made_anew_goes_on_from_its_end_where_data_loss_is_allowed(tmp_path: Path) -> None:
    grow(tmp_path / "t-0", 0, 0, 4)
    engine = Engine(tmp_path, checkpoint={"t": {"0": 5000}}, failOnDataLoss=False, **EARLIEST)
    engine.batch()
    grow(tmp_path / "t-0", 0, 12, 1)
    assert engine.batch() == rows_of("t", 0, range(12, 15))


@pytest.mark.parametrize("start", ["latest", "earliest"])
def test_a_partition_that_appears_is_read_from_its_beginning_however_the_stream_began(
    tmp_path: Path, start: str
) -> None:
    """Also after a restart: one that the checkpoint does not know is new."""
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


def test_offsets_that_the_first_start_was_told_do_not_stop_a_later_one(tmp_path: Path) -> None:
    """The options stay as they were when a query is started again; partitions come and go."""
    grow(tmp_path / "t-0", 0, 0, 4)
    options = {"startingOffsets": {"t": {"0": 6}}}
    engine = Engine(tmp_path, **options)
    assert engine.batch() == rows_of("t", 0, range(6, 12))
    grow(tmp_path / "t-1", 0, 0, 1)
    resumed = Engine(tmp_path, checkpoint=engine.at, **options)
    assert resumed.batch() == []
    assert resumed.batch() == rows_of("t", 1, range(3))
    with refuses("CORDWOOD_BAD_OPTION", "startingOffsets", "t-1"):
        Engine(tmp_path, **options)


def test_a_partition_without_a_segment_yet_is_waited_for(tmp_path: Path) -> None:
    """A broker makes the directory first."""
    grow(tmp_path / "t-0", 0, 0, 1)
    (tmp_path / "t-1").mkdir()
    engine = Engine(tmp_path, **EARLIEST)
    assert engine.batch() == rows_of("t", 0, range(3))
    (tmp_path / "t-1" / name(0)).touch()
    assert engine.batch() in (None, [])
    grow(tmp_path / "t-1", 0, 0, 1)
    assert engine.batch() == rows_of("t", 1, range(3))


@pytest.mark.parametrize("offset", [13, 5])
def test_a_start_that_the_log_does_not_have_is_data_loss(tmp_path: Path, offset: int) -> None:
    grow(tmp_path / "t-0", 6, 6, 2)
    options = {"startingOffsets": {"t": {"0": offset}}}
    with refuses("CORDWOOD_OFFSET_OUT_OF_RANGE", "t-0"):
        Engine(tmp_path, **options)
    wanted = {"t": {"0": 12 if offset == 13 else 6}}
    assert Engine(tmp_path, failOnDataLoss=False, **options).at == wanted


def test_partitions_outside_the_subscription_do_not_appear(tmp_path: Path) -> None:
    grow(tmp_path / "t-0", 0, 0, 1)
    engine = Engine(tmp_path, subscribe="t", **EARLIEST)
    engine.batch()
    grow(tmp_path / "u-0", 0, 0, 1)
    assert engine.batch() is None


@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"])
def test_a_batch_that_is_half_written_waits_until_it_is_whole(tmp_path: Path, mode: str) -> None:
    """It is no damage, in no mode: its writer is at it."""
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
        assert engine.latest() == {"t": {"0": 9}}
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


def test_the_text_of_an_offset_does_not_depend_on_the_order_of_discovery(tmp_path: Path) -> None:
    """Spark compares texts: another order of the keys would be an endless series of empty micro-batches."""
    for number in range(12):
        grow(tmp_path / f"disk{number % 2}" / f"t-{number}", 0, 0, 1)
        grow(tmp_path / f"disk{number % 2}" / f"b-{number}", 0, 0, 1)
    disks = [tmp_path / "disk0", tmp_path / "disk1"]
    one, other = Engine(*disks, **EARLIEST), Engine(*reversed(disks), **EARLIEST)
    assert json.dumps(one.at) == json.dumps(other.at)
    assert json.dumps(one.latest()) == json.dumps(other.latest())
    assert list(one.at) == ["b", "t"]
    rows = one.batch()
    assert rows is not None
    assert len(rows) == 72
    assert json.dumps(one.latest()) == json.dumps(one.at)
    resumed = Engine(*reversed(disks), checkpoint=one.at, **EARLIEST)
    assert resumed.batch() is None
    grow(tmp_path / "disk1" / "a-1", 0, 0, 1)
    resumed.batch()
    grow(tmp_path / "disk1" / "a-0", 0, 0, 1)
    resumed.batch()
    assert list(resumed.at) == ["a", "b", "t"]
    assert list(resumed.at["a"]) == ["0", "1"]


def test_a_range_without_records_reads_nothing() -> None:
    engine = Engine(DATA, **EARLIEST)
    assert len(engine.reader.partitions(engine.at, engine.at)) <= 1
    assert engine.read(engine.at, engine.at) == []


def test_available_now_ends_at_what_was_there_when_it_began(tmp_path: Path) -> None:
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
    # the first micro-batch may come at once, as in Spark's Kafka source, or wait
    engine.batch()
    engine.at = {"t": {"0": 6}}
    grow(tmp_path / "t-0", 0, 6, 2)
    assert engine.batch() is None
    grow(tmp_path / "t-0", 0, 12, 2)
    assert engine.batch() == rows_of("t", 0, range(6, 18))


def test_min_and_max_together_are_both_kept(tmp_path: Path) -> None:
    """Limits do not compose in Spark's interface: one that was dropped in silence would be worse than an error."""
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


def test_available_now_does_not_wait_for_the_least_number_of_offsets(tmp_path: Path) -> None:
    """Nothing would come any more: the query would never end."""
    grow(tmp_path / "t-0", 0, 0, 1)
    engine = Engine(tmp_path, minOffsetsPerTrigger=50, **EARLIEST)
    engine.reader.prepareForTriggerAvailableNow()
    assert flat(engine.all()) == rows_of("t", 0, range(3))
    grow(tmp_path / "t-0", 0, 3, 4)
    both = Engine(tmp_path, minOffsetsPerTrigger=8, maxOffsetsPerTrigger=9, checkpoint=engine.at, **EARLIEST)
    both.reader.prepareForTriggerAvailableNow()
    assert [len(rows) for rows in both.all()] == [9, 3]


@pytest.mark.parametrize(
    "options",
    [
        {"endingOffsets": "latest"},
        {"endingOffsets": {"cities": {"0": 5, "1": 40}}},
        {"endingTimestamp": 5},
        {"endingOffsetsByTimestamp": {"cities": {"0": 5, "1": 40}}},
        {"minOffsetsPerTrigger": 5, "maxOffsetsPerTrigger": 2},
        {"maxOffsetsPerTrigger": 0},
        {"startingOffsets": {"cities": {"0": 5}}},
        {"table": "batches"},
        {"startingOfsets": "earliest"},
    ],
    ids=str,
)
def test_options_that_make_no_sense_in_a_stream_are_refused(options: dict[str, Any]) -> None:
    with refuses("CORDWOOD_BAD_OPTION"):
        Engine(DATA, subscribe="cities", **options)


def test_a_missing_path_is_refused_before_the_stream_begins() -> None:
    with refuses("CORDWOOD_NOT_FOUND"):
        Engine("/nowhere/at/all")


def retained(path: Path) -> None:
    """The oldest segment goes, as retention takes it."""
    (path / name(0)).unlink()


@pytest.fixture
def rolled(tmp_path: Path) -> Iterator[Path]:
    """Three segments of six records."""
    path = tmp_path / "data" / "t-0"
    for base in (0, 6, 12):
        grow(path, base, base, 2)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def test_retention_that_overtakes_the_stream_is_data_loss(rolled: Path) -> None:
    engine = Engine(rolled, maxOffsetsPerTrigger=4, **EARLIEST)
    assert engine.batch() == rows_of("t", 0, range(4))
    retained(rolled)
    with pytest.raises(Exception, match=r"^\[CORDWOOD_(OFFSET_OUT_OF_RANGE|SEGMENT_GONE)\] t-0"):
        engine.batch()
    with pytest.raises(Exception, match=r"^\[CORDWOOD_(OFFSET_OUT_OF_RANGE|SEGMENT_GONE)\] t-0"):
        Engine(rolled, checkpoint=engine.at, **EARLIEST).batch()


def test_without_fail_on_data_loss_the_stream_goes_on_at_the_log_start(rolled: Path) -> None:
    engine = Engine(rolled, maxOffsetsPerTrigger=4, failOnDataLoss=False, **EARLIEST)
    assert engine.batch() == rows_of("t", 0, range(4))
    retained(rolled)
    assert flat(engine.all()) == rows_of("t", 0, range(6, 18))


def test_retention_between_planning_and_reading_is_data_loss_too(rolled: Path) -> None:
    plans = []
    for lenient in (False, True):
        engine = Engine(rolled, failOnDataLoss=not lenient, **EARLIEST)
        splits = engine.reader.partitions(engine.at, engine.latest())
        plans.append(Plan(engine.data, engine.schema, engine.reader, splits))
    retained(rolled)
    strict, lenient_plan = plans
    with pytest.raises(Exception, match=r"^\[CORDWOOD_(OFFSET_OUT_OF_RANGE|SEGMENT_GONE)\] t-0"):
        strict.pieces()
    assert [row for piece in lenient_plan.pieces() for row in piece] == rows_of("t", 0, range(6, 18))


@pytest.mark.parametrize("lenient", [False, True])
def test_a_partition_that_is_deleted_under_a_stream_is_data_loss(tmp_path: Path, lenient: bool) -> None:
    for number in range(2):
        grow(tmp_path / f"t-{number}", 0, 0, 4)
    engine = Engine(tmp_path, maxOffsetsPerTrigger=6, failOnDataLoss=not lenient, **EARLIEST)
    got = engine.batch() or []
    shutil.rmtree(tmp_path / "t-1")
    grow(tmp_path / "t-0", 0, 12, 1)
    if not lenient:
        with pytest.raises(Exception, match=r"^\[CORDWOOD_(NOT_FOUND|SEGMENT_GONE)\]"):
            engine.all()
        return
    got += flat(engine.all())
    assert [row for row in sorted(got) if row[1] == 0] == rows_of("t", 0, range(15))
    assert len(got) == len(set(got))


def test_a_partition_that_was_away_for_a_while_goes_on_where_it_was(tmp_path: Path) -> None:
    """A disk that was not mounted: what was read before is not read again when it is back."""
    for number in range(2):
        grow(tmp_path / f"t-{number}", 0, 0, 2)
    engine = Engine(tmp_path, failOnDataLoss=False, **EARLIEST)
    assert len(engine.batch() or []) == 12
    (tmp_path / "t-1").rename(tmp_path / "away")
    grow(tmp_path / "t-0", 0, 6, 1)
    assert engine.batch() == rows_of("t", 0, range(6, 9))
    (tmp_path / "away").rename(tmp_path / "t-1")
    grow(tmp_path / "t-1", 0, 6, 1)
    assert engine.batch() == rows_of("t", 1, range(6, 9))


def test_a_log_that_was_cut_back_behind_the_stream_is_data_loss(tmp_path: Path) -> None:
    """A new leader may have fewer records; what is written at those offsets next is something else."""
    path = tmp_path / "t-0"
    grow(path, 0, 0, 4)
    engine = Engine(path, **EARLIEST)
    assert engine.batch() == rows_of("t", 0, range(12))
    shutil.rmtree(path)
    grow(path, 0, 0, 2)
    with pytest.raises(Exception, match=r"^\[CORDWOOD_(OFFSET_OUT_OF_RANGE|SEGMENT_GONE)\] t-0"):
        engine.batch()


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
    assert engine.at == {"payments": {"0": part.opened["lastStableOffset"]}}


def test_a_corrupt_batch_ends_a_stream_with_its_code_and_permissive_goes_on() -> None:
    damaged = corpus.GOLDEN / "damaged" / "flip-record" / "tickets-0"
    with refuses("CORDWOOD_CORRUPT_BATCH", "tickets-0"):
        Engine(damaged, maxOffsetsPerTrigger=40, **EARLIEST).all()
    engine = Engine(damaged, maxOffsetsPerTrigger=40, mode="DROPMALFORMED", **EARLIEST)
    assert [row[2] for row in flat(engine.all())] == [o for o in range(370) if o != 302]


@pytest.mark.parametrize("limit", [None, 7])
@pytest.mark.parametrize("damage", EXACT, ids=str)
def test_permissive_streams_report_each_damaged_offset_once(damage: Damage, limit: int | None) -> None:
    """A micro-batch that ends inside a gap reports its own part of it, and the next one the rest."""
    options = {**EARLIEST, "mode": "PERMISSIVE", **({} if limit is None else {"maxOffsetsPerTrigger": limit})}
    found = [row for rows in Engine(damage.path, **options).all() for row in rows]
    assert sorted(row[:3] for row in found if row[3] is None) == kafka_rows(damage.source, damage.survivors, NAMES)
    gaps = [row for row in found if row[3] is not None]
    assert len({(row[0], row[1], row[2]) for row in gaps}) == len(gaps) >= 1
    assert len({errors.parse(row[3]).position for row in gaps}) == 1
    assert limit is not None or len(gaps) == 1


def test_a_large_damaged_batch_is_reported_once_by_a_stream(copied: Any) -> None:
    """Several micro-batches begin and end inside of it."""
    part = corpus.partition("02-gzip")
    path = copied(part.path)
    hit = max(corpus.batches(part)[:-1], key=lambda b: b["lastOffset"] - b["baseOffset"])
    file = path / name(hit["segment"])
    data = bytearray(file.read_bytes())
    data[hit["position"] + hit["size"] - 1] ^= 0x10
    file.write_bytes(data)
    engine = Engine(path, mode="PERMISSIVE", maxOffsetsPerTrigger=10, **EARLIEST)
    found = [row for rows in engine.all() for row in rows]
    good = [row[2] for row in found if row[3] is None]
    assert good == [r.offset for r in corpus.visible(part) if not hit["baseOffset"] <= r.offset <= hit["lastOffset"]]
    assert [row[2] for row in found if row[3] is not None] == [hit["baseOffset"]]


def test_the_latest_offset_is_reported_for_the_progress() -> None:
    engine = Engine(DATA, subscribe="cities", maxOffsetsPerTrigger=10, **EARLIEST)
    engine.batch()
    assert through_json(engine.reader.reportLatestOffset()) == {"cities": {"0": 268, "1": 150}}


def test_a_stream_of_a_log_that_a_writer_made_by_hand_reads_like_a_batch(tmp_path: Path) -> None:
    """The helper above writes what a batch query reads, too: otherwise the tests here would show little."""
    path = write_partition(tmp_path / "t-0", [])
    grow(path, 0, 0, 3)
    grow(path, 9, 9, 1)
    found = source(path).reader(schema=struct("offset"))
    tables = [batch.column(0).to_pylist() for split in found.partitions() for batch in found.read(split)]
    assert sorted(offset for table in tables for offset in table) == list(range(12))
