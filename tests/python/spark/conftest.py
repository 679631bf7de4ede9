"""One Spark session for the whole run, and the corpus as one data directory."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import corpus
import pytest
from corpus import Partition

from spark.reading import in_java

OPTIONS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.log.level": "OFF",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def missing() -> list[str]:
    """Requirements that are not installed."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    return [
        *(module for module in ("pyspark", "pyarrow", "pandas") if importlib.util.find_spec(module) is None),
        *([] if java else ["java"]),
    ]


def _no_jar() -> str:
    raise FileNotFoundError("these tests use the source in Python")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two task slots in this process's own JVM, with the source registered."""
    if missing():
        assert "CI" not in os.environ, f"{missing()} are required in CI, and are not installed"
        pytest.skip(f"the tests with Spark need {' and '.join(missing())}")
    from pyspark.sql import SparkSession

    from cordwood.spark import LogDataSource

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        preload = str(Path(__file__).with_name("preload"))
        patch.setenv("PYTHONPATH", os.pathsep.join([preload, *(p for p in sys.path if p)]))
        builder = SparkSession.builder.master("local[2]").appName("cordwood tests")
        for key, value in OPTIONS.items():
            builder = builder.config(key, value)
        if in_java():
            from cordwood.spark import jar

            builder = builder.config("spark.jars", jar())
        builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        session = builder.getOrCreate()
        if not in_java():
            # a test that registers the source would add the jar to the session of all, if there is one
            patch.setattr("cordwood.spark.java_source.jar", _no_jar)
            session.dataSource.register(LogDataSource)
        yield session
        session.stop()


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Partition]]:
    """Every intact partition of the corpus in one data directory, under `<case>.<topic>-<partition>`."""
    folder = tmp_path_factory.mktemp("everything")
    parts = [replace(part, name=f"{part.case}.{part.name}") for part in corpus.partitions()]
    starts = []
    for part in parts:
        shutil.copytree(part.path, folder / part.name)
        if part.checkpointed_start is not None:
            starts.append(f"{part.topic} {part.number} {part.checkpointed_start}\n")
    (folder / "log-start-offset-checkpoint").write_text(f"0\n{len(starts)}\n{''.join(starts)}")
    return folder, parts


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A directory for logs that are written, in memory if possible: there a flush takes no time."""
    memory = Path("/dev/shm")  # noqa: S108  (the directory in it is private)
    parent = memory if os.access(memory, os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(prefix="cordwood-", dir=parent) as folder:
        yield Path(folder)


@pytest.fixture(autouse=True)
def session_of_java(request: pytest.FixtureRequest) -> None:
    """The source in Java needs a session in every test."""
    if in_java():
        request.getfixturevalue("spark")
