"""The Spark part of the demo: the same partitions as DataFrames, UDFs and a job, in a local Spark of two slots."""

import importlib.util
import logging
import os
import shutil

import cordwood as cw
from demo_steps import GOLDEN, ROOT, expect, step

ORDERS = str(GOLDEN / "01-plain" / "orders-0")
DATA_DIR = str(GOLDEN / "16-data-dir")
LAKE = ROOT / "target" / "demo" / "lake"

SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    # the process is short-lived: skip the second compiler
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
}


def missing() -> list[str]:
    modules = [name for name in ("pyspark", "pyarrow") if importlib.util.find_spec(name) is None]
    java = shutil.which("java", path=f"{os.environ.get('JAVA_HOME', '')}/bin:{os.environ.get('PATH', '')}")
    return [*modules, *([] if java else ["java"])]


def main() -> None:
    if missing():
        print(f"\nThe part with Spark is skipped: it needs {' and '.join(missing())}.")
        return
    from pyspark.sql import functions as F  # noqa: N812

    from cordwood.spark import jobs, locate, register
    from cordwood.spark.jobs.session import start

    # planning warns of records hidden by a checkpoint, which the first step of the demo has shown
    logging.getLogger("cordwood").setLevel(logging.ERROR)
    with step("Start Spark, and register the source") as say:
        spark = start("cordwood demo", "local[2]", SETTINGS)
        register(spark)
        query = spark.read.format("cordwood").load(ORDERS)._jdf.queryExecution()  # noqa: SLF001  (the only way to it)
        plan = query.executedPlan().toString()
        say(f"Spark {spark.version}, the source in {'Java' if '(JVM)' in plan else 'Python'}")
    with step("Spark: read a broker's data directory") as say:
        rows = spark.read.format("cordwood").load(DATA_DIR).select("topic", "partition", "offset")
        counts = rows.groupBy("topic", "partition").count().orderBy("topic", "partition").collect()
        say(", ".join(f"{row['topic']}-{row['partition']}: {row['count']}" for row in counts))
        expect("records by partition", [row["count"] for row in counts], [97, 34, 11, 265, 119, 27])
    with step("Spark: sum up a range of time") as say:
        orders = (
            spark.read.format("cordwood")
            .option("startingTimestamp", 1_700_000_010_000)
            .option("endingTimestamp", 1_700_000_012_000)
            .load(ORDERS)
        )
        seconds = orders.groupBy(F.date_trunc("second", "timestamp").alias("second")).agg(
            F.count("*").alias("records"), F.sum(F.length("value")).alias("size")
        )
        found = seconds.orderBy("second").select(F.date_format("second", "HH:mm:ss").alias("at"), "records", "size")
        for row in found.collect():
            say(f"{row['at']}Z: {row['records']} orders, {row['size']} bytes of values")
        expect("orders in two seconds", seconds.agg(F.sum("records")).first()[0], 102)
    with step("Spark: look a million offsets up") as say:
        where = locate(ORDERS, kind="arrow", iterator=True)
        looked_up = spark.range(1_000_000).select(where(F.col("id") % 1600).alias("at"))
        totals = looked_up.agg(F.count("at"), F.countDistinct("at.segment_base_offset", "at.batch_base_offset")).first()
        say(f"{totals[0]} found, in {totals[1]} batches; {1_000_000 - totals[0]} are above the log end")
        expect("found, batches", tuple(totals), (937_500, cw.Log(ORDERS).batches().to_arrow().num_rows))
    with step("Spark: export to Parquet by topic and date, and again") as say:
        shutil.rmtree(LAKE, ignore_errors=True)
        done = jobs.export(spark, DATA_DIR, LAKE)
        say(f"{LAKE.relative_to(ROOT)}: {done.rows} rows in {done.files} files; the log's own counts are the same")
        expect("rows", done.rows, 553)
        again = jobs.export(spark, DATA_DIR, LAKE)
        say(f"started again: {again.ranges} ranges exported, {again.skipped} were there")
        expect("ranges exported again", (again.ranges, again.rows), (0, 553))
    spark.stop()


if __name__ == "__main__":
    main()
