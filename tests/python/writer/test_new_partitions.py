"""A new partition in the data directory of a broker: a warning if the cluster does not know it.

What a broker does with it is compared with the plan of its start.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest
from commands import outputs

import cordwood as cw
from cordwood._core import _directory_fates

GOLDEN = Path(__file__).resolve().parents[2] / "golden/16-data-dir"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN, tmp_path / "data", ignore=lambda *_: ["expected"]))


def remove_cities(data: Path) -> None:
    """Remove a partition, and what shows that it had records."""
    shutil.rmtree(data / "cities-0")
    for checkpoint in data.glob("*-checkpoint"):
        checkpoint.unlink()


def warnings(path: Path, caplog: pytest.LogCaptureFixture, **options: str) -> list[str]:
    caplog.clear()
    with cw.LogWriter(path, topic_id=options.get("topic_id")) as writer:
        writer.append(b"x")
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def fate(path: Path) -> str:
    return next(fate for name, fate, *_ in _directory_fates(path.parent, [path.parent], None) if name == path.name)


def topic_id(name: str) -> str:
    metadata = (GOLDEN / name / "partition.metadata").read_text(encoding="utf-8")
    return metadata.split("topic_id: ")[1].strip()


def test_a_partition_of_an_unknown_topic_is_a_warning_once(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = data / "fresh-0"
    (warning,) = warnings(path, caplog)
    assert warning.startswith(f"{path}: a broker that starts with this data directory renames this partition to -stray")
    assert "found topic fresh, which is not there" in warning
    assert fate(path) == "stray"
    assert warnings(path, caplog) == []


def test_a_partition_without_the_id_of_its_topic_is_a_warning_with_the_id(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    remove_cities(data)
    (warning,) = warnings(data / "cities-0", caplog)
    assert f"topic id {topic_id('cities-0')}, which topic cities has" in warning
    assert fate(data / "cities-0") == "stray"


def test_a_partition_that_the_cluster_has_here_is_no_warning(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    remove_cities(data)
    assert warnings(data / "cities-0", caplog, topic_id=topic_id("cities-0")) == []
    assert fate(data / "cities-0") == "kept"


def test_a_partition_number_that_the_topic_does_not_have_is_a_warning(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (warning,) = warnings(data / "cities-7", caplog, topic_id=topic_id("cities-0"))
    assert "partition 7, which is not there" in warning


def test_without_metadata_nothing_is_known(data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shutil.rmtree(data / "__cluster_metadata-0")
    assert warnings(data / "fresh-0", caplog) == []
    assert warnings(tmp_path / "orders-0", caplog) == []


def test_append_warns_on_stderr(data: Path) -> None:
    pytest.importorskip("typer")
    code, out, err = outputs("append", data / "fresh-0", given=b"line\n")
    assert code == 0
    assert "appended 1 record" in out
    assert "warning: " in err
    assert "-stray" in err
