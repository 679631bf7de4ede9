"""`classify` of files that Kafka wrote, by their names."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import corpus
import pytest

import cordwood as cw
from cordwood._core import _has_segments, _partition_parts

KINDS = {
    ".log": "log",
    ".index": "offset_index",
    ".timeindex": "time_index",
    ".txnindex": "transaction_index",
    ".snapshot": "producer_snapshot",
}
NAMES = {
    "leader-epoch-checkpoint": "leader_epoch_checkpoint",
    "partition.metadata": "partition_metadata",
    "recovery-point-offset-checkpoint": "offset_checkpoint",
    "log-start-offset-checkpoint": "offset_checkpoint",
    "replication-offset-checkpoint": "offset_checkpoint",
    "cleaner-offset-checkpoint": "offset_checkpoint",
    "meta.properties": "meta_properties",
}
FILES = sorted(path for path in corpus.GOLDEN.glob("*/*/*") if path.is_file())


def test_every_file_of_a_golden_partition_is_named() -> None:
    seen = set()
    for path in FILES:
        info = cw.classify(path)
        named = re.fullmatch(r"(.+)-(\d+)", path.parent.name)
        segment = re.fullmatch(r"(\d{20})(\.[a-z]+)(?:\.(swap|cleaned|deleted))?", path.name)
        if segment:
            assert info.kind == KINDS[segment[2]], path
            assert (info.base_offset, info.state) == (int(segment[1]), segment[3] or "live"), path
        else:
            assert info.kind == NAMES.get(path.name, "other"), path
            assert (info.base_offset, info.state) == (None, None), path
        if info.kind not in {"other", "offset_checkpoint", "meta_properties"}:
            expected = (named[1], int(named[2])) if named else (None, None)
            assert (info.topic, info.partition) == expected, path
        seen.add(info.kind)
    assert seen >= set(KINDS.values()) - {"transaction_index"}


def test_directories_are_classified_by_their_files(tmp_path: Path) -> None:
    data = corpus.GOLDEN / "16-data-dir"
    assert repr(cw.classify(data)) == (
        "PathInfo(kind='data_directory', topic=None, partition=None, base_offset=None, state=None)"
    )
    copy = tmp_path / "logs-3"
    shutil.copytree(data / "cities-0", copy / "cities-0")
    assert cw.classify(copy).kind == "data_directory"
    partition = cw.classify(copy / "cities-0")
    assert (partition.kind, partition.topic, partition.partition, partition.state) == ("partition", "cities", 0, "live")
    unnamed = tmp_path / "backup"
    shutil.copytree(data / "cities-0", unnamed)
    assert (cw.classify(unnamed).kind, cw.classify(unnamed).topic) == ("partition", None)
    deleted = (copy / "cities-0").rename(copy / "cities-0.0123-delete")
    assert (cw.classify(deleted).topic, cw.classify(deleted).state) == ("cities", "delete")
    for name in ("empty", "orders-0", "orders-1/src"):
        (tmp_path / name).mkdir(parents=True)
    assert {cw.classify(tmp_path / name).kind for name in ("empty", "orders-0", "orders-1")} == {"other"}
    # a new partition in a broker's data directory is empty
    (tmp_path / "meta.properties").touch()
    assert cw.classify(tmp_path / "orders-0").kind == "partition"
    with pytest.raises(cw.LogNotFoundError):
        cw.classify(tmp_path / "missing")


@pytest.mark.parametrize(("suffix", "state"), [(".swap", "swap"), (".cleaned", "cleaned"), (".deleted", "deleted")])
def test_the_suffix_of_a_file_is_its_state(suffix: str, state: str, tmp_path: Path) -> None:
    path = tmp_path / f"{7:020d}.log{suffix}"
    path.touch()
    info = cw.classify(path)
    assert (info.kind, info.base_offset, info.state, info.topic) == ("log", 7, state, None)
    assert _has_segments(tmp_path) == (state == "swap")
    assert hash(info) == hash(cw.classify(path))


def test_a_partition_that_the_log_dir_lists_is_a_partition() -> None:
    for name in cw.LogDir(corpus.GOLDEN / "16-data-dir"):
        info = cw.classify(corpus.GOLDEN / "16-data-dir" / name)
        assert (info.kind, f"{info.topic}-{info.partition}") == ("partition", name)
        assert _partition_parts(name) == (info.topic, info.partition, "live")


def test_a_writer_refuses_every_data_directory(tmp_path: Path) -> None:
    """With each of the files that mark a data directory for a writer."""
    for name in ("meta.properties", ".lock", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
        folder = tmp_path / f"with{name}"
        folder.mkdir()
        (folder / name).write_text("")
        assert cw.classify(folder).kind == "data_directory", name
        with pytest.raises(cw.ConfigError):
            cw.LogWriter.plan_recovery(folder)


def test_an_odd_directory_in_a_data_directory_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "loop-0").symlink_to("loop-0")
    assert cw.classify(tmp_path).kind == "other"
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (partition / f"{0:020d}.log").touch()
    assert cw.classify(tmp_path).kind == "data_directory"


def test_a_writer_creates_no_log_in_a_directory_that_holds_partitions(tmp_path: Path) -> None:
    shutil.copytree(corpus.GOLDEN / "16-data-dir" / "cities-0", tmp_path / "cities-0")
    assert cw.classify(tmp_path).kind == "data_directory"
    for refused in (cw.LogWriter, cw.LogWriter.plan_recovery):
        with pytest.raises(cw.ConfigError, match="expected a partition directory"):
            refused(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["cities-0"]
