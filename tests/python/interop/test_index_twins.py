"""The index writers and Kafka's classes, with the same operations: the same errors and the same bytes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import cordwood as cw
from interop.kafka_classes import KafkaClasses

BASE = 32
ENTRY = {"offset": 8, "time": 12}
SIZES = [12, 24, 67, 120, 4096]
Operation = list[Any]


def operations(dice: random.Random, kind: str, size: int) -> list[Operation]:
    """Mostly increasing appends; some that do not increase, and all other operations of an index.

    After a truncation Kafka leaves the old bytes in the file, and reads them as entries after a crash; cordwood writes
    zeros. So there is no crash between a truncation and the next trim.
    """
    found: list[Operation] = []
    offset, value, is_cut = BASE, 0, False
    for _ in range(60):
        grown = dice.choice([0, 1, 700])
        value += grown
        # a log never has two times at one offset; truncating such entries in Kafka depends on its search
        offset += dice.choice([0, 1, 1, 3, 50]) if kind == "offset" or not grown else dice.choice([1, 3, 50])
        match dice.randrange(12):
            case 0:
                offset = max(BASE, offset - dice.randrange(60))
                found.append(["truncate_to", offset - dice.randrange(2)])
                is_cut = True
            case 1:
                name = dice.choice(["trim", "flush", "reopen", "trim" if is_cut else "crash"])
                is_cut = is_cut and name == "flush"
                found.append([name])
                if dice.random() < 0.8:  # else it is full from here on
                    found.append(["resize", size])
            case 2 if dice.random() < 0.5:
                found.append(["reset"])
                is_cut = True
            case 3:
                low = max(BASE, offset - 10)
                if kind == "offset":
                    found.append(["append", dice.choice([BASE - 1, BASE + 2**31, low]), value])
                else:  # out of reach of a relative offset, Kafka's time index breaks: its cursor is half an entry on
                    found.append(["maybe_append", value - 1, low, False])
            case _ if kind == "offset":
                found.append(["append", offset, value])
            case _:
                found.append(["maybe_append", value - dice.choice([0, 0, 0, 1]), offset, dice.random() < 0.1])
    return found


def opened(kind: str, path: Path, size: int) -> Any:
    index_class = cw.OffsetIndexWriter if kind == "offset" else cw.TimeIndexWriter
    return index_class(path, base_offset=BASE, max_index_size=size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["offset", "time"])
@pytest.mark.parametrize("seed", range(8))
def test_any_operations(kafka: KafkaClasses, tmp_path: Path, seed: int, kind: str, size: int) -> None:
    suffix = "index" if kind == "offset" else "timeindex"
    ours, kafkas = tmp_path / f"{BASE:020}.{suffix}", tmp_path / f"kafkas.{suffix}"
    todo = operations(random.Random(f"{seed} {kind} {size}"), kind, size)
    answer = kafka.ask("index", kind=kind, file=kafkas, base_offset=BASE, max_index_size=size, operations=todo)
    index = opened(kind, ours, size)
    for operation, result in zip(todo, answer["results"], strict=True):
        error = None
        try:
            match operation:
                case ["reopen"]:
                    index.close()
                    index = opened(kind, ours, size)
                case ["crash"]:
                    del index
                    index = opened(kind, ours, size)
                case [name, *arguments]:
                    getattr(index, name)(*arguments)
        except (cw.CordwoodError, ValueError) as caught:
            error = str(caught)
        where = (operation, error, result)
        assert (error is None) == ("error" not in result), where
        assert (index.entries, index.max_entries, index.is_full) == (
            result["entries"],
            result["max_entries"],
            result["is_full"],
        ), where
        content = ours.read_bytes()
        assert len(content) == result["length"], where
        used = index.entries * ENTRY[kind]
        assert content[:used].hex() == result["bytes"], where
    index.close()
    assert ours.read_bytes() == kafkas.read_bytes()
