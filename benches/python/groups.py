"""`cordwood groups` on a `__consumer_offsets` of 1 GiB, and `cordwood copy` of it compared with `cp`: whole processes.

The partition has the committed offsets of 2,000 groups, each for 50 partitions, over and over, in batches of 16 KiB.
The table is compared with what was written last. Every figure is the median of the turns, with the smallest and the
largest.
"""

from __future__ import annotations

import argparse
import json
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import cordwood as cw

GROUPS, PARTITIONS = 2000, 50
BATCH_RECORDS = 128
CORDWOOD = str(Path(sys.executable).with_name("cordwood"))


def text(value: str) -> bytes:
    """A string of Kafka's protocol: its length in 16 bits, and UTF-8."""
    return struct.pack(">h", len(value.encode())) + value.encode()


def write(path: Path, mib: int) -> int:
    """Write the partition. Returns the number of commits."""
    clock, number = 1_700_000_000_000, 0
    topic, metadata = text("orders-of-every-country"), text("")
    keys = [
        struct.pack(">h", 1) + text(f"group-{group:05}") + topic + struct.pack(">i", partition)
        for group in range(GROUPS)
        for partition in range(PARTITIONS)
    ]
    size = 0
    config = cw.LogConfig(segment_bytes=100 << 20)
    with cw.LogWriter(path, flush="none", config=config) as writer:
        while size < mib << 20:
            records = []
            for _ in range(BATCH_RECORDS):
                value = struct.pack(">hqi", 3, number, 5) + metadata + struct.pack(">q", clock + number)
                key = keys[number % len(keys)]
                records.append(cw.Record(key=key, value=value, timestamp=clock + number))
                size += len(key) + len(value) + 9
                number += 1
            writer.append_many(records)
    return number


def expected(commits: int) -> dict[tuple[str, int], int]:
    """The last offset of each group and partition."""
    found = {}
    for number in range(max(0, commits - GROUPS * PARTITIONS), commits):
        group, partition = divmod(number % (GROUPS * PARTITIONS), PARTITIONS)
        found[f"group-{group:05}", partition] = number
    return found


def seconds(command: list[str], out: Path) -> float:
    """Run a command, and return its wall time."""
    with out.open("wb") as file:
        start = time.perf_counter()
        subprocess.run(command, stdout=file, stderr=subprocess.DEVNULL, check=True)
        return time.perf_counter() - start


def spread(times: list[float]) -> str:
    """Write a median with its range."""
    return f"{median(times):.2f} s ({min(times):.2f} to {max(times):.2f})"


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=1024, help="size of the partition")
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    # on the repository's disk; a temporary directory may be in memory
    with tempfile.TemporaryDirectory(prefix="cordwood-bench-", dir=Path(__file__).parent) as name:
        folder = Path(name)
        path = folder / "__consumer_offsets-0"
        commits = write(path, arguments.mib)
        size = sum(file.stat().st_size for file in path.glob("*.log"))
        out = folder / "out"
        times: dict[str, list[float]] = {"groups": [], "copy": [], "cp": []}
        for turn in range(arguments.turns + 1):
            taken = {"groups": seconds([CORDWOOD, "groups", str(path), "--json"], out)}
            rows = map(json.loads, out.read_text().splitlines())
            if turn == 0:
                found = {(row["group"], row["partition"]): row["offset"] for row in rows}
                if found != expected(commits):
                    print("groups: the table is wrong")
                    return 1
            for side, command in (("copy", [CORDWOOD, "copy"]), ("cp", ["cp", "-r"])):
                copied = folder / f"{side}-0"
                shutil.rmtree(copied, ignore_errors=True)
                taken[side] = seconds([*command, str(path), str(copied)], out)
            for side, one in taken.items():
                # the first turn warms the page cache
                times[side] += [one] if turn else []
        print(
            f"{commits:,} commits in {size >> 20} MiB, {arguments.turns} turns: wall time, median (smallest to largest)"
        )
        for side, spent in times.items():
            print(f"{side:8} {spread(spent)}  {(size >> 20) / median(spent):,.0f} MiB/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
