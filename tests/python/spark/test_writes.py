"""Writes and streams of a real session, read back by `Log` and by the source."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

import cordwood as cw
from cordwood.spark import errors
from spark.writing import all_texts, left, records, texts

pytestmark = pytest.mark.python_source

SCHEMA = (
    "topic string, partition int, key binary, value binary, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)


def random_rows(chance: random.Random, count: int) -> list[tuple[Any, ...]]:
    def some(size: int) -> bytes | None:
        return None if chance.random() < 0.2 else chance.randbytes(chance.randrange(size))

    def row() -> tuple[Any, ...]:
        when = datetime(2024, 5, 1, tzinfo=UTC) + timedelta(milliseconds=chance.randrange(10**9))
        headers = [(chance.choice("abc"), some(9)) for _ in range(chance.randrange(3))]
        return (
            chance.choice(["orders", "orders", "a.b_c-1"]),
            chance.randrange(3),
            some(20),
            some(300),
            None if chance.random() < 0.1 else when,
            headers or None,
        )

    return [row() for _ in range(count)]


def as_written(row: tuple[Any, ...]) -> tuple[Any, ...]:
    _, _, key, value, timestamp, headers = row
    millis = -1 if timestamp is None else round(timestamp.timestamp() * 1000)
    return key, value, millis, tuple(headers or ())


def as_read(record: cw.Record) -> tuple[Any, ...]:
    return record.key, record.value, record.timestamp, tuple(record.headers)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_random_frames_are_in_the_logs_as_they_were(spark: Any, root: Path, seed: int) -> None:
    chance = random.Random(seed)
    expected: dict[tuple[str, int], Counter[Any]] = {}
    for turn in range(2):
        rows = random_rows(chance, chance.randrange(1, 400))
        frame = spark.createDataFrame(rows, SCHEMA).repartition(chance.randrange(1, 5))
        mode = "append" if turn else "overwrite"
        settings = {"kafka.compression.type": chance.choice(["none", "zstd", "lz4"]), "kafka.max.message.bytes": "2000"}
        settings["numPartitions"] = "3"
        frame.write.format("cordwood").mode(mode).options(**settings).save(str(root))
        for row in rows:
            expected.setdefault(row[:2], Counter())[as_written(row)] += 1
    for (topic, partition), wanted in expected.items():
        found = records(root / f"{topic}-{partition}")
        assert Counter(map(as_read, found)) == wanted
        assert [record.offset for record in found] == list(range(len(found)))
    assert left(root) == []


def test_rows_of_one_task_keep_their_order(spark: Any, root: Path) -> None:
    frame = spark.range(30_000, numPartitions=1).selectExpr(
        "CAST(id AS STRING) AS value", "CAST(id % 3 AS INT) AS partition"
    )
    frame.write.format("cordwood").mode("append").options(topic="orders", numPartitions=3).save(str(root))
    for partition in range(3):
        assert texts(root / f"orders-{partition}") == [str(n) for n in range(partition, 30_000, 3)]


def test_what_was_read_is_written_again(spark: Any, root: Path) -> None:
    source = "tests/golden/01-plain/orders-0"
    frame = spark.read.format("cordwood").option("includeHeaders", "true").load(source)
    frame.write.format("cordwood").mode("append").save(str(root))
    assert list(map(as_read, records(root / "orders-0"))) == list(map(as_read, cw.Log(source).records()))


def test_an_overwrite_replaces_and_an_append_adds(spark: Any, root: Path) -> None:
    for mode, text in [("append", "a"), ("append", "b"), ("overwrite", "c"), ("append", "d")]:
        frame = spark.createDataFrame([(text,)], "value string")
        frame.write.format("cordwood").mode(mode).option("topic", "orders").save(str(root))
    assert all_texts(root) == Counter("cd")
    found = spark.read.format("cordwood").load(str(root)).selectExpr("CAST(value AS STRING) AS value", "offset")
    assert [tuple(row) for row in found.orderBy("offset").collect()] == [("c", 2), ("d", 3)]


def test_a_job_whose_task_fails_leaves_nothing(spark: Any, root: Path) -> None:
    frame = spark.range(4, numPartitions=4).selectExpr(
        "CAST(IF(id = 3, raise_error('no more'), id) AS STRING) AS value"
    )
    with pytest.raises(PySparkException, match="no more"):
        frame.write.format("cordwood").mode("append").option("topic", "orders").save(str(root))
    assert not list(root.rglob("*.log")) or left(root)
    assert all_texts(root) == Counter()


def test_an_error_of_a_write_has_its_code(spark: Any, root: Path) -> None:
    frame = spark.createDataFrame([("v", "../x")], "value string, topic string")
    for change, word in [(frame, "../x"), (frame.drop("topic"), "topic"), (frame.selectExpr("1 AS value"), "value")]:
        with pytest.raises(PySparkException) as raised:
            change.write.format("cordwood").mode("append").save(str(root))
        told = errors.parse(raised.value)
        assert (told.code, word in told.reason) == ("CORDWOOD_BAD_OPTION", True)
    assert list(root.iterdir()) == []


class Query:
    """A stream from a directory of text files to a topic."""

    def __init__(self, spark: Any, root: Path) -> None:
        self.spark = spark
        self.input, self.data, self.checkpoint = (root / name for name in ("input", "data", "checkpoint"))
        self.input.mkdir()

    def add(self, name: str, *lines: str) -> None:
        (self.input / name).write_text("".join(f"{line}\n" for line in lines))

    def run(self, mode: str = "append") -> None:
        """Until all files are read."""
        lines = self.spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(self.input))
        if mode == "complete":
            lines = lines.groupBy("value").count().selectExpr("concat(value, '=', count) AS value")
        writer = lines.writeStream.format("cordwood").outputMode(mode).trigger(availableNow=True)
        query = writer.options(topic="orders", checkpointLocation=str(self.checkpoint)).start(str(self.data))
        query.awaitTermination(60)
        assert query.exception() is None

    def forget_commit(self) -> None:
        """As if Spark had died before it noted the commit of the last micro-batch, which it then repeats."""
        folder = self.checkpoint / "commits"
        last = max(int(path.name) for path in folder.iterdir() if path.name.isdigit())
        (folder / str(last)).unlink()
        (folder / f".{last}.crc").unlink(missing_ok=True)


def test_a_stream_continues_and_a_repeated_micro_batch_is_written_once(spark: Any, root: Path) -> None:
    stream = Query(spark, root)
    stream.add("1", "a", "b")
    stream.add("2", "c")
    stream.run()
    assert all_texts(stream.data) == Counter("abc")
    stream.forget_commit()
    stream.run()
    assert all_texts(stream.data) == Counter("abc")
    stream.add("3", "d")
    stream.run()
    assert all_texts(stream.data) == Counter("abcd")
    (file,) = stream.data.rglob("finished/*.json")
    assert json.loads(file.read_text())["batch"] == 2
    # a copy of the query with another checkpoint is another query
    shutil.rmtree(stream.checkpoint)
    stream.run()
    assert all_texts(stream.data) == Counter("abcd" * 2)


def test_spark_refuses_the_output_mode_update_when_the_query_runs(spark: Any, root: Path) -> None:
    stream = Query(spark, root)
    stream.add("1", "a")
    lines = spark.readStream.format("text").load(str(stream.input))
    writer = lines.writeStream.format("cordwood").outputMode("update").trigger(availableNow=True)
    query = writer.options(topic="orders", checkpointLocation=str(stream.checkpoint)).start(str(stream.data))
    with pytest.raises(StreamingQueryException, match="cordwood does not support Update mode"):
        query.awaitTermination()
    assert not stream.data.exists()


@pytest.mark.long
def test_a_complete_result_is_replaced(spark: Any, root: Path) -> None:
    stream = Query(spark, root)
    for name, line in [("1", "a"), ("2", "a"), ("3", "b")]:
        stream.add(name, line)
        stream.run("complete")
    assert all_texts(stream.data) == Counter(["a=2", "b=1"])
