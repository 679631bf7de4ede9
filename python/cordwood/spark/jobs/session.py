"""The session of a command: that of spark-submit, or a new one, without Spark's startup messages."""

import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO

from pyspark.sql import SparkSession

__all__ = ["session", "start"]

_GATEWAY = "PYSPARK_GATEWAY_PORT"

# messages of every start
_CHATTER = re.compile(
    rb"WARNING: Using incubator modules: jdk\.incubator\.vector"
    rb"|Using Spark's default log4j profile: .*"
    rb"|Setting default log level to .*"
    rb"|To adjust logging level use sc\.setLogLevel.*"
    rb"|Setting Spark log level to .*"
    rb"|.* WARN NativeCodeLoader: Unable to load native-hadoop library .*"
    rb"|.* WARN Utils: (?:Your hostname, .* resolves to a loopback address|Set SPARK_LOCAL_IP if you need) .*"
)


def start(name: str, master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start Spark, or use the session of `spark-submit`. The session's time zone is UTC.

    *settings* are Spark's own. The default of *master* is that of spark-submit or of Spark's settings, otherwise
    `local[*]`. A new session has no web page, and logs no errors: the exceptions contain them.
    """
    builder = SparkSession.builder.appName(name).config("spark.ui.showConsoleProgress", "false")
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    if master is not None:
        builder = builder.master(master)
    if _GATEWAY in os.environ:
        spark = builder.getOrCreate()
    else:
        if master is None or master.startswith("local"):
            # workers use this Python, not the `python3` of the path
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        with _chatter_left_out():
            spark = builder.config("spark.ui.enabled", "false").config("spark.log.level", "FATAL").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    return spark


@contextmanager
def session(job: str, master: str | None) -> Iterator[SparkSession]:
    """Run a command in a session, which is stopped after it."""
    spark = start(f"cordwood {job}", master)
    # Spark's own handler cancels jobs from within the waiting call; `stop` cancels them too, outside that
    # call
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def _chatter_left_out() -> Iterator[None]:
    """Filter the stderr of the processes that are started in the block: startup messages are dropped."""
    sys.stderr.flush()
    stderr = os.dup(2)
    read_end, write_end = os.pipe()
    os.dup2(write_end, 2)
    os.close(write_end)
    thread = threading.Thread(target=_copy_lines, args=(os.fdopen(read_end, "rb"), os.dup(stderr)), daemon=True)
    thread.start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(stderr, 2)
        os.close(stderr)


def _copy_lines(lines: BinaryIO, to: int) -> None:
    with lines, os.fdopen(to, "wb", buffering=0) as out:
        for line in lines:
            if not _CHATTER.fullmatch(line.rstrip(b"\r\n")):
                out.write(line)
