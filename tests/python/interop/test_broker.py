"""A real broker serves and continues a partition directory that replaced its own."""

from __future__ import annotations

import base64
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import corpus
import pytest
from corpus import GOLDEN

import cordwood as cw
from interop import scenarios
from interop.kafka_classes import KafkaClasses, Row, digest
from interop.twins import START, Step, our_lines, write_with_cordwood

TOPIC = "tickets"
PARTITION = f"{TOPIC}-0"


@pytest.fixture
def data_directory(kafka: KafkaClasses, tmp_path: Path) -> Iterator[Path]:
    """The data directory of a stopped broker that has the topic."""
    path = tmp_path / "data"
    kafka.ask("start", dir=path)
    kafka.ask("create_topic", topic=TOPIC, settings={"retention.ms": "-1"})
    kafka.ask("stop")
    yield path
    kafka.ask("stop")


def put_in_place(source: Path, data_directory: Path) -> None:
    """Replace the directory as a restore does: the files are from `source`, the topic id is the broker's."""
    place = data_directory / PARTITION
    topic_id = (place / "partition.metadata").read_bytes()
    shutil.rmtree(place)
    shutil.copytree(source, place)
    (place / "partition.metadata").write_bytes(topic_id)


def about_the_partition(complaints: list[str]) -> list[str]:
    return [text for text in complaints if TOPIC in text]


def test_a_broker_serves_the_directory_of_another_broker(kafka: KafkaClasses, data_directory: Path) -> None:
    """A check of the rig, on a directory with known results."""
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


SETTINGS = {"segment.bytes": 8192, "index.interval.bytes": 512, "retention.ms": -1}


def served_and_continued(kafka: KafkaClasses, data_directory: Path, expected: list[str]) -> list[str]:
    """Consume everything, append with a producer, stop, and read all records. Return the broker's complaints."""
    partition = data_directory / PARTITION
    kafka.ask("start", dir=data_directory)
    served = kafka.ask("consume", topic=TOPIC, lines=True)
    assert served["lines"] == expected
    log = cw.Log(partition)
    assert (served["beginning"], served["end"]) == (log.log_start_offset, log.log_end_offset)
    sent = [{"timestamp": START + n, "value": scenarios.text(b"%d" % n)} for n in range(5)]
    # a log with producer ids would be refused for writing later
    settings = {"enable.idempotence": "false"}
    offsets = kafka.ask("produce", topic=TOPIC, records=sent, settings=settings)["offsets"]
    assert offsets == list(range(served["end"], served["end"] + 5))
    complaints = about_the_partition(kafka.ask("stop")["complaints"])
    ours = our_lines(cw.Log(partition))
    assert ours[:-5] == expected
    assert [row.value for row in cw.Log(partition).records(start_offset=served["end"])] == [b"%d" % n for n in range(5)]
    return complaints


def test_a_broker_serves_the_log_of_a_writer(kafka: KafkaClasses, data_directory: Path, tmp_path: Path) -> None:
    """Written elsewhere: the broker finds a clean stop, and uses the indexes without a check."""
    source = tmp_path / PARTITION
    steps: list[Step] = []
    for epoch in range(2):
        if epoch:
            steps.append({"do": "reopen", "leader_epoch": epoch})
        steps += scenarios.appends(epoch, 150, "rising")
    for codec in ("uncompressed", "zstd"):
        written = write_with_cordwood(source, {**SETTINGS, "compression.type": codec}, steps)
        assert written.errors() == []
    expected = our_lines(cw.Log(source))
    put_in_place(source, data_directory)
    assert served_and_continued(kafka, data_directory, expected) == []


def test_a_broker_continues_a_directory_that_a_writer_appended_to(kafka: KafkaClasses, data_directory: Path) -> None:
    """The marker of a clean stop is missing, so the broker recovers; it cuts nothing and logs no complaint. Twice."""
    partition = data_directory / PARTITION
    assert (data_directory / ".kafka_cleanshutdown").exists()
    for turn in range(2):
        epoch = max((int(text.split()[3]) for text in our_lines(cw.Log(partition))), default=0)
        steps = scenarios.appends(turn, 100, "rising")
        assert write_with_cordwood(partition, SETTINGS, steps, leader_epoch=epoch).errors() == []
        assert not (data_directory / ".kafka_cleanshutdown").exists()
        expected = our_lines(cw.Log(partition))
        assert served_and_continued(kafka, data_directory, expected) == []


def test_a_broker_and_a_writer_continue_each_others_transactions(kafka: KafkaClasses, data_directory: Path) -> None:
    """With a real transactional producer and a committed consumer; a transaction of the writer is open meanwhile."""
    partition = data_directory / PARTITION
    committed = {"isolation.level": "read_committed"}

    def in_transaction(writer: cw.LogWriter, value: str, *, is_commit: bool) -> None:
        transaction = writer.transaction("billing")
        transaction.append_many([value, value])
        (transaction.commit if is_commit else transaction.abort)()

    with cw.LogWriter(partition, config=cw.LogConfig(retention_ms=-1)) as writer:
        in_transaction(writer, "one", is_commit=True)
        in_transaction(writer, "never", is_commit=False)
        writer.producer("import").append("two", sequence=0)
        left = writer.transaction("audit")
        left.append("never")
        stable, end = writer.last_stable_offset, writer.log_end_offset
    kafka.ask("start", dir=data_directory)
    served = kafka.ask("consume", topic=TOPIC, lines=True, settings=committed)
    assert served["end"] == stable == end - 1
    assert served["lines"] == our_lines(cw.Log(partition), "read_committed")
    assert len(served["lines"]) == 3
    now = int(time.time() * 1000)
    for value, abort in (("three", False), ("never", True)):
        sent = [{"timestamp": now, "value": scenarios.text(value.encode())}]
        settings = {"transactional.id": "client"}
        kafka.ask("produce", topic=TOPIC, records=sent, settings=settings, abort=abort)
    assert kafka.ask("consume", topic=TOPIC, settings=committed)["end"] == stable
    assert about_the_partition(kafka.ask("stop")["complaints"]) == []

    with cw.LogWriter(partition, config=cw.LogConfig(retention_ms=-1)) as writer:
        assert writer.last_stable_offset == stable
        assert writer.producer("import").append("two", sequence=0).is_duplicate
        in_transaction(writer, "four", is_commit=True)
        again = writer.transaction("audit")
        assert (again.producer_id, again.producer_epoch) == (left.producer_id, 1)
        assert writer.last_stable_offset == writer.log_end_offset
    values = [record.value for record in cw.Log(partition).records(isolation_level="read_committed")]
    assert values == [b"one", b"one", b"two", b"three", b"four", b"four"]
    kafka.ask("start", dir=data_directory)
    served = kafka.ask("consume", topic=TOPIC, lines=True, settings=committed)
    assert served["lines"] == our_lines(cw.Log(partition), "read_committed")
    assert served["end"] == cw.Log(partition).log_end_offset
    assert about_the_partition(kafka.ask("stop")["complaints"]) == []
