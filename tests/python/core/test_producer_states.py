"""`Log.producers`, `LogWriter.producers` and `cordwood producers`, compared with what Kafka finds."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import corpus
import pytest
from scripts import Command

import cordwood as cw

DAY = 86_400_000
PARTITIONS = corpus.partitions()


def by_kafka(entry: dict[str, Any]) -> dict[str, Any]:
    """The state that Kafka's classes have found, as an opening of the log shows it."""
    last = entry["batches"][-1] if entry["batches"] else {"lastSequence": None, "lastOffset": None}
    is_open = entry["currentTxnFirstOffset"] is not None
    return {
        "producer_id": entry["producerId"],
        "producer_epoch": entry["producerEpoch"],
        "last_sequence": last["lastSequence"],
        "last_offset": last["lastOffset"],
        "last_timestamp": entry["lastTimestamp"],
        "open_transaction": entry["currentTxnFirstOffset"],
        "coordinator_epoch": None if entry["coordinatorEpoch"] == -1 else entry["coordinatorEpoch"],
        "expires": None if is_open else entry["lastTimestamp"] + DAY,
    }


def fields(state: cw.ProducerState) -> dict[str, Any]:
    names = ("producer_id", "producer_epoch", "last_sequence", "last_offset", "last_timestamp")
    names += ("open_transaction", "coordinator_epoch", "expires")
    return {name: getattr(state, name) for name in names}


@pytest.mark.parametrize("part", PARTITIONS, ids=str)
def test_the_producers_of_a_log_of_kafka_are_those_that_kafka_finds(part: corpus.Partition, tmp_path: Path) -> None:
    expected = sorted(map(by_kafka, part.opened["producers"]), key=lambda entry: entry["producer_id"])
    assert [fields(state) for state in cw.Log(part.path).producers] == expected
    # without a snapshot, and with ones that are not Kafka's
    path = Path(shutil.copytree(part.path, tmp_path / part.path.name))
    snapshots = list(path.glob("*.snapshot"))
    for contents in (b"", b"\0" * 100, None):
        for snapshot in snapshots:
            snapshot.unlink(missing_ok=True)
            if contents is not None:
                snapshot.write_bytes(contents)
        if snapshots and cw.Log(path).log_start_offset == 0:
            # Kafka had forgotten those that were not in its snapshots
            known = {entry["producer_id"] for entry in expected}
            found = [fields(state) for state in cw.Log(path).producers]
            assert [entry for entry in found if entry["producer_id"] in known] == expected


@pytest.mark.parametrize("seed", range(4))
def test_a_reader_and_the_next_writer_find_what_the_writer_knows(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    dice = random.Random(seed)
    writer = cw.LogWriter(path, flush="none", config=cw.LogConfig(segment_bytes=2000))
    held = [writer.producer() for _ in range(3)]
    named = writer.producer("import")
    left: list[cw.Transaction] = []
    for step in range(120):
        match dice.randrange(5):
            case 0:
                dice.choice(held).append_many([f"{step}"] * dice.randrange(1, 4))
            case 1:
                named.append(f"{step}")
            case 2:
                transaction = writer.transaction(f"t{dice.randrange(3)}", version=dice.choice([1, 2]))
                transaction.append(f"{step}")
                left.append(transaction)
            case 3 if left:
                end(left.pop(), dice)
            case _:
                writer.append(f"{step}")
        if step % 10 == 0:
            assert cw.Log(path).producers == writer.producers
            assert writer.reader().producers == writer.producers
    known = writer.producers
    assert [state.producer_id for state in known] == sorted({state.producer_id for state in known})
    assert {state.expires for state in known if state.producer_id == named.producer_id} == {None}
    writer.truncate_to(writer.log_end_offset - 5)
    assert cw.Log(path).producers == writer.producers
    writer.close()
    assert cw.Log(path).producers == writer_producers(path)


def end(transaction: cw.Transaction, dice: random.Random) -> None:
    try:
        if dice.random() < 0.5:
            transaction.commit()
        else:
            transaction.abort()
    except cw.InvalidProducerEpochError:
        # another one of its id has begun
        pass


def writer_producers(path: Path) -> list[cw.ProducerState]:
    with cw.LogWriter(path) as writer:
        return writer.producers


def test_the_command_lists_the_producers(tmp_path: Path, command: Command) -> None:
    part = corpus.partition("11-transactions")
    code, out, error = command("producers", part.path, "--json")
    assert (code, error) == (0, "")
    rows = json.loads(out)["producers"]
    assert rows == [fields(state) for state in cw.Log(part.path).producers]
    code, out, error = command("producers", part.path)
    assert (code, error) == (0, "")
    assert all(word in out for word in ("4 producer ids", "903", "2023-11-14T22:13:32.452Z"))
    with cw.LogWriter(tmp_path / "orders-0") as writer:
        writer.append("no producer")
    code, _, error = command("producers", tmp_path / "orders-0")
    assert (code, "no batch has a producer id" in error) == (1, True)


def test_the_command_lists_the_producers_of_several_partitions(tmp_path: Path, command: Command) -> None:
    parts = [corpus.partition(case) for case in ("11-transactions", "10-idempotent")]
    expected = [
        {"path": str(part.path), "producers": [fields(state) for state in cw.Log(part.path).producers]}
        for part in parts
    ]
    code, out, error = command("producers", *(part.path for part in parts), "--json")
    assert (code, error) == (0, "")
    assert json.loads(out) == {"partitions": expected}
    code, out, _ = command("producers", *(part.path for part in parts))
    assert code == 0
    assert all(f"{part.name} " in out for part in parts)
    # a data directory: with one partition that cannot be read
    data = tmp_path / "data"
    shutil.copytree(corpus.GOLDEN / "16-data-dir", data)
    with cw.LogWriter(data / "orders-1") as writer:
        appended = writer.producer("import").append("v")
    code, out, error = command("producers", data, "--topic", "orders", "--json")
    assert (code, error) == (0, "")
    [found] = json.loads(out)["partitions"]
    assert [state["last_offset"] for state in found["producers"]] == [appended.last_offset]
    count = sum(len(cw.Log(data / name).producers) for name in ("cities-1", "orders-1"))
    code, out, error = command("producers", data, "--partition", 1)
    assert (code, f"{count} producer ids in 2 partitions" in out) == (0, True)
    shutil.copytree(parts[0].path, data / "lost-0", ignore=shutil.ignore_patterns("*.log"))
    code, out, error = command("producers", data, "--json")
    assert (code, "lost-0" in error) == (1, True)
    assert [failed["path"] for failed in json.loads(out)["failed"]] == [str(data / "lost-0")]
    code, _, error = command("producers", corpus.partition("01-plain").path, corpus.partition("01-small").path)
    assert (code, "no batch of 2 partitions has a producer id" in error) == (1, True)
    code, _, error = command("producers", next(parts[0].path.glob("*.log")))
    assert (code, "give the partition directory" in error) == (2, True)


def test_a_producer_expires_when_the_documentation_says(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path, producer_id_expiration_ms=1000) as writer:
        writer.producer().append("old", timestamp=5_000)
        with writer.transaction("t") as transaction:
            transaction.append("new")
        known = writer.producers
        assert [state.expires for state in known] == [6_000, (known[1].last_timestamp or 0) + 1000]
    with cw.LogWriter(path, producer_id_expiration_ms=60_000) as writer:
        assert [state.producer_id for state in writer.producers] == [known[1].producer_id]
