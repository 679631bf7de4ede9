"""Writes to a data directory whose metadata states the partitions of a topic: some are in another directory."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import corpus
import pytest

import cordwood as cw
from cordwood.spark.write import partitions
from spark.reading import refuses
from spark.writing import Sink, texts, values

pytestmark = pytest.mark.python_source

# of these keys, and of the golden topic `cities`, which has two partitions
OF_0, OF_1 = b"k3", b"k0"
ELSEWHERE = "cities-1 is in another data directory of the broker, or on another broker"


@pytest.fixture
def root(root: Path) -> Path:
    """The data directory of a broker with two: the metadata and the first partition of a topic are here."""
    path = root / "first"
    path.mkdir()
    for name in ("meta.properties", "__cluster_metadata-0", "cities-0", "rivers.compact-0"):
        source = corpus.GOLDEN / "16-data-dir" / name
        (shutil.copytree if source.is_dir() else shutil.copyfile)(source, path / name)
    return path


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_the_number_of_partitions_is_that_of_the_metadata(root: Path) -> None:
    before = len(texts(root / "cities-0"))
    # the option says the same
    for options in ({}, {"numPartitions": 2}):
        Sink(root, topic="cities", **options).run(values("a", key=OF_0))
    assert texts(root / "cities-0")[before:] == ["a", "a"]
    for wanted in (1, 3):
        with refuses("CORDWOOD_BAD_OPTION", "numPartitions: expected 2", "metadata", f"found '{wanted}'") as raised:
            Sink(root, topic="cities", numPartitions=wanted)
        assert "write to" not in str(raised.value)
    assert not (root / "cities-1").exists()


@pytest.mark.parametrize("batch", [None, 0])
@pytest.mark.parametrize("options", [{}, {"numPartitions": 2}])
@pytest.mark.parametrize("row", [{"key": OF_1}, {"partition": 1}])
def test_a_row_of_a_partition_that_is_elsewhere_is_refused(
    root: Path, options: dict[str, Any], row: dict[str, Any], batch: int | None
) -> None:
    before = files(root)
    rows = [{"value": b"x", "key": OF_0, "topic": "cities"}, {"value": b"y", "topic": "cities", **row}]
    for sink in (
        Sink(root, "key", "value", "partition", topic="cities", batch=batch, **options),
        Sink(root, "key", "value", "partition", "topic", batch=batch),
    ):
        with refuses("CORDWOOD_BAD_OPTION", "2 partitions in the metadata", "only 0 of the topic", ELSEWHERE):
            sink.run(rows)
    with refuses("CORDWOOD_BAD_OPTION", ELSEWHERE):
        Sink(root / "cities-1", "value", batch=batch)
    assert files(root) == before


def test_a_partition_that_the_metadata_does_not_have_is_refused(root: Path) -> None:
    with refuses("CORDWOOD_BAD_OPTION", "column partition: expected 0 to 1", "metadata", "found 2 in a row"):
        Sink(root, "value", "partition", topic="cities").run(values("a", partition=2))
    with refuses("CORDWOOD_BAD_OPTION", "path: expected 0 to 1", "metadata"):
        Sink(root / "cities-2", "value")
    assert not (root / "cities-2").exists()


def test_rows_without_a_key_go_to_a_partition_that_is_here(root: Path) -> None:
    before = len(texts(root / "cities-0"))
    Sink(root, topic="cities").run(*([row] for row in values("a", "b", "c")))
    assert texts(root / "cities-0")[before:] == ["a", "b", "c"]


def test_a_topic_of_the_metadata_without_a_partition_here_is_not_created(root: Path) -> None:
    shutil.rmtree(root / "cities-0")
    for options in ({}, {"numPartitions": 2}):
        with refuses("CORDWOOD_BAD_OPTION", "no partition of the topic", "on another broker"):
            Sink(root, topic="cities", **options).run(values("a"))
    assert not list(root.glob("cities-*"))


def test_a_topic_that_the_metadata_does_not_have_is_created(root: Path) -> None:
    Sink(root, topic="orders", numPartitions=2).run(values("a"))
    Sink(root, "key", "value", "topic").run(values("b", topic="orders", key=OF_0))
    assert sorted(path.name for path in root.glob("orders-*")) == ["orders-0", "orders-1"]


def test_a_topic_of_the_same_name_with_another_id_is_another_topic(root: Path) -> None:
    shutil.rmtree(root / "cities-0")
    cw.LogWriter(root / "cities-0", topic_id="AAAAAAAAAAcAAAAAAAAABQ").close()
    Sink(root, topic="cities").run(values("a", key=OF_1))
    assert texts(root / "cities-0") == ["a"]


def test_the_metadata_is_read_for_the_topic_of_the_write(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []

    def reading(*arguments: Any, **named: Any) -> Any:
        read.append(named["topics"])
        return cw.metadata(*arguments, **named)

    monkeypatch.setattr(partitions, "metadata", reading)
    Sink(root, topic="cities").run(values("a"))
    assert read
    assert {tuple(topics) for topics in read} == {("cities",)}
    assert texts(root / "cities-0")[-1] == "a"
