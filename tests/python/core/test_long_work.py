"""Long or large operations can be interrupted, and their memory is bounded."""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from batches import GZIP, Rec, batch, moved, name, write_partition
from scripts import run, write_script

import cordwood as cw

MIB = 1 << 20


def zeros(base_offset: int, size: int) -> bytes:
    """A gzip batch of one record whose value is `size` zeros."""
    return batch(base_offset, [Rec(value=bytes(size), timestamp=1)], codec=GZIP)


def many(path: Path, count: int, size: int, segment_batches: int = 1 << 30) -> Path:
    """Write the same batch repeatedly."""
    one = zeros(0, size)
    bases = range(0, count, segment_batches)
    return write_partition(
        path, [(base, [moved(one, o) for o in range(base, min(count, base + segment_batches))]) for base in bases]
    )


INTERRUPTED = """
import sys, time
import cordwood as cw
import pandas  # pa.table imports it, and would discard an interrupt that arrives meanwhile
import pyarrow as pa

path, way = sys.argv[1:]
ways = {
    "open": lambda: cw.Log(path),
    "threads": lambda: cw.Log(path).scan(columns=["offset"], threads=2).to_arrow(),
    "iterate threads": lambda: sum(b.num_rows for b in cw.Log(path).scan(columns=["offset"], threads=2)),
    "pa.table": lambda: pa.table(cw.Log(path).scan(columns=["offset"])),
    "pa.table threads": lambda: pa.table(cw.Log(path).scan(columns=["offset"], threads=2)),
    "records": lambda: sum(1 for _ in cw.Log(path).records()),
}
try:
    print("ready", flush=True)
    while True:
        ways[way]()
except BaseException as raised:
    print(time.monotonic_ns(), type(raised).__name__, flush=True)
"""


def interrupted(tmp_path: Path, path: Path, way: str, env: dict[str, str], *, after: float) -> tuple[float, str]:
    """Seconds from the signal to the exception, and what was raised."""
    script = write_script(tmp_path, INTERRUPTED)
    process = subprocess.Popen(
        [sys.executable, str(script), str(path), way],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(after)
        sent = time.monotonic_ns()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, err
    at, raised = out.split()
    return (int(at) - sent) / 1e9, raised


def ends_soon(tmp_path: Path, path: Path, way: str, env: dict[str, str]) -> None:
    """The best of up to three, because the machine may be busy; each of them must raise."""
    taken: list[float] = []
    # the moments of different ways are not the same
    first = 0.3 + len(way) % 3 / 10
    for after in (first, 0.7, 0.9):
        if taken and min(taken) < 2:
            break
        seconds, raised = interrupted(tmp_path, path, way, env, after=after)
        # a direct reader of the stream raises its own error for the interrupt, unless Python handles the
        # signal first
        of_stream = {"ArrowInvalid"} if way.startswith("pa.table") else set()
        assert raised in {"KeyboardInterrupt"} | of_stream
        taken.append(seconds)
    assert min(taken) < 2, taken


def test_an_interrupt_ends_the_opening_of_a_log_with_a_huge_tail_of_zeros(
    tmp_path: Path, script_environment: dict[str, str]
) -> None:
    path = write_partition(tmp_path / "sparse-0", [(0, [batch(0, [Rec(value=b"v", timestamp=1)])])])
    os.truncate(path / name(0), 2 << 30)
    ends_soon(tmp_path, path, "open", script_environment)


def test_an_interrupt_ends_the_opening_of_a_log_whose_index_names_one_large_false_batch(
    tmp_path: Path, script_environment: dict[str, str]
) -> None:
    size = 64 * MIB
    path = write_partition(tmp_path / "false-0", [(0, [])])
    false = bytearray(batch(5, [], last_offset_delta=0, count=1, max_timestamp=1, base_timestamp=1))
    false[8:12] = struct.pack(">i", size - 30 - 200 - 12)
    with (path / name(0)).open("wb") as file:
        file.write(b"\xff" * 30 + false)
        file.truncate(size)
    entries = b"".join(struct.pack(">ii", 5 + n, 30) for n in range(20_000))
    (path / name(0, ".index")).write_bytes(entries)
    ends_soon(tmp_path, path, "open", script_environment)


@pytest.fixture(scope="module")
def large_batches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """600 batches that decompress to 20 MiB each."""
    return many(tmp_path_factory.mktemp("large") / "large-0", 600, 20 * MIB)


@pytest.mark.parametrize(
    "way",
    [
        "threads",
        *(
            pytest.param(way, marks=pytest.mark.long)
            for way in ("iterate threads", "pa.table", "pa.table threads", "records")
        ),
    ],
)
def test_an_interrupt_ends_a_scan_of_large_batches(
    large_batches: Path, tmp_path: Path, way: str, script_environment: dict[str, str]
) -> None:
    ends_soon(tmp_path, large_batches, way, script_environment)


MEMORY = """
import json, sys
import cordwood as cw
import pyarrow

rows = sum(batch.num_rows for batch in cw.Log(sys.argv[1]).scan(**json.loads(sys.argv[2])))
# not ru_maxrss, which includes the size of the parent process
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
print(rows, peak >> 10)
"""


@pytest.mark.long
@pytest.mark.parametrize(("threads", "segment_batches"), [(1, 3), (2, 12), (2, 3)])
def test_threads_keep_only_a_few_decompressed_batches_in_memory(
    tmp_path: Path, threads: int, segment_batches: int, script_environment: dict[str, str]
) -> None:
    """12 batches of 50 MiB: 600 MiB if all were in memory."""
    path = many(tmp_path / "zeros-0", 12, 50 * MIB, segment_batches)
    script = write_script(tmp_path, MEMORY)
    arguments = json.dumps({"threads": threads})
    rows, peak = map(int, run(script, path, arguments, env=script_environment).stdout.split())
    assert rows == 12
    assert peak < 450, f"{peak} MiB"


@pytest.fixture(scope="module")
def growing_batches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 batches of 300 KiB that decompress to 50 MiB each: several splits, 2 GiB if all were in memory."""
    noise = random.Random(1).randbytes(300 << 10)
    values = [noise, bytes(50 * MIB), b"last"]
    one = batch(0, [Rec(value=value, timestamp=1) for value in values], codec=GZIP)
    path = tmp_path_factory.mktemp("growing") / "growing-0"
    return write_partition(path, [(0, [moved(one, 3 * n) for n in range(40)])])


@pytest.mark.parametrize(
    ("value_type", "max_rows"), [pytest.param("binary", 65_536, marks=pytest.mark.long), ("binary_view", 1)]
)
def test_threads_keep_only_two_splits_each_in_memory(
    growing_batches: Path, tmp_path: Path, value_type: str, max_rows: int, script_environment: dict[str, str]
) -> None:
    script = write_script(tmp_path, MEMORY)
    arguments = json.dumps({"threads": 2, "value_type": value_type, "max_rows": max_rows})
    rows, peak = map(int, run(script, growing_batches, arguments, env=script_environment).stdout.split())
    assert rows == 3 * 40
    assert peak < 450, f"{peak} MiB"


BEYOND_TWO_GIBIBYTES = """
import sys
import cordwood as cw
import pyarrow as pa

path, way, threads = sys.argv[1:]
scan = cw.Log(path).scan(columns=["offset", "value"], max_rows=1 << 40, max_bytes=1 << 40, threads=int(threads))
batches = scan if way == "iterate" else pa.RecordBatchReader.from_stream(scan)
rows = bytes_ = largest = 0
for batch in batches:
    rows += batch.num_rows
    largest = max(largest, batch.nbytes)
    bytes_ += batch.nbytes
    del batch
print(rows, bytes_, largest)
"""


@pytest.mark.long
@pytest.mark.parametrize(("way", "threads"), [("iterate", 1), ("stream", 1), ("stream", 2)])
def test_more_than_two_gibibytes_of_values_are_several_record_batches(
    tmp_path: Path, way: str, threads: int, script_environment: dict[str, str]
) -> None:
    """With any `max_bytes`: the offsets of an Arrow array of this type have 31 bits."""
    count, size = 23, 100 * MIB
    path = many(tmp_path / "zeros-0", count, size)
    script = write_script(tmp_path, BEYOND_TWO_GIBIBYTES)
    done = run(script, path, way, threads, env=script_environment)
    rows, total, largest = map(int, done.stdout.split())
    assert rows == count
    assert total >= count * size > 2 << 30
    assert largest < 2 << 30


def test_the_generated_batches_are_valid(tmp_path: Path) -> None:
    path = write_partition(tmp_path / "few-0", [(0, [zeros(0, 1000), zeros(1, 3)])])
    table = pa.table(cw.Log(path).scan(columns=["offset", "value"]))
    assert table.to_pylist() == [{"offset": 0, "value": bytes(1000)}, {"offset": 1, "value": bytes(3)}]
