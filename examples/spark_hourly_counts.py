"""Count the records of a topic by hour, with Spark, and write the counts as Parquet.

spark-submit examples/spark_hourly_counts.py DATA_DIRECTORY TOPIC OUTPUT

The package must be installed where Spark finds its Python: activate the environment, or set PYSPARK_PYTHON.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  (its usual name)

from cordwood.spark import register


def main(directory: str, topic: str, output: str) -> None:
    """Write the counts, and print them."""
    spark = SparkSession.builder.appName("hourly counts").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    register(spark)
    records = spark.read.format("cordwood").option("subscribe", topic).option("columns", "timestamp,partition")
    hours = (
        records.load(directory)
        .groupBy(F.date_trunc("hour", "timestamp").alias("hour"), "partition")
        .agg(F.count("*").alias("records"))
        .orderBy("hour", "partition")
    )
    hours.write.mode("overwrite").parquet(output)
    for row in spark.read.parquet(output).orderBy("hour", "partition").collect():
        print(f"{row.hour:%Y-%m-%dT%H:%MZ} partition {row.partition}: {row.records}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case [directory, topic, output]:
            main(directory, topic, output)
        case _:
            sys.exit(__doc__)
