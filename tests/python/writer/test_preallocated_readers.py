"""Readers beside a writer whose files are preallocated: a batch takes the place of zeros that they have just read."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path

import cordwood as cw

WRITER = """
    import sys, time
    import cordwood as cw
    config = cw.LogConfig(segment_bytes=3_000_000, preallocate=True)
    with cw.LogWriter(sys.argv[1], config=config, flush="none") as writer:
        writer.append(b"first")
        print("ready", flush=True)
        until = time.monotonic() + 2
        while time.monotonic() < until:
            writer.append(b"x" * 500)
            time.sleep(0.0002)
"""


def test_a_batch_that_is_written_meanwhile_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        rounds = 0
        while writer.poll() is None:
            for look in (
                lambda log: log.plan(1 << 20),
                lambda log: log.offset_for_time(4_000_000_000_000),
                lambda log: log.locate(log.log_end_offset),
                lambda log: list(log.records(start_offset=log.log_end_offset)),
                lambda log: list(log.follow(start_offset=log.log_end_offset, timeout=0)),
            ):
                with suppress(cw.LogChangedError, cw.OffsetOutOfRangeError):
                    look(cw.Log(path))
            rounds += 1
    assert writer.returncode == 0
    assert rounds > 5
