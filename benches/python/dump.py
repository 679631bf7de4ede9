"""`cordwood dump` compared with Kafka's `DumpLogSegments`: whole processes, same file and options, output to a file.

The two take turns, and the first one changes with each turn; a ratio is of the same turn, and the result is the median
of the turns, with the smallest and the largest. The start of a process, with a `.log` of no batch, is measured in the
same way and is part of each time. Outputs are compared first. Exit code 1: an output was different, or with `--strict`
a floor was missed.

The Maven project of the interop tests has Kafka's classes: `tests/interop`.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import cordwood as cw

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/python"))
from interop.kafka_classes import build, tool  # noqa: E402

ROWS: list[tuple[str, str, list[str], float | None]] = [
    ("start", "empty.log", [], None),
    ("headers", "large.log", [], 8),
    ("deep iteration", "medium.log", ["--deep-iteration"], 15),
    ("print data log", "medium.log", ["--print-data-log"], 15),
    ("offset index", "dense.index", [], 15),
    # Kafka reads the .log from each entry to its end: the time grows with the square of the size
    ("time index", "small.timeindex", [], 15),
]
SEGMENTS: dict[str, tuple[int, int]] = {
    "large": (1000, 125),
    "medium": (256, 125),
    "dense": (1000, 31),
    "small": (32, 125),
}
"""The approximate size of each segment, MiB, and the records of a batch: of 16 KiB, or of 4 KiB, which is Kafka's
default distance of index entries."""


def write(folder: Path, mib: int, batch_records: int) -> Path:
    """A segment with an index entry for each batch."""
    value = b'{"order":%09d,"user":"user-%04d","total":"12.50 EUR","items":[1,2,3],"note":"%s"}'
    folder.mkdir(exist_ok=True)
    path = folder / "orders-0"
    config = cw.LogConfig(segment_bytes=2**31 - 1, index_interval_bytes=4096)
    with cw.LogWriter(path, flush="none", config=config) as writer:
        number, clock = 0, 1_700_000_000_000
        while number * 128 < mib << 20:
            records = []
            for _ in range(batch_records):
                text = value % (number, number * 7 % 5000, b"x" * 16)
                records.append(cw.Record(value=text, key=b"user-%04d" % (number * 7 % 5000), timestamp=clock + number))
                number += 1
            writer.append_many(records)
    return path / "00000000000000000000.log"


def seconds(command: list[str], out: Path) -> float:
    """Run a command, and return its wall time."""
    with out.open("wb") as file:
        start = time.perf_counter()
        subprocess.run(command, stdout=file, stderr=subprocess.DEVNULL, check=True)
        return time.perf_counter() - start


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--heap", default="2g", help="the JVM's heap")
    parser.add_argument("--csv", type=Path, help="a file for the figures")
    parser.add_argument("--strict", action="store_true", help="fail if a floor is missed")
    arguments = parser.parse_args()
    theirs = [
        tool("java"),
        f"-Xmx{arguments.heap}",
        "-cp",
        build(),
        "org.apache.kafka.tools.DumpLogSegments",
        "--files",
    ]
    ours = [str(Path(sys.executable).with_name("cordwood")), "dump", "--files"]
    missed, rows = False, []
    with tempfile.TemporaryDirectory(prefix="cordwood-bench-") as temporary:
        folder = Path(temporary)
        logs = {"empty": folder / "00000000000000000007.log"}
        logs["empty"].touch()
        for segment, (mib, batch_records) in SEGMENTS.items():
            logs[segment] = write(folder / segment, mib, batch_records)
        outs = folder / "ours.txt", folder / "theirs.txt"
        print(f"{arguments.turns} turns; seconds, median (smallest-largest)")
        for label, name, options, floor in ROWS:
            segment, _, kind = name.partition(".")
            file = logs[segment].with_suffix("." + kind)
            sides = [[*ours, str(file), *options], [*theirs, str(file), *options]]
            times: list[list[float]] = [[], []]
            for turn in range(arguments.turns + 1):
                for side in (0, 1) if turn % 2 else (1, 0):
                    taken = seconds(sides[side], outs[side])
                    # the first turn warms the page cache
                    times[side] += [taken] if turn else []
                if turn == 0 and not same(*outs):
                    print(f"{label}: the outputs differ")
                    return 1
            ratios = [there / here for here, there in zip(*times, strict=True)]
            ratio = median(ratios)
            is_missed = floor is not None and ratio < floor
            missed |= is_missed
            wanted = "" if floor is None else f"  floor {floor:g}{' MISSED' if is_missed else ''}"
            size = logs[segment].stat().st_size
            print(
                f"{label:15} {size >> 20:4} MiB  cordwood {spread(times[0])}  Kafka {spread(times[1])}  "
                f"x{ratio:.1f} ({min(ratios):.1f}-{max(ratios):.1f}){wanted}",
                flush=True,
            )
            for side, taken in zip(("cordwood", "kafka"), times, strict=True):
                rows.append(
                    [
                        label,
                        side,
                        size,
                        f"{median(taken):.3f}",
                        f"{min(taken):.3f}",
                        f"{max(taken):.3f}",
                    ]
                )
    if arguments.csv is not None:
        with arguments.csv.open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["date", "work", "side", "bytes", "median_s", "smallest_s", "largest_s"])
            out.writerows([dt.datetime.now(tz=dt.UTC).date(), *row] for row in rows)
    return 1 if missed and arguments.strict else 0


def same(one: Path, other: Path) -> bool:
    """Compare two files."""
    if one.stat().st_size != other.stat().st_size:
        return False
    with one.open("rb") as left, other.open("rb") as right:
        while chunk := left.read(1 << 20):
            if chunk != right.read(1 << 20):
                return False
    return True


def spread(times: list[float]) -> str:
    """Write a median with its range."""
    return f"{median(times):7.2f} ({min(times):.2f}-{max(times):.2f})"


if __name__ == "__main__":
    sys.exit(main())
