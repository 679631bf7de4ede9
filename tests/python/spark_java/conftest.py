"""A Spark session with the jar of the data source in Java, which `make jar` builds."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import needs_pyspark  # noqa: F401
import pytest
from spark.conftest import OPTIONS, missing

HERE = Path(__file__).parent
PRELOAD = HERE.parent / "spark" / "preload"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("java")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two task slots. `format("cordwood")` is the source in Java, `format("cordwood_python")` that in Python."""
    if missing():
        assert "CI" not in os.environ, f"{missing()} are required in CI, and are not installed"
        pytest.skip(f"the tests with Spark need {' and '.join(missing())}")
    from pyspark.sql import SparkSession

    from cordwood.spark import jar
    from spark_java.python_source import PythonSource

    assert SparkSession.getActiveSession() is None, "expected no session without the jar: run these tests by -m java"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("PYTHONPATH", os.pathsep.join([str(PRELOAD), *(path for path in sys.path if path)]))
        builder = SparkSession.builder.master("local[2]").appName("cordwood tests")
        for key, value in OPTIONS.items():
            builder = builder.config(key, value)
        # the default of the first compiler, 48 MiB, is full after some hundred queries
        code = f"{OPTIONS['spark.driver.extraJavaOptions']} -XX:ReservedCodeCacheSize=256m"
        builder = builder.config("spark.driver.extraJavaOptions", code)
        builder = builder.config("spark.jars", jar())
        builder = builder.config("spark.sql.catalog.cordwood", "io.cordwood.spark.LogCatalog")
        builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        session = builder.getOrCreate()
        session.dataSource.register(PythonSource)
        yield session
        session.stop()
