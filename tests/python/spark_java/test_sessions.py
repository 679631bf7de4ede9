"""Ways to bring the source in Java into a session: its settings, `register`, spark-submit, spark-sql; and a cluster."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from spark.reading import DATA

from spark_java.sessions import (
    CLUSTER,
    COUNT,
    PROGRAMS,
    Results,
    bare_python,
    check_queries,
    check_registered,
    damaged,
    environment,
    modules,
    program,
    pyspark_alone,
    require,
    results,
    run,
    settings,
    spark_home,
)

pytestmark = [pytest.mark.spark]

MASTERS = ["local[2]", CLUSTER]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sessions")


@pytest.fixture(scope="module")
def jar() -> str:
    return require()


@pytest.fixture(scope="module")
def damage(folder: Path) -> tuple[Path, int]:
    return damaged(folder)


@pytest.fixture(scope="module", params=MASTERS)
def registered(request: pytest.FixtureRequest, folder: Path, jar: str, damage: tuple[Path, int]) -> Results:
    """An application that calls `register`."""
    assert jar
    own = folder / request.param
    return program(
        "registering.py", DATA, damage[0], "", settings(own, request.param), folder=own, env=environment(*modules())
    )


@pytest.mark.parametrize("master", MASTERS)
def test_with_the_jar_in_the_settings_no_python_module_is_needed(
    master: str, folder: Path, jar: str, damage: tuple[Path, int]
) -> None:
    own, python = folder / f"started {master}", bare_python(folder)
    env = environment(pyspark_alone(folder), *spark_home().glob("python/lib/py4j-*.zip"), python=python)
    found = program(
        "queries.py", DATA, damage[0], settings(own, master, spark_jars=jar), folder=own, env=env, python=python
    )
    check_queries(found, damage[1])


def test_without_a_jar_the_source_in_python_reads(registered: Results) -> None:
    assert registered["without the jar"] == ["Python", COUNT]


def test_without_a_jar_one_warning_is_logged(registered: Results) -> None:
    (warning,) = registered["warnings"]
    assert "none.jar" in warning
    assert "several times slower" in warning


def test_the_source_in_java_replaces_the_one_in_python(registered: Results) -> None:
    assert registered["after Python"] == ["JVM", COUNT]


def test_a_second_registration_changes_nothing(registered: Results) -> None:
    assert registered["twice"] == ["JVM", COUNT]
    assert registered["without the jar, registered before"] == ["JVM", COUNT]


def test_a_thread_that_calls_register_reads_and_writes(registered: Results) -> None:
    assert registered["thread"] == ["JVM", COUNT, 3]
    assert registered["all warnings"] == registered["warnings"]


def test_new_sessions_of_the_application_have_the_source(registered: Results) -> None:
    assert registered["new session"] == ["JVM", COUNT]
    assert registered["registered in a new session"] == ["JVM", COUNT]


def test_errors_and_streams_after_a_registration(registered: Results, damage: tuple[Path, int]) -> None:
    check_registered(registered, damage[1])
    assert registered["afterwards"] == ["JVM", COUNT]


@pytest.mark.parametrize("name", ["cordwood's.jar", "a place/half#1/100%/cordwood.jar"])
def test_the_path_of_the_jar_may_have_any_characters(name: str, tmp_path: Path, jar: str) -> None:
    other = tmp_path / name
    other.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(jar, other)
    found = program("registering.py", DATA, "", other, settings(tmp_path), folder=tmp_path, env=environment(*modules()))
    assert found["other jar"] == ["JVM", COUNT]
    assert found["warnings"] == []


def test_a_program_that_spark_submit_starts_needs_only_the_jar(
    folder: Path, jar: str, damage: tuple[Path, int]
) -> None:
    own, python = folder / "submitted", bare_python(folder)
    command = [spark_home() / "bin/spark-submit", "--master", CLUSTER, "--jars", jar, *flags(own)]
    done = run([*command, PROGRAMS / "queries.py", DATA, damage[0], "{}"], own, environment(python=python))
    check_queries(results(done), damage[1])


def test_spark_sql_reads_a_path(folder: Path, jar: str) -> None:
    """It has no Python."""
    own = folder / "sql"
    query = f"SELECT count(*) FROM cordwood.`{DATA}`"  # noqa: S608  (the test's own path)
    command = [spark_home() / "bin/spark-sql", "--master", "local[2]", "--jars", jar, *flags(own)]
    catalog = "spark.sql.catalog.cordwood=io.cordwood.spark.LogCatalog"
    done = run([*command, "--conf", catalog, "-e", query], own, environment())
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(COUNT)]


def flags(folder: Path) -> list[Any]:
    """The settings as options of spark-submit."""
    return [part for pair in json.loads(settings(folder, None)).items() for part in ("--conf", "=".join(pair))]
