"""Failures during a query: the error has a code, the JVM lives, and nothing stays open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from batches import write_big_partition
from spark.reading import DATA

from spark_java.sessions import (
    CLUSTER,
    COUNT,
    Results,
    check_damage,
    damaged,
    environment,
    program,
    require,
    settings,
    tiny_disk,
)

pytestmark = [pytest.mark.spark]

BIG_BYTES = 64 << 20
# the heap is resident from the start, so that only other memory can grow
FIXED_HEAP = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms512m -XX:+AlwaysPreTouch"
FAILING = {
    "spark.driver.extraJavaOptions": FIXED_HEAP,
    "spark.driver.memory": "512m",
    "spark.executor.heartbeatInterval": "100ms",
    "spark.memory.offHeap.enabled": "true",
    "spark.memory.offHeap.size": "256m",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
    "spark.unsafe.exceptionOnMemoryLeak": "true",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("failures")


@pytest.fixture(scope="module")
def rows(folder: Path) -> int:
    """The number of rows of the large log."""
    return write_big_partition(folder / "big-0", BIG_BYTES)


@pytest.fixture(scope="module")
def damage(folder: Path) -> tuple[Path, int]:
    return damaged(folder)


@pytest.fixture(scope="module")
def failing(folder: Path, rows: int, damage: tuple[Path, int]) -> Results:
    assert rows
    given = json.dumps({**json.loads(settings(folder, spark_jars=require())), **FAILING})
    return program("failing.py", DATA, damage[0], folder, given, folder=folder / "failing", env=environment())


def test_a_segment_that_is_shortened_during_a_query(failing: Results, rows: int) -> None:
    error = failing.error("shortened")
    assert (error.code, error.topic, error.partition, error.segment) == ("CORDWOOD_SEGMENT_GONE", "big", 0, 0)
    assert "changed while it was read" in error.reason
    assert failing["after shortened"] == [COUNT, rows]


def test_a_segment_that_is_deleted_during_a_query(failing: Results, rows: int) -> None:
    error = failing.error("deleted")
    assert (error.code, error.topic, error.partition) == ("CORDWOOD_SEGMENT_GONE", "big", 0)
    assert failing["after deleted"] == [COUNT, rows]


def test_a_damaged_batch(failing: Results, rows: int, damage: tuple[Path, int]) -> None:
    check_damage(failing.error("damaged"), damage[1])
    assert failing["after damaged"] == [COUNT, rows]


@pytest.mark.parametrize("name", ["all jobs cancelled", "group cancelled"])
def test_a_cancelled_query_ends(failing: Results, rows: int, name: str) -> None:
    assert "SPARK_JOB_CANCELLED" in failing.steps[name]["error"]
    assert failing["after cancelled"] == [COUNT, rows]


def test_the_memory_of_a_task_is_charged_to_spark(failing: Results) -> None:
    """Spark would fail a task that did not return it."""
    assert failing["charged"] >= 100 * 1000


def test_no_reader_stays_open(failing: Results) -> None:
    """A process keeps at most 64 logs open. A file of another one could only be open in a reader of an ended task."""
    assert [name for name, _ in failing["open files"] if not name.startswith("later-")] == []


def test_neither_open_files_nor_memory_grow_with_queries(failing: Results, rows: int) -> None:
    files, memory = zip(*failing["many"], strict=True)
    assert max(files[5:]) <= max(files[:5])
    # the code that Spark generates grows by less; a batch of each query would be more
    assert memory[-1] - memory[len(memory) // 2] < 48 << 10
    assert failing["after all"] == [COUNT, rows]


def test_a_killed_executor_is_replaced(folder: Path, rows: int) -> None:
    given = settings(folder, CLUSTER, spark_jars=require())
    found = program("killing.py", DATA, folder, given, folder=folder / "killing", env=environment())
    assert found["executors"] == 2
    assert found["killed"] == [rows, 1]
    assert found["afterwards"] == COUNT


@pytest.fixture(scope="module")
def loading(folder: Path) -> Results:
    """An application whose directories for the library cannot be used, but for one."""
    with tiny_disk(folder / "full", "size=64k") as full, tiny_disk(folder / "noexec", "noexec") as noexec:
        good = folder / "good"
        good.mkdir()
        directories = {"full": full, "noexec": noexec, "missing": folder / "missing", "good": good}
        texts = json.dumps({name: str(path) for name, path in directories.items()})
        found = program("loading.py", DATA, require(), texts, settings(folder), folder=folder, env=environment())
        for directory in (full, noexec, good):
            assert list(directory.iterdir()) == []
    return found


UNUSABLE = ["full", "noexec", "missing"]


@pytest.mark.parametrize("place", ["temporary directory", "directory", "executor"])
@pytest.mark.parametrize("name", UNUSABLE)
def test_a_directory_that_cannot_be_used_for_the_library(loading: Results, place: str, name: str, folder: Path) -> None:
    error = loading.error(f"{place}: {name}")
    assert error.code == "CORDWOOD_IO"
    assert "system property cordwood.library.dir" in error.reason
    assert str(folder / name) in error.reason


def test_a_library_file_that_does_not_exist(loading: Results) -> None:
    error = loading.error("file")
    assert error.code == "CORDWOOD_IO"
    assert "cordwood.library.path" in error.reason


def test_another_directory_for_the_library(loading: Results) -> None:
    assert loading["directory: good"] > 0
    assert loading["executor: good"] == COUNT


def test_a_library_is_loaded_once(loading: Results) -> None:
    assert loading["afterwards"] == COUNT
