"""A broker's data directory as a mapping of partitions."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import corpus
import pyarrow as pa
import pytest
from tables import DEFAULT_COLUMNS, column, expected_rows, rows

import cordwood as cw

DATA = corpus.GOLDEN / "16-data-dir"
PARTS = {part.name: part for part in corpus.partitions() if part.case == "16-data-dir"}
# A broker treats its metadata topic specially, so a directory may or may not list it.
METADATA = "__cluster_metadata-0"
WANTED = set(PARTS) - {METADATA}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    shutil.copytree(DATA, path)
    return path


def test_a_data_directory_maps_names_to_logs() -> None:
    found = cw.LogDir(DATA)
    assert isinstance(found, Mapping)
    assert set(found) - {METADATA} == WANTED
    assert len(found) == len(list(found)) == len(found.keys())
    for name in WANTED:
        log, opened = found[name], PARTS[name].opened
        assert isinstance(log, cw.Log)
        assert (log.topic, log.partition) == (PARTS[name].topic, PARTS[name].number)
        assert (log.log_start_offset, log.log_end_offset) == (opened["logStartOffset"], opened["logEndOffset"])
        assert log.size == sum(p.stat().st_size for p in PARTS[name].path.glob("*.log"))
    assert "cities-0" in found
    assert "cities-9" not in found
    assert "expected" not in found
    assert found.get("cities-9") is None
    with pytest.raises(KeyError):
        found["cities-9"]
    assert {name: log.log_end_offset for name, log in found.items()}["cities-1"] == 150


def test_topics_are_listed_once() -> None:
    topics = list(cw.LogDir(DATA).topics)
    assert len(topics) == len(set(topics))
    assert set(topics) - {"__cluster_metadata"} == {
        "cities",
        "rivers.compact",
        "__consumer_offsets",
        "__transaction_state",
    }


def test_the_checkpointed_log_start_is_that_of_the_partition() -> None:
    assert cw.LogDir(DATA)["cities-1"].log_start_offset == 31
    assert cw.LogDir(DATA)["cities-0"].log_start_offset == 0


def expected(names: list[str]) -> dict[tuple[str, int], list[Any]]:
    return {(PARTS[n].topic, PARTS[n].number): expected_rows(corpus.visible(PARTS[n])) for n in names}


def grouped(table: pa.Table) -> dict[tuple[str, int], list[Any]]:
    found: dict[tuple[str, int], list[Any]] = {}
    topics, numbers = column(table, "topic"), column(table, "partition")
    for topic, number, row in zip(topics, numbers, rows(table, DEFAULT_COLUMNS), strict=True):
        found.setdefault((topic, number), []).append(row)
    return found


def test_a_scan_of_topics_has_topic_and_partition_before_the_rest() -> None:
    table = cw.LogDir(DATA).scan(topics=["cities"]).to_arrow()
    assert table.column_names == ["topic", "partition", *DEFAULT_COLUMNS]
    assert pa.types.is_dictionary(table.schema.field("topic").type)
    assert pa.types.is_string(table.schema.field("topic").type.value_type)
    assert pa.types.is_int32(table.schema.field("partition").type)
    assert grouped(table) == expected(["cities-0", "cities-1"])


def test_a_scan_of_everything_has_every_topic() -> None:
    table = cw.LogDir(DATA).scan().to_arrow()
    found = grouped(table)
    found.pop(("__cluster_metadata", 0), None)
    assert found == {key: value for key, value in expected(sorted(WANTED)).items() if value}


def test_a_scan_accepts_the_arguments_of_a_logs_scan() -> None:
    scan = cw.LogDir(DATA).scan(
        topics=["cities", "rivers.compact"], columns=["offset", "topic"], isolation_level="read_committed"
    )
    table = scan.to_arrow()
    assert table.column_names == ["offset", "topic"]
    wanted = {
        part.topic: sorted(
            r.offset
            for other in PARTS.values()
            if other.topic == part.topic
            for r in corpus.committed(other, other.opened["logEndOffset"])
        )
        for part in (PARTS["cities-0"], PARTS["rivers.compact-0"])
    }
    got: dict[str, list[int]] = {}
    for offset, topic in rows(table):
        got.setdefault(topic, []).append(offset)
    assert {topic: sorted(found) for topic, found in got.items()} == wanted


def test_a_time_range_applies_to_every_partition() -> None:
    everything = [r for n in ("cities-0", "cities-1") for r in corpus.visible(PARTS[n])]
    times = sorted(r.timestamp for r in everything)
    start, end = times[len(times) // 4], times[len(times) // 2]
    table = cw.LogDir(DATA).scan(topics=["cities"], start_time=start, end_time=end, columns=["timestamp"]).to_arrow()
    assert sorted(column(table, "timestamp")) == [t for t in times if start <= t < end]


def test_a_number_that_no_partition_has_is_an_error() -> None:
    found = cw.LogDir(DATA)
    assert found.scan(["cities"], partitions=[1]).count() == 119
    for topics, number in ((None, 7), (["rivers.compact"], 1)):
        with pytest.raises(cw.ConfigError, match=rf"partitions\[1\]: expected the number .* found {number}"):
            found.scan(topics, partitions=[0, number])


def test_an_unknown_topic_is_an_error_or_nothing() -> None:
    said = ""
    try:
        table = cw.LogDir(DATA).scan(topics=["no-such-topic"]).to_arrow()
    except (KeyError, ValueError, cw.CordwoodError) as error:
        said = str(error)
    else:
        assert table.num_rows == 0
        assert table.column_names == ["topic", "partition", *DEFAULT_COLUMNS]
    assert said == "" or "no-such-topic" in said


def test_deleted_future_and_stray_partitions_are_left_out(data: Path) -> None:
    unique = "0123456789abcdef0123456789abcdef"
    for suffix in ("delete", "future", "stray"):
        shutil.copytree(data / "cities-1", data / f"cities-7.{unique}-{suffix}")
    before = set(cw.LogDir(DATA))
    found = cw.LogDir(data)
    assert set(found) == before
    assert found.scan(topics=["cities"], columns=["offset"]).to_arrow().num_rows == 265 + 119


def test_other_entries_than_partitions_are_left_out(data: Path) -> None:
    (data / "remote-log-index-cache").mkdir()
    (data / "lost+found").mkdir()
    (data / "no-number").mkdir()
    (data / "-5").mkdir()
    (data / "cities-3000000000").mkdir()
    (data / "cities-8").write_bytes(b"a file")
    assert set(cw.LogDir(data)) == set(cw.LogDir(DATA))


def test_names_with_dots_and_dashes_are_split_at_the_last_dash(data: Path) -> None:
    for name in ("a-b-c-12", "sensor.readings-gzip-0", "1-1"):
        shutil.copytree(data / "cities-1", data / name)
    found = cw.LogDir(data)
    assert (found["a-b-c-12"].topic, found["a-b-c-12"].partition) == ("a-b-c", 12)
    assert found["sensor.readings-gzip-0"].topic == "sensor.readings-gzip"
    assert (found["1-1"].topic, found["1-1"].partition) == ("1", 1)
    assert found["a-b-c-12"].log_start_offset == 0


def test_an_empty_data_directory_has_no_partition(tmp_path: Path) -> None:
    found = cw.LogDir(tmp_path)
    assert (len(found), list(found), list(found.topics)) == (0, [], [])
    assert found.scan().to_arrow().num_rows == 0


def test_an_invalid_checkpoint_hides_no_partition(data: Path) -> None:
    for name in ("log-start-offset-checkpoint", "meta.properties", "recovery-point-offset-checkpoint"):
        (data / name).write_bytes(b"\xff\0garbage\n" * 3)
    found = cw.LogDir(data)
    assert set(found) == set(cw.LogDir(DATA))
    assert found["cities-1"].log_start_offset == 0


JUST_CREATED: list[dict[str, bytes]] = [
    {},
    {"leader-epoch-checkpoint": b""},
    {"leader-epoch-checkpoint": b"0\n0\n", "partition.metadata": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"},
]


@pytest.mark.parametrize("files", JUST_CREATED, ids=len)
def test_a_partition_that_kafka_has_just_created_has_no_records(data: Path, files: dict[str, bytes]) -> None:
    """Kafka creates the directory before its first segment."""
    for name in ("cities-2", "aaa-0"):
        (data / name).mkdir()
        for file, content in files.items():
            (data / name / file).write_bytes(content)
    found = cw.LogDir(data)
    assert {"cities-2", "aaa-0"} <= set(found)
    assert "aaa" in found.topics
    everything = cw.LogDir(DATA).scan(columns=["topic", "offset"]).to_arrow()
    assert found.scan(columns=["topic", "offset"]).to_arrow().equals(everything)
    assert found.scan(["aaa"]).to_arrow().num_rows == 0
    with pytest.raises(cw.LogNotFoundError, match="without a segment") as raised:
        found["cities-2"]
    assert raised.value.code == "no_segment"


@pytest.mark.parametrize(
    ("kept", "named"),
    [
        ("*.index", r" found none, and .*\.index"),
        ("*.timeindex", r" found none, and .*\.timeindex"),
        ("", r'recovery-point-offset-checkpoint has the recovery point "cities 0 268".* found no segment'),
    ],
)
def test_a_partition_that_lost_its_segments_is_an_error(data: Path, kept: str, named: str) -> None:
    """A new partition has no index, and no recovery point in the data directory."""
    folder = data / "cities-0"
    spared = set(folder.glob(kept)) if kept else set()
    for file in set(folder.iterdir()) - spared:
        file.unlink()
    if kept:
        (data / "recovery-point-offset-checkpoint").unlink()
    found = cw.LogDir(data)
    for read in (lambda: found["cities-0"], lambda: found.scan(["cities"]).to_arrow()):
        with pytest.raises(cw.CorruptLogError, match=f"cities-0 .*expected a segment.*{named}"):
            read()
    assert found.scan(["rivers.compact"]).to_arrow().num_rows > 0


def test_a_segment_that_appears_after_the_listing_is_read(data: Path) -> None:
    moved = data.parent / "moved"
    shutil.move(data / "cities-0", moved)
    (data / "cities-0").mkdir()
    found = cw.LogDir(data)
    shutil.rmtree(data / "cities-0")
    shutil.move(moved, data / "cities-0")
    assert found["cities-0"].log_end_offset == cw.LogDir(DATA)["cities-0"].log_end_offset


@pytest.mark.parametrize("emptied", [False, True])
def test_a_partition_is_not_a_data_directory(data: Path, emptied: bool) -> None:
    path = data / "cities-0"
    if emptied:
        for file in path.iterdir():
            if file.name != "partition.metadata":
                file.unlink()
    with pytest.raises(cw.ConfigError, match=rf"^path: expected .*data directory.*, found {path}.*partition.*use Log$"):
        cw.LogDir(path)
