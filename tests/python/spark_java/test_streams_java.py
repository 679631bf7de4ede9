"""Streams of the source in Java: triggers, limits, restarts, and checkpoints that both sources continue."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import corpus
import needs_pyspark  # noqa: F401
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from spark.streaming import offsets_of

import cordwood as cw
from cordwood.spark import errors

SECONDS = 60
JAVA, PYTHON = "cordwood", "cordwood_python"
EARLIEST = {"startingOffsets": "earliest"}
Row = tuple[str, int, int, bytes]


class Log:
    """A partition that grows by a writer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Row] = []

    def append(self, count: int) -> None:
        self.path.parent.mkdir(exist_ok=True)
        with cw.LogWriter(self.path) as writer:
            start = len(self.rows)
            values = [b"v%d" % number for number in range(start, start + count)]
            writer.append_many(values)
        topic, _, number = self.path.name.rpartition("-")
        self.rows += [(topic, int(number), start + i, value) for i, value in enumerate(values)]


class Sink:
    """Keeps the rows of each micro-batch."""

    def __init__(self) -> None:
        self.batches: dict[int, list[Row]] = {}
        self.fails_at: int | None = None

    def __call__(self, frame: Any, number: int) -> None:
        if number == self.fails_at:
            self.fails_at = None
            raise RuntimeError("the sink fails once")
        table = frame.select("topic", "partition", "offset", "value").toArrow()
        self.batches[number] = [tuple(row.values()) for row in table.to_pylist()]

    @property
    def rows(self) -> list[Row]:
        return sorted(row for rows in self.batches.values() for row in rows)

    @property
    def sizes(self) -> list[int]:
        return [len(self.batches[number]) for number in sorted(self.batches)]


class Stream:
    """Runs of one query from its checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.sink = Sink()
        self.queries: list[Any] = []

    def start(self, path: Path, form: str = JAVA, condition: str = "true", **options: Any) -> Any:
        trigger = options.pop("trigger", {"availableNow": True})
        frame = self.spark.readStream.format(form).options(**options).load(str(path)).where(condition)
        writer = frame.writeStream.foreachBatch(self.sink).option("checkpointLocation", str(self.folder / "checkpoint"))
        self.queries.append(writer.trigger(**trigger).start())
        return self.queries[-1]

    def run(self, path: Path, form: str = JAVA, condition: str = "true", **options: Any) -> Any:
        query = self.start(path, form, condition, **options)
        assert query.awaitTermination(SECONDS)
        assert query.exception() is None
        return query

    def offsets(self) -> list[dict[str, dict[str, int]]]:
        """The offsets in the checkpoint, in the order of the micro-batches."""
        files = sorted((self.folder / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
        return [offsets_of(json.loads(file.read_text().splitlines()[-1])) for file in files]


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Iterator[Stream]:
    found = Stream(spark, tmp_path)
    yield found
    for query in found.queries:
        query.stop()


def test_available_now_reads_what_exists_and_ends(stream: Stream) -> None:
    part = corpus.partition("01-small")
    query = stream.run(part.path, **EARLIEST)
    assert [(row[2], row[3]) for row in stream.sink.rows] == [(r.offset, r.value) for r in corpus.visible(part)]
    source = query.recentProgress[-1]["sources"][0]
    assert "(JVM) cordwood records" in source["description"]
    assert offsets_of(json.loads(source["endOffset"])) == {"tickets": {"0": 370}}
    stream.run(part.path, **EARLIEST)
    assert len(stream.sink.rows) == 370


@pytest.mark.parametrize("limit", [130, 1000])
def test_a_limit_admits_no_more_offsets_to_a_micro_batch(stream: Stream, limit: int) -> None:
    part = corpus.partition("01-small")
    stream.run(part.path, **EARLIEST, maxOffsetsPerTrigger=limit)
    assert stream.sink.sizes == ([0, 130, 130, 110] if limit == 130 else [0, 370])


def test_a_limit_is_shared_by_partitions(stream: Stream, tmp_path: Path) -> None:
    logs = [Log(tmp_path / "data" / f"a-{number}") for number in range(3)]
    for log, count in zip(logs, (60, 30, 10), strict=True):
        log.append(count)
    stream.run(tmp_path / "data", **EARLIEST, maxOffsetsPerTrigger=20)
    assert max(stream.sink.sizes) <= 20
    assert sum(stream.sink.sizes) == 100
    assert stream.sink.rows == sorted(row for log in logs for row in log.rows)


def test_a_query_restarts_between_all_micro_batches_while_the_log_grows(stream: Stream, tmp_path: Path) -> None:
    log, other = Log(tmp_path / "data" / "a-0"), Log(tmp_path / "data" / "b-0")
    for number in range(8):
        log.append(7)
        if number > 3:
            other.append(2)
        stream.run(tmp_path / "data", **EARLIEST)
        assert stream.sink.rows == sorted(log.rows + other.rows)
    assert stream.offsets()[-1] == {"a": {"0": 56}, "b": {"0": 8}}


def test_a_query_stops_after_each_micro_batch_and_continues(stream: Stream, tmp_path: Path) -> None:
    """With the limit, each run of a stopped query commits some micro-batches of the rest."""
    log = Log(tmp_path / "a-0")
    log.append(40)
    for _ in range(20):
        before = len(stream.sink.batches)
        trigger = {"processingTime": "0 seconds"}
        query = stream.start(log.path, **EARLIEST, maxOffsetsPerTrigger=6, trigger=trigger)
        while len(stream.sink.batches) == before and query.isActive and len(stream.sink.rows) < 80:
            query.awaitTermination(0.05)
        query.stop()
        if len(log.rows) < 80:
            log.append(8)
        if len(stream.sink.rows) == 80:
            break
    assert stream.sink.rows == log.rows
    assert max(stream.sink.sizes) <= 6


def test_a_micro_batch_that_failed_is_repeated_with_the_same_rows(stream: Stream, tmp_path: Path) -> None:
    log = Log(tmp_path / "a-0")
    log.append(20)
    stream.sink.fails_at = 2
    with pytest.raises(StreamingQueryException, match="the sink fails once"):
        stream.run(log.path, **EARLIEST, maxOffsetsPerTrigger=8)
    planned = stream.offsets()[-1]
    log.append(20)
    stream.run(log.path, **EARLIEST, maxOffsetsPerTrigger=30)
    assert stream.offsets()[2] == planned
    assert stream.sink.sizes == [0, 8, 8, 24]
    assert stream.sink.rows == log.rows


@pytest.mark.parametrize("first", [JAVA, PYTHON])
def test_the_other_source_continues_a_checkpoint(stream: Stream, tmp_path: Path, first: str) -> None:
    log, new = Log(tmp_path / "data" / "a-0"), Log(tmp_path / "data" / "a-1")
    forms = itertools.cycle([first, JAVA if first == PYTHON else PYTHON])
    for number in range(4):
        log.append(9)
        if number > 0:
            new.append(3)
        stream.run(tmp_path / "data", next(forms), **EARLIEST, maxOffsetsPerTrigger=8)
        assert stream.sink.rows == sorted(log.rows + new.rows)
    assert stream.offsets()[-1] == {"a": {"0": 36, "1": 9}}


@pytest.mark.parametrize("first", [JAVA, PYTHON])
def test_the_other_source_repeats_a_micro_batch_that_failed(stream: Stream, tmp_path: Path, first: str) -> None:
    log = Log(tmp_path / "a-0")
    log.append(20)
    stream.sink.fails_at = 1
    with pytest.raises(StreamingQueryException):
        stream.run(log.path, first, **EARLIEST, maxOffsetsPerTrigger=8)
    stream.run(log.path, JAVA if first == PYTHON else PYTHON, **EARLIEST)
    assert stream.sink.sizes == [0, 8, 12]
    assert stream.sink.rows == log.rows


def test_both_sources_write_the_same_offsets(spark: SparkSession, tmp_path: Path) -> None:
    log = Log(tmp_path / "data" / "a-0")
    log.append(25)
    written = []
    for form in (JAVA, PYTHON):
        one = Stream(spark, tmp_path / form)
        one.run(tmp_path / "data", form, **EARLIEST, maxOffsetsPerTrigger=10)
        files = sorted((tmp_path / form / "checkpoint" / "offsets").glob("[0-9]*"))
        written.append([json.loads(file.read_text().splitlines()[-1]) for file in files])
    assert written[0] == written[1]


def test_filters_and_columns_of_a_stream(stream: Stream, tmp_path: Path) -> None:
    log = Log(tmp_path / "a-0")
    log.append(30)
    stream.run(log.path, condition="offset >= 5 AND offset < 25 AND topic = 'a'", **EARLIEST, maxOffsetsPerTrigger=10)
    log.append(10)
    stream.run(log.path, condition="offset % 2 = 1", **EARLIEST)
    assert [row[2] for row in stream.sink.rows] == [*range(5, 25), 31, 33, 35, 37, 39]


def test_a_stream_reports_the_latest_offset_and_how_much_is_left(stream: Stream, tmp_path: Path) -> None:
    log = Log(tmp_path / "a-0")
    log.append(30)
    query = stream.run(log.path, **EARLIEST, maxOffsetsPerTrigger=10)
    last = [progress for progress in query.recentProgress if progress["numInputRows"]][-1]["sources"][0]
    assert offsets_of(json.loads(last["latestOffset"])) == {"a": {"0": 30}}
    assert last["metrics"]


def test_options_of_batch_queries_are_refused_when_the_query_starts(stream: Stream) -> None:
    with pytest.raises(Exception, match="CORDWOOD_BAD_OPTION") as raised:
        stream.run(corpus.partition("01-small").path, endingTimestamp=1)
    found = errors.parse(raised.value)
    assert found is not None
    assert "endingTimestamp" in found.reason
