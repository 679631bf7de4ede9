"""`verify --as-kafka` says whether a real broker starts with two data directories, the second broken in one way."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scripts import Command

from interop.broken_directories import METADATA, another_of_broker, copy_whole
from interop.kafka_classes import KafkaClasses

SETTINGS = {"log.initial.task.delay.ms": "100", "log.segment.delete.delay.ms": "1", "log.retention.ms": "-1"}
PROPERTIES = "meta.properties"

Second = Callable[[Path, Path], object]


def with_properties(pattern: str, replacement: str) -> Second:
    def make(data: Path, other: Path) -> None:
        file = another_of_broker(data, other) / PROPERTIES
        file.write_text(re.sub(pattern, replacement, file.read_text()))

    return make


def of_version_0(lines: str) -> Second:
    return lambda _, other: (other.mkdir(), (other / PROPERTIES).write_text(f"version=0\n{lines}"))


def of_first(change: Callable[[Path], object]) -> Second:
    """Change the first directory, which has the metadata log."""
    return lambda data, other: (another_of_broker(data, other), change(data))


def with_zeros(name: str) -> Callable[[Path], object]:
    return lambda data: (data / name).write_bytes(bytes(20))


def with_directory(name: str) -> Callable[[Path], object]:
    return lambda data: ((data / name).unlink(), (data / name).mkdir())


def both(first: Second, change: Callable[[Path], object]) -> Second:
    return lambda data, other: (first(data, other), change(other))


def with_file(name: str) -> Second:
    def make(data: Path, other: Path) -> None:
        another_of_broker(data, other)
        (data / "cities-1").rename(other / "cities-1")
        (other / name).parent.mkdir(exist_ok=True)
        (other / name).write_bytes(bytes(20))

    return make


SECOND: dict[str, Second] = {
    "usual": another_of_broker,
    "another cluster": with_properties("cluster.id=.*", "cluster.id=AAAAAAAAAAAAAAAAAAAAAQ"),
    "another node": with_properties("node.id=1", "node.id=2"),
    "the same directory.id": lambda data, other: (other.mkdir(), shutil.copy(data / PROPERTIES, other)),
    "no directory.id": with_properties("directory.id=.*\n", ""),
    "version 0 without a cluster": of_version_0("broker.id=1\n"),
    "version 0 with another cluster": of_version_0("broker.id=1\ncluster.id=x\n"),
    "two metadata logs": lambda data, other: shutil.copytree(
        data / METADATA, another_of_broker(data, other) / METADATA
    ),
    "a file named as the metadata log": with_file(METADATA),
    "a foreign directory": with_file("backup/x"),
    "a partition that cannot be loaded": with_file("cities-1/notes.log"),
    "an offline directory": with_file("recovery-point-offset-checkpoint"),
    "a damaged bootstrap.checkpoint": with_file("bootstrap.checkpoint"),
    "version 0 without a broker": of_version_0("cluster.id=Q29yZHdvb2RDb3JwdXMwMQ\n"),
    "no ids": both(another_of_broker, lambda other: (other / PROPERTIES).write_text("")),
    "no cluster.id": with_properties("cluster.id=.*\n", ""),
    "no node.id": with_properties("node.id=.*\n", ""),
    "meta.properties is a directory": both(another_of_broker, with_directory(PROPERTIES)),
    "version 2 with another cluster": with_properties("version=1|cluster.id=.*", "version=2"),
    "version 2 and a foreign directory": both(
        with_properties("version=1", "version=2"), lambda other: (other / "backup").mkdir()
    ),
    "no node.id and a partition of the first directory": both(
        with_properties("node.id=.*\n", ""),
        lambda other: shutil.copytree(other.parent / "data" / "cities-1", other / "cities-1"),
    ),
    "an offline metadata directory": of_first(with_zeros("recovery-point-offset-checkpoint")),
    "an offline partition beside the metadata log": of_first(with_zeros("cities-0/leader-epoch-checkpoint")),
    "version 2 of the metadata directory": of_first(
        lambda data: (data / PROPERTIES).write_text((data / PROPERTIES).read_text().replace("version=1", "version=2"))
    ),
    "quorum-state is a directory": of_first(with_directory(f"{METADATA}/quorum-state")),
}


@pytest.fixture(scope="module")
def jvm(kafka: KafkaClasses, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaClasses]:
    """Of its own: a broker whose start fails leaves threads. `kafka` only says that the tools are there."""
    assert kafka.ask("version")["version"]
    with (tmp_path_factory.mktemp("several") / "said.txt").open("w+", encoding="utf-8") as said:
        classes = KafkaClasses(said)
        yield classes
        classes.close()


@pytest.mark.parametrize("case", SECOND)
def test_a_broker_starts_with_two_data_directories_as_the_verdict_says(
    command: Command, jvm: KafkaClasses, tmp_path: Path, case: str
) -> None:
    data, other = copy_whole(tmp_path / "data"), tmp_path / "other"
    SECOND[case](data, other)
    code, shown, said = command("verify", data, other, "--as-kafka", "--json", "-q")
    verdicts = {verdict["path"]: verdict["starts"] for verdict in map(json.loads, shown.splitlines())}
    starts = verdicts[str(data)] and "not all of one broker" not in said
    directories = {"log.dirs": f"{data},{other}"}
    answer = jvm.ask("try_start", dir=data, partitions=["cities-0"], settings=SETTINGS | directories)
    assert ("ended" not in answer) == starts, (answer, verdicts, said)
    assert verdicts.keys() == {str(data), str(other)}
    if case in {"usual", "no directory.id"}:
        assert (code, starts) == (0, True)
    assert starts or code == 1
