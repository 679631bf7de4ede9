"""Streams in a real Spark: checkpoints, restarts, growth, retention, and the errors that a user gets."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpus
import needs_pyspark  # noqa: F401
import pytest
from batches import Rec, batch, name
from pyspark.errors import StreamingQueryException

from cordwood.spark import errors
from spark.streaming import offsets_of

pytestmark = pytest.mark.spark

Row = tuple[str, int, int, bytes]
SECONDS = 60


def grow(path: Path, base: int, first: int, count: int) -> None:
    """Append batches of three records to the segment `base`, or create it."""
    path.mkdir(parents=True, exist_ok=True)
    with (path / name(base)).open("ab") as file:
        for n in range(first, first + 3 * count, 3):
            file.write(batch(n, [Rec(b"v%d" % (n + i), timestamp=n + i) for i in range(3)]))


def rows_of(topic: str, number: int, offsets: range) -> list[Row]:
    return [(topic, number, offset, b"v%d" % offset) for offset in offsets]


class Sink:
    """Keeps the rows of each micro-batch, by query run."""

    def __init__(self) -> None:
        self.batches: dict[int, list[Row]] = {}

    def __call__(self, frame: Any, number: int) -> None:
        table = frame.select("topic", "partition", "offset", "value").toArrow()
        self.batches[number] = [tuple(row.values()) for row in table.to_pylist()]

    @property
    def rows(self) -> list[Row]:
        return sorted(row for rows in self.batches.values() for row in rows)


@pytest.fixture
def start(spark: Any, tmp_path: Path) -> Any:
    """Starts a query from the checkpoint of the test; all are stopped at its end."""
    queries = []

    def run(sink: Callable[[Any, int], None], path: Path, *, now: bool = True, **options: Any) -> Any:
        stream = spark.readStream.format("cordwood").options(**options).load(str(path))
        writer = stream.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = (writer.trigger(availableNow=True) if now else writer.trigger(processingTime="0 seconds")).start()
        queries.append(query)
        return query

    yield run
    for query in queries:
        query.stop()


def ended(query: Any) -> Any:
    assert query.awaitTermination(SECONDS)
    assert query.exception() is None
    return query


def test_a_query_that_restarts_between_all_micro_batches_gives_every_record_once(start: Any, tmp_path: Path) -> None:
    """Each run reads the additions since the last one: records, a segment, a partition, a topic."""
    data, sink = tmp_path / "data", Sink()
    steps: list[Callable[[], None]] = [
        lambda: grow(data / "a.b-0", 0, 0, 5),
        lambda: (grow(data / "a.b-0", 15, 15, 1), grow(data / "a.b-1", 7, 7, 1))[0],
        lambda: grow(data / "c-d-11", 0, 0, 1),
    ]
    counts = []
    for step in steps:
        step()
        ended(start(sink, data, startingOffsets="earliest"))
        counts.append(len(sink.rows))
    assert counts == [15, 21, 24]
    assert sink.rows == sorted(
        [*rows_of("a.b", 0, range(18)), *rows_of("a.b", 1, range(7, 10)), *rows_of("c-d", 11, range(3))]
    )
    logged = sorted((tmp_path / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
    offsets = [offsets_of(json.loads(file.read_text().splitlines()[-1])) for file in logged]
    # a start is recorded before anything is read, also that of a new partition
    named = [{"a.b": {"0": 0}}, {"a.b": {"0": 15}}, {"a.b": {"0": 18, "1": 7}}, {"a.b": {"0": 18, "1": 10}}]
    assert offsets[:4] == named
    assert offsets[-1] == {"a.b": {"0": 18, "1": 10}, "c-d": {"11": 3}}


def test_limits_apply_to_micro_batches_and_available_now_ends(start: Any) -> None:
    part, sink = corpus.partition("01-small"), Sink()
    query = ended(start(sink, part.path, startingOffsets="earliest", maxOffsetsPerTrigger=130))
    assert [len(sink.batches[n]) for n in sorted(sink.batches)] == [0, 130, 130, 110]
    assert [row[2] for row in sink.rows] == list(range(370))
    assert [(row[2], row[3]) for row in sink.rows] == [(r.offset, r.value) for r in corpus.visible(part)]
    last = [p for p in query.recentProgress if p["numInputRows"]][-1]["sources"][0]
    assert offsets_of(json.loads(last["endOffset"])) == {"tickets": {"0": 370}}
    assert offsets_of(json.loads(last["latestOffset"])) == {"tickets": {"0": 370}}


class Failing(Sink):
    """A sink that fails once: at the micro-batch `number`."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.fails_at: int | None = number

    def __call__(self, frame: Any, number: int) -> None:
        if number == self.fails_at:
            self.fails_at = None
            raise RuntimeError("the sink is full")
        super().__call__(frame, number)


@pytest.mark.parametrize(("begin", "first"), [("latest", 6), ("earliest", 0)])
def test_a_query_whose_first_micro_batch_failed_keeps_its_start(
    start: Any, tmp_path: Path, begin: str, first: int
) -> None:
    """Spark requests the start again, after the log has grown."""
    data, sink = tmp_path / "data", Failing(0)
    grow(data / "t-0", 0, 0, 2)
    with pytest.raises(StreamingQueryException, match="the sink is full"):
        start(sink, data, startingOffsets=begin).awaitTermination(SECONDS)
    grow(data / "t-0", 0, 6, 2)
    ended(start(sink, data, startingOffsets=begin))
    assert sink.rows == rows_of("t", 0, range(first, 12))


def test_retention_after_the_first_rows_failed_is_data_loss(start: Any, tmp_path: Path) -> None:
    data, sink = tmp_path / "data", Failing(1)
    for base in (0, 6):
        grow(data / "t-0", base, base, 2)
    with pytest.raises(StreamingQueryException, match="the sink is full"):
        start(sink, data, startingOffsets="earliest").awaitTermination(SECONDS)
    (data / "t-0" / name(0)).unlink()
    told = failure(start(sink, data, startingOffsets="earliest"))
    assert (told.code, told.topic, told.partition) == ("CORDWOOD_SEGMENT_GONE", "t", 0)
    assert "new checkpointLocation" in told.reason
    ended(start(sink, data, startingOffsets="earliest", failOnDataLoss=False))
    assert sink.rows == rows_of("t", 0, range(6, 12))


def test_a_running_query_starts_at_the_latest_and_reads_new_records_segments_and_partitions(
    start: Any, tmp_path: Path
) -> None:
    data, sink = tmp_path / "data", Sink()
    grow(data / "t-0", 0, 0, 2)
    query = start(sink, data, now=False)
    query.processAllAvailable()
    assert sink.rows == []
    grow(data / "t-0", 0, 6, 1)
    query.processAllAvailable()
    grow(data / "t-0", 9, 9, 1)
    grow(data / "t-1", 0, 0, 1)
    query.processAllAvailable()
    assert sink.rows == [*rows_of("t", 0, range(6, 12)), *rows_of("t", 1, range(3))]
    assert query.exception() is None


def failure(query: Any) -> Any:
    with pytest.raises(StreamingQueryException) as raised:
        query.awaitTermination(SECONDS)
    assert "exited unexpectedly" not in str(raised.value)
    return errors.parse(raised.value)


def test_retention_that_overtakes_a_query_is_reported_or_skipped(start: Any, tmp_path: Path) -> None:
    data, sink = tmp_path / "data", Sink()
    grow(data / "t-0", 0, 0, 2)
    ended(start(sink, data, startingOffsets="earliest"))
    shutil.rmtree(data)
    grow(data / "t-0", 30, 30, 2)
    told = failure(start(sink, data))
    assert told.code in ("CORDWOOD_OFFSET_OUT_OF_RANGE", "CORDWOOD_SEGMENT_GONE")
    assert (told.topic, told.partition) == ("t", 0)
    ended(start(sink, data, failOnDataLoss=False))
    assert sink.rows == [*rows_of("t", 0, range(6)), *rows_of("t", 0, range(30, 36))]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("endingOffsets", "latest"),
        ("endingTimestamp", "1700000010000"),
        ("endingOffsetsByTimestamp", '{"tickets":{"0":1700000010000}}'),
        ("table", "segments"),
    ],
)
def test_options_of_batch_queries_fail_a_stream_when_it_starts(start: Any, option: str, value: str) -> None:
    told = failure(start(Sink(), corpus.partition("01-small").path, startingOffsets="earliest", **{option: value}))
    assert told.code == "CORDWOOD_BAD_OPTION"
    assert told.reason.startswith(f"{option}: expected ")
    assert "for a stream" in told.reason


def test_a_corrupt_batch_fails_a_query_with_code_and_position(start: Any) -> None:
    damaged = corpus.GOLDEN / "damaged" / "flip-record" / "tickets-0"
    told = failure(start(Sink(), damaged, startingOffsets="earliest"))
    assert (told.code, told.topic, told.partition) == ("CORDWOOD_CORRUPT_BATCH", "tickets", 0)
    assert (told.segment, told.position) == (285, 2126)
