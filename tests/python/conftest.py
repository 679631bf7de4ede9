"""Fixtures of the whole suite. The golden partitions themselves are described in `corpus.py`."""

from __future__ import annotations

import functools
import logging
import os
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

try:
    from hypothesis import HealthCheck, settings
except ImportError:  # the property tests import it themselves
    pass
else:
    settings.register_profile(
        "cordwood",
        derandomize=True,
        deadline=None,
        max_examples=60,
        print_blob=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    settings.load_profile("cordwood")

from batches import write_big_partition
from scripts import Command

Copied = Callable[..., Path]

ROOT = Path(__file__).parents[2]
BIG_BYTES = 512 << 20


@functools.cache
def group_of(file: str) -> str:
    """The group of a test file: one for all that use the fixture `spark`, so that one JVM is started.

    The controlling process does not import the tests, so it does not know their fixtures.
    """
    text = (ROOT / file).read_text(encoding="utf-8")
    return "spark" if re.search(r'\bspark: (Any|SparkSession)\b|usefixtures\("spark"\)', text) else file


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests with Kafka's classes, and run those with Spark first, because they take longest."""
    for item in items:
        if item.path.parent.name == "interop":
            item.add_marker("interop")
    items.sort(key=lambda item: group_of(item.nodeid.partition("::")[0]) != "spark")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give the tests of a group to one process of pytest-xdist.

    `--dist loadgroup` has no effect: pytest-xdist 3.8 stores the group in an attribute that pytest 9.2 does not read.
    """
    from xdist.scheduler import LoadScopeScheduling

    class GroupScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid.partition("::")[0])

    return GroupScheduling(config, log)


@pytest.fixture
def copied(tmp_path: Path) -> Copied:
    """Copies a partition directory, writable, into a new folder, and returns the copy's path.

    The folder contains nothing else: the data directory's checkpoints, such as the log start offset, are copied only if
    `beside` names them.
    """

    def copy(source: Path, beside: tuple[str, ...] = (), under: str = "data") -> Path:
        target = tmp_path / under / source.name
        shutil.copytree(source, target)
        for name in beside:
            shutil.copy(source.parent / name, target.parent / name)
        for path in [target, *target.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        return target

    return copy


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """Runs a command in this process, with nothing on its standard input."""

    from cordwood.cli import main

    def run(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        yield run


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    """All log messages and warnings so far."""
    caplog.set_level(logging.WARNING)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        yield lambda: [r.getMessage() for r in caplog.records] + [str(w.message) for w in warned]


@pytest.fixture(scope="session")
def big_partition(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """512 MiB of generated uncompressed batches in two segments without indexes."""
    path = tmp_path_factory.mktemp("big") / "big-0"
    write_big_partition(path, BIG_BYTES)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def script_environment() -> dict[str, str]:
    """The environment of scripts that tests start: the same modules, without the user's Python settings."""
    kept = {k: v for k, v in os.environ.items() if k not in {"PYTHONWARNINGS", "PYTHONSTARTUP"}}
    paths = [p for p in sys.path if p]
    return {**kept, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
