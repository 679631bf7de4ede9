"""Random damage of a partition directory, from a seed."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

EPOCHS = [
    "",
    "0\n",
    "0\n0\n",
    "0\n1\n0 0\n",
    "0\n2\n0 0\n5 100\n",
    "1\n0\n",
    "0\n1\n 0 0\n",
    "0\n1\n0 0 \n",
    "0\n1\n-1 0\n",
    "0\n2\n5 100\n0 0\n",
    "x",
    "0\n1\na b\n",
    "0\n-1\n",
]


def mutate(directory: Path, choose: random.Random) -> list[str]:
    """Change one to three files. Returns what was done, for messages."""
    done = []
    for _ in range(choose.choice([1, 1, 1, 2, 3])):
        files = sorted(directory.iterdir())
        logs = [file for file in files if file.suffix == ".log"]
        file = choose.choice(logs if logs and choose.random() < 0.6 else files)
        change = choose.choice(CHANGES)
        change(file, choose)
        done.append(f"{change.__name__} {file.name}")
    return done


def flip_a_bit(file: Path, choose: random.Random) -> None:
    data = bytearray(file.read_bytes())
    if data:
        end = len(data) if choose.random() < 0.5 else min(len(data), 400)
        data[choose.randrange(end)] ^= 1 << choose.randrange(8)
        file.write_bytes(data)


def change_a_header(file: Path, choose: random.Random) -> None:
    data = bytearray(file.read_bytes())
    starts, start = [0], 0
    while file.suffix == ".log" and start + 12 < len(data):
        starts.append(start)
        length = int.from_bytes(data[start + 8 : start + 12], "big")
        start += 12 + length
    at = choose.choice(starts) + choose.randrange(61)
    if at < len(data):
        data[at] = choose.choice([0, 255, 127, 128, data[at] ^ 1, data[at] ^ 16])
        file.write_bytes(data)


def truncate(file: Path, choose: random.Random) -> None:
    data = file.read_bytes()
    size = choose.randrange(len(data) + 1) if choose.random() < 0.5 else max(0, len(data) - choose.randrange(1, 200))
    file.write_bytes(data[:size])


def append_zeros(file: Path, choose: random.Random) -> None:
    file.write_bytes(file.read_bytes() + bytes(choose.choice([1, 7, 8, 12, 17, 18, 60, 100, 4096])))


def zero_a_range(file: Path, choose: random.Random) -> None:
    data = bytearray(file.read_bytes())
    if data:
        start = choose.randrange(len(data))
        end = min(len(data), start + choose.randrange(1, 64))
        data[start:end] = bytes(end - start)
        file.write_bytes(data)


def delete(file: Path, choose: random.Random) -> None:
    indexes = sorted(file.parent.glob("*index"))
    target = choose.choice(indexes) if indexes and choose.random() < 0.5 else file
    target.unlink()


def grow_an_index(file: Path, choose: random.Random) -> None:
    indexes = sorted(file.parent.glob("*index"))
    if indexes:
        target = choose.choice(indexes)
        added = bytes(choose.choice([1, 8, 12, 24, 120])) if choose.random() < 0.6 else choose.randbytes(34)
        target.write_bytes(target.read_bytes() + added)


def rename(file: Path, choose: random.Random) -> None:
    file.rename(file.with_name(file.name + choose.choice([".deleted", ".swap", ".cleaned", ".tmp"])))


def copy(file: Path, choose: random.Random) -> None:
    shutil.copy(file, file.with_name(file.name + choose.choice([".swap", ".cleaned", ".deleted"])))


def repeat_or_remove_the_first_batch(file: Path, choose: random.Random) -> None:
    data = file.read_bytes()
    size = 12 + int.from_bytes(data[8:12], "big")
    if file.suffix == ".log" and size <= len(data):
        file.write_bytes(data + data[:size] if choose.random() < 0.5 else data[size:])


def replace_the_epochs(file: Path, choose: random.Random) -> None:
    (file.parent / "leader-epoch-checkpoint").write_text(choose.choice(EPOCHS))


CHANGES: list[Callable[[Path, random.Random], None]] = [
    flip_a_bit,
    flip_a_bit,
    change_a_header,
    truncate,
    append_zeros,
    zero_a_range,
    delete,
    grow_an_index,
    rename,
    copy,
    repeat_or_remove_the_first_batch,
    replace_the_epochs,
]
