"""A small set of queries, in any version of Spark, without cordwood in Python.

Arguments: a data directory, a damaged one, settings. The session has the jar, by its settings or by spark-submit's.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

from pyspark.sql import DataFrame
from steps import language, load, plan, session, step, streamed

DATA, DAMAGED = sys.argv[1:3]
COLUMNS = ["topic", "partition", "offset", "unix_micros(timestamp)", "timestampType", "key", "value", "headers"]


def plain(value: Any) -> Any:
    """A value of a row as JSON has it."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.hex() if isinstance(value, bytes | bytearray) else value


def rows(frame: DataFrame) -> list[Any]:
    return [plain(row) for row in frame.collect()]


spark = session()
if "spark.log.level" not in sys.argv[-1]:
    spark.sparkContext.setLogLevel("OFF")
data = load(spark, DATA, includeHeaders=True)
step("version", lambda: spark.version)
jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
step("java", lambda: jvm.java.lang.Runtime.version().feature())
step("python", lambda: find_spec("cordwood") is not None)
step("language", lambda: language(data))
step("rows", lambda: rows(data.selectExpr(*COLUMNS)))
step("filtered", lambda: rows(data.where("topic = 'cities' AND partition = 1 AND offset >= 3").select("offset")))
step("counts", lambda: rows(data.groupBy("topic", "partition").count()))
extremes = data.selectExpr("count(*)", "min(offset)", "max(offset)")
step("extremes", lambda: rows(extremes))
step("extremes plan", lambda: plan(extremes))
step("limited", lambda: len(data.limit(5).collect()))


def table() -> list[Any]:
    spark.sql(f"CREATE TABLE logs USING cordwood OPTIONS (path '{DATA}', subscribe 'cities')")
    try:
        return rows(spark.sql("SELECT count(value) FROM logs"))
    finally:
        spark.sql("DROP TABLE logs")


def catalog() -> list[Any]:
    spark.conf.set("spark.sql.catalog.cordwood", "io.cordwood.spark.LogCatalog")
    return rows(spark.sql(f"SELECT count(value) FROM cordwood.`{DATA}`"))  # noqa: S608  (its own path)


step("table", table)
step("catalog", catalog)
step("streamed", lambda: streamed(spark, DATA, "streamed"))
step("missing", lambda: load(spark, f"{DATA}/none").count())
step("damaged", lambda: load(spark, DAMAGED).select("value").collect())
step("damaged stream", lambda: streamed(spark, DAMAGED, "damaged"))
step("afterwards", lambda: len(data.select("value").collect()))
spark.stop()
