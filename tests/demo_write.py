"""The writing part of the demo: a log of a million records, whose writer is killed half way."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa

import cordwood as cw
from demo_steps import expect, step

RECORDS = 1_000_000
CHUNK = 10_000
CONFIG = cw.LogConfig(segment_bytes=16 << 20)


def append_all(path: str) -> None:
    """Append the missing records of the million, and print the acknowledged end after each chunk."""
    with cw.LogWriter(path, config=CONFIG) as writer:
        for start in range(writer.log_end_offset, RECORDS, CHUNK):
            stop = min(start + CHUNK, RECORDS)
            table = pa.table(
                {
                    "key": pa.array([f"sensor-{n % 100}" for n in range(start, stop)]),
                    "value": pa.array([f"measurement {n}" for n in range(start, stop)]),
                }
            )
            appended = writer.append_arrow(table)
            os.write(1, b"%d\n" % (appended.last_offset + 1))


def write_and_kill(path: Path) -> int:
    """Write in another process, and kill it half way. Return the end of the acknowledged offsets."""
    with step("Write a log of a million records, and kill the writer half way") as say:
        acknowledged = 0
        command = [sys.executable, __file__, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            if writer.stdout is None:
                sys.exit("the writer has no standard output")
            for line in writer.stdout:
                # an incomplete line acknowledges nothing
                acknowledged = int(line) if line.endswith(b"\n") else acknowledged
                if acknowledged >= RECORDS // 2:
                    os.kill(writer.pid, signal.SIGKILL)
        expect("exit of the writer", writer.returncode, -signal.SIGKILL)
        say(f"a process appended chunks of {CHUNK:,} records, each durable when it was acknowledged")
        say(f"SIGKILL after it had acknowledged {acknowledged:,}")
        return acknowledged


def check_values(log: cw.Log, count: int) -> None:
    """Check that the log has every record up to `count` once, at its offset."""
    checked = 0
    for batch in log.scan(end_offset=count, columns=["offset", "value"]):
        offsets = batch.column("offset").to_pylist()
        expect("offsets", (offsets[0], offsets[-1], len(offsets)), (checked, checked + len(offsets) - 1, len(offsets)))
        values = batch.column("value").to_pylist()
        expect("values", values, [b"measurement %d" % n for n in range(checked, checked + len(values))])
        checked += len(offsets)
    expect("records", checked, count)


def recover(path: Path, acknowledged: int) -> None:
    with step("Open it again: it is recovered, and no acknowledged record is missing") as say:
        with cw.LogWriter(path, config=CONFIG) as writer:
            end = writer.log_end_offset
            say(f"recovered: offsets 0 to {end:,}, of which {acknowledged:,} were acknowledged")
            expect("nothing acknowledged is missing", end >= acknowledged, True)
        check_values(cw.Log(path), end)
        say(f"all {end:,} records read and compared: each once, at its offset")
        kept = sorted(found.name for found in path.glob("quarantine/*"))
        say(f"cut from the end, and kept: {', '.join(kept) or 'nothing, the last write was complete'}")


def finish(path: Path) -> None:
    with step("Continue to the million") as say:
        append_all_quietly(path)
        log = cw.Log(path)
        expect("log end offset", log.log_end_offset, RECORDS)
        check_values(log, RECORDS)
        say(f"{log.log_end_offset:,} records in {len(log.segments)} segments, {log.size / 2**20:.1f} MiB; all compared")


def append_all_quietly(path: Path) -> None:
    subprocess.run([sys.executable, __file__, str(path)], stdout=subprocess.DEVNULL, check=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "measurements-0"
        acknowledged = write_and_kill(path)
        recover(path, acknowledged)
        finish(path)


if __name__ == "__main__":
    append_all(sys.argv[1]) if len(sys.argv) > 1 else main()
