"""Lets Spark find `format("cordwood")` by itself: it looks through the modules named `pyspark_*`.

Every such module is imported then, and one that is broken hides all of them; `cordwood.spark.register(spark)` depends
on none of the others.
"""

from cordwood.spark.source import LogDataSource

__all__ = ["DefaultSource"]

DefaultSource = LogDataSource
