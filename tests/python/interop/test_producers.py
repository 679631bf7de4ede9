"""Producers and transactions of a `LogWriter`, and the same with Kafka: the same files, byte for byte."""

from __future__ import annotations

import random
import struct
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from batches import LOG_APPEND_TIME, crc32c

import cordwood as cw
from interop.kafka_classes import KafkaClasses
from interop.scenarios import text
from interop.twins import Step, Written, assert_the_same_files, write_with_kafka


def of_client(raw: bytes) -> bytes:
    """A batch as a client sends it: without offset and epoch, and not with the time of the log."""
    covered = struct.pack(">h", struct.unpack(">h", raw[21:23])[0] & ~LOG_APPEND_TIME) + raw[23:]
    return bytes(8) + raw[8:12] + struct.pack(">iBI", -1, 2, crc32c(covered)) + covered


class History:
    """Random calls of a writer. Each batch that it writes is a step for Kafka."""

    def __init__(self, path: Path, settings: dict[str, Any], seed: int) -> None:
        self.dice = random.Random(seed)
        self.path = path
        self.config = cw.LogConfig.from_properties({name: str(value) for name, value in settings.items()})
        self.steps: list[Step] = []
        self.stable: list[int | None] = []
        self.bounds: list[tuple[int, int] | None] = []
        self.version = 2
        self.open()

    def open(self) -> None:
        self.writer = cw.LogWriter(self.path, config=self.config, flush="none")
        self.transactions: dict[str, tuple[cw.Transaction, int]] = {}
        self.noted = self.writer.log_end_offset

    def note(self, step: Step, bounds: tuple[int, int] | None = None) -> None:
        self.steps.append(step)
        self.bounds.append(bounds)
        self.stable.append(None)

    def note_batches(self, *, is_followed: bool = False) -> None:
        """The batches that were written since the last call."""
        log = self.writer.reader()
        segments = {segment.base_offset: Path(segment.path) for segment in log.segments}
        end = self.writer.log_end_offset
        table = log.batches(start_offset=self.noted, end_offset=end).to_arrow()
        at = table.schema.get_field_index("max_timestamp")
        for row in table.set_column(at, "max_timestamp", table["max_timestamp"].cast(pa.int64())).to_pylist():
            raw = segments[row["segment_base_offset"]].read_bytes()[row["position"] :][: row["size"]]
            bounds = (row["base_offset"], row["last_offset"])
            if row["is_control"]:
                self.note(self.marker(raw, row), bounds)
            elif is_followed:
                self.note({"do": "follow", "batches": text(raw), "now": row["max_timestamp"]}, bounds)
            else:
                self.note({"do": "raw", "batches": text(of_client(raw)), "now": row["max_timestamp"]}, bounds)
        if self.noted < end:
            self.stable[-1] = self.writer.last_stable_offset
        self.noted = end

    def marker(self, raw: bytes, row: dict[str, Any]) -> Step:
        """The step of a marker: its record ends with key, value and the number of headers."""
        kind, coordinator = struct.unpack(">h", raw[-10:-8])[0], struct.unpack(">i", raw[-5:-1])[0]
        return {
            "do": "end",
            "producer_id": row["producer_id"],
            "producer_epoch": row["producer_epoch"],
            "commit": kind == 1,
            "coordinator_epoch": coordinator,
            "version": self.version,
            "now": row["max_timestamp"],
        }

    def run(self, count: int) -> None:
        for _ in range(count):
            self.step()
        self.writer.close()

    def step(self) -> None:
        self.call(self.dice.randrange(14))
        self.note_batches()

    def call(self, number: int) -> None:
        dice = self.dice
        match number:
            case 0:
                self.writer.append(b"plain")
            case 1 | 2:
                name = dice.choice([None, "import", "audit"])
                producer = self.writer.producer(name)
                for _ in range(dice.randrange(1, 3)):
                    producer.append_many([b"%d" % n for n in range(dice.randrange(1, 4))])
                assert name is None or producer.append_many([], sequence=0).is_duplicate is False
            case 3:
                self.writer.roll()
                self.note({"do": "roll"})
            case 4 if dice.random() < 0.6:
                self.open_again()
            case 6 if rows := cw.open_transactions(self.path).to_dicts():
                self.version = 0
                self.writer.abort_transaction(dice.choice(rows)["producer_id"])
                self.note_batches()
            case 7 | 8:
                # it may abort the open one of the same id, whose marker has the next epoch in both versions
                self.version = 2
                name = dice.choice(["a", "b", "c"])
                version = dice.choice([1, 2])
                self.transactions[name] = self.writer.transaction(name, version=version), version
                self.note_batches()
            case _ if self.transactions:
                self.continue_transaction()

    def open_again(self) -> None:
        self.note_batches()
        self.transactions.clear()
        if self.dice.random() < 0.5:
            self.writer.close()
            self.note({"do": "reopen"})
        else:
            del self.writer
            self.note({"do": "crash"})
        self.open()
        self.stable[-1] = self.writer.last_stable_offset

    def continue_transaction(self) -> None:
        """Append to an open transaction, or end it. It may be fenced."""
        dice = self.dice
        name = dice.choice(list(self.transactions))
        transaction, version = self.transactions[name]
        try:
            if dice.random() < 0.6:
                transaction.append_many([b"%d" % n for n in range(dice.randrange(1, 4))])
            else:
                self.version = version
                del self.transactions[name]
                end = transaction.commit if dice.random() < 0.6 else transaction.abort
                end()
        except cw.InvalidProducerEpochError:
            self.transactions.pop(name, None)


@pytest.mark.parametrize("seed", range(12))
def test_producers_and_transactions_are_those_of_kafka(kafka: KafkaClasses, tmp_path: Path, seed: int) -> None:
    settings: dict[str, Any] = {
        "internal.segment.bytes": [1500, 4000][seed % 2],
        "index.interval.bytes": [0, 200][seed // 2 % 2],
        "retention.ms": -1,
        "message.timestamp.type": ["CreateTime", "CreateTime", "LogAppendTime"][seed % 3],
    }
    ours, kafkas = tmp_path / "ours-0", tmp_path / "kafkas-0"
    ours.parent.mkdir(exist_ok=True)
    history = History(ours, settings, seed)
    now = time.time_ns() // 1_000_000
    history.run(150)
    written = Written([None] * len(history.steps))
    expiration = {"producer_id_expiration_ms": 86_400_000}
    answer = write_with_kafka(kafka, kafkas, settings, history.steps, written, now=now, **expiration)
    for number, (step, result) in enumerate(zip(history.steps, answer["steps"], strict=True)):
        where = (number, step, result)
        assert "error" not in result, where
        bounds, stable = history.bounds[number], history.stable[number]
        assert bounds is None or bounds == (result["first"], result["last"]), where
        assert stable is None or stable == result["last_stable_offset"], where
    assert_the_same_files(ours, kafkas)
    assert {step["do"] for step in history.steps} >= {"raw", "end", "roll"}
    assert list(ours.glob("*.txnindex"))


def test_kafka_continues_with_what_a_writer_left_and_a_writer_with_what_kafka_left(
    kafka: KafkaClasses, tmp_path: Path
) -> None:
    """A transaction that one has left open is found and ended by the other."""
    path, settings = tmp_path / "orders-0", {"retention.ms": -1}
    now = time.time_ns() // 1_000_000
    with cw.LogWriter(path) as writer:
        with writer.transaction("billing") as transaction:
            transaction.append("a")
        transaction = writer.transaction("billing")
        transaction.append("b")
    end = {"do": "end", "producer_id": transaction.producer_id, "producer_epoch": 2, "commit": False, "version": 2}
    steps: list[Step] = [{"do": "append", "records": [{"timestamp": now, "value": ""}]}, end]
    answer = write_with_kafka(kafka, path, settings, steps, Written([None] * 2), now=now)
    assert [step["last_stable_offset"] for step in answer["steps"]] == [2, 5]
    with cw.LogWriter(path) as writer:
        assert (writer.log_end_offset, writer.last_stable_offset) == (5, 5)
        again = writer.transaction("billing")
        assert (again.producer_id, again.producer_epoch) == (transaction.producer_id, 2)
        again.append("c")
        again.commit()
    values = [record.value for record in cw.Log(path).records(isolation_level="read_committed")]
    assert values == [b"a", b"", b"c"]
