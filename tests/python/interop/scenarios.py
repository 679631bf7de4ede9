"""Lists of steps, generated from a seed."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Iterator
from typing import Any

from batches import GZIP, NONE, Rec, batch

from interop.twins import START, Step

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
