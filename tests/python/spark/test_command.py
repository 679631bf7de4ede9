"""The output of `python -m cordwood.spark` without a JVM, and the filter of a JVM's startup messages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import corpus
import needs_pyspark  # noqa: F401
import pytest

PLAIN = corpus.partition("01-plain")


def test_offsets_are_printed_without_spark(script_environment: dict[str, str]) -> None:
    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        # hide Java, so that none is started
        settings = {**script_environment, "PATH": "/nowhere", "JAVA_HOME": "/nowhere"}
        return subprocess.run(
            [sys.executable, "-m", "cordwood.spark", *arguments],
            env=settings,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    done = command("resolve-offsets", str(PLAIN.path), "--since", "2023-11-14T22:13:30Z")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "startingOffsets": '{"orders":{"0":488}}',
        "endingOffsets": '{"orders":{"0":1500}}',
    }
    for code, words, arguments in [
        (0, "segments", ("--help",)),
        (2, "expected a time in one of the forms", ("resolve-offsets", str(PLAIN.path), "--since", "soon")),
        (2, "did you mean subscribe?", ("resolve-offsets", str(PLAIN.path), "--option", "subscrib=x")),
        (2, "see --help", ("exprot",)),
        (2, "--since: expected at most once", ("export", str(PLAIN.path), "/x", "--since", "-2h", "--since", "-1h")),
        (
            2,
            "--option Subscribe: expected at most once",
            ("count", str(PLAIN.path), "--option", "subscribe=a", "--option", "Subscribe=b"),
        ),
        (1, "install 17 or newer", ("count", str(PLAIN.path))),
        *((1, "/no/such", (name, "/no/such/place")) for name in ("segments", "count", "rebuild-indexes")),
        (2, "/no/such/place: no such directory", ("verify", "/no/such/place")),
        *((1, "/no/such", (name, "/no/such/place", "/no/such/output")) for name in ("export", "import")),
    ]:
        done = command(*arguments)
        assert done.returncode == code, done.stderr
        assert words in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_only_startup_messages_are_filtered(capfd: pytest.CaptureFixture[str]) -> None:
    from cordwood.spark.jobs import session

    chatter = ("WARNING: Using incubator modules: jdk.incubator.vector\n", 'Setting default log level to "WARN".\n')
    lines = "something happened\n".join(chatter)
    threads = set(threading.enumerate())
    with session._chatter_left_out():  # noqa: SLF001  (what starts a JVM)
        subprocess.run([sys.executable, "-c", f"import os; os.write(2, {lines.encode()!r})"], check=True)
    for thread in set(threading.enumerate()) - threads:
        thread.join()
    os.write(2, b"and this is ours\n")
    assert capfd.readouterr().err == "something happened\nand this is ours\n"
