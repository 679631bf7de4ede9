"""Histories with keys, transactions and compactions, generated from a seed."""

from __future__ import annotations

import random
import struct
import tempfile
from pathlib import Path
from typing import Any

from batches import NONE, Rec, batch

import cordwood as cw
from interop.scenarios import CONTROL, DAY_MS, TRANSACTIONAL, Producer, text
from interop.twins import Step, Told

CODECS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
RETENTION_MS = 5000


def compressed(codec: int, records: list[Rec]) -> bytes:
    """The records of a batch as cordwood compresses them: both sides get the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        partition = Path(folder, "one-0")
        with cw.LogWriter(partition, config=cw.LogConfig(compression_type=CODECS[codec]), flush="none") as writer:
            writer.append_many([cw.Record(value=r.value, key=r.key, timestamp=r.timestamp) for r in records])
        return Path(partition, f"{0:020}.log").read_bytes()[61:]


class Keyed:
    """Batches of few keys, so that most records are replaced; tombstones; producers; compactions between them."""

    def __init__(self, seed: int, now: int, codecs: list[int], *, truncates: bool = True) -> None:
        """`now`: the time of both clocks at first."""
        self.dice = random.Random(seed)
        self.now = now
        self.codecs = codecs
        self.truncates = truncates
        self.keys = self.dice.choice([3, 12, 40])
        ids = [self.dice.choice([self.dice.randrange(50), self.dice.randrange(1 << 40)]) for _ in range(6)]
        self.known = [Producer(producer_id) for producer_id in dict.fromkeys(ids)]
        self.end = self.start = self.values = 0

    def steps(self, count: int) -> Told:
        for _ in range(count):
            self.now += self.dice.randrange(40)
            yield {**self.step(), "now": self.now}
        for producer in self.known:
            if producer.is_open:
                yield {**self.follow(self.marker(producer)), "now": self.now}
        for later in (0, 1, RETENTION_MS + 1, RETENTION_MS + 1):
            self.now += later
            yield {**self.compact(1 << 20), "now": self.now}
            yield {"do": "roll", "now": self.now}
            yield {**self.follow(self.batch()), "now": self.now}

    def step(self) -> Step:
        dice = self.dice
        match dice.randrange(24):
            case 0 | 1:
                return {"do": "roll"}
            case 2 | 3 | 4:
                self.now += dice.choice([0, 1, RETENTION_MS, 2 * RETENTION_MS])
                return self.compact(dice.choice([48, 120, 24 * 20, 1 << 20]))
            case 5 if self.truncates and dice.randrange(3) == 0:
                self.end = max(self.start, self.end - dice.randrange(20))
                return {"do": "truncate_to", "offset": self.end}
            case 6 if dice.randrange(3) == 0:
                return {"do": dice.choice(["reopen", "crash"])}
            case 7 | 8 | 9:
                if open_ones := [producer for producer in self.known if producer.is_open]:
                    return self.follow(self.marker(dice.choice(open_ones)))
        return self.follow(self.batch())

    @staticmethod
    def compact(size: int) -> Step:
        return {"do": "compact", "bytes": size}

    def follow(self, raw: bytes) -> Step:
        self.end += int.from_bytes(raw[23:27], "big") + 1
        return {"do": "follow", "batches": text(raw)}

    def batch(self) -> bytes:
        dice = self.dice
        producer = dice.choice(self.known) if dice.randrange(3) else None
        fields: dict[str, Any] = {}
        records = [self.record() for _ in range(dice.choice([1, 1, 2, 5]))]
        if producer is not None:
            producer.is_open = producer.is_open or producer.producer_id % 2 == 0
            fields = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}
            fields |= {"base_sequence": producer.sequence, "attributes": TRANSACTIONAL if producer.is_open else 0}
            producer.sequence += len(records)
        codec = dice.choice(self.codecs)
        payload = None if codec == NONE else compressed(codec, records)
        return batch(self.end, records, codec=codec, payload=payload, **fields)

    def record(self) -> Rec:
        dice = self.dice
        self.values += 1
        number = dice.randrange(self.keys + 1)
        # a follower takes records without a key
        key = None if number == self.keys else b"key-%d" % number
        value = None if dice.randrange(4) == 0 else b"%d" % self.values * dice.choice([1, 10])
        return Rec(value, key, timestamp=self.now - dice.randrange(30))

    def marker(self, producer: Producer) -> bytes:
        producer.is_open = False
        key = struct.pack(">hh", 0, self.dice.randrange(2))
        value = struct.pack(">hi", 0, 1)
        return batch(
            self.end,
            [Rec(value, key, timestamp=self.now)],
            attributes=TRANSACTIONAL | CONTROL,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
        )


EXPIRATION_MS = 3 * DAY_MS
