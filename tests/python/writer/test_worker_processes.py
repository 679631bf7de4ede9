"""The recipe for a service with several worker processes: each writes a partition, which no other process writes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from scripts import write_script

import cordwood as cw

# the recipe: the function is called in each worker process, after the fork of a server such as gunicorn
WORKER = """
import sys
from contextlib import suppress

import cordwood as cw


def writer_of_this_process(folder, topic, workers):
    for partition in range(workers):
        with suppress(cw.LockedError):
            return cw.LogWriter(f"{folder}/{topic}-{partition}", flush=cw.FlushMode.group(ms=2))
    raise RuntimeError(f"each of the {workers} partitions of {topic} has a writer")


with writer_of_this_process(sys.argv[1], "orders", workers=int(sys.argv[2])) as writer:
    print(writer.path, flush=True)
    for line in sys.stdin:
        print(writer.append(line.strip(), key=sys.argv[3]).durable, flush=True)
"""


def test_each_worker_has_a_partition_and_a_worker_in_the_place_of_a_killed_one_continues_it(
    tmp_path: Path, script_environment: dict[str, str]
) -> None:
    script, data, workers = write_script(tmp_path, WORKER), tmp_path / "data", 3
    data.mkdir()

    def start(name: str) -> subprocess.Popen[str]:
        words = [sys.executable, str(script), str(data), str(workers), name]
        return subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=script_environment,
            text=True,
        )

    def tell(process: subprocess.Popen[str], value: str) -> str:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{value}\n")
        process.stdin.flush()
        return process.stdout.readline()

    def partition(process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        return Path(process.stdout.readline().strip()).name

    running = [start(f"worker{number}") for number in range(workers)]
    partitions = [partition(process) for process in running]
    assert sorted(partitions) == ["orders-0", "orders-1", "orders-2"]
    assert [tell(process, f"{number}") for number, process in enumerate(running)] == ["True\n"] * 3
    _, error = start("one too many").communicate()
    assert "each of the 3 partitions of orders has a writer" in error
    running[1].send_signal(signal.SIGKILL)
    running[1].communicate()
    running[1] = start("another")
    assert partition(running[1]) == partitions[1]
    assert tell(running[1], "3") == "True\n"
    for process in running:
        process.communicate()
        assert process.returncode == 0
    rows = cw.LogDir(data).scan(topics=["orders"]).to_arrow().to_pylist()
    assert sorted((row["value"], row["key"]) for row in rows) == [
        (b"0", b"worker0"),
        (b"1", b"worker1"),
        (b"2", b"worker2"),
        (b"3", b"another"),
    ]
