"""A real broker serves a partition directory that was put in the place of its own, and goes on from there."""

from __future__ import annotations

import base64
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import corpus
import pytest
from corpus import GOLDEN
from kafka_classes import KafkaClasses, Row, digest
from twins import our_lines

import cordwood as cw

TOPIC = "tickets"
PARTITION = f"{TOPIC}-0"


@pytest.fixture
def data_directory(kafka: KafkaClasses, tmp_path: Path) -> Iterator[Path]:
    """Of a stopped broker that knows the topic."""
    path = tmp_path / "data"
    kafka.ask("start", dir=path)
    kafka.ask("create_topic", topic=TOPIC, settings={"retention.ms": "-1"})
    kafka.ask("stop")
    yield path
    kafka.ask("stop")


def put_in_place(source: Path, data_directory: Path) -> None:
    """As a restore does it: the directory is ours, the topic's id the broker's."""
    place = data_directory / PARTITION
    topic_id = (place / "partition.metadata").read_bytes()
    shutil.rmtree(place)
    shutil.copytree(source, place)
    (place / "partition.metadata").write_bytes(topic_id)


def about_the_partition(complaints: list[str]) -> list[str]:
    return [text for text in complaints if TOPIC in text]


def test_a_broker_serves_what_another_left(kafka: KafkaClasses, data_directory: Path) -> None:
    """The rig, on a directory of which the answers are known."""
    part = corpus.partition("01-small")
    put_in_place(GOLDEN / "01-small" / PARTITION, data_directory)
    kafka.ask("start", dir=data_directory)
    served = kafka.ask("consume", topic=TOPIC)
    now = int(time.time() * 1000)
    value = b"from a producer"
    sent = [{"timestamp": now, "value": base64.b64encode(value).decode(), "headers": [["h", None]]}]
    assert kafka.ask("produce", topic=TOPIC, records=sent)["offsets"] == [served["end"]]
    complaints = kafka.ask("stop")["complaints"]

    expected = [
        str(Row(r.offset, r.timestamp_type, r.timestamp, r.batch["leaderEpoch"], r.key, r.value, r.headers))
        for r in corpus.visible(part)
    ]
    assert served["sha256"] == digest(expected)
    assert about_the_partition(complaints) == []
    log = cw.Log(data_directory / PARTITION)
    ours = our_lines(log)
    assert ours[:-1] == expected
    epoch = int(ours[-1].split()[3])
    assert ours[-1] == str(Row(served["end"], 0, now, epoch, None, value, [("h", None)]))
    assert epoch > int(ours[-2].split()[3])
