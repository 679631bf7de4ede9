"""The same queries in all versions of Spark that the jar supports, and with the newest JDK.

`CORDWOOD_SPARKS` has the directories of other versions, as pip's `--target` creates them, separated by colons; without
it they are those in the virtual environment. `CORDWOOD_NEWER_JAVA_HOME` is a newer JDK; without it the newest of the
machine.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from spark.reading import DATA

from spark_java.sessions import (
    Results,
    bare_python,
    check_queries,
    damaged,
    environment,
    program,
    pyspark_alone,
    require,
    settings,
)

pytestmark = [pytest.mark.spark]

INSTALLED = version("pyspark")
JDKS = Path("/usr/lib/jvm")


def others() -> dict[str, Path]:
    """The directories of other versions."""
    given = os.environ.get("CORDWOOD_SPARKS")
    folders = map(Path, given.split(os.pathsep)) if given else Path(sys.prefix).glob("spark-*/")
    installed = [path for folder in folders for path in folder.glob("pyspark-*.dist-info")]
    return {path.stem.removeprefix("pyspark-"): path.parent for path in installed}


OTHERS = others()


def feature_of(home: Path) -> int:
    """The feature version of a JDK, 0 for a directory without a JDK."""
    try:
        release = (home / "release").read_text(encoding="utf-8")
    except OSError:
        return 0
    found = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
    return int(found[1]) if found else 0


def used_jdk() -> Path | None:
    """The JDK of the other tests."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    return Path(java).resolve().parents[1] if java else None


def newer_jdk() -> Path:
    given = os.environ.get("CORDWOOD_NEWER_JAVA_HOME")
    homes = [Path(given)] if given else sorted(JDKS.glob("*/"), key=feature_of)
    used = used_jdk()
    if not homes or used is None or feature_of(homes[-1]) <= feature_of(used):
        pytest.skip("needs a JDK that is newer than the one of the other tests")
    return homes[-1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("versions")


@pytest.fixture(scope="module")
def damage(folder: Path) -> tuple[Path, int]:
    return damaged(folder)


def queried(spark: str, folder: Path, damage: tuple[Path, int], **others: str) -> Results:
    """The results of the queries in a version of Spark, in a Python without cordwood."""
    home, python = OTHERS.get(spark) or pyspark_alone(folder), bare_python(folder)
    env = environment(home, *home.glob("pyspark/python/lib/py4j-*.zip"), python=python, **others)
    own = folder / f"{spark} {len(others)}"
    given = settings(own, spark_jars=require())
    found = program("queries.py", DATA, damage[0], given, folder=own, env=env, python=python)
    assert found["version"] == spark
    return found


@pytest.mark.parametrize("spark", sorted(OTHERS))
def test_another_version_of_spark(spark: str, folder: Path, damage: tuple[Path, int]) -> None:
    check_queries(queried(spark, folder, damage), damage[1])


@pytest.mark.parametrize("spark", sorted(name for name in {*OTHERS, INSTALLED} if name[:3] not in {"4.0", "4.1"}))
def test_a_newer_jdk(spark: str, folder: Path, damage: tuple[Path, int]) -> None:
    """The Hadoop of Spark 4.0 and 4.1 needs a method that Java 25 does not have."""
    home = newer_jdk()
    found = queried(spark, folder, damage, JAVA_HOME=str(home))
    assert found["java"] == feature_of(home)
    check_queries(found, damage[1])


def test_another_version_is_installed() -> None:
    if not OTHERS:
        assert "CI" not in os.environ, "other versions of Spark are required in CI, and are not installed"
        pytest.skip("no other version of Spark is installed; `make java` installs them")
