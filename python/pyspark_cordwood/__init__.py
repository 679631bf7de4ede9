"""Registers `format("cordwood")` in Spark, which imports all modules named `pyspark_*`.

If one of these modules fails to import, Spark registers none of them. `cordwood.spark.register(spark)` does not depend
on the other modules.
"""

from cordwood.spark.source import LogDataSource

__all__ = ["DefaultSource"]

DefaultSource = LogDataSource
