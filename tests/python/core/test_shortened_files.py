"""Sealed files that another process shortens while they are read: an error or the right answer, never a signal."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from batches import Rec, batch, write_partition
from scripts import write_script

import cordwood as cw

BATCHES = 1200
PER_BATCH = 2
VALUE = b"v" * 1500

PREPARE = """
import itertools, os, sys, threading
from pathlib import Path
import cordwood as cw

path = Path(sys.argv[1])
BATCHES, PER_BATCH = map(int, sys.argv[2:4])
SEALED = f"{0:020d}"

def shorten(size=4096, suffixes=("log", "index", "timeindex")):
    for suffix in suffixes:
        os.truncate(path / f"{SEALED}.{suffix}", min(size, os.path.getsize(path / f"{SEALED}.{suffix}")))

def fails(call):
    try:
        call()
    except (cw.LogChangedError, cw.CorruptLogError):
        return
    raise AssertionError("the shortened file was read to its end")

log = cw.Log(path)
last = BATCHES * PER_BATCH - 1
"""

# the file is open, and mapped if it ever is, when it is shortened
READS = {
    "scan": """
        batches = iter(log.scan(max_rows=10))
        next(batches)
        shorten()
        fails(lambda: list(batches))
    """,
    "scan_of_views": """
        batches = iter(log.scan(max_rows=10, value_type="binary_view"))
        next(batches)
        shorten()
        fails(lambda: list(batches))
    """,
    "records": """
        records = log.records()
        next(records)
        shorten()
        fails(lambda: list(records))
    """,
    "locate": """
        log.locate(0)
        shorten()
        fails(lambda: log.locate(last))
    """,
    "locate_many": """
        log.locate_many([0, last])
        shorten()
        fails(lambda: log.locate_many(range(1, last)))
    """,
    "offset_for_time": """
        log.offset_for_time(1000)
        shorten()
        fails(lambda: log.offset_for_time(1000 + last - 5))
    """,
    "locate_with_short_indexes": """
        log.locate(0)
        shorten(size=0, suffixes=["index", "timeindex"])
        assert log.locate(last).batch_base_offset == last - PER_BATCH + 1
        assert log.offset_for_time(1000 + last).offset == last
    """,
    "index": """
        index = log.segments[0].offset_index
        shorten(size=0)
        fails(lambda: list(index))
    """,
    "follow": """
        follow = log.follow(timeout=0)
        next(follow)
        shorten()
        fails(lambda: list(follow))
    """,
}

# in place, as a copy by rsync with --inplace refreshes a snapshot
REWRITTEN = """
wholes = {file: file.read_bytes() for file in path.glob(f"{SEALED}.*")}
done = threading.Event()

def rewrite():
    while not done.is_set():
        for file, whole in wholes.items():
            os.truncate(file, 100)
            with file.open("r+b") as opened:
                opened.write(whole)

def read(call, number):
    try:
        return call(number)
    except cw.CordwoodError:
        pass

thread = threading.Thread(target=rewrite)
thread.start()
for number in range(int(sys.argv[4])):
    read(CALL, number)
done.set()
thread.join()
"""

LONG_CALLS = {
    "verify": "lambda _: cw.verify(path, deep=True)",
    "copy": "lambda number: cw.copy(path, path.parent / f'copy{number}' / path.name)",
    "dump": "lambda _: list(cw.dump(path / f'{SEALED}.log', deep_iteration=True))",
    "dump_of_an_index": "lambda _: list(cw.dump([path / f'{SEALED}.index', path / f'{SEALED}.timeindex']))",
    "rebuild": "lambda _: cw.rebuild_indexes(path)",
    "diff": "lambda _: cw.diff(path, path)",
}


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """A sealed segment of 3.6 MB with its indexes, and a last one."""
    records = range(BATCHES * PER_BATCH)
    rows = [
        [Rec(VALUE, timestamp=1000 + offset) for offset in records[at : at + PER_BATCH]] for at in records[::PER_BATCH]
    ]
    batches = [batch(at * PER_BATCH, row) for at, row in enumerate(rows)]
    end = len(records)
    path = write_partition(tmp_path / "data" / "t-0", [(0, batches), (end, [batch(end, [Rec(b"v", timestamp=9999)])])])
    cw.rebuild_indexes(path, config=cw.LogConfig(index_interval_bytes=512), dry_run=False)
    assert (path / f"{0:020d}.index").stat().st_size == 8 * (BATCHES - 1)
    return path


def run(path: Path, text: str, environment: dict[str, str], *arguments: object) -> None:
    script = write_script(path.parent, text)
    command = [sys.executable, str(script), str(path), str(BATCHES), str(PER_BATCH), *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != -signal.SIGBUS, "the process was killed by SIGBUS"
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", READS)
def test_a_sealed_file_that_is_shortened_while_it_is_read_is_an_error(
    partition: Path, name: str, script_environment: dict[str, str]
) -> None:
    lines = [line.removeprefix(" " * 8) for line in READS[name].splitlines()]
    run(partition, PREPARE + "\n".join(lines), script_environment)


@pytest.mark.parametrize("name", LONG_CALLS)
def test_a_sealed_file_that_is_rewritten_in_place_does_not_end_the_process(
    partition: Path, name: str, script_environment: dict[str, str]
) -> None:
    run(partition, PREPARE + REWRITTEN.replace("CALL", LONG_CALLS[name]), script_environment, 40)
