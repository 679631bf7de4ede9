"""The path of a folder above a data directory: each command names the directory to give."""

from __future__ import annotations

import shutil
from pathlib import Path

import corpus
import pytest
from commands import outputs

COMMANDS = [
    ("ls",),
    ("cat",),
    ("count",),
    ("find", "--offset", 1),
    ("groups",),
    ("transactions",),
    ("metadata",),
    ("producers",),
    ("verify",),
    ("copy", "TO"),
    ("report", "-o", "PAGE"),
    ("spark-writes",),
]


@pytest.fixture
def above(tmp_path: Path) -> Path:
    path = tmp_path / "disk"
    shutil.copytree(corpus.GOLDEN / "16-data-dir", path / "kafka", ignore=lambda *_: ["expected"])
    return path


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_the_data_directory_in_a_folder_is_named(above: Path, tmp_path: Path, words: tuple[object, ...]) -> None:
    places = {"TO": tmp_path / "to", "PAGE": tmp_path / "page.html"}
    command, *rest = [places.get(str(word), word) for word in words]
    code, out, error = outputs(command, above, *rest)
    assert (code, out) == (2, "")
    expected = (
        f"path: expected a broker's data directory (its log.dirs), with its partitions, found {above}, which has none"
    )
    assert f"{expected} and whose folder {above / 'kafka'} is one: give the path of the folder" in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk"]


def test_a_partition_without_a_segment_is_no_folder_above_a_data_directory(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    code, _, error = outputs("cat", tmp_path / "orders-0")
    assert (code, "no log at" in error) == (1, True)
