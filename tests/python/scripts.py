"""Runs Python scripts in separate processes, for behaviour that cannot be tested in the process of the tests."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

Command = Callable[..., tuple[int, str, str]]
"""Runs a command of the command line; returns its exit code, standard output and standard error."""

BECOME_NOBODY = """
import os
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
assert os.geteuid() != 0
"""


def write_script(folder: Path, text: str, name: str = "script.py") -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    path.chmod(0o644)
    return path


def run(
    script: Path, *arguments: object, env: dict[str, str], before: tuple[str, ...] = (), timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """Runs a script to its end; a failure shows its output."""
    done = subprocess.run(
        [*before, sys.executable, str(script), *map(str, arguments)],
        env=env,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done
