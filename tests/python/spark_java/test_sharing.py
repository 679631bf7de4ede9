"""The memory of a batch, which other threads read and which other operators of the task compete for."""

from __future__ import annotations

import pytest
from batches import write_big_partition

from cordwood.spark import jar
from spark_java.sessions import Results, environment, program, settings

BYTES = 200 << 20


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, int]:
    """The results of the program, and the number of records."""
    folder = tmp_path_factory.mktemp("sharing")
    rows = write_big_partition(folder / "big-0", BYTES)
    memory = {"spark_memory_offHeap_enabled": "true", "spark_memory_offHeap_size": "32m"}
    given = settings(folder, spark_jars=jar(), **memory)
    return program("sharing.py", folder / "big-0", given, folder=folder, env=environment()), rows


def test_a_task_may_end_while_another_thread_reads_its_batch(shared: tuple[Results, int]) -> None:
    """A read of freed memory ends the JVM, though not each time."""
    found, rows = shared
    assert found["stopped early"] == 20
    assert found["afterwards"] == rows


@pytest.mark.parametrize("size", ["default batches", "large batches"])
@pytest.mark.parametrize("operator", ["sorted", "grouped"])
def test_operators_that_spill_get_the_memory_that_is_charged(
    shared: tuple[Results, int], operator: str, size: str
) -> None:
    found, rows = shared
    assert found[f"{operator}: {size}"] == rows
