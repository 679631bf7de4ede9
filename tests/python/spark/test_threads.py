"""Writes from other threads than the one that started Spark."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import needs_pyspark  # noqa: F401
import pytest

from cordwood.spark import jar_file, jobs, register
from spark.reading import DATA, FAILURES
from spark.writing import texts

pytestmark = pytest.mark.python_source

T = TypeVar("T")


def in_a_thread(action: Callable[[], T]) -> T:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(action).result()


@pytest.fixture(autouse=True)
def without_jar(monkeypatch: pytest.MonkeyPatch) -> None:
    """The session must not get the source in Java, which later tests would use."""
    monkeypatch.setattr(jar_file, "_FILE", "jars/none.jar")


def write(spark: Any, root: Path, topic: str) -> list[str]:
    frame = spark.range(3).selectExpr("CAST(id AS STRING) AS value").coalesce(1)
    frame.write.format("cordwood_sink").mode("append").options(topic=topic).save(str(root))
    return texts(root / f"{topic}-0")


def stream(spark: Any, root: Path) -> int:
    rows = spark.readStream.format("cordwood").options(subscribe="cities", startingOffsets="earliest").load(str(DATA))
    writer = rows.select("value").writeStream.format("cordwood_sink").options(topic="streamed")
    query = writer.option("checkpointLocation", str(root / "checkpoint")).trigger(availableNow=True).start(str(root))
    query.awaitTermination()
    return len(texts(root / "streamed-0"))


def test_a_thread_that_calls_register_writes(spark: Any, root: Path) -> None:
    register(spark)
    assert write(spark, root, "main") == ["0", "1", "2"]
    # so that the sentence in the README is removed if Spark no longer needs it
    with pytest.raises(FAILURES, match="DATA_SOURCE_NOT_FOUND"):
        in_a_thread(lambda: write(spark, root, "refused"))

    def registered() -> tuple[list[str], int]:
        register(spark)
        return write(spark, root, "other"), stream(spark, root)

    count = spark.read.format("cordwood").option("subscribe", "cities").load(str(DATA)).count()
    assert in_a_thread(registered) == (["0", "1", "2"], count)


def test_jobs_need_no_registration_in_a_thread(spark: Any, root: Path) -> None:
    def copy() -> list[Any]:
        jobs.export(spark, DATA, root / "out", subscribe="cities")
        jobs.import_parquet(spark, root / "out", root / "data", dry_run=False)
        return jobs.count(spark, root / "data").collect()

    wanted = jobs.count(spark, DATA, subscribe="cities").collect()
    assert sorted(in_a_thread(copy)) == sorted(wanted)


def test_the_registered_session_is_the_active_one(spark: Any) -> None:
    def active() -> tuple[Any, Any]:
        before = spark.getActiveSession()
        register(spark)
        return before, spark.getActiveSession()

    before, after = in_a_thread(active)
    assert before is None
    assert after is spark
