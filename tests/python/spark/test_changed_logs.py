"""Changes on disk in a real Spark, whose planner and workers keep logs open: a part of `test_changes.py`'s table.

Each change is a topic, so that one query runs many cells.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import needs_pyspark  # noqa: F401
import pytest
from pyspark.errors import StreamingQueryException

from cordwood.spark import errors
from spark.changes import CHANGES, Change, Found, Values, aged, make
from spark.reading import FAILURES

pytestmark = [pytest.mark.spark, pytest.mark.long]

TOPICS = {f"topic-{number}": change for number, change in enumerate(CHANGES)}
REPAIRED = {topic: change for topic, change in TOPICS.items() if len(change.steps) > 1}
SECONDS = 90


def make_all(folder: Path, topics: Iterable[str] = TOPICS) -> Path:
    for topic in topics:
        make(folder / f"{topic}-0")
        aged(folder / f"{topic}-0")
    return folder


def step(folder: Path, number: int, topics: dict[str, Change] = TOPICS) -> None:
    """Apply this step of every change; the step of a change with only one is its last."""
    for topic, change in topics.items():
        place = number if len(change.steps) > 1 else number - 1
        if 0 <= place < len(change.steps):
            change.steps[place](folder / f"{topic}-0")


def rows(frame: Any) -> tuple[dict[str, Values], dict[str, int]]:
    """Values by topic and offset, and the number of rows about damage by topic."""
    found: dict[str, Values] = defaultdict(dict)
    damaged: dict[str, int] = defaultdict(int)
    for row in frame.toArrow().to_pylist():
        if row.get("_error") is not None:
            damaged[row["topic"]] += 1
            continue
        assert row["offset"] not in found[row["topic"]], "a record is given twice"
        found[row["topic"]][row["offset"]] = row["value"]
    return found, damaged


def wanted(topics: dict[str, Change], found: Callable[[Change], Found]) -> dict[str, Values]:
    return {topic: values for topic, change in topics.items() if (values := found(change).rows)}


def batch_of(change: Change) -> Found:
    return change.batch


def stream_of(change: Change) -> Found:
    return change.stream


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> dict[str, tuple[Path, dict[str, Change]]]:
    """Three data directories after the changes, by when the session first read them."""
    folder = tmp_path_factory.mktemp("changes")
    places = {
        "new": (make_all(folder / "new"), TOPICS),
        "between": (make_all(folder / "between", REPAIRED), REPAIRED),
        "before": (make_all(folder / "before"), TOPICS),
    }
    lenient = {"mode": "DROPMALFORMED", "failOnDataLoss": False}
    for number, seen in enumerate((["before"], ["before", "between"])):
        for session in seen:
            assert load(spark, places[session][0], **lenient).count() > 0
        for path, topics in places.values():
            step(path, number, topics)
    return places


def load(spark: Any, path: Path, **options: Any) -> Any:
    return spark.read.format("cordwood").options(columns="topic,offset,value", **options).load(str(path))


@pytest.mark.parametrize("mode", ["DROPMALFORMED", "PERMISSIVE"])
@pytest.mark.parametrize("session", ["new", "between", "before"])
def test_a_query_returns_the_existing_rows_if_loss_is_allowed(spark: Any, data: Any, session: str, mode: str) -> None:
    path, topics = data[session]
    found, damaged = rows(load(spark, path, mode=mode, failOnDataLoss=False))
    assert found == wanted(topics, batch_of)
    hit = {topic: 1 for topic, change in topics.items() if change.batch.damaged and mode == "PERMISSIVE"}
    assert damaged == hit


@pytest.mark.parametrize("session", ["new", "between", "before"])
def test_a_query_returns_all_rows_or_an_error(spark: Any, data: Any, session: str) -> None:
    path, topics = data[session]
    whole = {topic: change for topic, change in topics.items() if not (change.batch.lost or change.batch.damaged)}
    assert rows(load(spark, path, subscribe=",".join(whole)))[0] == wanted(whole, batch_of)
    for topic in topics.keys() - whole.keys():
        with pytest.raises(FAILURES) as raised:
            load(spark, path, subscribe=topic).count()
        told = errors.parse(raised.value)
        code = "CORDWOOD_SEGMENT_GONE" if topics[topic].batch.lost else "CORDWOOD_CORRUPT_BATCH"
        assert (told.code, told.topic) == (code, topic)


# changes of streams whose first micro-batch with rows ends at offset 45
STREAMED = {topic: change for topic, change in TOPICS.items() if change.at == 45}


class Sink:
    """Keeps the rows after the change, which is made in the second micro-batch; the first is empty."""

    def __init__(self, change: Callable[[], None], fails_at: int | None = None) -> None:
        self.change = change
        self.fails_at = fails_at
        self.values: dict[str, Values] = defaultdict(dict)

    def __call__(self, frame: Any, number: int) -> None:
        if number == self.fails_at:
            raise RuntimeError("the sink is full")
        found, _ = rows(frame)
        if number == 1:
            assert {tuple(values) for values in found.values()} == {tuple(range(45))}
            self.change()
            return
        for topic, values in found.items():
            assert self.values[topic].keys().isdisjoint(values), "a record is given twice"
            self.values[topic] |= values


def start(spark: Any, path: Path, sink: Sink, **options: Any) -> Any:
    options = {"columns": "topic,offset,value", "startingOffsets": "earliest", **options}
    stream = spark.readStream.format("cordwood").options(**options).load(str(path))
    checkpoint = str(path.parent / "checkpoint")
    return stream.writeStream.foreachBatch(sink).option("checkpointLocation", checkpoint).start()


@pytest.mark.parametrize("session", ["running", "started again"])
def test_a_stream_continues_with_the_existing_rows_if_loss_is_allowed(spark: Any, tmp_path: Path, session: str) -> None:
    """A restarted query first repeats its last micro-batch, which was planned before the change."""
    path = make_all(tmp_path / "data", STREAMED)
    options = {"mode": "DROPMALFORMED", "failOnDataLoss": False, "maxOffsetsPerTrigger": 45 * len(STREAMED)}

    def change() -> None:
        for number in range(2):
            step(path, number, STREAMED)

    if session == "started again":
        query = start(spark, path, Sink(lambda: None, fails_at=2), **options)
        with pytest.raises(StreamingQueryException, match="the sink is full"):
            query.awaitTermination(SECONDS)
        change()
    sink = Sink(change)
    query = start(spark, path, sink, **options)
    query.processAllAvailable()
    query.stop()
    assert query.exception() is None
    assert sink.values == wanted(STREAMED, stream_of)


LOST = [change for change in CHANGES if change.stream.lost and "removed" not in change.name]


@pytest.mark.parametrize("change", LOST, ids=str)
def test_a_running_stream_fails_if_data_is_lost(spark: Any, tmp_path: Path, change: Change) -> None:
    path = tmp_path / "data" / "t-0"
    make(path)
    aged(path)
    query = start(spark, path.parent, Sink(lambda: change.steps[0](path)), maxOffsetsPerTrigger=45)
    with pytest.raises(StreamingQueryException) as raised:
        query.awaitTermination(SECONDS)
    told = errors.parse(raised.value)
    assert (told.code, told.topic, told.partition) == ("CORDWOOD_SEGMENT_GONE", "t", 0)
    assert "load()" not in told.reason
