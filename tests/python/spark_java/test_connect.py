"""Sessions of Spark Connect: a server without the jar, to which `register` sends it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from spark.reading import DATA

from spark_java.sessions import (
    COUNT,
    Results,
    check_registered,
    damaged,
    environment,
    modules,
    program,
    require,
    settings,
    spark_home,
)

pytestmark = [pytest.mark.spark]

for needed in ("grpc", "grpc_status", "google.rpc", "zstandard"):
    if "CI" not in os.environ:
        pytest.importorskip(needed)


@pytest.fixture(scope="module")
def damage(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    return damaged(tmp_path_factory.mktemp("connect"))


@pytest.fixture(scope="module")
def connected(tmp_path_factory: pytest.TempPathFactory, damage: tuple[Path, int]) -> Results:
    """The results of a client with several sessions."""
    folder = tmp_path_factory.mktemp("client")
    jar = folder / "a place" / "cordwood's 1.jar"
    jar.parent.mkdir()
    shutil.copy(require(), jar)
    # packages that are on the path of this process are on that of the client
    env = environment(*modules(), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    with server(folder, env) as (address, process):
        return program("connecting.py", DATA, damage[0], jar, address, str(process), folder=folder, env=env)


@contextmanager
def server(folder: Path, env: dict[str, str]) -> Iterator[tuple[str, int]]:
    """A server on a free port; its address and its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = {
        **json.loads(settings(folder)),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    flags = [part for pair in given.items() for part in ("--conf", "=".join(pair))]
    command = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", *flags, "spark-internal"]
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            [str(spark_home() / "bin/spark-submit"), *command],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(port, process, folder / "server.log")
        yield f"sc://127.0.0.1:{port}", process.pid
        assert process.poll() is None, (folder / "server.log").read_text(encoding="utf-8")
    finally:
        process.terminate()
        process.wait(60)


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError(log.read_text(encoding="utf-8"))


def test_the_client_is_one_of_connect(connected: Results) -> None:
    assert connected["client"] == "pyspark.sql.connect.session"


def test_without_a_jar_the_source_in_python_reads(connected: Results) -> None:
    assert connected["without the jar"] == ["Python", COUNT]


def test_a_registration_sends_the_jar(connected: Results) -> None:
    assert connected["registered"] == ["JVM", COUNT]
    assert connected["twice"] == ["JVM", COUNT]


def test_aggregates_streams_and_errors(connected: Results, damage: tuple[Path, int]) -> None:
    assert connected["extremes"][0] == COUNT
    check_registered(connected, damage[1])


def test_each_session_is_registered_by_itself(connected: Results) -> None:
    """The server has a class loader, and so a copy of the native library, for each session."""
    assert connected["other session"][1] == COUNT
    assert connected["registered in the other session"] == ["JVM", COUNT]
    assert connected["after the other session"] == ["JVM", COUNT]


def test_the_path_of_the_jar_may_have_any_characters(connected: Results) -> None:
    assert connected["other jar"] == ["JVM", COUNT]


def test_sessions_that_have_ended_leave_no_file_open(connected: Results) -> None:
    opened = connected["open logs"]
    assert opened[-1] <= opened[0]
