"""What the driver programs have in common. It imports nothing but pyspark, which may be of any version."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

MARK = "result: "


def session() -> SparkSession:
    """The session with the settings that are the program's last argument."""
    builder = SparkSession.builder
    for key, value in json.loads(sys.argv[-1]).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def step(name: str, action: Callable[[], Any]) -> None:
    """Print the action's result, or its error, which ends no program."""
    try:
        found = {"value": action()}
    except Exception as error:  # noqa: BLE001  (the test judges it)
        found = {"error": text(error)}
    print(f"{MARK}{json.dumps([name, found])}", flush=True)


def text(error: BaseException) -> str:
    """All texts of an error: Spark keeps some apart from its message."""
    parameters = getattr(error, "getMessageParameters", None)
    found = parameters() if callable(parameters) else None
    return "\n".join([f"{type(error).__name__}: {error}", *(str(value) for value in (found or {}).values())])


def load(spark: SparkSession, *paths: Path | str, **options: Any) -> DataFrame:
    given = {name: str(value) for name, value in options.items()}
    return spark.read.format("cordwood").options(**given).load([str(path) for path in paths])


def plan(frame: DataFrame) -> str:
    """The text of `explain(True)`."""
    import contextlib
    import io

    with contextlib.redirect_stdout(io.StringIO()) as printed:
        frame.explain(True)
    return printed.getvalue()


def language(frame: DataFrame) -> str:
    """The language of the source that reads the frame, as `explain` tells it."""
    found = plan(frame)
    return "".join(name for name in ("JVM", "Python") if f"({name})" in found)


def streamed(spark: SparkSession, path: Path | str, name: str, **options: Any) -> int:
    """The number of rows of a stream that reads what there is."""
    given = {"startingOffsets": "earliest", **{key: str(value) for key, value in options.items()}}
    stream = spark.readStream.format("cordwood").options(**given).load(str(path))
    query = stream.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    query.awaitTermination(120)
    return spark.table(name).count()
