"""Outputs of an export: never a log, or a directory with foreign files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import cordwood as cw
from cordwood.spark.jobs.errors import ExportError
from cordwood.spark.jobs.exporting import export
from spark.exporting import PLAIN, a_plan, begin_by_hand, go, tree


def test_a_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(ExportError, match=r"precious\.txt"):
        go(tmp_path, a_plan())
    assert (tmp_path / "precious.txt").read_text() == "mine"


@pytest.mark.parametrize("output", ["s3://bucket/x", "hdfs:/x", "s3a://bucket", "gs://b/c"])
def test_an_output_that_is_not_a_local_path_is_refused(output: str) -> None:
    with pytest.raises(cw.ConfigError, match=output.partition(":")[0]):
        export(None, PLAIN.path, output)  # type: ignore[arg-type]


def test_an_output_inside_the_log_is_refused(copied: Callable[[Path], Path]) -> None:
    path = copied(PLAIN.path)
    with pytest.raises(cw.ConfigError, match="where nothing is ever written"):
        export(None, path, path / "out")  # type: ignore[arg-type]
    assert not (path / "out").exists()


@pytest.mark.parametrize("mark", ["meta.properties", "replication-offset-checkpoint", ".lock"])
def test_an_output_in_a_brokers_directory_is_refused(tmp_path: Path, copied: Callable[[Path], Path], mark: str) -> None:
    path = copied(PLAIN.path)
    (path.parent / mark).touch()
    before = tree(path.parent)
    for given, output in [
        (path, path.parent / "out"),
        (path, path.parent / "new" / "out"),
        (path.parent / "*", path.parent / "out"),
        (path.parent / "*", path / "out"),
        (PLAIN.path, path.parent / "out"),
    ]:
        with pytest.raises(cw.ConfigError, match="where nothing is ever written"):
            export(None, given, output)  # type: ignore[arg-type]
        assert not output.exists()
    (tmp_path / "link").symlink_to(path.parent)
    with pytest.raises(cw.ConfigError, match="where nothing is ever written"):
        export(None, path, tmp_path / "link" / "out")  # type: ignore[arg-type]
    assert tree(path.parent) == before
    assert {entry.name for entry in path.parent.iterdir()} <= {path.name, mark, "link"}


def test_an_output_inside_another_partition_is_refused(copied: Callable[[Path], Path]) -> None:
    path = copied(PLAIN.path)
    for given in (path.parent / "*", PLAIN.path):
        with pytest.raises(cw.ConfigError, match="where nothing is ever written"):
            export(None, given, path / "out")  # type: ignore[arg-type]
        assert not (path / "out").exists()


@pytest.mark.parametrize("file", ["partition.metadata", "leader-epoch-checkpoint", f"{7:020d}.index"])
def test_an_output_in_a_partition_without_a_log_is_refused(tmp_path: Path, file: str) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / file).touch()
    with pytest.raises(cw.ConfigError, match="where nothing is ever written"):
        export(None, PLAIN.path, tmp_path / "orders-0" / "out")  # type: ignore[arg-type]
    assert not (tmp_path / "orders-0" / "out").exists()


def test_an_output_next_to_a_copied_partition_is_allowed(copied: Callable[[Path], Path]) -> None:
    path = copied(PLAIN.path)
    begin_by_hand(path, path.parent / "out")


@pytest.mark.parametrize("file", [".lock", "recovery-point-offset-checkpoint", "other-checkpoint"])
def test_an_output_next_to_a_lock_or_checkpoint_without_partitions_is_allowed(tmp_path: Path, file: str) -> None:
    """Other programs use these names, too."""
    (tmp_path / file).touch()
    (tmp_path / "folder").mkdir()
    begin_by_hand(PLAIN.path, tmp_path / "out")


def test_paths_may_be_written_as_uris(tmp_path: Path) -> None:
    begin_by_hand(f"file://{PLAIN.path}", f"file:{tmp_path}/out")
    plan = json.loads((tmp_path / "out/_cordwood/export.json").read_text())
    assert plan["source"] == [str(PLAIN.path)]


def test_a_table_that_is_not_of_records_is_not_exported(tmp_path: Path) -> None:
    with pytest.raises(cw.ConfigError, match="table=batches"):
        export(None, PLAIN.path, tmp_path / "out", table="batches")  # type: ignore[arg-type]
