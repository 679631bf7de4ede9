"""The data source in Java: the jar in this package, and the sessions that it is added to."""

import logging
from importlib.resources import files

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cordwood.spark.errors import parse
from cordwood.spark.source import LogDataSource

__all__ = ["jar", "register"]

_LOGGER = logging.getLogger("cordwood")
_FILE = "jars/cordwood-spark.jar"
# evaluated in the driver, because the rows are constants
_VERSION = "SELECT java_method('io.cordwood.spark.LogDataSource', 'version') FROM VALUES (1)"

_warned = False


def jar() -> str:
    """Return the path of the jar with the data source in Java, for `spark.jars`, `--jars` and `addArtifacts`.

    The jar contains the native library for Linux on the processor that this package was built for.

    Raises:
        FileNotFoundError: this installation has no jar.
    """
    path = files("cordwood.spark").joinpath(_FILE)
    if not path.is_file():
        raise FileNotFoundError(
            f"expected {path}, which wheels of cordwood contain, found no such file: "
            "`make jar` in a checkout creates it (a JDK, Maven)"
        )
    return str(path)


def register(spark: SparkSession) -> None:
    """Register `format("cordwood")` in a session: the source in Java, otherwise the one in Python.

    The jar is added to the session (`ADD JAR`, with Spark Connect `addArtifacts`). If that is not allowed, or this
    installation has no jar, the source in Python is registered, and a warning is logged once. Both have the same
    options, rows and errors. The plan of a query tells which one reads: `explain()` prints `(JVM)` or `(Python)`.

    A session that was started with the jar (`spark.jars`, `--jars`) needs no registration.

    Raises:
        SparkLogError: the driver cannot load the native library of the jar.
    """
    try:
        _add(spark, jar())
    except (FileNotFoundError, PySparkException) as error:
        _register_python(spark, error)
        return
    try:
        spark.sql(_VERSION).collect()
    except PySparkException as error:
        found = parse(error)
        if found is None:
            raise
        raise found from error


def _add(spark: SparkSession, path: str) -> None:
    if _is_remote(spark):
        spark.addArtifacts(path)
    else:
        quoted = path.replace("\\", "\\\\").replace("'", "\\'")
        spark.sql(f"ADD JAR '{quoted}'")


def _is_remote(spark: SparkSession) -> bool:
    """Whether it is a session of Spark Connect, whose modules need packages that Spark itself does not."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def _register_python(spark: SparkSession, reason: Exception) -> None:
    global _warned  # noqa: PLW0603  (one warning a process)
    try:
        spark.dataSource.register(LogDataSource)
    except PySparkException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
        # the session was started with the jar
        return
    if not _warned:
        _warned = True
        _LOGGER.warning("Spark reads logs by the source in Python, which is several times slower: %s", reason)
