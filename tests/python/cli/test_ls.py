"""`cordwood ls`: sizes on disk, order, topics, and partitions in other states."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import corpus
import pytest
from scripts import Command

import cordwood as cw


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with partitions in every state, a damaged one and a new one."""
    path = tmp_path / "data"
    shutil.copytree(corpus.GOLDEN / "16-data-dir", path)
    shutil.copytree(path / "cities-0", path / "cities-2.5a1b2c3d4e5f60718293a4b5c6d7e8f9-delete")
    shutil.copytree(path / "cities-0", path / "rivers.compact-1.5a1b2c3d4e5f60718293a4b5c6d7e8f9-future")
    shutil.copytree(path / "cities-0", path / "lost-0")
    for file in (path / "lost-0").glob("*.log"):
        file.unlink()
    (path / "new-0").mkdir()
    kept = path / "cities-1" / "quarantine"
    kept.mkdir()
    (kept / "torn").write_bytes(b"x" * 500_000)
    with (path / "cities-1" / "00000000000000099999.index").open("wb") as file:
        file.truncate(10 << 20)
    os.utime(path / "cities-0" / "leader-epoch-checkpoint", (4_000_000_000, 4_000_000_000))
    return path


def listed(command: Command, path: Path, *options: str, code: int = 1) -> dict[str, Any]:
    found, out, _ = command("ls", path, "--json", *options)
    assert found == code
    return dict(json.loads(out))


def names(command: Command, path: Path, *options: str) -> list[str]:
    return [row["name"] for row in listed(command, path, *options)["partitions"]]


def test_all_files_are_counted_as_du_counts_them(command: Command, data: Path) -> None:
    document = listed(command, data)
    assert document["verified"] is False
    for row in document["partitions"]:
        files = [file for file in (data / row["name"]).rglob("*") if not file.is_dir()]
        assert row["files"] == len(files)
        assert row["file_bytes"] == sum(file.stat().st_size for file in files)
        du = subprocess.run(
            ["/usr/bin/du", "-B1", "-s", data / row["name"]], capture_output=True, text=True, check=True
        )
        folders = 1 + sum(file.is_dir() for file in (data / row["name"]).rglob("*"))
        # du counts the folders too
        assert 0 <= int(du.stdout.split()[0]) - row["disk_bytes"] <= folders * 8192
        assert row["modified"] == max((file.stat().st_mtime_ns // 1_000_000 for file in files), default=None)
    cities = next(row for row in document["partitions"] if row["name"] == "cities-1")
    assert cities["size"] == cw.Log(data / "cities-1").size < 500_000
    # an index with holes takes no space, and bytes in quarantine do
    assert cities["file_bytes"] > 10 << 20 > cities["disk_bytes"] > 500_000


def test_order(command: Command, data: Path) -> None:
    by_name = names(command, data)
    assert by_name == sorted(by_name)
    assert names(command, data, "-r") == by_name[::-1]
    by_size = listed(command, data, "--sort", "size")["partitions"]
    sizes = [row["disk_bytes"] for row in by_size]
    assert sizes == sorted(sizes, reverse=True)
    assert by_size[0]["name"] == "cities-1"
    assert names(command, data, "--sort", "time")[0] == "cities-0"
    assert names(command, data, "--sort", "time", "--reverse")[-1] == "cities-0"


def test_partitions_in_other_states_are_listed_with_all(command: Command, data: Path) -> None:
    others = listed(command, data, "--all")["partitions"]
    states = {row["state"]: row for row in others}
    assert set(states) == {"live", "delete", "future"}
    assert states["delete"]["topic"] == "cities"
    assert states["delete"]["log_end_offset"] == 268
    assert set(names(command, data)) == {row["name"] for row in others if row["state"] == "live"}


def test_topics_are_added_up(command: Command, data: Path) -> None:
    partitions = listed(command, data, "--all")["partitions"]
    topics = listed(command, data, "--all", "--by", "topic", "--sort", "size")["topics"]
    assert [topic["disk_bytes"] for topic in topics] == sorted((t["disk_bytes"] for t in topics), reverse=True)
    for topic in topics:
        of_topic = [row for row in partitions if row["topic"] == topic["topic"]]
        assert topic["partitions"] == len(of_topic)
        assert topic["disk_bytes"] == sum(row["disk_bytes"] for row in of_topic)
        assert topic["size"] == sum(row.get("size", 0) for row in of_topic)
    assert next(topic for topic in topics if topic["topic"] == "lost")["not_opened"] == ["lost-0"]


def test_tables_say_what_is_not_checked(command: Command, data: Path) -> None:
    code, out, error = command("ls", data, "--all", "--sort", "size")
    assert code == 1
    assert "1 of 10 partitions could not be opened: lost-0" in error
    lines = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert " unchecked" in lines["cities-0"]
    assert " not opened " in lines["lost-0"]
    assert "no segment yet" in lines["new-0"]
    assert f"contents are unchecked: cordwood verify {data} reads and checks them" in out
    code, out, _ = command("ls", data, "--by", "topic")
    assert "not opened: lost-0" in out
    code, out, _ = command("ls", data / "cities-0")
    assert code == 0
    assert f"contents are unchecked: cordwood verify {data}/cities-0 reads" in out


def test_segments_have_an_order_too(command: Command, data: Path) -> None:
    def bases(*options: str) -> list[int]:
        return [row["base_offset"] for row in listed(command, data / "cities-0", *options, code=0)["segments"]]

    assert bases() == [0, 197, 236]
    assert bases("--reverse") == [236, 197, 0]
    assert bases("--sort", "size") == [0, 197, 236]
    assert bases("--sort", "time") == [236, 197, 0]


def test_options_of_data_directories_are_refused_for_a_partition(command: Command, data: Path) -> None:
    for options in (["--all"], ["--by", "topic"]):
        code, out, error = command("ls", data / "cities-0", *options)
        assert (code, out) == (2, "")
        assert "are for data directories" in error


def test_the_list_of_segments_says_which_offsets_are_missing_between_them(command: Command, tmp_path: Path) -> None:
    path = Path(shutil.copytree(corpus.GOLDEN / "01-plain" / "orders-0", tmp_path / "orders-0"))
    bases = sorted(int(file.stem) for file in path.glob("*.log"))
    for file in path.glob(f"{bases[1]:020d}.*"):
        file.unlink()
    code, out, error = command("ls", path)
    assert code == 0, error
    assert f"no segment contains offsets {bases[1]} to {bases[2] - 1}: unless the log is compacted" in out
    assert json.loads(command("ls", path, "--json")[1])["missing"] == [
        {"start_offset": bases[1], "end_offset": bases[2]}
    ]


def test_the_list_of_partitions_notes_the_offsets_that_no_segment_has(command: Command, tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1"):
        shutil.copytree(corpus.GOLDEN / "01-plain" / "orders-0", tmp_path / name)
    bases = sorted(int(file.stem) for file in (tmp_path / "orders-0").glob("*.log"))
    for file in (tmp_path / "orders-0").glob(f"{bases[1]:020d}.*"):
        file.unlink()
    code, out, error = command("ls", tmp_path)
    assert (code, error) == (0, "")
    missing = f"no segment contains offsets {bases[1]} to {bases[2] - 1}"
    assert ["orders-0" in line for line in out.splitlines() if missing in line] == [True]
    found = {
        entry["name"]: entry["missing"] for entry in json.loads(command("ls", tmp_path, "--json")[1])["partitions"]
    }
    assert found == {"orders-0": [{"start_offset": bases[1], "end_offset": bases[2]}], "orders-1": []}


def test_offsets_that_compaction_removed_are_not_missing(command: Command) -> None:
    path = corpus.GOLDEN / "12-compacted" / "profiles-0"
    assert cw.Log(path).offset_gaps() != []
    assert json.loads(command("ls", path, "--json")[1])["missing"] == []


def test_every_damaged_partition_has_a_list_of_segments(command: Command) -> None:
    paths = [path for path in (corpus.GOLDEN / "damaged").glob("*/*-*") if any(path.glob("*.log"))]
    assert len(paths) > 20
    for path in paths:
        code, out, error = command("ls", path, "--json")
        assert code == 0, error
        assert json.loads(out)["segments"], path
