"""A check of the client of Kafka's classes, on intact and damaged directories with known results."""

from __future__ import annotations

import base64
import fcntl
from pathlib import Path
from typing import Any

import corpus
import pytest
from corpus import GOLDEN

import cordwood as cw
from interop.kafka_classes import KafkaClasses, KafkaRefusedError, Row, digest
from interop.twins import our_lines

SMALL = corpus.partition("01-small")
SETTINGS = corpus.cases()["01-small"]["settings"]


def expected_lines(part: corpus.Partition) -> list[str]:
    return [
        str(Row(r.offset, r.timestamp_type, r.timestamp, r.batch["leaderEpoch"], r.key, r.value, r.headers))
        for r in corpus.visible(part)
    ]


def test_kafka_is_the_release_that_byte_identity_is_measured_against(kafka: KafkaClasses) -> None:
    assert kafka.ask("version")["version"] == corpus.manifest()["oracle_kafka"]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("case", ["01-small", "07-edge-values", "19-leader-epochs", "09-append-time"])
def test_an_intact_directory_gives_no_complaint_and_the_known_records(
    kafka: KafkaClasses, case: str, *, clean: bool
) -> None:
    part = corpus.partition(case)
    opened = kafka.ask("open", dir=part.path, clean=clean, settings=corpus.cases()[case]["settings"])
    assert opened["complaints"] == []
    assert opened["bytes_cut"] == 0
    assert opened["log_end_offset"] == part.opened["logEndOffset"]
    assert opened["records"]["sha256"] == digest(expected_lines(part))


def test_a_damaged_directory_gives_complaints_and_is_cut(kafka: KafkaClasses) -> None:
    damaged = GOLDEN / "damaged" / "flip-record" / "tickets-0"
    before = {path.name: path.read_bytes() for path in damaged.iterdir()}
    opened = kafka.ask("open", dir=damaged, clean=False, settings=SETTINGS)
    assert any("Found invalid messages in log segment" in text for text in opened["complaints"])
    assert opened["bytes_cut"] > 0
    assert {path.name: path.read_bytes() for path in damaged.iterdir()} == before


def test_a_missing_index_gives_a_complaint(kafka: KafkaClasses, copied: Any) -> None:
    partition = copied(SMALL.path)
    (partition / "00000000000000000096.index").unlink()
    opened = kafka.ask("open", dir=partition, clean=True, settings=SETTINGS)
    assert any("Could not find offset index file" in text for text in opened["complaints"])


def test_recovery_writes_the_indexes_that_a_broker_wrote(kafka: KafkaClasses, tmp_path: Path) -> None:
    rebuilt = tmp_path / SMALL.name
    assert kafka.ask("rebuild", dir=SMALL.path, into=rebuilt, settings=SETTINGS)["bytes_cut"] == 0
    indexes = sorted(path.name for path in SMALL.path.glob("*index"))
    assert len(indexes) == 8
    for name in indexes:
        assert (rebuilt / name).read_bytes() == (SMALL.path / name).read_bytes(), name


def test_kafka_writes_what_the_broker_wrote_given_the_same_batches(kafka: KafkaClasses, tmp_path: Path) -> None:
    """The steps are those of the broker: an append as leader for every batch, and its topic id."""
    steps = []
    for log in sorted(SMALL.path.glob("*.log")):
        content, position = log.read_bytes(), 0
        while position < len(content):
            size = 12 + int.from_bytes(content[position + 8 : position + 12], "big")
            batch = bytes(8) + content[position + 8 : position + size]  # a producer's batch starts at offset 0
            steps.append({"do": "raw", "batches": base64.b64encode(batch).decode()})
            position += size
    topic_id = (SMALL.path / "partition.metadata").read_text().split()[-1]
    written = tmp_path / SMALL.name
    answer = kafka.ask("write", dir=written, settings=SETTINGS, steps=steps, topic_id=topic_id)
    assert answer["complaints"] == []
    assert [step for step in answer["steps"] if "error" in step] == []
    names = sorted(path.name for path in SMALL.path.iterdir())
    assert sorted(answer["files"]) == names
    for name in names:
        assert (written / name).read_bytes() == (SMALL.path / name).read_bytes(), name


@pytest.mark.parametrize("index_interval", [0, 512, 4096])
@pytest.mark.parametrize("segment", [600, 1 << 20])
def test_the_reader_reads_what_kafka_writes(
    kafka: KafkaClasses, tmp_path: Path, index_interval: int, segment: int
) -> None:
    partition = tmp_path / "t-0"
    steps = [
        {
            "do": "append",
            "leader_epoch": n // 10,
            "compression": ["none", "gzip", "snappy", "lz4", "zstd"][n % 5],
            "records": [
                {"timestamp": 1_700_000_000_000 + n * 7 % 13, "value": base64.b64encode(b"%d-%d" % (n, m)).decode()}
                for m in range(1 + n % 3)
            ],
        }
        for n in range(40)
    ]
    settings = {"index.interval.bytes": index_interval, "segment.bytes": segment, "retention.ms": -1}
    answer = kafka.ask("write", dir=partition, settings=settings, steps=steps, now=1_700_000_000_000)
    opened = kafka.ask("open", dir=partition, settings=settings, clean=True, lines=True)
    log = cw.Log(partition)
    assert log.log_end_offset == answer["log_end_offset"] == opened["log_end_offset"]
    assert len(log.segments) == len(answer["segments"])
    assert our_lines(log) == opened["records"]["lines"]
    assert digest(our_lines(log)) == opened["records"]["sha256"]


def test_the_jvm_and_this_process_see_each_others_locks(kafka: KafkaClasses, tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    assert kafka.ask("lock", file=path)["locked"]
    with path.open("r+b") as file:
        with pytest.raises(BlockingIOError):
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        kafka.ask("unlock", file=path)
        fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        assert not kafka.ask("lock", file=path)["locked"]
    assert kafka.ask("lock", file=path)["locked"]
    kafka.ask("unlock", file=path)


def test_an_exception_of_kafka_is_an_error_here(kafka: KafkaClasses, tmp_path: Path) -> None:
    with pytest.raises(KafkaRefusedError, match="no question is called"):
        kafka.ask("dance")
    batch = {"do": "append", "leader_epoch": -1, "records": [{"timestamp": 0, "value": ""}]}
    answer = kafka.ask("write", dir=tmp_path / "t-0", steps=[batch])
    assert "invalid partition leader epoch" in answer["steps"][0]["error"]
