"""Driver programs in processes of their own, because each needs a JVM with other settings.

The programs are in `programs`. They print the results of their steps; the tests compare them with the corpus.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import corpus
import pytest
from spark.conftest import missing
from spark.reading import CITIES, DATA, PARTS, kafka_rows

from cordwood.spark import errors, jar

PROGRAMS = Path(__file__).with_name("programs")
MARK = "result: "
TIMEOUT = 300
CLUSTER = "local-cluster[2,1,1024]"
OPTIONS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "1g",
    "spark.log.level": "OFF",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
COUNT = sum(len(corpus.visible(part)) for part in PARTS.values())


@dataclass(frozen=True)
class Results:
    """The results of a program's steps, by name."""

    steps: dict[str, dict[str, Any]]
    output: str

    def __getitem__(self, name: str) -> Any:
        """The value of a step that must have succeeded."""
        assert name in self.steps, self.output
        assert "value" in self.steps[name], f"{name}: {self.steps[name]['error']}"
        return self.steps[name]["value"]

    def error(self, name: str) -> errors.SparkLogError:
        """The error of a step that must have failed with one of this source."""
        assert name in self.steps, self.output
        assert "error" in self.steps[name], f"{name}: {self.steps[name]}"
        found = errors.parse(self.steps[name]["error"])
        assert found is not None, self.steps[name]["error"]
        return found


def settings(folder: Path, master: str | None = "local[2]", **others: str) -> str:
    """The settings of a session, as the programs' last argument; a name's dots are underscores."""
    found = {**OPTIONS, "spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.local.dir": str(folder / "local")}
    if master is not None:
        found["spark.master"] = master
    return json.dumps({**found, **{name.replace("_", "."): value for name, value in others.items()}})


def environment(*paths: Path | str, python: Path | str = sys.executable, **others: str) -> dict[str, str]:
    """The environment of a program whose modules, but for installed ones, are in these paths."""
    theirs = ("PYSPARK", "SPARK", "PYTHON", "CORDWOOD")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(str(path) for path in paths),
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
        "SPARK_LOCAL_IP": "127.0.0.1",
        **others,
    }


def run(command: Sequence[Path | str], folder: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end, in this folder, where Spark may create files."""
    folder.mkdir(parents=True, exist_ok=True)
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


def results(done: subprocess.CompletedProcess[str]) -> Results:
    """What a program printed; it must have ended well."""
    output = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, output
    lines = [line.removeprefix(MARK) for line in done.stdout.splitlines() if line.startswith(MARK)]
    return Results(dict(json.loads(line) for line in lines), output)


def program(
    name: str, *arguments: Path | str, folder: Path, env: dict[str, str], python: Path | str = sys.executable
) -> Results:
    """Runs one of the programs with a Python."""
    return results(run([python, PROGRAMS / name, *arguments], folder, env))


def spark_home() -> Path:
    """The installed Spark."""
    import pyspark

    return Path(pyspark.__file__).parent


def modules() -> list[Path]:
    """Where the modules of cordwood and of the tests are, for programs that import them."""
    import cordwood

    return [Path(cordwood.__file__).parents[1], PROGRAMS.parents[1]]


def pyspark_alone(folder: Path) -> Path:
    """A folder with pyspark and no other package."""
    target = folder / "alone"
    target.mkdir(exist_ok=True)
    if not (target / "pyspark").exists():
        (target / "pyspark").symlink_to(spark_home())
    return target


@cache
def bare_python(folder: Path) -> Path:
    """A Python without any package, so without cordwood."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "bare")], check=True)
    return folder / "bare" / "bin" / "python"


def require() -> str:
    """The path of the jar; skips if something is missing, which in CI is a failure."""
    needed = missing()
    if needed:
        assert "CI" not in os.environ, f"{needed} are required in CI, and are not installed"
        pytest.skip(f"the tests with Spark need {' and '.join(needed)}")
    return jar()


def damaged(folder: Path) -> tuple[Path, int]:
    """A data directory whose partition cities-0 has a damaged batch in its middle, and the batch's position."""
    target = folder / "damaged"
    shutil.copytree(DATA, target, ignore=shutil.ignore_patterns("expected"))
    part = PARTS["cities-0"]
    batches = [batch for batch in corpus.batches(part) if batch["segment"] == part.bases[-1]]
    position = int(batches[len(batches) // 2]["position"])
    path = target / "cities-0" / f"{part.bases[-1]:020d}.log"
    raw = bytearray(path.read_bytes())
    raw[position + 70] ^= 1
    path.chmod(0o644)
    path.write_bytes(raw)
    return target, position


def check_queries(found: Results, position: int) -> None:
    """The results of `programs/queries.py`."""
    assert found["python"] is False
    assert found["language"] == "JVM"
    rows = [
        [topic, number, offset, time, kind, *map(hexed, (key, value)), headers and [[k, hexed(v)] for k, v in headers]]
        for part in PARTS.values()
        for topic, number, offset, time, kind, key, value, headers in kafka_rows(
            part,
            corpus.visible(part),
            ("topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers"),
        )
    ]
    assert sorted(found["rows"], key=place) == sorted(rows, key=place)
    cities = corpus.visible(PARTS["cities-1"])
    assert sorted(found["filtered"]) == [[r.offset] for r in cities if r.offset >= 3]
    counts = [[part.topic, part.number, len(corpus.visible(part))] for part in PARTS.values()]
    assert sorted(found["counts"]) == sorted(row for row in counts if row[2])
    offsets = [row[2] for row in rows]
    assert found["extremes"] == [[len(rows), min(offsets), max(offsets)]]
    assert "[count(*), min(offset), max(offset)]" in scan(found["extremes plan"]), found["extremes plan"]
    assert found["limited"] == 5
    assert found["table"] == [[sum(r.value is not None for part in CITIES for r in corpus.visible(part))]]
    assert found["catalog"] == [[sum(row[6] is not None for row in rows)]]
    assert found["streamed"] == len(rows)
    assert found.error("missing").code == "CORDWOOD_NOT_FOUND"
    for name in ("damaged", "damaged stream"):
        check_damage(found.error(name), position)
    assert found["afterwards"] == len(rows)


def check_damage(error: errors.SparkLogError, position: int) -> None:
    part = PARTS["cities-0"]
    place = (error.topic, error.partition, error.segment, error.position)
    assert (error.code, *place) == ("CORDWOOD_CORRUPT_BATCH", "cities", 0, part.bases[-1], position)


def scan(plan: str) -> str:
    """The scan in the physical plan."""
    return plan.partition("Physical Plan")[2].partition("(JVM)")[2].partition("\n")[0]


def hexed(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


def place(row: list[Any]) -> list[Any]:
    return row[:3]


def check_registered(found: Results, position: int) -> None:
    """The results that the programs with `register` have in common."""
    assert found["streamed"] == COUNT
    assert found["missing"] == ["CORDWOOD_NOT_FOUND", None, None, None, None]
    place = ["CORDWOOD_CORRUPT_BATCH", "cities", 0, PARTS["cities-0"].bases[-1], position]
    assert found["damaged"] == place
    assert found["damaged stream"] == place


@contextmanager
def tiny_disk(folder: Path, options: str) -> Iterator[Path]:
    """A file system in memory with these mount options; skips where it cannot be mounted."""
    folder.mkdir()
    done = run(
        ["/usr/bin/env", "mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], folder.parent, dict(os.environ)
    )
    if done.returncode:
        pytest.skip("mounts no disk here")
    try:
        yield folder
    finally:
        # the JVM of a program may end after the program
        for _ in range(100):
            done = run(["/usr/bin/env", "umount", folder], folder.parent, dict(os.environ))
            if done.returncode == 0:
                break
            time.sleep(0.2)
        assert done.returncode == 0, done.stderr
