"""`cordwood cat` warns of records of aborted and open transactions."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import corpus
import pytest
from scripts import Command

import cordwood as cw

PLAIN = corpus.partition("01-plain").path
PAYMENTS = corpus.partition("11-transactions").path


def test_cat_warns_of_records_of_aborted_and_open_transactions(command: Command) -> None:
    """They would be committed records in another log."""
    everything = ("cat", PAYMENTS, "--columns", "offset")
    first = cw.Log(PAYMENTS).records()
    undone = [r.offset for r in first]
    found = first.first_uncommitted
    assert found is not None
    told = f"the first at offset {found[1]}; --isolation read_committed leaves them out"
    for more in ((), ("--format", "csv"), ("--limit", "800"), ("--format", "csv", "--limit", "800")):
        code, out, error = command(*everything, *more)
        assert code == 0
        assert error.startswith(f"cordwood: {PAYMENTS}: the output contains records of transactions that were aborted")
        assert error.count("\n") == 1
        assert told in error
        assert len(out.splitlines()) >= 800
    for quiet in (
        (*everything, "--isolation", "read_committed"),
        (*everything, "--isolation", "read_uncommitted"),
        (*everything, "--end-offset", str(found[1])),
        (*everything, "--limit", str(undone.index(found[1]))),
        (*everything, "--limit", str(undone.index(found[1])), "--format", "csv"),
        ("cat", PAYMENTS, "--columns", "key", "--limit", str(undone.index(found[1])), "--format", "csv"),
        (*everything, "--limit", "0"),
        ("cat", PLAIN, "--columns", "offset"),
    ):
        code, _, error = command(*quiet)
        assert (code, error) == (0, "")
    key = ("cat", PAYMENTS, "--columns", "key", "--format", "csv")
    code, out, error = command(*key, "--limit", str(undone.index(found[1]) + 1))
    assert told in error
    assert out.splitlines()[0] == '"key"'


def test_the_pipes_in_the_documentation_copy_only_committed_records(command: Command) -> None:
    root = corpus.GOLDEN.parents[1]
    texts = [
        path.read_text(encoding="utf-8") for path in [root / "README.md", *(root / "docs" / "pages").rglob("*.md")]
    ]
    pipes = re.findall(r"cordwood cat [^\n]*\| *cordwood append[^\n]*", "\n".join(texts))
    helps = command("append", "--help")[1] + command("--help")[1]
    pipes += re.findall(r"cordwood cat [^\n]*\| *cordwood append[^\n]*", helps)
    assert len(pipes) >= 2
    assert all("--isolation read_committed" in pipe for pipe in pipes)


@pytest.mark.parametrize("part", [p for p in corpus.partitions() if p.case.startswith("11-")], ids=str)
def test_markers_that_cat_writes_are_never_appended_as_records(
    command: Command, part: corpus.Partition, tmp_path: Path
) -> None:
    """Kafka's dump shows which offsets are markers."""
    markers = {
        offset
        for batch in corpus.batches(part)
        if batch["control"]
        for offset in range(batch["baseOffset"], batch["lastOffset"] + 1)
    }
    code, out, _ = command("cat", part.path, "--include-control")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert {row["offset"] for row in rows if row["is_control"]} == markers
    assert list(rows[0]) == ["offset", "timestamp", "timestamp_type", "key", "value", "headers", "is_control"]
    chosen = command("cat", part.path, "--include-control", "--columns", "offset,key")[1]
    assert list(json.loads(chosen.splitlines()[0])) == ["offset", "key"]
    paths = os.pathsep.join(p for p in sys.path if p)
    for options, exit_code in [(["--format", "jsonl"], 1), ([], 2)]:
        appended = subprocess.run(
            [sys.executable, "-m", "cordwood.cli", "append", str(tmp_path / "copy-0"), *options],
            input=out.encode(),
            capture_output=True,
            env={**os.environ, "PYTHONPATH": paths},
            timeout=60,
            check=False,
        )
        assert appended.returncode == exit_code
        assert b"is not a record" in appended.stderr
        assert b"is_control" in appended.stderr
    assert cw.Log(tmp_path / "copy-0").log_end_offset == 0
