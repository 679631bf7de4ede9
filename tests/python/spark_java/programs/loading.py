"""Loads the native library with several directories, in one application.

Arguments: a data directory, the jar, directories by name as JSON, settings. The driver and the executor have class
loaders of their own, because the jar is added to the session, so each of them loads the library.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from steps import load, session, step

DATA, JAR, DIRECTORIES = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
GOOD = DIRECTORIES.pop("good")

spark = session()
spark.sql(f"ADD JAR '{JAR}'")
system: Any = spark.sparkContext._jvm.java.lang.System  # type: ignore[union-attr]  # noqa: SLF001


def plan(**properties: str) -> int:
    """Loads the library in the driver."""
    for name, value in properties.items():
        system.setProperty(name.replace("_", "."), value)
    return len(load(spark, DATA).columns)


def read(directory: str) -> int:
    """Loads the library in the executor."""
    system.setProperty("cordwood.library.dir", directory)
    return len(load(spark, DATA).select("value").collect())


temporary = system.getProperty("java.io.tmpdir")
for name, directory in DIRECTORIES.items():
    step(f"temporary directory: {name}", lambda directory=directory: plan(java_io_tmpdir=directory))  # type: ignore[misc]
system.setProperty("java.io.tmpdir", temporary)
for name, directory in DIRECTORIES.items():
    step(f"directory: {name}", lambda directory=directory: plan(cordwood_library_dir=directory))  # type: ignore[misc]
step("file", lambda: plan(cordwood_library_path=f"{GOOD}/none.so"))
system.clearProperty("cordwood.library.path")
step("directory: good", lambda: plan(cordwood_library_dir=GOOD))
for name, directory in DIRECTORIES.items():
    step(f"executor: {name}", lambda directory=directory: read(directory))  # type: ignore[misc]
step("executor: good", lambda: read(GOOD))
# it is loaded now
step("afterwards", lambda: read(next(iter(DIRECTORIES.values()))))
spark.stop()
