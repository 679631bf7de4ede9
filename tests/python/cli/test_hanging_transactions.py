"""Hanging transactions, as `kafka-transactions.sh find-hanging` finds them; internal topics of several disks."""

from __future__ import annotations

import json
import shutil
import struct
import time
from pathlib import Path
from typing import Any

import corpus
import pytest
from batches import TRANSACTIONAL, Rec, batch, write_partition
from scripts import Command

import cordwood as cw

DATA = corpus.GOLDEN / "16-data-dir"
METADATA = "__cluster_metadata-0"
ONGOING, PREPARE_COMMIT, COMPLETE_ABORT = 1, 2, 5


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def state(producer: int, status: int, partitions: dict[str, list[int]], timeout: int = 60_000) -> bytes:
    """A record's value of `__transaction_state`, version 0 of Kafka's TransactionLogValue."""
    topics = b"".join(
        text(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers) for topic, numbers in partitions.items()
    )
    head = struct.pack(">hqhib", 0, producer, 0, timeout, status)
    return head + struct.pack(">i", len(partitions)) + topics + struct.pack(">qq", 5, 5)


def write_states(path: Path, states: dict[str, bytes]) -> None:
    with cw.LogWriter(path) as writer:
        for name, value in states.items():
            writer.append(value, key=struct.pack(">h", 0) + text(name))


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    path = tmp_path / "disk"
    path.mkdir()
    (path / "meta.properties").write_text("version=1\n")
    shutil.copytree(corpus.partition("11-transactions").path, path / "payments-0")
    # a cluster whose __transaction_state has one partition
    shutil.copytree(DATA / METADATA, path / METADATA)
    return path


def hanging(*paths: Path) -> dict[int, Any]:
    return {row["producer_id"]: row["is_hanging"] for row in cw.open_transactions(list(paths)).to_dicts()}


def test_a_transaction_hangs_that_its_coordinator_does_not_know(disk: Path, tmp_path: Path) -> None:
    # without __transaction_state nothing is known
    assert hanging(disk) == {4: None, 5: None}
    # producer 4 is known to be open in this partition, 5 in another one
    write_states(
        disk / "__transaction_state-0",
        {
            "one": state(4, ONGOING, {"payments": [0, 1]}),
            "two": state(5, ONGOING, {"payments": [1], "orders": [0]}),
        },
    )
    assert hanging(disk) == {4: False, 5: True}
    rows = {row["producer_id"]: row for row in cw.open_transactions(disk).to_dicts()}
    assert (rows[4]["transactional_id"], rows[4]["state"], rows[4]["timeout_ms"]) == ("one", "Ongoing", 60_000)
    write_states(disk / "__transaction_state-0", {"one": state(4, COMPLETE_ABORT, {})})
    assert hanging(disk) == {4: True, 5: True}
    write_states(
        disk / "__transaction_state-0", {"one": state(4, PREPARE_COMMIT, {"payments": [0]}, timeout=2**31 - 1)}
    )
    assert hanging(disk)[4] is False
    # its partition alone has the same coordinator
    assert hanging(disk / "payments-0") == {4: False, 5: True}
    # an id that is nowhere hangs only if no coordinator is missing
    shutil.rmtree(disk / "__transaction_state-0")
    for checkpoint in disk.glob("*-checkpoint"):
        checkpoint.unlink()
    write_states(disk / "__transaction_state-0", {"other": state(9, ONGOING, {})})
    assert hanging(disk) == {4: True, 5: True}
    other = tmp_path / "other"
    other.mkdir()
    (other / "meta.properties").write_text("version=1\n")
    (disk / "__transaction_state-0").rename(other / "__transaction_state-0")
    assert hanging(disk) == {4: None, 5: None}
    assert hanging(disk, other) == {4: True, 5: True}


def test_without_the_clusters_metadata_it_is_not_known_whether_all_coordinators_are_there(disk: Path) -> None:
    write_states(disk / "__transaction_state-0", {"two": state(5, COMPLETE_ABORT, {})})
    assert hanging(disk) == {4: True, 5: True}
    shutil.rmtree(disk / METADATA)
    assert hanging(disk) == {4: None, 5: True}


def test_a_record_that_is_not_decodable_is_the_state_of_no_producer(disk: Path) -> None:
    shutil.rmtree(disk / "payments-0")
    now = time.time_ns() // 1_000_000
    open_batch = batch(
        0, [Rec(b"x", timestamp=now)], producer_id=0, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL
    )
    write_partition(disk / "payments-0", [(0, [open_batch])])
    write_states(disk / "__transaction_state-0", {"other": state(9, ONGOING, {}), "broken": b"\xff\xff"})
    # it is younger than every timeout
    assert hanging(disk) == {0: False}


def test_the_number_of_coordinators_is_that_of_the_clusters_metadata(disk: Path) -> None:
    shutil.copytree(DATA / "__transaction_state-0", disk / "__transaction_state-0")
    (row,) = cw.metadata(disk, topics=["__transaction_state"]).topics.to_dicts()
    assert row["partitions"] == 1
    assert hanging(disk) == {4: True, 5: True}


def test_a_transaction_that_is_younger_than_its_timeout_does_not_hang(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    (tmp_path / "meta.properties").write_text("version=1\n")
    shutil.copytree(DATA / METADATA, tmp_path / METADATA)
    write_states(tmp_path / "__transaction_state-0", {"other": state(9, ONGOING, {})})
    now = time.time_ns() // 1_000_000
    with cw.LogWriter(path) as writer:
        transaction = writer.transaction("open")
        transaction.append(b"x", timestamp=now)
        (row,) = cw.open_transactions(tmp_path, topics=["orders"]).to_dicts()
        assert (row["is_hanging"], row["last_stable_offset"], row["records_behind"]) == (False, 0, 1)
        transaction.abort()
        transaction = writer.transaction("open")
        transaction.append(b"x", timestamp=now - 3_600_000)
        writer.append(b"y")
        (row,) = cw.open_transactions(tmp_path, topics=["orders"]).to_dicts()
        assert (row["is_hanging"], row["records_behind"]) == (True, 2)
        transaction.abort()


def test_the_records_behind_are_those_that_committed_readers_do_not_get(disk: Path) -> None:
    log = cw.Log(disk / "payments-0")
    rows = cw.open_transactions(disk).to_dicts()
    assert {row["last_stable_offset"] for row in rows} == {log.last_stable_offset}
    behind = log.scan(start_offset=log.last_stable_offset).count()
    assert {row["records_behind"] for row in rows} == {behind}
    assert behind > 0


def test_the_command_shows_them(command: Command, disk: Path) -> None:
    write_states(disk / "__transaction_state-0", {"billing": state(5, COMPLETE_ABORT, {})})
    code, out, _ = command("transactions", disk, "--open")
    assert code == 0
    four, five = (line.split() for line in out.splitlines() if line.startswith("payments-0"))
    assert "billing" in five
    assert "CompleteAbort" in five
    assert four[-1] == five[-1] == "yes"
    assert str(cw.Log(disk / "payments-0").last_stable_offset) in four


@pytest.fixture
def disks(tmp_path: Path) -> tuple[Path, Path]:
    """The golden data directory, with a part of its partitions on another disk."""
    one, two = tmp_path / "one", tmp_path / "two"
    shutil.copytree(DATA, one, ignore=shutil.ignore_patterns("expected"))
    two.mkdir()
    for name in ("meta.properties", "log-start-offset-checkpoint"):
        shutil.copy(one / name, two)
    for name in ("cities-1", "__transaction_state-0", "__cluster_metadata-0"):
        (one / name).rename(two / name)
    return one, two


def test_internal_topics_of_several_directories(disks: tuple[Path, Path]) -> None:
    both = list(disks)
    for read in (cw.consumer_offsets, cw.consumer_groups, cw.transactions, cw.metadata_records):
        assert read(both).to_dicts() == read(DATA).to_dicts() == read([*both, both[0]]).to_dicts()  # type: ignore[operator]
    assert cw.metadata(both).topics.to_dicts() == cw.metadata(DATA).topics.to_dicts()
    # the lag of the partition on the other disk is not known from one alone
    lags = {row["partition"]: row["lag"] for row in cw.consumer_offsets(disks[0], topics=["cities"]).to_dicts()}
    assert lags == {0: 0, 1: None}
    with pytest.raises(cw.ConfigError, match="which has none"):
        cw.consumer_offsets([disks[1]])
    with pytest.raises(cw.ConfigError, match="path: expected one path or more"):
        cw.consumer_offsets([])


def test_commands_take_several_directories(command: Command, disks: tuple[Path, Path]) -> None:
    for words in (["groups"], ["groups", "--members"], ["transactions"], ["transactions", "--open"]):
        name, *options = words
        assert command(name, *disks, *options, "--json")[:2] == command(name, DATA, *options, "--json")[:2]
    for table in ("topics", "partitions", "records"):
        assert command("metadata", *disks, table, "--json")[:2] == command("metadata", DATA, table, "--json")[:2]
    assert command("metadata", *disks)[0] == 0
    code, _, error = command("metadata", *disks, "tropics")
    assert code == 2
    assert "expected a path or a table (topics, " in error
    assert json.loads(command("groups", *disks, "--topic", "cities", "--json")[1].splitlines()[1])["lag"] == 0
