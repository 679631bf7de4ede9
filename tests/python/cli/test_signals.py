"""`cordwood cat -o` that is terminated by a signal."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import run, write_script

from cli.test_output import OFFSETS, SMALL, left_behind, offsets

# Writes something, prints "begun", and then waits in a system call or runs in a loop.
STUCK = """
import itertools, signal, sys
import cordwood.cli.text_output as text_output
from cordwood.cli import main

# the parent process may have ignored them
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

def stuck(blocks, out):
    out.write(b"x" * (1 << 20))
    print("begun", flush=True)
    if sys.argv[3] == "waiting":
        sys.stdin.read()
    for _ in itertools.cycle(blocks):
        pass

text_output.write_lines = stuck
sys.exit(main(["cat", sys.argv[1], "-o", sys.argv[2]]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
@pytest.mark.parametrize("doing", ["waiting", "working"])
def test_a_signal_leaves_no_temporary_file(
    tmp_path: Path, script_environment: dict[str, str], number: signal.Signals, doing: str
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    target = folder / "out.jsonl"
    target.write_bytes(b"old")
    command = [sys.executable, str(write_script(tmp_path, STUCK)), str(SMALL.path), str(target), doing]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=script_environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        assert len(left_behind(folder)) == 1
        process.send_signal(number)
        _, error = process.communicate(timeout=60)
    # Ctrl-C has its own exit code; the other signals terminate the process
    assert process.returncode == (130 if number is signal.SIGINT else -number)
    assert b"Traceback" not in error
    assert target.read_bytes() == b"old"
    assert left_behind(folder) == []


def test_an_ignored_signal_stays_ignored(tmp_path: Path, script_environment: dict[str, str]) -> None:
    """As under nohup."""
    script = write_script(
        tmp_path,
        "import os, signal, sys\nimport cordwood.cli.text_output as text_output\nfrom cordwood.cli import main\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\nwrite = text_output.write_lines\n"
        "def hung_up(blocks, out):\n    os.kill(os.getpid(), signal.SIGHUP)\n    write(blocks, out)\n"
        "text_output.write_lines = hung_up\nprint(main(['cat', sys.argv[1], '-o', sys.argv[2]]))\n",
    )
    done = run(script, SMALL.path, tmp_path / "out.jsonl", env=script_environment)
    assert done.stdout == "0\n"
    assert offsets((tmp_path / "out.jsonl").read_bytes()) == OFFSETS
