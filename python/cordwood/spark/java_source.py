"""The registration of `format("cordwood")` in a session: the source in Java, or the one in Python."""

import atexit
import logging
import re
import shutil
import tempfile
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cordwood._core import __version__
from cordwood.spark.active_session import activate, is_remote
from cordwood.spark.errors import parse
from cordwood.spark.jar_file import jar

__all__ = ["register"]

_LOGGER = logging.getLogger("cordwood")
# evaluated in the driver, because the rows are constants
_VERSION = "SELECT java_method('io.cordwood.spark.LogDataSource', 'version') FROM VALUES (1)"

_warned: set[str] = set()
# the path of the jar that was added to an application
_added: WeakKeyDictionary[object, str] = WeakKeyDictionary()


def register(spark: SparkSession) -> None:
    """Register `format("cordwood")` in a session: the source in Java, otherwise the one in Python.

    Also register `format("cordwood_sink")`, which writes, if the version of PySpark and pyarrow allow it: the source in
    Java only reads.

    The jar is added to the session (`ADD JAR`, with Spark Connect `addArtifacts`). If that is not allowed, or this
    installation has no jar, the source in Python is registered, and a warning is logged once. Both have the same
    options, rows and error codes. The plan of a query tells which one reads: `explain()` prints `(JVM)` or `(Python)`.

    A session that was started with the jar (`spark.jars`, `--jars`) needs no registration. Each session of Spark
    Connect needs one. So does each thread, but for the one that called this first: Spark looks for the classes of an
    added jar, and for sinks in Python, only in what the thread has. The session is the thread's active one afterwards.

    Raises:
        SparkLogError: the driver cannot load the native library of the jar. The session cannot use the source in Python
            from then on.
    """
    failures = (PySparkException, Py4JJavaError)
    activate(spark)
    _register_sink(spark)
    try:
        _add(spark, jar())
        version = spark.sql(_VERSION).first()
    except (FileNotFoundError, *failures) as error:
        found = parse(error)
        if found is not None:
            raise found from error
        _register_python(spark, error)
        return
    if version is not None and version[0] != __version__:
        _warn_once(f"the Spark session has a jar of cordwood {version[0]}, and this is cordwood {__version__}")


def _add(spark: SparkSession, path: str) -> None:
    if is_remote(spark):
        spark.addArtifacts(path)
        return
    application = spark.sparkContext
    if application not in _added:
        if any(name.endswith("/cordwood-spark.jar") for (name,) in spark.sql("LIST JARS").collect()):
            # since the start: all threads have it
            return
        # Spark escapes other characters twice, and finds no file
        if re.search(r"[\s#%?]", path):
            directory = tempfile.mkdtemp()
            atexit.register(shutil.rmtree, directory, ignore_errors=True)
            path = shutil.copy(path, f"{directory}/cordwood-spark.jar")
        _added[application] = path
    quoted = _added[application].replace("\\", "\\\\").replace("'", "\\'")
    # also if the application has it: this thread finds its classes only afterwards
    spark.sql(f"ADD JAR '{quoted}'")


def _register_sink(spark: SparkSession) -> None:
    try:
        from cordwood.spark.source import SinkDataSource  # noqa: PLC0415  (as below)

        spark.dataSource.register(SinkDataSource)
    except (ImportError, PySparkException):
        # the source in Java needs neither pyarrow nor a PySpark with this API
        return


def _register_python(spark: SparkSession, reason: Exception) -> None:
    from cordwood.spark.source import LogDataSource  # noqa: PLC0415  (needs a newer Spark than the jar, and pyarrow)

    try:
        spark.dataSource.register(LogDataSource)
    except PySparkException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
        # the session was started with the jar
        return
    _warn_once(f"Spark reads logs by the source in Python, which is several times slower: {reason}")


def _warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        _LOGGER.warning("%s", text)
