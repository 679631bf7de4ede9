"""`verify --as-kafka` of several data directories: which of them a broker starts with."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from interop.broken_directories import METADATA, another_of_broker, copy_whole
from scripts import Command

import cordwood as cw
from cli.start_verdicts import verdicts


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return copy_whole(tmp_path / "data")


def test_a_partition_in_two_data_directories_of_a_broker_stops_it(command: Command, data: Path, tmp_path: Path) -> None:
    other = another_of_broker(data, tmp_path / "other")
    shutil.copytree(data / "cities-1", other / "cities-1")
    code, _, summaries = verdicts(command, data, other)
    assert code == 1
    assert [summary["starts"] for summary in summaries] == [False, False]
    found = [found.file for found in cw.verify([data, other]).findings if found.code == "duplicate_directory"]
    assert found == [str(data / "cities-1"), str(other / "cities-1")]
    shutil.rmtree(other / "cities-1")
    assert verdicts(command, data, other)[0] == 0
    shutil.copytree(data / METADATA, other / METADATA)
    assert [summary["starts"] for summary in verdicts(command, data, other)[2]] == [False, False]
    # replicas of two brokers
    shutil.copytree(data / "cities-1", other / "cities-1")
    text = (other / "meta.properties").read_text()
    (other / "meta.properties").write_text(text.replace("node.id=1", "node.id=2"))
    assert not [found for found in cw.verify([data, other]).findings if found.code == "duplicate_directory"]


def test_a_copy_of_meta_properties_stops_the_broker(command: Command, data: Path, tmp_path: Path) -> None:
    """As after a copy of a disk: a broker ends with "Duplicate directory ID"."""
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(data / "meta.properties", other)
    code, _, summaries = verdicts(command, data, other)
    assert (code, [summary["starts"] for summary in summaries]) == (1, [False, False])
    assert {reason["file"] for summary in summaries for reason in summary["reasons"]} == {
        str(data / "meta.properties"),
        str(other / "meta.properties"),
    }


@pytest.mark.parametrize(
    ("file", "starts"), [("backup/x", False), ("cities-1/notes.log", False), ("recovery-point-offset-checkpoint", True)]
)
def test_what_ends_a_broker_in_one_of_its_data_directories_ends_it_in_all(
    command: Command, data: Path, tmp_path: Path, file: str, starts: bool
) -> None:
    """A data directory with a checkpoint that cannot be read is offline, and the broker starts with the others."""
    other = another_of_broker(data, tmp_path / "other")
    (data / "cities-1").rename(other / "cities-1")
    (other / file).parent.mkdir(exist_ok=True)
    (other / file).write_bytes(bytes(20))
    code, _, summaries = verdicts(command, data, other)
    assert code == 1
    assert [summary["starts"] for summary in summaries] == [starts, False]
    assert [summary["is_left_out"] for summary in summaries] == [False, starts]
    shown = command("verify", data, other, "--as-kafka", "-q")[1]
    assert shown.count("serves none of its partitions") == starts
    assert shown.count("with these data directories does not start") == (0 if starts else 2)
    assert shown.count("with these data directories starts without this one") == starts
    assert shown.count(f"{other / file.removesuffix('/x')}: expected") + shown.count(f"{other / file}: ") >= 1


@pytest.mark.parametrize(
    "properties",
    [
        "version=1\nnode.id=2\n",
        "version=1\nnode.id=1\ncluster.id=x\n",
        "version=1\nnode.id=2\ncluster.id=x\n",
        "version=0\nbroker.id=1\ncluster.id=x\n",
    ],
)
def test_directories_of_two_brokers_have_a_verdict_each_and_no_broker_starts_with_both(
    command: Command, data: Path, tmp_path: Path, properties: str
) -> None:
    """A broker with both ends with "Stored node id 2 doesn't match previous node id 1" or "Invalid cluster.id"."""
    other = another_of_broker(data, tmp_path / "other")
    said = "not all of one broker: no broker starts with all of them"
    assert said not in command("verify", data, other, "--as-kafka", "-q")[2]
    cluster = "" if "cluster.id" in properties else "cluster.id=Q29yZHdvb2RDb3JwdXMwMQ\n"
    (other / "meta.properties").write_text(properties + cluster)
    code, shown, error = command("verify", data, other, "--as-kafka", "-q")
    assert (code, shown.count("with this data directory alone starts")) == (1, 2)
    assert said in error
    _, _, summaries = verdicts(command, data, other)
    assert [(summary["starts"], summary["other_directories"]) for summary in summaries] == [(True, [])] * 2
    assert all(command("verify", path, "--as-kafka")[0] == 0 for path in (data, other))


@pytest.mark.parametrize(
    ("properties", "starts"),
    [
        ("version=1\ncluster.id=x\n", True),
        ("version=1\nnode.id=2\n", True),
        ("version=2\nnode.id=2\ncluster.id=x\n", True),
        ("", False),
        ("version=0\ncluster.id=Q29yZHdvb2RDb3JwdXMwMQ\n", False),
    ],
)
def test_a_directory_whose_ids_cannot_be_loaded_is_offline_and_one_without_ids_ends_every_broker(
    command: Command, data: Path, tmp_path: Path, properties: str, starts: bool
) -> None:
    other = another_of_broker(data, tmp_path / "other")
    (other / "meta.properties").write_text(properties)
    # a broker looks at nothing in a directory that is offline
    (other / "backup").mkdir()
    code, _, summaries = verdicts(command, data, other)
    assert (code, [summary["starts"] for summary in summaries]) == (1, [starts, False])
    _, shown, error = command("verify", data, other, "--as-kafka", "-q")
    assert not error
    assert shown.count("with these data directories starts without this one") == starts
    # of three brokers, too
    third = another_of_broker(data, tmp_path / "third")
    text = (third / "meta.properties").read_text()
    (third / "meta.properties").write_text(text.replace("node.id=1", "node.id=2"))
    code, _, summaries = verdicts(command, data, other, third)
    assert [summary["starts"] for summary in summaries] == [starts, False, starts]
    assert summaries[1]["other_directories"] == [str(data), str(third)]
    # with no other directory
    assert "with this data directory alone does not start" in command("verify", other, "--as-kafka", "-q")[1]
