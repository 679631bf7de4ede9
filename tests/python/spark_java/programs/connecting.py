"""Calls `cordwood.spark.register` in sessions of Spark Connect.

Arguments: a data directory, a damaged one, another path of the jar, the address of a server, its process.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  (its usual name)
from registering import code, registered, used, with_other_jar, without_jar
from steps import load, step, streamed

from cordwood.spark import register

DATA, DAMAGED, OTHER_JAR, ADDRESS, SERVER = sys.argv[1:6]


def extremes(spark: SparkSession) -> list[Any]:
    return list(load(spark, DATA).select(F.count("*"), F.min("offset"), F.max("offset")).collect()[0])


def open_logs() -> int:
    """The number of files of logs that the server has open."""
    found = 0
    for entry in Path(f"/proc/{SERVER}/fd").iterdir():
        with suppress(FileNotFoundError):
            found += entry.readlink().is_relative_to(DATA)
    return found


def in_sessions(number: int) -> list[int]:
    """The same after each of some sessions, which have ended."""
    found = []
    for _ in range(number):
        session = SparkSession.builder.remote(ADDRESS).create()
        register(session)
        assert load(session, DATA).select("value").toArrow().num_rows
        session.stop()
        found.append(open_logs())
    return found


spark = SparkSession.builder.remote(ADDRESS).create()
step("client", lambda: type(spark).__module__)
step("without the jar", lambda: without_jar(spark, DATA))
step("registered", lambda: registered(spark, DATA))
step("twice", lambda: registered(spark, DATA, times=2))
step("extremes", lambda: extremes(spark))
step("streamed", lambda: streamed(spark, DATA, "streamed"))
step("missing", lambda: code(lambda: load(spark, f"{DATA}/none").count()))
step("damaged", lambda: code(lambda: load(spark, DAMAGED).select("value").collect()))
step("damaged stream", lambda: code(lambda: streamed(spark, DAMAGED, "damaged")))
other = SparkSession.builder.remote(ADDRESS).create()
step("other session", lambda: used(other, DATA))
step("registered in the other session", lambda: registered(other, DATA))
other.stop()
step("after the other session", lambda: used(spark, DATA))
third = SparkSession.builder.remote(ADDRESS).create()
step("other jar", lambda: with_other_jar(third, DATA, OTHER_JAR))
third.stop()
step("open logs", lambda: in_sessions(6))
spark.stop()
