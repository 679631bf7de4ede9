"""The active session of a thread, in which Spark looks for sources in Python when it writes."""

from pyspark.sql import SparkSession

__all__ = ["activate", "is_remote"]


def activate(spark: SparkSession) -> None:
    """Make a session the active one of the calling thread. Only the thread that started Spark has one by itself.

    With Spark Connect the server does this for each request.
    """
    if not is_remote(spark):
        # the public call that does so: PySpark has none for this alone
        spark.createDataFrame([], "value binary")


def is_remote(spark: SparkSession) -> bool:
    """Whether it is a session of Spark Connect, whose modules need packages that Spark itself does not."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")
