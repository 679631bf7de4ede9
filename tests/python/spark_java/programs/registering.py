"""Calls `cordwood.spark.register` in several situations, in one application.

Arguments: a data directory, a damaged one, another path of the jar, which is not needed, settings.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.sql import SparkSession
from steps import language, load, session, step, streamed

from cordwood.spark import errors, jar_file, register


class Collector(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def used(spark: SparkSession, data: str) -> list[Any]:
    """The language of the source, and the number of rows."""
    frame = load(spark, data)
    return [language(frame), len(frame.select("value").collect())]


def registered(spark: SparkSession, data: str, times: int = 1) -> list[Any]:
    for _ in range(times):
        register(spark)
    return used(spark, data)


def without_jar(spark: SparkSession, data: str) -> list[Any]:
    file, jar_file._FILE = jar_file._FILE, "jars/none.jar"  # noqa: SLF001
    try:
        return registered(spark, data, times=2)
    finally:
        jar_file._FILE = file  # noqa: SLF001


def with_other_jar(spark: SparkSession, data: str, jar: str) -> list[Any]:
    jar_file._FILE = jar  # noqa: SLF001
    return registered(spark, data)


def in_a_thread(action: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(action).result()


def written(spark: SparkSession, folder: str) -> int:
    """The number of records that a write has appended."""
    rows = spark.range(3).selectExpr("CAST(id AS STRING) AS value")
    rows.write.format("cordwood_sink").mode("append").options(topic="t").save(folder)
    return load(spark, folder).count()


def code(action: Callable[[], object]) -> list[Any] | None:
    """The code and the place of the error that the action raises."""
    try:
        action()
    except Exception as error:
        found = errors.parse(error)
        if found is None:
            raise
        return [found.code, found.topic, found.partition, found.segment, found.position]
    return None


def main(data: str, damaged: str, other_jar: str) -> None:
    collector = Collector()
    logging.getLogger("cordwood").addHandler(collector)
    spark = session()
    if other_jar:
        step("other jar", lambda: with_other_jar(spark, data, other_jar))
        step("warnings", lambda: collector.messages)
        return
    step("without the jar", lambda: without_jar(spark, data))
    step("warnings", lambda: collector.messages)
    step("after Python", lambda: registered(spark, data))
    step("twice", lambda: registered(spark, data, times=2))
    with tempfile.TemporaryDirectory() as folder:
        step("thread", lambda: in_a_thread(lambda: [*registered(spark, data), written(spark, folder)]))
    step("new session", lambda: used(spark.newSession(), data))
    other = spark.newSession()
    step("registered in a new session", lambda: registered(other, data))
    step("without the jar, registered before", lambda: without_jar(spark, data))
    step("streamed", lambda: streamed(other, data, "streamed"))
    step("missing", lambda: code(lambda: load(other, f"{data}/none").count()))
    step("damaged", lambda: code(lambda: load(other, damaged).select("value").collect()))
    step("damaged stream", lambda: code(lambda: streamed(other, damaged, "damaged")))
    step("afterwards", lambda: used(other, data))
    step("all warnings", lambda: collector.messages)


if __name__ == "__main__":
    main(*sys.argv[1:4])
