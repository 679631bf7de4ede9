"""Kafka opens logs of `LogWriter` after a clean and after an unclean stop without a complaint."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scripts import write_script

import cordwood as cw
from interop import scenarios
from interop.kafka_classes import KafkaClasses
from interop.twins import START, Step, assert_the_same_files, contents, kafkas_names, our_lines, write_with_cordwood

CODECS = ["uncompressed", "gzip", "snappy", "lz4", "zstd", "producer"]


def assert_kafka_agrees(kafka: KafkaClasses, partition: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """For a directory that was closed. Returns Kafka's result after a clean stop."""
    log = cw.Log(partition)
    ours = our_lines(log)
    accounts = []
    for clean in (True, False):
        opened = kafka.ask(
            "open", dir=partition, settings=settings, clean=clean, lines=True, log_start_offset=log.log_start_offset
        )
        assert opened["complaints"] == [], clean
        assert opened["bytes_cut"] == 0, clean
        assert opened["log_end_offset"] == log.log_end_offset, clean
        assert opened["records"]["lines"] == ours, clean
        for name, listed in opened["before"].items():
            if Path(name).suffix in {".log", ".index", ".timeindex", ".txnindex"}:
                assert opened["after"][name] == listed, (name, clean)
        accounts.append(opened)
    return accounts[0]


def assert_as_recovered(kafka: KafkaClasses, partition: Path, settings: dict[str, Any], scratch: Path) -> None:
    """The indexes equal those of LogSegment.recover, if the log was never reopened or truncated."""
    rebuilt = scratch / partition.name
    assert kafka.ask("rebuild", dir=partition, into=rebuilt, settings=settings)["bytes_cut"] == 0
    assert_the_same_files(partition, rebuilt, ["*.log", "*.index", "*.timeindex", "leader-epoch-checkpoint"])


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("timestamps", ["rising", "disordered", "absent"])
@pytest.mark.parametrize("timestamp_type", ["CreateTime", "LogAppendTime"])
def test_every_codec(kafka: KafkaClasses, tmp_path: Path, codec: str, timestamps: str, timestamp_type: str) -> None:
    settings = {
        "compression.type": codec,
        "message.timestamp.type": timestamp_type,
        "segment.bytes": 5000,
        "index.interval.bytes": 300,
        "retention.ms": -1,
    }
    partition = tmp_path / "t-0"
    written = write_with_cordwood(partition, settings, scenarios.appends(3, 60, timestamps))
    assert written.errors() == []
    assert_kafka_agrees(kafka, partition, settings)
    assert_as_recovered(kafka, partition, settings, tmp_path / "rebuilt")


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_kafka_as_our_follower_writes_the_same_files(kafka: KafkaClasses, tmp_path: Path, codec: str) -> None:
    """Compressed batches differ from Kafka's; appended to Kafka unchanged, all other files must be the same."""
    settings = {"compression.type": codec, "segment.bytes": 5000, "index.interval.bytes": 300, "retention.ms": -1}
    ours, kafkas = tmp_path / "ours-0", tmp_path / "kafkas-0"
    written = write_with_cordwood(ours, settings, scenarios.appends(4, 60, "disordered"))
    assert written.errors() == []
    steps = [{"do": "follow", "batches": scenarios.text(one)} for one in batches_of(ours)]
    assert len(steps) == 60
    answer = kafka.ask("write", dir=kafkas, settings=settings, steps=steps)
    assert [step for step in answer["steps"] if "error" in step] == []
    assert_the_same_files(ours, kafkas)


def batches_of(partition: Path) -> list[bytes]:
    found = []
    for content in contents(partition, "*.log").values():
        position = 0
        while position < len(content):
            size = 12 + int.from_bytes(content[position + 8 : position + 12], "big")
            found.append(content[position : position + size])
            position += size
    return found


@pytest.mark.parametrize("seed", range(6))
def test_after_any_sequence_of_operations(kafka: KafkaClasses, tmp_path: Path, seed: int) -> None:
    settings = {
        "segment.bytes": [1500, 8000][seed % 2],
        "index.interval.bytes": [0, 200][seed // 2 % 2],
        "preallocate": str(seed == 4).lower(),
        "retention.ms": -1,
    }
    partition = tmp_path / "t-0"
    write_with_cordwood(partition, settings, scenarios.lives(100 + seed, 60, list(scenarios.TIMESTAMPS)[seed % 5]))
    assert_opens_without_a_word(kafka, partition, settings)


def assert_opens_without_a_word(kafka: KafkaClasses, partition: Path, settings: dict[str, Any]) -> None:
    log = cw.Log(partition)
    for clean in (True, False):
        opened = kafka.ask(
            "open", dir=partition, settings=settings, clean=clean, lines=True, log_start_offset=log.log_start_offset
        )
        assert opened["complaints"] == [], clean
        assert opened["bytes_cut"] == 0, clean
        assert opened["records"]["lines"] == our_lines(log), clean


def test_an_empty_log(kafka: KafkaClasses, tmp_path: Path) -> None:
    partition = tmp_path / "t-0"
    write_with_cordwood(partition, {}, [])
    account = assert_kafka_agrees(kafka, partition, {})
    assert account["log_end_offset"] == 0


def test_positions_of_consumers(kafka: KafkaClasses, tmp_path: Path) -> None:
    settings = {"segment.bytes": 5000, "index.interval.bytes": 300, "retention.ms": -1}
    partition = tmp_path / "t-0"
    assert write_with_cordwood(partition, settings, scenarios.appends(3, 60, "rising")).errors() == []
    for name, offset in (("billing", 7), ("00000000000000000000.log", 9), ("x.swap", 1), ("x.deleted", 2)):
        cw.Log(partition).position(name).commit(offset)
    assert_kafka_agrees(kafka, partition, settings)
    found = {position.name: position.offset for position in cw.Log(partition).positions()}
    assert found == {"00000000000000000000.log": 9, "billing": 7, "x.deleted": 2, "x.swap": 1}


@pytest.mark.parametrize("start", [1, 25, 60])
def test_a_log_whose_start_was_moved(kafka: KafkaClasses, tmp_path: Path, start: int) -> None:
    settings = {"segment.bytes": 1500, "retention.ms": -1}
    steps: list[Step] = [*scenarios.appends(5, 60, "rising"), {"do": "delete_before", "offset": start}]
    partition = tmp_path / "t-0"
    write_with_cordwood(partition, settings, steps)
    log = cw.Log(partition)
    assert log.log_start_offset == start
    assert_kafka_agrees(kafka, partition, settings)


KILLED = """
import sys
import cordwood as cw

partition, start, settings = sys.argv[1], int(sys.argv[2]), dict(pair.split("=") for pair in sys.argv[3:])
writer = cw.LogWriter(partition, config=cw.LogConfig.from_properties(settings), flush="always")
while True:
    end = writer.log_end_offset
    appended = writer.append(b"v" * (end % 97), timestamp=start + end)
    sys.stdout.write(f"{appended.last_offset}\\n")
    sys.stdout.flush()
"""


@pytest.mark.parametrize("acknowledged", [1, 40, 333])
@pytest.mark.parametrize("preallocate", ["false", "true"])
def test_after_a_kill_kafka_and_cordwood_recover_the_same(
    kafka: KafkaClasses, tmp_path: Path, script_environment: dict[str, str], acknowledged: int, preallocate: str
) -> None:
    settings = {
        "segment.bytes": 9000,
        "index.interval.bytes": 200,
        "segment.index.bytes": 4096,
        "preallocate": preallocate,
        "retention.ms": -1,
    }
    partition = tmp_path / "t-0"
    last = killed_after(acknowledged, partition, settings, script_environment, tmp_path)
    theirs = kafka.ask("open", dir=partition, settings=settings, clean=False, lines=True)
    # complaints about zeros of a preallocated file, or half a batch, are expected
    spoken = ("Found invalid messages", "Corruption found in segment")
    assert [text for text in theirs["complaints"] if not any(word in text for word in spoken)] == []
    write_with_cordwood(partition, settings, [])
    log = cw.Log(partition)
    assert log.log_end_offset > last
    assert [row.value for row in log.records()] == [b"v" * (n % 97) for n in range(log.log_end_offset)]
    assert theirs["log_end_offset"] == log.log_end_offset
    assert theirs["records"]["lines"] == our_lines(log)
    assert_kafka_agrees(kafka, partition, settings)
    assert_as_recovered(kafka, partition, settings, tmp_path / "rebuilt")


def killed_after(
    acknowledged: int, partition: Path, settings: dict[str, Any], environment: dict[str, str], folder: Path
) -> int:
    """Run a writer, kill it, and return the last offset that it reported as durable."""
    script = write_script(folder, KILLED)
    properties = [f"{name}={value}" for name, value in kafkas_names(settings).items()]
    partition.mkdir()
    with subprocess.Popen(
        [sys.executable, str(script), str(partition), str(START), *properties],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        last = -1
        for line in process.stdout:
            last = int(line)
            if last + 1 >= acknowledged:
                break
        process.kill()
        for line in process.stdout:  # acknowledged while it was being killed
            last = int(line) if line.endswith("\n") else last
    assert last >= 0
    return last
