"""The settings with which the sink writes: its options, then those of the topic in the metadata."""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from clusters import TOPIC, Cluster, topic_record

import cordwood as cw
from spark.killing import interrupted_after_an_append
from spark.reading import refuses
from spark.writing import Sink, all_texts, records, texts, values

pytestmark = pytest.mark.python_source

ROWS = values(*(f"{number:05}" * 40 for number in range(200)))


@pytest.fixture
def cluster(root: Path) -> Cluster:
    return Cluster(root / "data")


def add_topic(cluster: Cluster, name: str) -> None:
    cluster.append([topic_record(name, uuid.UUID(int=9 << 64 | 5))])


def codecs(path: Path) -> set[str]:
    return set(cw.Log(path).batches().to_arrow()["codec"].to_pylist())


def test_a_write_has_the_settings_of_the_topic_in_the_metadata(cluster: Cluster) -> None:
    settings = {"compression_type": "zstd", "segment_bytes": str(1 << 20), "index_interval_bytes": "100"}
    cluster.set(TOPIC, "orders", **settings)
    for _ in range(2):
        Sink(cluster.path, topic="orders").run(ROWS)
        # another topic has other settings, in the same directory and in the same write
        Sink(cluster.path, topic="plain").run(ROWS)
    Sink(cluster.path, "value", "topic").run([{**row, "topic": t} for row in ROWS for t in ("orders", "plain")])
    assert (codecs(cluster.path / "orders-0"), codecs(cluster.path / "plain-0")) == ({"zstd"}, {"none"})
    for name in ("orders-0", "plain-0"):
        assert texts(cluster.path / name) == [row["value"].decode() for row in ROWS] * 3
    # the explicit setting wins
    Sink(cluster.path, topic="orders", kafka__compression__type="lz4").run(ROWS)
    assert codecs(cluster.path / "orders-0") == {"zstd", "lz4"}


def test_the_size_of_segments_is_that_of_the_metadata(cluster: Cluster) -> None:
    cluster.set(TOPIC, "orders", segment_bytes=str(1 << 20))
    rows = values(*("x" * 50_000 for _ in range(30)))
    for _ in range(3):
        Sink(cluster.path, topic="orders", kafka__max__message__bytes=100_000).run(rows)
        Sink(cluster.path, topic="plain", kafka__max__message__bytes=100_000).run(rows)
    assert len(cw.Log(cluster.path / "orders-0").segments) > 3
    assert len(cw.Log(cluster.path / "plain-0").segments) == 1


@pytest.mark.parametrize("explicit", [False, True])
def test_limits_of_a_topic_are_checked_before_a_log_is_changed(cluster: Cluster, explicit: bool) -> None:
    cluster.set(TOPIC, "orders", cleanup_policy="compact")
    options = {"kafka__cleanup__policy": "delete"} if explicit else {}
    sink = Sink(cluster.path, topic="orders", **options)
    if explicit:
        sink.run(values("a"))
        assert texts(cluster.path / "orders-0") == ["a"]
        return
    with refuses("CORDWOOD_INVALID_RECORD"):
        sink.run(values("a"))
    assert not (cluster.path / "orders-0").exists() or not list((cluster.path / "orders-0").glob("*.log"))


@pytest.mark.parametrize("from_metadata", [True, False])
def test_a_topic_may_have_the_time_of_the_append(cluster: Cluster, from_metadata: bool) -> None:
    options: dict[str, Any] = {}
    if from_metadata:
        cluster.set(TOPIC, "orders", message_timestamp_type="LogAppendTime")
    else:
        options["kafka__message__timestamp__type"] = "LogAppendTime"
    before = int(datetime.now(UTC).timestamp() * 1000)
    row = {"value": b"a", "timestamp": datetime(2024, 5, 1, tzinfo=UTC)}
    Sink(cluster.path, "value", "timestamp", topic="orders", **options).run([row])
    (record,) = records(cluster.path / "orders-0")
    assert before <= record.timestamp <= before + 60_000
    assert record.timestamp_type.name == "LogAppendTime"


def test_an_interrupted_write_with_the_time_of_the_append_is_taken_back(root: Path) -> None:
    staged = interrupted_after_an_append(root, kafka__message__timestamp__type="LogAppendTime")
    assert all_texts(staged.path) > Counter(["old0", "old1"])
    Sink(staged.path, topic="others").run(values("x"))
    assert all_texts(staged.path) == Counter(["old0", "old1", "x"])


def test_damaged_metadata_is_an_error_of_the_write(cluster: Cluster) -> None:
    cluster.set(TOPIC, "orders", compression_type="zstd", retention_ms="5")
    (log,) = (cluster.path / "__cluster_metadata-0").glob("*.log")
    data = bytearray(log.read_bytes())
    data[data.index(b"compression")] ^= 1
    log.write_bytes(data)
    with refuses("CORDWOOD_CORRUPT_BATCH", "__cluster_metadata-0"):
        Sink(cluster.path, topic="orders").run(values("a"))
    assert not list(cluster.path.glob("orders-0/*.log"))
