"""A process that appends and prints what was acknowledged, and a check of the recovered log."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import cordwood as cw

# Appends in an endless loop, and prints the offset after each acknowledged append.
APPENDER = """
import sys
import cordwood as cw

path, flush, codec, generation, threads = sys.argv[1:]
config = cw.LogConfig(segment_bytes=65536, index_interval_bytes=512, compression_type=codec)
writer = cw.LogWriter(path, config=config, flush=flush)

import os, random, threading

def work(number):
    choose = random.Random(number)
    n = 0
    while True:
        # every value is unique, so that a record that was never appended is detected
        size = choose.choice([0, 10, 300, 5000])
        values = [b"%d/%d/%d/" % (number, n + k, size) + b"x" * size for k in range(choose.choice([1, 1, 1, 7, 40]))]
        appended = writer.append(values[0]) if len(values) == 1 else writer.append_many(values)
        n += len(values)
        if choose.random() < 0.02:
            writer.roll()
        # one write is one line: writes of this size to a pipe are atomic
        os.write(1, b"%d %d %d %d\\n" % (number, n, appended.first_offset, appended.last_offset))

for number in range(int(threads)):
    # numbers are not reused in a later generation
    threading.Thread(target=work, args=(1000 * int(generation) + number,)).start()
"""


def start(
    script: Path,
    path: Path,
    *,
    flush: str,
    codec: str,
    generation: int,
    threads: int,
    env: dict[str, str],
    before: tuple[str, ...] = (),
) -> subprocess.Popen[bytes]:
    arguments = (script, path, flush, codec, generation, threads)
    command = [*before, sys.executable, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)


def check_recovered(path: Path, told: bytes) -> int:
    """Check that the log has every acknowledged record at its offset, and no other; return their number."""
    acknowledged = [tuple(map(int, line.split())) for line in told.splitlines(keepends=True) if line.endswith(b"\n")]
    with cw.LogWriter(path, config=cw.LogConfig(segment_bytes=65536, index_interval_bytes=512)) as writer:
        assert writer.durable_offset == writer.log_end_offset
        log = writer.reader()
        seen: dict[int, list[tuple[int, int]]] = {}
        end = 0
        for record in log.records():
            assert record.offset == end
            end += 1
            assert record.value is not None
            thread, number, size, rest = record.value.split(b"/", 3)
            assert rest == b"x" * int(size)
            seen.setdefault(int(thread), []).append((int(number), record.offset))
        assert end == writer.log_end_offset
        for numbers in seen.values():
            # the log has each thread's records once, in order, without a gap
            assert [number for number, _ in numbers] == list(range(len(numbers)))
        for thread, count, first, last in acknowledged:
            offsets = [offset for _, offset in seen[thread]]
            assert len(offsets) >= count
            assert offsets[count - 1] == last
            assert offsets[count - (last - first + 1)] == first
        # the log can be continued
        assert writer.append(b"%d/0/0/" % (1_000_000 + end)).first_offset == end
    return sum(last - first + 1 for _, _, first, last in acknowledged)
