"""The program of the guide to embedding, run unchanged as a service."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import cordwood as cw

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "pages" / "guides" / "embed.md"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    [block] = [
        block
        for block in re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        if not block.startswith(">>>")
    ]
    assert sum(bool(line.strip()) for line in block.splitlines()) <= 40
    path = tmp_path / "service.py"
    path.write_text(block, encoding="utf-8")
    return path


def free_port() -> int:
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return int(any_port.getsockname()[1])


def connected(port: int, process: subprocess.Popen[str]) -> socket.socket:
    deadline = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=60)
        except ConnectionRefusedError:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)


@contextmanager
def service(
    program: Path, log: Path, env: dict[str, str], stopped_by: signal.Signals
) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """The running service; at the end it gets a signal. Only a kill is no clean end."""
    port = free_port()
    command = [sys.executable, str(program), str(log), str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        try:
            yield port, process
            process.send_signal(stopped_by)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
        assert process.returncode == (-signal.SIGKILL if stopped_by is signal.SIGKILL else 0), errors
        assert "Traceback" not in errors, errors


def submitted(port: int, process: subprocess.Popen[str], jobs: list[str]) -> list[int]:
    """The offsets that the service returns for jobs, each sent after the reply for the one before."""
    found = []
    with connected(port, process) as connection, connection.makefile("rw", encoding="utf-8") as lines:
        for job in jobs:
            lines.write(f"{job}\n")
            lines.flush()
            found.append(int(lines.readline()))
    return found


def done(process: subprocess.Popen[str], count: int) -> list[tuple[int, str]]:
    assert process.stdout is not None
    lines = [process.stdout.readline().split() for _ in range(count)]
    assert all(word == "done" for word, *_ in lines)
    return [(int(offset), job) for _, offset, job in lines]


def test_the_service_does_each_job_and_continues_after_a_stop_and_a_kill(
    program: Path, tmp_path: Path, script_environment: dict[str, str]
) -> None:
    log = tmp_path / "jobs-0"
    jobs = [f"job-{number}" for number in range(30)]
    with service(program, log, script_environment, signal.SIGTERM) as (port, process):
        assert submitted(port, process, jobs[:10]) == list(range(10))
        assert done(process, 10) == list(enumerate(jobs[:10]))
        # a client that stays connected does not hold up the stop
        idle = connected(port, process)
    idle.close()
    assert cw.LogWriter.plan_recovery(log).closed_cleanly
    assert cw.Log(log).position("worker").offset == 10
    with service(program, log, script_environment, signal.SIGKILL) as (port, process):
        assert submitted(port, process, jobs[10:20]) == list(range(10, 20))
        # the worker goes on with the first job that it has not committed
        assert done(process, 1) == [(10, "job-10")]
    with service(program, log, script_environment, signal.SIGINT) as (port, process):
        assert submitted(port, process, jobs[20:]) == list(range(20, 30))
        worked = done(process, 1)
        while worked[-1][0] < 29:
            worked += done(process, 1)
        first = worked[0][0]
        # no job is left out; the one that was being done when the process was killed may be done again
        assert 10 <= first <= 20
        assert worked == list(enumerate(jobs))[first:]
    assert cw.Log(log).position("worker").offset == 30
    assert [record.value for record in cw.Log(log).records()] == [job.encode() for job in jobs]
