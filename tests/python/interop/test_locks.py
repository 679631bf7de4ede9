"""A broker's lock on its data directory keeps a `LogWriter` out, and the other way round."""

from __future__ import annotations

from pathlib import Path

import pytest

import cordwood as cw
from interop.kafka_classes import KafkaClasses, KafkaRefusedError


@pytest.fixture
def data_directory(tmp_path: Path) -> Path:
    """A directory with the lock file that marks a Kafka data directory."""
    (tmp_path / ".lock").touch()
    return tmp_path


def test_a_jvm_that_locks_the_data_directory_keeps_a_writer_out(kafka: KafkaClasses, data_directory: Path) -> None:
    assert kafka.ask("lock", file=data_directory / ".lock")["locked"]
    with pytest.raises(cw.LockedError, match=r"\.lock is locked by process \d+ \(java\)"):
        cw.LogWriter(data_directory / "t-0")
    kafka.ask("unlock", file=data_directory / ".lock")
    with cw.LogWriter(data_directory / "t-0") as writer:
        assert writer.append(b"in").first_offset == 0


def test_a_writer_keeps_a_jvm_out_until_it_is_closed(kafka: KafkaClasses, data_directory: Path) -> None:
    lock = data_directory / ".lock"
    with cw.LogWriter(data_directory / "t-0"), cw.LogWriter(data_directory / "t-1"):
        assert not kafka.ask("lock", file=lock)["locked"]
    assert kafka.ask("lock", file=lock)["locked"]
    kafka.ask("unlock", file=lock)


def test_a_broker_does_not_start_while_a_writer_is_open(kafka: KafkaClasses, tmp_path: Path) -> None:
    data = tmp_path / "data"
    kafka.ask("start", dir=data)
    with pytest.raises(cw.LockedError):
        cw.LogWriter(data / "t-0")
    kafka.ask("stop")
    with cw.LogWriter(data / "t-0"), pytest.raises(KafkaRefusedError, match=r"Failed to acquire lock on file \.lock"):
        kafka.ask("start", dir=data)
    kafka.ask("stop")
