"""Lists of steps, generated from a seed."""

from __future__ import annotations

import base64
import random
import struct
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from batches import GZIP, NONE, Rec, batch

import cordwood as cw
from interop.twins import START, Answer, Result, Step, Told

Timestamps = Callable[[random.Random], Iterator[int]]


def rising(dice: random.Random) -> Iterator[int]:
    now = START
    while True:
        yield now
        now += dice.randrange(3)


def disordered(dice: random.Random) -> Iterator[int]:
    for now in rising(dice):
        yield now + dice.randrange(-20, 20)


def absent(_dice: random.Random) -> Iterator[int]:
    while True:
        yield -1


def leaping(dice: random.Random) -> Iterator[int]:
    """In steps of minutes; some are zero."""
    now = START
    while True:
        now += dice.randrange(600_000)
        yield dice.choices([now, 0], [8, 1])[0]


def sparse(dice: random.Random) -> Iterator[int]:
    """Some have none."""
    for now in leaping(dice):
        yield dice.choices([now, -1], [5, 1])[0]


TIMESTAMPS: dict[str, Timestamps] = {
    "rising": rising,
    "disordered": disordered,
    "absent": absent,
    "sparse": sparse,
    "leaping": leaping,
}


def text(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()


def content(dice: random.Random, most: int) -> bytes | None:
    if dice.random() < 0.1:
        return None
    return dice.randbytes(dice.choice([0, 1, dice.randrange(most), dice.randrange(most)]))


def record(dice: random.Random, timestamp: int) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "timestamp": timestamp,
        "key": text(content(dice, 20)),
        "value": text(content(dice, 150)),
    }
    if dice.random() < 0.3:
        names = [dice.choice(["", "trace", "größe", "trace"]) for _ in range(dice.randrange(1, 4))]
        fields["headers"] = [[name, text(content(dice, 10))] for name in names]
    return fields


def appends(seed: int, count: int, timestamps: str) -> list[Step]:
    """Single records, and batches of a few."""
    dice = random.Random(seed)
    times = TIMESTAMPS[timestamps](dice)
    sizes = [dice.choice([1, 1, 1, 2, 5]) for _ in range(count)]
    return [{"do": "append", "records": [record(dice, next(times)) for _ in range(size)]} for size in sizes]


def lives(seed: int, count: int, timestamps: str) -> list[Step]:
    """Appends and other operations, each followed by an append.

    Without the append, a truncation after a new opening differs: Kafka removes the last time entry before it has read
    it, and then treats the segment as one without timestamps. At the end retention is applied: a segment that was
    active when the log start passed it is deleted at the roll here, in Kafka at the next check.
    """
    dice = random.Random(seed)
    steps: list[Step] = []
    end = start = epoch = 0
    for step in appends(seed + 1, count, timestamps):
        match dice.randrange(16):
            case 0:
                steps.append({"do": "roll"})
            case 1:
                end = dice.randrange(max(start, end - 8), end + 1)
                steps.append({"do": "truncate_to", "offset": end})
            case 2:
                start = dice.randrange(start, end + 1)
                steps.append({"do": "delete_before", "offset": start})
            case 3:
                epoch += dice.randrange(3)
                steps.append({"do": "reopen", "leader_epoch": epoch})
            case 4:
                steps.append({"do": "flush"})
            case _:
                pass
        steps.append({**step, "leader_epoch": epoch})
        end += len(step["records"])
    return [*steps, {"do": "retain", "now": START}]


def producers_batches(seed: int, count: int, timestamps: str) -> list[Step]:
    """Batches of producers, plain and compressed, to which a leader assigns offsets."""
    dice = random.Random(seed)
    times = TIMESTAMPS[timestamps](dice)
    return [{"do": "raw", "batches": text(sent(dice, times, 0, 0))} for _ in range(count)]


def leaders_batches(seed: int, count: int, timestamps: str) -> list[Step]:
    """Batches for a follower: several at once, with gaps and increasing epochs."""
    dice = random.Random(seed)
    times = TIMESTAMPS[timestamps](dice)
    offset = epoch = 0
    steps = []
    for _ in range(count):
        fetched = b""
        for _ in range(dice.randrange(1, 4)):
            offset += dice.choice([0, 0, 0, 1, 1000])
            epoch += dice.choice([0, 0, 0, 0, 1, 3])
            one = sent(dice, times, offset, epoch)
            offset += int.from_bytes(one[23:27], "big") + 1
            fetched += one
        steps.append({"do": "follow", "batches": text(fetched)})
    return steps


def sent(dice: random.Random, times: Iterator[int], offset: int, epoch: int) -> bytes:
    records = [
        Rec(content(dice, 150), content(dice, 20), next(times), ((b"h", content(dice, 9)),) * dice.randrange(2))
        for _ in range(dice.choice([1, 1, 3]))
    ]
    return batch(offset, records, leader_epoch=epoch, codec=dice.choice([NONE, NONE, GZIP]))


@dataclass
class Producer:
    """What a producer sends next. After a step that the log refuses, it follows the log."""

    producer_id: int
    epoch: int = 0
    sequence: int = 0
    is_open: bool = False
    sent: list[bytes] = field(default_factory=list)

    def batch(self, dice: random.Random, timestamp: int, *, offset: int = 0, leader_epoch: int = 0) -> bytes:
        records = [Rec(content(dice, 60), timestamp=timestamp - i) for i in range(dice.choice([1, 1, 2, 4]))]
        return batch(
            offset,
            records,
            leader_epoch=leader_epoch,
            codec=dice.choice([NONE, NONE, GZIP]),
            attributes=TRANSACTIONAL if self.is_open else 0,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
        )

    def marker(self, dice: random.Random, timestamp: int, offset: int, leader_epoch: int) -> bytes:
        kind = dice.randrange(2)
        return batch(
            offset,
            [Rec(struct.pack(">hi", 0, dice.randrange(3)), struct.pack(">hh", 0, kind), timestamp=timestamp)],
            leader_epoch=leader_epoch,
            attributes=TRANSACTIONAL | CONTROL,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
        )

    def follow(self, sent: bytes, result: Result) -> None:
        """Continue after the result of a batch."""
        if isinstance(result, cw.OutOfOrderSequenceError):
            assert result.expected is not None
            self.sequence = int(result.expected.removeprefix("sequence "))
        elif isinstance(result, cw.InvalidProducerEpochError):
            self.epoch += 1
            self.sequence = 0
        elif isinstance(result, cw.InvalidRecordError):
            self.is_open = True
        else:
            self.sequence = (self.sequence + int.from_bytes(sent[23:27], "big") + 1) % (1 << 31)
            self.sent.append(sent)


TRANSACTIONAL, CONTROL = 1 << 4, 1 << 5
DAY_MS = 86_400_000


class Producers:
    """Idempotent and transactional batches, from producers and from a leader, with other operations between them.

    With `refused`, also duplicates and batches that a leader refuses: Kafka may roll before it refuses one, so these
    need large segments. Every operation is followed by a record, as in `lives`. Some producers are days old.
    """

    def __init__(self, seed: int, now: int, *, refused: bool) -> None:
        """`now`: the time of both clocks."""
        self.dice = random.Random(seed)
        ids = [self.dice.choice([self.dice.randrange(50), self.dice.randrange(1 << 40)]) for _ in range(30)]
        ids = ids[: self.dice.choice([2, 5, 30])]
        first = [0, 0, (1 << 31) - 3]
        self.known = [Producer(producer_id, sequence=self.dice.choice(first)) for producer_id in dict.fromkeys(ids)]
        self.now = now
        self.refused = refused
        self.end = self.start = self.leader_epoch = 0

    def steps(self, count: int) -> Told:
        for _ in range(count):
            producer = self.dice.choice(self.known)
            age = 3 * DAY_MS if producer.producer_id % 5 == 0 else 0
            timestamp = self.now - self.dice.randrange(1000) - age
            number = self.dice.randrange(26)
            if number < 6 and (operation := self.operation(number)):
                yield {**operation, "now": self.now}
                yield from self.sent({"do": "append", "records": [record(self.dice, self.now)]})
            elif number < 11:
                yield from self.sent({"do": "follow", "batches": text(self.fetched(timestamp))})
            elif number < 13 and self.refused and producer.sent:
                old = bytes(8) + self.dice.choice(producer.sent[-8:])[8:]
                yield from self.sent({"do": "raw", "batches": text(old)})
            elif number < 15 and self.refused:
                yield from self.wrong(producer, timestamp)
            else:
                producer.is_open = producer.is_open or self.dice.randrange(4) == 0
                one = producer.batch(self.dice, timestamp)
                producer.follow(one, (yield from self.sent({"do": "raw", "batches": text(one)})))
        yield {"do": "retain", "now": self.now}

    def sent(self, step: Step) -> Generator[Step, Answer | None, Result]:
        answer = yield {**step, "leader_epoch": self.leader_epoch}
        assert answer is not None
        result, self.end = answer
        return result

    def operation(self, number: int) -> Step | None:
        dice = self.dice
        match number:
            case 2:
                self.end = dice.randrange(max(self.start, self.end - 25), self.end + 1)
                return {"do": "truncate_to", "offset": self.end}
            case 3:
                self.start = dice.randrange(self.start, self.end + 1)
                return {"do": "delete_before", "offset": self.start}
            case 4:
                self.leader_epoch += dice.randrange(2)
                return {"do": dice.choice(["reopen", "crash"]), "leader_epoch": self.leader_epoch}
            case 5 if dice.randrange(8) == 0:
                self.start = self.end = max(0, self.end + dice.randrange(-2, 3))
                return {"do": "truncate_fully", "offset": self.end}
            case 5:
                return None
        return {"do": "roll"}

    def fetched(self, timestamp: int) -> bytes:
        """Batches and markers of some producers, as a leader has them."""
        fetched, offset = b"", self.end
        for _ in range(self.dice.randrange(1, 5)):
            offset += self.dice.choice([0, 0, 0, 2])
            producer = self.dice.choice(self.known)
            if producer.is_open and self.dice.randrange(2):
                producer.epoch += self.dice.randrange(2)
                one = producer.marker(self.dice, timestamp, offset, self.leader_epoch)
                producer.is_open = False
            else:
                producer.is_open = producer.is_open or self.dice.randrange(3) == 0
                one = producer.batch(self.dice, timestamp, offset=offset, leader_epoch=self.leader_epoch)
                producer.follow(one, None)
            offset += int.from_bytes(one[23:27], "big") + 1
            fetched += one
        return fetched

    def wrong(self, producer: Producer, timestamp: int) -> Told:
        """A batch after a gap, mostly with another epoch, which the log may accept all the same."""
        wrong = replace(producer, sequence=(producer.sequence + self.dice.randrange(1, 3)) % (1 << 31), sent=[])
        wrong.epoch = max(0, wrong.epoch + self.dice.randrange(-1, 2))
        one = wrong.batch(self.dice, timestamp)
        before = self.end
        result = yield from self.sent({"do": "raw", "batches": text(one)})
        if self.end > before:
            producer.epoch, producer.sequence = wrong.epoch, wrong.sequence
            producer.follow(one, result)
