"""Which rows are written, and to which partitions."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import DoubleType, LongType, StructField, StructType, TimestampNTZType

import cordwood as cw
from cordwood._core import _partitions_of_keys
from cordwood.spark.errors import parse
from cordwood.spark.write import staging
from cordwood.spark.write.rows import check_columns
from spark.reading import refuses
from spark.writing import Sink, all_texts, arrow, columns, header, records, task, texts, values

pytestmark = pytest.mark.python_source


def test_a_row_becomes_a_record_with_all_its_columns(root: Path) -> None:
    when = datetime(2024, 5, 1, 10, 0, 0, 123_000, tzinfo=UTC)
    rows = [
        {"key": b"k", "value": b"v", "timestamp": when, "headers": [header("a", b"1"), header("a", None)]},
        {"key": None, "value": None, "timestamp": None, "headers": None},
        {"key": b"", "value": b"", "timestamp": datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC), "headers": []},
    ]
    Sink(root, "key", "value", "timestamp", "headers", topic="orders").run(rows)
    first, second, third = records(root / "orders-0")
    assert (first.key, first.value, first.timestamp) == (b"k", b"v", 1_714_557_600_123)
    assert list(first.headers) == [("a", b"1"), ("a", None)]
    assert (second.key, second.value, second.timestamp, list(second.headers)) == (None, None, -1, [])
    assert (third.key, third.value, third.timestamp, list(third.headers)) == (b"", b"", -1, [])


def test_without_a_column_for_it_the_timestamp_is_the_present_time(root: Path) -> None:
    before = int(datetime.now(UTC).timestamp() * 1000)
    Sink(root, "value", topic="orders").run(values("a"))
    (record,) = records(root / "orders-0")
    assert before <= record.timestamp <= before + 60_000


def test_strings_are_written_as_utf8(root: Path) -> None:
    Sink(root, "key:string", "value:string", topic="orders").run([{"key": "é", "value": "日本"}])
    (record,) = records(root / "orders-0")
    assert (record.key, record.value) == ("é".encode(), "日本".encode())


def test_what_the_source_reads_can_be_written(root: Path) -> None:
    names = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
    row = {"value": b"v", "topic": "orders", "partition": 2, "offset": 77, "timestampType": 0}
    Sink(root, *names, numPartitions=3).run([row])
    (record,) = records(root / "orders-2")
    assert (record.offset, record.value) == (0, b"v")


def test_a_row_names_its_topic_and_partition(root: Path) -> None:
    rows = [
        {"value": b"a", "topic": "x", "partition": 1},
        {"value": b"b", "topic": "y", "partition": 0},
        {"value": b"c", "topic": "x", "partition": 1},
        {"value": b"d", "topic": "x", "partition": 0},
    ]
    Sink(root, "value", "topic", "partition", numPartitions=2).run(rows)
    assert [texts(root / name) for name in ("x-0", "x-1", "y-0")] == [["d"], ["a", "c"], ["b"]]


def test_the_option_topic_overrides_the_column(root: Path) -> None:
    Sink(root, "value", "topic", topic="orders").run([{"value": b"a", "topic": "x"}, {"value": b"b", "topic": None}])
    assert texts(root / "orders-0") == ["a", "b"]
    assert [path.name for path in root.iterdir()] == ["orders-0"]


def test_a_key_has_the_partition_that_kafka_gives_it(root: Path) -> None:
    # by Kafka's Utils.murmur2: 21, foobar and abc have the hashes -973932308, -790332482 and 479470107
    hashes = {b"21": -973_932_308, b"foobar": -790_332_482, b"abc": 479_470_107}
    Sink(root, topic="orders", numPartitions=7).run([{"key": key, "value": key} for key in hashes])
    for key, code in hashes.items():
        assert key.decode() in texts(root / f"orders-{(code & 0x7FFF_FFFF) % 7}")


def test_rows_without_a_key_go_to_one_partition_for_each_task(root: Path) -> None:
    Sink(root, topic="orders", numPartitions=3).run(*(values(f"a{n}", f"b{n}") for n in range(5)))
    assert [texts(root / f"orders-{n}") for n in range(3)] == [
        ["a0", "b0", "a3", "b3"],
        ["a1", "b1", "a4", "b4"],
        ["a2", "b2"],
    ]


def test_a_topic_keeps_its_number_of_partitions(root: Path) -> None:
    Sink(root, topic="orders", numPartitions=4).run(values("a"))
    rows = [{"key": str(n).encode(), "value": str(n).encode()} for n in range(100)]
    Sink(root, topic="orders").run(rows)
    keys = pa.table({"key": pa.array([row["key"] for row in rows], pa.binary())})
    for row, partition in zip(rows, _partitions_of_keys(keys, 4), strict=True):
        assert row["value"].decode() in texts(root / f"orders-{partition}")
    assert sorted(path.name for path in root.iterdir()) == [f"orders-{n}" for n in range(4)]


@pytest.mark.parametrize("wanted", [2, 5])
def test_a_write_does_not_change_the_number_of_partitions_of_a_topic(root: Path, wanted: int) -> None:
    Sink(root, topic="orders", numPartitions=3).run(values("a"))
    words = ("numPartitions", "expected 3", "orders-2", f"found '{wanted}'", str(root / "orders-3"))
    with refuses("CORDWOOD_BAD_OPTION", *words):
        Sink(root, topic="orders", numPartitions=wanted)
    by_row = Sink(root, "value", "topic", "partition", numPartitions=wanted)
    with refuses("CORDWOOD_BAD_OPTION", *words):
        by_row.run([{"value": b"v", "topic": "orders", "partition": 0}])
    assert sorted(path.name for path in root.iterdir()) == [f"orders-{n}" for n in range(3)]
    # the explicit way that the error names
    Sink(root / "orders-3", "value").run(values("b"))
    Sink(root, topic="orders", numPartitions=4).run(values("c"))


@pytest.mark.parametrize("wanted", [3, 7])
def test_the_advice_for_a_partition_that_a_topic_does_not_have_is_followed(root: Path, wanted: int) -> None:
    Sink(root, topic="orders", numPartitions=3).run(values("a"))
    rows = values("b", partition=wanted)
    sink = Sink(root, "value", "partition", topic="orders")
    with refuses("CORDWOOD_BAD_OPTION", "column partition", f"found {wanted}") as raised:
        sink.run(rows)
    named = [int(number) for number in re.findall(rf"{re.escape(str(root))}/orders-([0-9]+)", str(raised.value))]
    for number in range(min(named), max(named) + 1):
        Sink(root / f"orders-{number}", "value").run(values(f"added {number}"))
    Sink(root, "value", "partition", topic="orders").run(rows)
    assert texts(root / f"orders-{wanted}") == [f"added {wanted}", "b"]
    # rows whose partition is chosen by the key are still written
    Sink(root, topic="orders").run(values("c"))
    assert all_texts(root) == Counter(["a", "b", "c", *(f"added {number}" for number in range(3, wanted + 1))])


def test_two_first_writes_may_create_a_topic_at_the_same_time(root: Path) -> None:
    rows = [{"value": b"%d" % n, "partition": n} for n in range(3)]
    other = Sink(root, "value", "partition", topic="orders", numPartitions=3)
    with cw.LogWriter(root / "orders-0"):
        late = Sink(root, "value", "partition", topic="orders", numPartitions=3)
    other.run(rows)
    # it has seen only the first partition
    late.run(rows)
    assert [cw.Log(root / f"orders-{n}").log_end_offset for n in range(3)] == [2, 2, 2]


def test_a_first_write_that_was_interrupted_while_it_created_partitions_is_repeated(root: Path) -> None:
    for number in range(2):
        cw.LogWriter(root / f"orders-{number}").close()
    Sink(root, topic="orders", numPartitions=3).run(values("a"))
    assert sorted(path.name for path in root.iterdir()) == [f"orders-{n}" for n in range(3)]
    assert all_texts(root) == Counter("a")


def test_all_partitions_are_created_though_they_have_no_row(root: Path) -> None:
    Sink(root, topic="orders", numPartitions=3).run([])
    assert [cw.Log(root / f"orders-{n}").log_end_offset for n in range(3)] == [0, 0, 0]


def test_the_path_may_be_that_of_a_partition(root: Path) -> None:
    cw.LogWriter(root / "orders-4").close()
    for text in ("a", "b"):
        Sink(root / "orders-4", "value").run(values(text))
    assert texts(root / "orders-4") == ["a", "b"]
    with refuses("CORDWOOD_BAD_OPTION", str(root)):
        Sink(root / "orders-4", "value", topic="orders")
    with refuses("CORDWOOD_BAD_OPTION", "numPartitions"):
        Sink(root / "orders-4", "value", numPartitions=2)


@pytest.mark.parametrize("batch", [None, 0])
@pytest.mark.parametrize(
    ("existing", "number"), [([], 3), ([0, 1, 2], 7), ([0, 1, 2], 4), ([1, 3], 5), ([0, 1, 2], 3), ([1, 3], 2), ([], 0)]
)
def test_the_path_of_a_partition_leaves_no_gap_in_its_topic(
    root: Path, existing: list[int], number: int, batch: int | None
) -> None:
    for one in existing:
        cw.LogWriter(root / f"orders-{one}").close()
    before = sorted(root.rglob("*"))
    path = root / f"orders-{number}"
    if number <= max(existing, default=-1) + 1:
        Sink(path, "value", batch=batch).run(values("a"))
        return
    with refuses("CORDWOOD_BAD_OPTION", "path: expected", f"found '{path}'") as raised:
        Sink(path, "value", batch=batch)
    assert sorted(root.rglob("*")) == before
    # what the error names works
    if not existing:
        assert f"write to {root} with topic=orders and numPartitions={number + 1}" in str(raised.value)
        Sink(root, "value", topic="orders", numPartitions=number + 1).run([])
    else:
        named = [int(one) for one in re.findall(r"/orders-([0-9]+)", str(raised.value).partition("from ")[2])]
        for one in range(min(named), max(named)):
            Sink(root / f"orders-{one}", "value").run(values("first"))
    Sink(path, "value", batch=batch).run(values("a"))
    assert texts(path) == ["a"]


def test_settings_of_a_topic_apply_to_new_logs_and_batches(root: Path) -> None:
    settings = {"kafka__compression__type": "zstd", "kafka__internal__segment__bytes": 4096}
    rows = [{"value": b"x" * 100} for _ in range(200)]
    for _ in range(8):
        Sink(root, "value", topic="orders", **settings).run(rows)
    log = cw.Log(root / "orders-0")
    assert set(log.batches().to_arrow()["codec"].to_pylist()) == {"zstd"}
    assert len(log.segments) > 1
    Sink(root, "value", topic="plain", kafka__compression__type="none").run(rows)
    assert set(cw.Log(root / "plain-0").batches().to_arrow()["codec"].to_pylist()) == {"none"}


def test_settings_of_a_producer_have_no_effect(root: Path) -> None:
    given = {"kafka__bootstrap__servers": "host:9092", "kafka__acks": "all", "includeHeaders": True}
    Sink(root, "value", topic="orders", **given).run(values("a"))
    assert texts(root / "orders-0") == ["a"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ["topic", "data/orders-0"]),
        ({"topic": "a/b"}, ["topic", "a/b"]),
        ({"topic": ".."}, ["topic"]),
        ({"topik": "x"}, ["topik", "did you mean topic"]),
        ({"topic": "x", "numPartitions": 0}, ["numPartitions"]),
        ({"topic": "x", "numPartitions": "three"}, ["numPartitions"]),
        ({"topic": "x", "kafka__segment__byte": 5}, ["kafka.segment.bytes"]),
        ({"topic": "x", "kafka__compression__type": "bzip2"}, ["kafka.compression.type", "bzip2"]),
        ({"topic": "x", "kafka__message__timestamp__type": "Sometime"}, ["kafka.message.timestamp.type"]),
        ({"topic": "x", "path": ""}, ["path"]),
        ({"topic": "x", "path": "s3://bucket/x"}, ["s3"]),
    ],
)
def test_an_invalid_option_is_named(root: Path, options: dict[str, Any], words: list[str]) -> None:
    with refuses("CORDWOOD_BAD_OPTION", *words):
        Sink(root / "data", "value", **options)
    assert not (root / "data").exists()


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"topic": None}, ["topic", "null"]),
        ({"topic": "../x"}, ["topic", "../x"]),
        ({"topic": "x", "partition": -1}, ["partition", "-1"]),
        ({"topic": "x", "partition": 5}, ["partition", "found 5", "numPartitions=5"]),
    ],
)
def test_a_row_with_an_invalid_place_fails_its_task(root: Path, row: dict[str, Any], words: list[str]) -> None:
    sink = Sink(root, "value", "topic", "partition", numPartitions=5)
    with refuses("CORDWOOD_BAD_OPTION", *words):
        sink.stage(0, [{"value": b"v", "topic": "x", "partition": 4}, {"value": b"w", **row}])
    assert sorted(root.rglob("*.log")) == []


def test_the_number_of_partitions_of_a_topic_must_be_known(root: Path) -> None:
    for number in (1, 3):
        with cw.LogWriter(root / f"orders-{number}") as writer:
            writer.append("a")
    with refuses("CORDWOOD_BAD_OPTION", "numPartitions", "1, 3"):
        Sink(root, "value", topic="orders").run(values("b"))
    with refuses("CORDWOOD_BAD_OPTION", "numPartitions", "orders-3"):
        Sink(root, "value", topic="orders", numPartitions=3)
    Sink(root, "value", "partition", topic="orders").run([{"value": b"c", "partition": 3}])
    assert texts(root / "orders-3") == ["a", "c"]


NEW_TOPIC = ["expected 0, because the new topic orders gets 1 partition", "numPartitions"]


@pytest.mark.parametrize("batch", [None, 0])
@pytest.mark.parametrize(
    ("existing", "number", "words"),
    [
        ([], 7, NEW_TOPIC),
        ([], 1, NEW_TOPIC),
        ([], -1, NEW_TOPIC),
        ([0], 1, ["expected 0, because the topic orders has 1 partition here", "{root}/orders-1"]),
        ([0, 1, 2], 7, ["expected 0 to 2, because the topic orders has 3 partitions here", "{root}/orders-7"]),
        ([0, 1, 2], -7, ["expected 0 to 2, because the topic orders has 3 partitions here", "null"]),
        (
            [1, 3],
            7,
            ["expected 1, 3, because the topic orders has 2 partitions here", "{root}/orders-4 to {root}/orders-7"],
        ),
        ([1, 3], 2, ["expected 1, 3, because the topic orders has 2 partitions here", "{root}/orders-2"]),
    ],
)
def test_a_row_cannot_add_a_partition_to_a_topic(
    root: Path, existing: list[int], number: int, words: list[str], batch: int | None
) -> None:
    for one in existing:
        with cw.LogWriter(root / f"orders-{one}") as writer:
            writer.append("a")
    before = sorted(root.rglob("*.log"))
    given = [{"value": b"b", "partition": n} for n in [*(existing or [0]), number]]
    for sink in (
        Sink(root, "value", "partition", topic="orders", batch=batch),
        Sink(root, "value", "partition", "topic", batch=batch),
    ):
        with refuses("CORDWOOD_BAD_OPTION", *(word.format(root=root) for word in words), f"found {number} in a row"):
            sink.run([{**row, "topic": "orders"} for row in given])
    assert sorted(root.rglob("*.log")) == before
    assert all_texts(root) == Counter("a" * len(existing))


@pytest.mark.parametrize("batch", [None, 0])
def test_a_partition_that_was_added_since_the_write_began_is_known(root: Path, batch: int | None) -> None:
    sink = Sink(root, "value", "partition", topic="orders", batch=batch)
    Sink(root, topic="orders", numPartitions=3).run(values("a"))
    sink.run([{"value": b"b", "partition": 2}])
    assert texts(root / "orders-2") == ["b"]


def test_the_columns_are_checked() -> None:
    check_columns(columns("value"))
    for schema, word in [
        (columns("key"), "value"),
        (StructType([]), "value"),
        (StructType([*columns("value").fields, StructField("colour", LongType())]), "colour"),
        (StructType([*columns("value").fields, *columns("value").fields]), "value"),
        (StructType([StructField("value", DoubleType())]), "double"),
        (StructType([*columns("value").fields, StructField("partition", LongType())]), "bigint"),
        (StructType([*columns("value").fields, StructField("timestamp", TimestampNTZType())]), "timestamp_ntz"),
        (StructType([*columns("value").fields, StructField("headers", LongType())]), "headers"),
    ]:
        with refuses("CORDWOOD_BAD_OPTION", word):
            check_columns(schema)


@pytest.mark.parametrize(
    ("row", "settings", "code"),
    [
        ({"value": b"x" * 5000}, {"kafka__max__message__bytes": 1000}, "CORDWOOD_INVALID_RECORD"),
        ({"timestamp": datetime(2999, 1, 1, tzinfo=UTC)}, {}, "CORDWOOD_INVALID_RECORD"),
        ({"key": None}, {"kafka__cleanup__policy": "compact"}, "CORDWOOD_INVALID_RECORD"),
        ({"timestamp": datetime(1960, 1, 1, tzinfo=UTC)}, {}, "CORDWOOD_BAD_OPTION"),
    ],
)
def test_a_row_that_is_no_record_fails_its_task(
    root: Path, row: dict[str, Any], settings: dict[str, Any], code: str
) -> None:
    given = {"key": b"k", "value": b"v", "timestamp": datetime(2024, 1, 1, tzinfo=UTC), **row}
    with refuses(code):
        Sink(root, "key", "value", "timestamp", topic="orders", **settings).run([given])
    assert not list(root.rglob("*.log"))


@pytest.mark.parametrize(
    ("row", "code", "options"),
    [
        ({"value": b"x" * 5000}, "CORDWOOD_INVALID_RECORD", ["kafka.max.message.bytes"]),
        (
            {"timestamp": datetime(2999, 1, 1, tzinfo=UTC)},
            "CORDWOOD_INVALID_RECORD",
            ["kafka.message.timestamp.before.max.ms", "kafka.message.timestamp.after.max.ms"],
        ),
        ({"timestamp": datetime(1960, 1, 1, tzinfo=UTC)}, "CORDWOOD_BAD_OPTION", ["timestamp"]),
    ],
    ids=["too large", "too late", "before 1970"],
)
def test_a_refused_row_is_named_with_the_option_of_its_limit(
    root: Path, row: dict[str, Any], code: str, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(7)
    # each batch is written, or all of them together
    for count, buffer_bytes in itertools.product((1, 2, 3, 50), (1, 1 << 20)):
        monkeypatch.setattr(staging, "_BUFFER_BYTES", buffer_bytes)
        wrong = sorted(draw.sample(range(count), min(count, draw.choice((1, 2)))))
        good = {"value": b"v", "timestamp": datetime(2024, 1, 1, tzinfo=UTC)}
        rows = [{**good, **(row if number in wrong else {}), "partition": 1} for number in range(count)]
        # the rows of the other partition do not count
        rows = [one for pair in zip(rows, [{**good, "partition": 0}] * count, strict=True) for one in pair]
        batches = [rows[start : start + 7] for start in range(0, len(rows), 7)]
        named = {"topic": "orders", "numPartitions": 2, "kafka__max__message__bytes": 1000}
        sink = Sink(root, "value", "timestamp", "partition", **named)
        with refuses(code, f"row {wrong[0]} (from 0) of the task's rows", *options) as raised:
            sink.stage(0, *batches)
        found = parse(raised.value)
        assert found is not None
        assert (found.topic, found.partition) == ("orders", 1)


def test_large_types_are_written(root: Path) -> None:
    """As Spark passes them with spark.sql.execution.arrow.useLargeVarTypes."""
    rows = [{"key": f"k{n}", "value": f"v{n}".encode(), "topic": "xy"[n % 2]} for n in range(20)]
    sink = Sink(root, "key:string", "value", "topic", numPartitions=2)
    batch = arrow(sink.schema, rows)
    large = [
        pa.field("key", pa.large_string()),
        pa.field("value", pa.large_binary()),
        pa.field("topic", pa.large_string()),
    ]
    with task(0):
        sink.commit([sink.writer.write(iter([batch.cast(pa.schema(large))]))])
    assert sorted(text for path in root.iterdir() for text in texts(path)) == sorted(f"v{n}" for n in range(20))
    assert {path.name for path in root.iterdir()} == {"x-0", "x-1", "y-0", "y-1"}
