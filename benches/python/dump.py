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

BATCH_RECORDS = 125
ROWS: list[tuple[str, str, list[str], float | None]] = [
    ("start", "empty", [], None),
    ("headers", "log", [], 8),
    ("deep iteration", "log", ["--deep-iteration"], 15),
    ("print data log", "log", ["--print-data-log"], 15),
    ("offset index", "index", [], 15),
    # Kafka reads the .log from each entry to its end, so a larger one takes it minutes
    ("time index", "timeindex", [], 15),
]


def write(folder: Path, mib: int) -> Path:
    """A segment of batches of 16 KiB, with an index entry for each batch."""
    value = b'{"order":%09d,"user":"user-%04d","total":"12.50 EUR","items":[1,2,3],"note":"%s"}'
    folder.mkdir(exist_ok=True)
    path = folder / "orders-0"
    config = cw.LogConfig(segment_bytes=2**31 - 1, index_interval_bytes=4096)
    with cw.LogWriter(path, flush="none", config=config) as writer:
        number, clock = 0, 1_700_000_000_000
        while number * 128 < mib << 20:
            records = []
            for _ in range(BATCH_RECORDS):
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
    parser.add_argument("--mib", type=int, default=256, help="size of the .log")
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
    with tempfile.TemporaryDirectory(prefix="cordwood-bench-") as name:
        folder = Path(name)
        log = write(folder, arguments.mib)
        small = write(folder / "small", min(arguments.mib, 16))
        files = {"log": log, "index": log.with_suffix(".index"), "timeindex": small.with_suffix(".timeindex")}
        files["empty"] = folder / "00000000000000000007.log"
        files["empty"].touch()
        outs = folder / "ours.txt", folder / "theirs.txt"
        print(f"{log.stat().st_size >> 20} MiB, {arguments.turns} turns; seconds, median (smallest-largest)")
        for label, file, options, floor in ROWS:
            sides = [[*ours, str(files[file]), *options], [*theirs, str(files[file]), *options]]
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
            print(
                f"{label:15} cordwood {spread(times[0])}  Kafka {spread(times[1])}  "
                f"x{ratio:.1f} ({min(ratios):.1f}-{max(ratios):.1f}){wanted}",
                flush=True,
            )
            for side, taken in zip(("cordwood", "kafka"), times, strict=True):
                rows.append(
                    [label, side, arguments.mib, f"{median(taken):.3f}", f"{min(taken):.3f}", f"{max(taken):.3f}"]
                )
    if arguments.csv is not None:
        with arguments.csv.open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["date", "work", "side", "mib", "median_s", "smallest_s", "largest_s"])
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
