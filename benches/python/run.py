"""Reading from Python, compared with other Python packages on the same bytes: decoding, and look-ups; and with threads.

The sides take turns in one process, and the first one changes with each turn. A ratio is of the same turn; the result
is the median of the turns, with the smallest and the largest. CPU time of the process is compared (with threads: wall
time), and answers are compared before anything is timed. Exit code 1: an answer was wrong, or with `--strict` a floor
was missed.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Literal

import aiokafka.record.memory_records as aiokafka_records
import kafka.record.memory_records as kafka_records
import numpy as np
import pyarrow as pa

import cordwood as cw

HERE = Path(__file__).parent
LOOK_UPS = 100_000
# of 16 KiB
BATCH_RECORDS = 125
COLUMNS = ["offset", "timestamp", "key", "value"]

Codec = Literal["uncompressed", "zstd"]
Side = Callable[[], object]


@dataclass
class Row:
    """Two sides of the same work. `elements` is the divisor of the figures; `floor` a ratio, or with `limit` our ns."""

    name: str
    peer: str
    elements: int
    ours: Side
    theirs: Side
    floor: float | None = None
    limit: float | None = None
    clock: Callable[[], float] = time.process_time


def write(folder: Path, mib: int, codec: Codec = "uncompressed") -> Path:
    """A log of batches of 16 KiB before compression."""
    value = b'{"order":%09d,"user":"user-%04d","total":"12.50 EUR","items":[1,2,3],"note":"%s"}'
    path = folder / codec / "orders-0"
    path.parent.mkdir()
    with cw.LogWriter(path, flush="none", config=cw.LogConfig(compression_type=codec)) as writer:
        start = 1_700_000_000_000
        for batch in range((mib << 20) // (16 << 10)):
            rows = range(batch * BATCH_RECORDS, (batch + 1) * BATCH_RECORDS)
            writer.append_many(
                [
                    cw.Record(
                        value % (row, row % 9999, b"n" * 30), key=b"user-%04d" % (row % 9999), timestamp=start + row
                    )
                    for row in rows
                ]
            )
    return path


def digest_of_columns(log: cw.Log, end_offset: int, threads: int = 1) -> tuple[int, int, int, int]:
    """Rows below an offset, bytes of their keys and of their values, and the last offset."""
    rows = keys = values = last = 0
    for batch in log.scan(columns=COLUMNS, end_offset=end_offset, threads=threads):
        rows += batch.num_rows
        # the last offset of a column of bytes is the number of all
        keys += np.frombuffer(batch.column(2).buffers()[1], np.int32)[batch.num_rows].item()
        values += np.frombuffer(batch.column(3).buffers()[1], np.int32)[batch.num_rows].item()
        last = batch.column(0)[batch.num_rows - 1].as_py()
    return rows, keys, values, last


def digest_of_records(data: bytes, memory_records: Callable[[bytes], object]) -> tuple[int, int, int, int]:
    """The same of the records of another package, whose checksums are verified too."""
    rows = keys = values = last = 0
    records = memory_records(data)
    while records.has_next():  # type: ignore[attr-defined]
        batch = records.next_batch()  # type: ignore[attr-defined]
        assert batch.validate_crc()
        for record in batch:
            rows += 1
            keys += len(record.key)
            values += len(record.value)
            last = record.offset
    return rows, keys, values, last


def decoding(path: Path) -> list[Row]:
    """Rows to columns, and to objects of the other packages."""
    data = (path / f"{0:020}.log").read_bytes()
    log = cw.Log(path, io="mmap")
    rows = []
    for peer, package, floor in (("aiokafka", aiokafka_records, 5.0), ("kafka-python", kafka_records, 50.0)):
        # Python objects take long: a part of the log, cut at a batch, is enough for them
        located = log.locate(min(log.log_end_offset - 1, 50_000))
        assert located is not None
        end, part = located.batch_base_offset, data[: located.position]

        def ours(end: int = end) -> tuple[int, int, int, int]:
            return digest_of_columns(log, end)

        def theirs(
            part: bytes = part, memory_records: Callable[[bytes], object] = package.MemoryRecords
        ) -> tuple[int, int, int, int]:
            return digest_of_records(part, memory_records)

        check(f"decoding/{peer}", ours(), theirs())
        rows.append(Row(f"decoding/{peer}", peer, end, ours, theirs, floor))
    return rows


def with_threads(path: Path) -> list[Row]:
    """The rows of a log to columns, with two threads compared with one."""
    log = cw.Log(path, io="mmap")
    end = log.log_end_offset

    def ours() -> tuple[int, int, int, int]:
        return digest_of_columns(log, end, 2)

    def theirs() -> tuple[int, int, int, int]:
        return digest_of_columns(log, end)

    name = f"threads/{path.parent.name}"
    check(name, ours(), theirs())
    return [Row(name, "one thread", end, ours, theirs, 1.8, clock=time.perf_counter)]


def look_ups(path: Path) -> list[Row]:
    """Single look-ups in a loop, and many at a time, compared with NumPy over the same batches."""
    log = cw.Log(path, io="mmap")
    batches = log.batches().to_arrow()
    bases = batches.column("base_offset").to_numpy()
    positions = batches.column("position").to_numpy()
    random = np.random.default_rng(1)
    rows = []
    for order, targets in (
        ("uniform", random.integers(0, log.log_end_offset, LOOK_UPS)),
        ("sorted", np.sort(random.integers(0, log.log_end_offset, LOOK_UPS))),
    ):

        def searched(targets: np.ndarray = targets) -> np.ndarray:
            return positions[np.searchsorted(bases, targets, side="right") - 1]

        def many(targets: np.ndarray = targets) -> pa.Table:
            return log.locate_many(targets)

        check(f"locate_many/{order}", many().column("position").to_numpy().tolist(), searched().tolist())
        rows.append(Row(f"locate_many/{order}", "searchsorted", LOOK_UPS, many, searched))
        listed = targets.tolist()

        def single(listed: list[int] = listed) -> None:
            locate = log.locate
            for offset in listed:
                locate(offset)

        def single_searched(listed: list[int] = listed) -> None:
            search = bases.searchsorted
            for offset in listed:
                positions[search(offset, "right") - 1]

        found = [log.locate(offset).position for offset in listed]  # type: ignore[union-attr]
        check(f"locate/{order}", found, searched().tolist())
        rows.append(Row(f"locate/{order}", "searchsorted in a loop", LOOK_UPS, single, single_searched, limit=400.0))
    return rows


def check(name: str, found: object, wanted: object) -> None:
    """End with exit code 1 if an answer is wrong."""
    if found != wanted:
        sys.exit(f"{name}: the answers differ")


def timed(side: Side, clock: Callable[[], float]) -> float:
    """Seconds."""
    start = clock()
    side()
    return clock() - start


def measured(row: Row, rounds: int) -> tuple[dict[str, object], bool]:
    """Figures of a row, and whether its floor is kept."""
    timed(row.ours, row.clock), timed(row.theirs, row.clock)
    turns = []
    for turn in range(rounds):
        if turn % 2:
            theirs = timed(row.theirs, row.clock)
            turns.append((timed(row.ours, row.clock), theirs))
        else:
            turns.append((timed(row.ours, row.clock), timed(row.theirs, row.clock)))
    ours, theirs = (median(turn[side] for turn in turns) * 1e9 / row.elements for side in (0, 1))
    ratios = [theirs / ours for ours, theirs in turns]
    kept = (row.floor is None or median(ratios) >= row.floor) and (row.limit is None or ours <= row.limit)
    floor = f"{row.floor:g}" if row.floor else f"{row.limit:g} ns" if row.limit else ""
    figures: dict[str, object] = {
        "row": row.name,
        "compared with": row.peer,
        "cordwood ns": round(ours, 1),
        "peer ns": round(theirs, 1),
        "ratio": round(median(ratios), 2),
        "smallest": round(min(ratios), 2),
        "largest": round(max(ratios), 2),
        "floor": floor,
        "kept": "" if not floor else "yes" if kept else "no",
    }
    return figures, kept


def main() -> None:
    """Measure all rows, print them, and write a CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="timed turns of each side (%(default)s)")
    parser.add_argument("--mib", type=int, default=128, help="size of the log (%(default)s)")
    parser.add_argument("--strict", action="store_true", help="exit code 1 if a floor is missed")
    default = HERE.parent / "record" / f"{dt.datetime.now(dt.UTC):%Y-%m-%d}-python.csv"
    parser.add_argument("--record", type=Path, default=default, help="the CSV (%(default)s)")
    arguments = parser.parse_args()
    all_kept = True
    with tempfile.TemporaryDirectory() as folder:
        print(f"writing {arguments.mib} MiB", file=sys.stderr)
        path = write(Path(folder), arguments.mib)
        compressed = write(Path(folder), arguments.mib, "zstd")
        results = []
        for row in decoding(path) + with_threads(path) + with_threads(compressed) + look_ups(path):
            figures, kept = measured(row, arguments.rounds)
            all_kept &= kept
            results.append(figures)
            print("  ".join(f"{name} {value}" for name, value in figures.items() if value != ""), flush=True)
    with arguments.record.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(results[0]))
        writer.writeheader()
        writer.writerows(results)
    if arguments.strict and not all_kept:
        sys.exit(1)


if __name__ == "__main__":
    main()
