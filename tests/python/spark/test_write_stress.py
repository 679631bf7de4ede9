"""Writes of several processes to the same partitions, of which some are killed at any moment."""

from __future__ import annotations

import os
import random
import signal
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import cordwood as cw
from spark.writing import Sink, all_texts, left, texts

SECONDS = int(os.environ.get("CORDWOOD_WRITE_STRESS_SECONDS", "20"))
pytestmark = [pytest.mark.python_source, pytest.mark.long]

WRITERS = 4
PARTITIONS = 3


def rows_of(name: str) -> list[dict[str, Any]]:
    """The rows of a batch, which name it."""
    chance = random.Random(name)
    count = chance.randrange(1, 40)
    return [{"value": f"{name}.{row}".encode(), "partition": chance.randrange(PARTITIONS)} for row in range(count)]


def writer(root: Path, done: Path, number: int) -> None:
    """Write batches for ever, and note those that are committed."""
    # after a kill, no number is used again
    turn = time.time_ns()
    with done.open("a") as file:
        while True:
            turn += 1
            rows = rows_of(f"{number}.{turn}")
            Sink(root, "value", "partition", topic="orders", numPartitions=PARTITIONS).run(rows[::2], rows[1::2])
            file.write(f"{number}.{turn}\n")
            file.flush()


def start(root: Path, done: Path, number: int) -> int:
    child = os.fork()
    if child == 0:
        try:
            writer(root, done, number)
        except BaseException:  # noqa: BLE001  (the process ends, whatever it was)
            traceback.print_exc()
        finally:
            os._exit(1)
    return child


def test_each_write_counts_as_a_whole_or_not_at_all(root: Path) -> None:
    data, done = root / "data", root / "done"
    chance = random.Random(3)
    children = {number: start(data, done, number) for number in range(WRITERS)}
    until, kills = time.monotonic() + SECONDS, 0
    try:
        while time.monotonic() < until:
            time.sleep(chance.random() * 1.5)
            number = chance.randrange(WRITERS)
            child = children.pop(number)
            os.kill(child, signal.SIGKILL)
            # ended by the signal, and not by an error
            assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
            kills += 1
            children[number] = start(data, done, number)
    finally:
        for child in children.values():
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    # takes back the last interrupted commit
    Sink(data, "value", "partition", topic="orders").run([{"value": b"last", "partition": 0}])
    found = all_texts(data)
    assert set(found.values()) == {1}
    whole: Counter[str] = Counter(text.rpartition(".")[0] for text in found if text != "last")
    assert {name: len(rows_of(name)) for name in whole} == dict(whole)
    committed = done.read_text().split()
    assert set(committed) <= set(whole)
    assert len(committed) > 20
    assert kills > 10
    for number in range(PARTITIONS):
        path = data / f"orders-{number}"
        assert not [one for one in cw.verify(path).findings if one.severity != "info"]
        assert len(texts(path)) == cw.Log(path).log_end_offset
    assert not [path for path in left(data) if "unfinished" in path]
