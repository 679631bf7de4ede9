"""The programs of the folder `examples`, run as a user runs them. That with Spark is in `spark/test_example.py`."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import corpus
import pyarrow.parquet as pq
import pytest

import cordwood as cw

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
DATA = corpus.GOLDEN / "16-data-dir"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(script_environment: dict[str, str]) -> Run:
    def started(name: str, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, EXAMPLES / f"{name}.py", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=script_environment)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return started


def test_every_example_is_run() -> None:
    """By this file, or by the one with Spark."""
    texts = [Path(__file__).read_text(), (Path(__file__).parents[1] / "spark" / "test_example.py").read_text()]
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert len(names) == 6
    assert {name for name in names if any(f'"{name}' in text for text in texts)} == names


def test_a_time_range_becomes_parquet(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "orders.parquet"
    records = corpus.visible(corpus.partition("01-plain"))
    since, until = 1_700_000_010_000, 1_700_000_012_000
    shutil.copytree(corpus.partition("01-plain").path, tmp_path / "data" / "orders-0")
    done = run("time_range_to_parquet", tmp_path / "data", "orders", since, until, out)
    asked = [record.offset for record in records if since <= record.timestamp < until]
    assert pq.read_table(out)["offset"].to_pylist() == asked
    assert f"{len(asked)} records" in done.stdout


def test_the_lag_of_groups_is_written(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "lag.csv"
    done = run("group_lag", out, DATA)
    with out.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    wanted = cw.consumer_offsets(DATA).to_arrow().select(["group", "topic", "partition", "lag"]).to_pylist()
    found = [(row["group"], row["topic"], int(row["partition"]), int(row["lag"])) for row in rows]
    assert sorted(found) == sorted(tuple(row.values()) for row in wanted)
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == sorted({row["group"] for row in wanted})


def test_jobs_are_done_once_and_those_that_are_left_by_the_next_run(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "jobs-0"
    assert run("job_queue", log, "a", "b").stdout.splitlines() == ["submitted 0 1", "done 0 a", "done 1 b"]
    with cw.LogWriter(log) as writer:
        writer.append("left")
    assert run("job_queue", log, "c").stdout.splitlines() == ["submitted 3", "done 2 left", "done 3 c"]
    assert run("job_queue", log).stdout.split() == ["submitted"]


def test_the_outbox_delivers_whole_orders_only(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "outbox-0"
    done = run("outbox", log, "1", "none", "2")
    texts = [line.split(maxsplit=2)[2] for line in done.stdout.splitlines()]
    assert texts == ["order 1 placed", "invoice of 7", "order 2 placed", "invoice of 14"]
    assert done.stderr.startswith("failed ")
    assert [line.split(maxsplit=2)[2] for line in run("outbox", log, "3").stdout.splitlines()] == [
        "order 3 placed",
        "invoice of 21",
    ]


def test_a_backup_is_verified_and_damaged_partitions_have_a_report(run: Run, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    shutil.copytree(corpus.GOLDEN / "damaged" / "flip-record" / "tickets-0", backup / "tickets-0")
    shutil.copytree(corpus.partition("01-plain").path, backup / "orders-0")
    done = run("verify_backup", backup, tmp_path, code=1)
    assert "damaged_batch: " in done.stdout
    assert "position 2126, offset 302" in done.stdout
    assert [path.name for path in tmp_path.glob("*.html")] == ["tickets-0.html"]
    shutil.rmtree(backup / "tickets-0")
    assert "0 errors" in run("verify_backup", backup, tmp_path).stdout
