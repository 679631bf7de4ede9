"""Spark integration: a data source and a sink for Kafka partition directories, UDFs, and jobs.

    from cordwood.spark import register
    register(spark)
    spark.read.format("cordwood").option("subscribe", "orders").load("/data")

It needs the extra `spark` (pyspark 4.2 or newer, pyarrow; pandas for the pandas UDFs) and a Java version that Spark
supports. The data source in Java, whose file `jar()` names, needs Spark 4.0 or newer.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import cordwood.spark.jobs as jobs  # noqa: PLR0402
    from cordwood.spark.decoding import decode_batches
    from cordwood.spark.jar_file import jar
    from cordwood.spark.java_source import register
    from cordwood.spark.source import LogDataSource
    from cordwood.spark.udf import locate, offset_for_time

__all__ = ["LogDataSource", "decode_batches", "jar", "jobs", "locate", "offset_for_time", "register"]

# planning, options and errors work without Spark, so the modules that need it are imported on first use
_WHERE = {
    "LogDataSource": "source",
    "decode_batches": "decoding",
    "jar": "jar_file",
    "jobs": "jobs",
    "locate": "udf",
    "offset_for_time": "udf",
    "register": "java_source",
}


def __dir__() -> list[str]:
    """List the public names, also those that are not imported yet."""
    return [*globals(), *__all__]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Import a name on first use. The error for a missing dependency says how to install it."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"cordwood.spark.{_WHERE[name]}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pyspark", "pyarrow", "pandas"):
            raise
        raise ImportError(
            f"cordwood.spark needs {error.name}: pip install 'cordwood[spark]'", name=error.name
        ) from error
    return module if name == _WHERE[name] else getattr(module, name)
