"""No command writes in the metadata log of a cluster."""

from __future__ import annotations

import shutil
from pathlib import Path

import commands
import corpus
import pytest


@pytest.mark.parametrize(
    "arguments",
    [
        ("append",),
        ("truncate", "--to", "90", "--yes"),
        ("apply-retention", "--set", "cleanup.policy=delete", "--set", "retention.ms=1", "--yes"),
        ("compact", "--set", "cleanup.policy=compact", "--yes"),
        ("recover", "--yes"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_nothing_writes_in_the_metadata_of_a_cluster(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    name = "__cluster_metadata-0"
    path = Path(shutil.copytree(corpus.GOLDEN / "16-data-dir" / name, tmp_path / name))
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    done = commands.cordwood(arguments[0], path, *arguments[1:], given=b"record\n")
    assert done.returncode == 1
    assert "the controllers of the cluster write its metadata" in done.stderr.decode()
    after = {file.name: file.read_bytes() for file in path.iterdir() if file.name != ".cordwood.lock"}
    assert after == before
