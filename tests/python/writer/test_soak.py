"""Millions of records through a writer that is killed every few seconds, with four followers in other processes."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from scripts import write_script

import cordwood as cw
from writer.soak import FOLLOWER, WRITER

RECORDS = int(os.environ.get("CORDWOOD_SOAK_RECORDS", "150000"))
KILL_SECONDS = (0.5, 4.0) if RECORDS > 1_000_000 else (0.2, 0.6)
FOLLOWERS = 4


@dataclass
class Soak:
    """What the writers said: the log as it must be."""

    # offsets from which serial number minus offset has a value
    changes: list[tuple[int, int]] = field(default_factory=list)
    end: int = 0
    serial: int = 0
    pending: list[Any] | None = None
    kills: int = 0
    truncations: int = 0
    compacted_records: int = 0
    is_done: bool = False

    def appended(self, offset: int, serial: int, end: int) -> None:
        if not self.changes or self.changes[-1][1] != serial - offset:
            self.changes.append((offset, serial - offset))
        self.end = end

    def truncated(self, offset: int) -> None:
        self.changes = [change for change in self.changes if change[0] < offset]
        self.end = offset

    def hear(self, line: list[Any]) -> None:
        match line:
            case ["append" | "truncate", *_]:
                self.pending = line
            case ["appended", offset, serial]:
                assert self.pending is not None
                self.appended(offset, self.pending[2], offset + serial - self.pending[2])
                self.serial, self.pending = serial, None
            case ["truncated", offset]:
                self.truncated(offset)
                self.pending = None
                self.truncations += 1
            case ["compacted", records]:
                self.compacted_records += records
            case ["opened", end, serial]:
                self.opened(end, serial)
            case ["end", offset]:
                self.appended(offset, RECORDS, offset + 1)
                self.is_done = True

    def opened(self, end: int, serial: int) -> None:
        """Every call that returned has its effect, and the one that did not may have it."""
        match self.pending:
            case ["append", offset, first] if end != self.end:
                assert (end, serial) == (offset + 1000, first + 999), (self.pending, end, serial)
                self.appended(offset, first, end)
                self.serial = serial + 1
            case None if serial == RECORDS:
                self.appended(end - 1, serial, end)
            case ["truncate", offset] if end != self.end:
                assert end == offset, (self.pending, end)
                self.truncated(offset)
            case _:
                assert end == self.end, (end, self)
        self.pending = None


def write_until_the_end(script: Path, path: Path, soak: Soak) -> None:
    generator = random.Random(RECORDS)
    while True:
        command = [sys.executable, script, path, generator.randrange(1 << 30), soak.serial, RECORDS]
        with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE) as process:
            timer = threading.Timer(generator.uniform(*KILL_SECONDS), process.kill)
            timer.start()
            assert process.stdout is not None
            for text in process.stdout:
                if text.endswith(b"\n"):
                    soak.hear(json.loads(text))
            timer.cancel()
        if soak.is_done:
            return
        assert process.returncode == -9
        soak.kills += 1


@pytest.mark.long
def test_followers_of_a_writer_that_is_killed_read_every_record_once_and_in_order(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    cw.LogWriter(path).close()
    follower = write_script(tmp_path, FOLLOWER, "follower.py")
    command = [sys.executable, str(follower), str(path), str(RECORDS)]
    soak = Soak()
    began = time.monotonic()
    with ExitStack() as stack:
        followers = [
            stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)) for _ in range(FOLLOWERS)
        ]
        for process in followers:
            stack.callback(process.kill)
        write_until_the_end(write_script(tmp_path, WRITER, "writer.py"), path, soak)
        found = [json.loads(process.communicate()[0]) for process in followers]
    for result in found:
        assert result["end"] == soak.end
        assert result["deleted"] == 0, "retention was faster than a follower, so that it could not read everything"
        assert result["changes"] == [list(change) for change in soak.changes]
        used = result["used"]
        assert used[-1]["bytes"] <= used[0]["bytes"] + (32 << 20), used
        assert used[-1]["files"] <= used[0]["files"] + 8, used
    check_log(path, soak)
    figures = {"records": RECORDS, "kills": soak.kills, "truncations": soak.truncations, "followers": len(found)}
    figures["compacted_records"] = soak.compacted_records
    print(json.dumps({"rig": "soak", "lost": 0, "twice": 0, **figures, "seconds": round(time.monotonic() - began)}))


def check_log(path: Path, soak: Soak) -> None:
    """The log has what the writers were told that it has."""
    log = cw.Log(path)
    assert log.log_end_offset == soak.end
    changes = iter([*soak.changes, (soak.end, 0)])
    (_, difference), (until, after) = next(changes), next(changes)
    expected = log.log_start_offset
    for record in log.records():
        while record.offset >= until:
            difference, (until, after) = after, next(changes)
        for missing in range(expected, record.offset):
            assert missing % 10 == 5, (missing, record.offset)
        expected = record.offset + 1
        assert record.value is not None
        assert struct.unpack(">qq", record.value[:16]) == (record.offset, record.offset + difference)
