"""One notation of lost offsets in all commands; a copy says that it was widened; files without permission."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import corpus
import pytest
from commands import environment
from scripts import Command

import cordwood as cw
from cli.test_unreadable import as_nobody, top

__all__ = ["top"]

PLAIN = corpus.partition("01-plain").path
BROKEN = corpus.GOLDEN / "damaged" / "flip-record" / "tickets-0"


def test_a_loss_has_one_notation(command: Command, tmp_path: Path) -> None:
    path = Path(shutil.copytree(BROKEN, tmp_path / "tickets-0"))
    said = {
        "verify": command("verify", path)[1],
        "cat": command("cat", path, "--on-damage", "skip")[2],
        "count": command("count", path, "--on-damage", "skip")[2],
        "repair": command("repair", path, "--policy", "salvage")[1],
        "copy": command("copy", path, tmp_path / "copy-0", "--on-damage", "skip")[1],
    }
    for name, text in said.items():
        assert re.search(r", offset 302: ", text), (name, text)
        assert not re.search(r"302 to 30[23]", text), (name, text)


def test_a_copy_of_a_range_of_times_says_that_it_was_widened(command: Command, tmp_path: Path) -> None:
    records = list(cw.Log(PLAIN).records())
    batches = cw.Log(PLAIN).batches().to_arrow().to_pylist()
    inside = next(batch for batch in batches if (batch["count"] or 0) > 2)["base_offset"] + 1
    said = "the range was widened to whole batches\n"
    out = command("copy", PLAIN, tmp_path / "a-0", "--since", records[inside].timestamp)[1]
    assert said in out
    first = records[0].timestamp
    assert said not in command("copy", PLAIN, tmp_path / "b-0", "--since", first)[1]
    assert said in command("copy", PLAIN, tmp_path / "c-0", "--until", records[inside].timestamp)[1]
    assert said in command("copy", PLAIN, tmp_path / "d-0", "--start-offset", inside)[1]


@pytest.mark.parametrize("suffix", ["log", "index"])
def test_a_file_without_permission_is_not_damaged(top: Path, script_environment: dict[str, str], suffix: str) -> None:
    path = Path(shutil.copytree(PLAIN, top / "orders-0"))
    path.chmod(0o755)
    for file in path.iterdir():
        file.chmod(0o644)
    closed = path / f"00000000000000000400.{suffix}"
    closed.chmod(0)
    commands: list[list[Any]] = [["verify", path], ["ls", path], ["cat", path], ["count", path]]
    checked, listed, *_ = answers = as_nobody(top, script_environment, *commands)
    for _, out, error in answers:
        assert "damaged" not in out + error
    assert checked[0] == 1
    assert "not readable: 1 error" in checked[1]
    if suffix == "index":
        assert "not readable" in listed[1]


def report_of(path: Path) -> str:
    from cordwood.report import Report

    return Report(path).to_html()


def test_a_report_of_times_in_microseconds_shows_times(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    start = 1_700_000_000_000
    for name, factor in (("ms", 1), ("us", 1000), ("ns", 1_000_000)):
        config = cw.LogConfig(message_timestamp_after_max_ms=2**63 - 1)
        with cw.LogWriter(tmp_path / f"{name}-0", config=config) as writer:
            for number in range(50):
                writer.append(b"x", timestamp=f"{(start + number * 60_000) * factor}ms")
    in_ms = report_of(tmp_path / "ms-0")
    assert "unit of the timestamps" not in in_ms
    for name, unit in (("us", "microseconds"), ("ns", "nanoseconds")):
        page = report_of(tmp_path / f"{name}-0")
        assert f"{unit}, although Kafka&#x27;s are milliseconds" in page
        assert f"timestamp (stored in {unit}), UTC" in page
        for text in ("2023-11-14T22:13:20.000Z", "2023-11-14T23:02:20.000Z"):
            assert text in page
            assert text in in_ms
        # the labels of the axis
        assert ">22:30</text>" in page
        assert "9999" not in page


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_tables_are_printed_where_the_encoding_lacks_a_character(tmp_path: Path, encoding: str) -> None:
    path = Path(shutil.copytree(PLAIN, tmp_path / "zürich-0"))
    for log in path.glob("*.index"):
        log.unlink()
    for arguments in (["ls", path], ["reindex", "--yes", path], ["verify", path]):
        done = subprocess.run(
            [sys.executable, "-m", "cordwood.cli", *arguments],
            env=environment(PYTHONIOENCODING=encoding),
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        shown = done.stdout.decode(encoding)
        assert ("z\\xfcrich-0" if encoding == "ascii" else "zürich-0") in shown
        assert arguments[0] == "verify" or "-----" in shown
