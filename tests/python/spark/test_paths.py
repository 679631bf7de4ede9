"""Paths of the data source: directories, globs, links, several paths, and missing ones."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpus
import google_crc32c
import pytest
from tables import first_difference

from spark.reading import (
    CITIES,
    DATA,
    NAMES,
    PARTS,
    expected,
    got,
    kafka_rows,
    offsets,
    plan,
    read,
    refuses,
    source,
    struct,
)
from spark.streaming import EARLIEST, Engine, flat


@pytest.fixture
def copied_data(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DATA, tmp_path / "data"))


def test_a_data_directory_gives_all_its_partitions() -> None:
    assert got(DATA) == expected(list(PARTS.values()))


def test_a_partition_directory_gives_that_partition_above_its_checkpointed_start() -> None:
    assert got(DATA / "cities-1") == expected([PARTS["cities-1"]])
    assert min(offsets(DATA / "cities-1")) == 31


def test_a_folder_with_the_partitions_of_one_topic_is_a_data_directory(tmp_path: Path) -> None:
    for name in ("cities-0", "cities-1"):
        shutil.copytree(DATA / name, tmp_path / "cities" / name)
    shutil.copy(DATA / "log-start-offset-checkpoint", tmp_path / "cities")
    assert got(tmp_path / "cities") == expected(CITIES)


def test_the_path_of_a_topic_is_refused_with_the_glob_of_its_partitions(tmp_path: Path) -> None:
    with refuses("CORDWOOD_NOT_FOUND", "found no directory", f"partitions of topic cities: load {DATA}/cities-*"):
        source(DATA / "cities").schema()
    with refuses("CORDWOOD_NOT_FOUND", "partitions of topic cities: load"):
        source(DATA / "cities").reader(schema=struct("offset")).partitions()
    # of another topic
    shutil.copytree(DATA / "cities-0", tmp_path / "cities-of-1900-0")
    with refuses("CORDWOOD_NOT_FOUND", "found no directory") as raised:
        source(tmp_path / "cities").schema()
    assert "but those" not in str(raised.value)


def test_several_paths_of_both_kinds_are_read_together() -> None:
    other = corpus.partition("02-gzip")
    late = corpus.partition("18-leaps")
    rows = read(DATA, other.path, late.path.parent)
    wanted = [row for part in [*PARTS.values(), other, late] for row in kafka_rows(part, corpus.visible(part))]
    assert first_difference(rows, sorted(wanted, key=lambda row: row[2:5])) == ""


def test_a_glob_of_partition_directories_gives_those_that_match() -> None:
    assert got(DATA / "cities-*") == expected(CITIES)
    assert got(DATA / "[cr]i*s*-0") == expected([PARTS["cities-0"], PARTS["rivers.compact-0"]])


def test_a_glob_of_data_directories_gives_all_their_partitions(tmp_path: Path) -> None:
    parts = [corpus.partition(case) for case in ("01-small", "15-one-record", "18-leaps")]
    for number, part in enumerate(parts):
        shutil.copytree(part.path, tmp_path / f"disk{number}" / part.name)
        (tmp_path / f"disk{number}" / "meta.properties").write_text("version=1\n")
    assert got(tmp_path / "disk*") == expected(parts)
    assert got(tmp_path / "disk[02]", tmp_path / "disk1" / "one-*") == expected(parts)


@pytest.mark.parametrize("folder", ["with space", "a[1]", "100%25", "Ünïcødé", "a*b", "x{y,z}", "comma,name", "c:d"])
def test_an_existing_path_is_not_treated_as_a_glob(tmp_path: Path, folder: str) -> None:
    part = corpus.partition("15-one-record")
    shutil.copytree(part.path, tmp_path / folder / part.name)
    assert got(tmp_path / folder) == expected([part])
    assert got(tmp_path / folder / part.name) == expected([part])


def test_a_file_url_is_a_path_and_another_scheme_is_refused() -> None:
    for scheme in ("file:", "file://", "FILE://"):
        assert got(f"{scheme}{DATA}/cities-0") == expected([PARTS["cities-0"]])
    for path in ("hdfs://namenode/data", "s3a://bucket/data", "dbfs:/data"):
        with refuses("CORDWOOD_BAD_OPTION", path):
            source(path).schema()


@pytest.mark.python_source
def test_a_relative_path_is_that_of_the_planning_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """An executor may have any working directory."""
    monkeypatch.chdir(DATA)
    found = plan("cities-0", schema=struct(*NAMES))
    monkeypatch.chdir("/")
    assert found.rows() == expected([PARTS["cities-0"]])


def test_a_link_to_a_partition_is_a_partition(tmp_path: Path) -> None:
    (tmp_path / "linked-7").symlink_to(DATA / "cities-0")
    rows = read(tmp_path / "linked-7", schema=struct(*NAMES))
    assert rows == [("linked", 7, offset) for _, _, offset in expected([PARTS["cities-0"]])]


@pytest.mark.parametrize(
    "paths",
    [
        (DATA / "cities-0", DATA / "cities-0"),
        (DATA, DATA / "cities-0"),
        (DATA / "cities-0", DATA / "cities-*"),
        (DATA / "cities-1", f"{DATA}/../16-data-dir/cities-1/"),
    ],
    ids=["twice", "inside", "glob", "other spelling"],
)
def test_a_partition_in_two_of_the_paths_is_refused(paths: tuple[Path | str, ...]) -> None:
    """Its records would be read twice, and a stream's offsets have one entry per partition."""
    with refuses("CORDWOOD_BAD_OPTION", "cities-"):
        source(*paths).schema()


def test_two_logs_of_one_name_are_refused_unless_the_subscription_leaves_one_out(tmp_path: Path) -> None:
    part = corpus.partition("01-plain")
    for folder in ("a", "b"):
        shutil.copytree(part.path, tmp_path / folder / part.name)
    with refuses("CORDWOOD_BAD_OPTION", "orders-0"):
        source(tmp_path / "a", tmp_path / "b").schema()
    shutil.copytree(corpus.partition("15-one-record").path, tmp_path / "b" / "one-record-0")
    assert got(tmp_path / "a", tmp_path / "b", subscribe="one-record") == [("one-record", 0, 0)]


def missing() -> list[tuple[str, tuple[Any, ...], dict[str, str]]]:
    return [
        ("no such directory", ("/nowhere/at/all",), {}),
        ("no such partition", (DATA / "cities-9",), {}),
        ("one of two is missing", (DATA / "cities-0", DATA / "cities-9"), {}),
        ("an empty glob", (DATA / "towns-*",), {}),
        ("a file", (DATA / "meta.properties",), {}),
        ("a data directory without partitions", (DATA / "expected" / "cities-0",), {}),
        ("no such topic", (DATA,), {"subscribe": "towns"}),
        ("one of two topics is missing", (DATA,), {"subscribe": "cities,towns"}),
        ("no topic matches", (DATA,), {"subscribePattern": "town.*"}),
        ("only internal topics match", (DATA,), {"subscribePattern": "^__"}),
        ("no such partition of a topic", (DATA,), {"assign": json.dumps({"cities": [0, 2]})}),
    ]


@pytest.mark.parametrize(("paths", "options"), [m[1:] for m in missing()], ids=[m[0] for m in missing()])
def test_a_missing_path_or_topic_is_an_error_at_load_and_with_the_users_schema(
    paths: tuple[Any, ...], options: dict[str, str]
) -> None:
    with refuses("CORDWOOD_NOT_FOUND"):
        source(*paths, **options).schema()
    with refuses("CORDWOOD_NOT_FOUND"):
        source(*paths, **options).reader(schema=struct("offset")).partitions()


@pytest.mark.parametrize(
    "options",
    [{"subscribe": "cities,towns"}, {"assign": {"cities": [0, 1, 2], "towns": [0]}}],
    ids=["subscribe", "assign"],
)
def test_without_fail_on_data_loss_missing_topics_and_partitions_are_skipped(
    options: dict[str, Any], said: Callable[[], list[str]]
) -> None:
    assert got(DATA, failOnDataLoss=False, **options) == expected(CITIES)
    assert [text for text in said() if "towns" in text or "cities-2" in text]


def test_a_missing_root_is_an_error_even_without_fail_on_data_loss() -> None:
    with refuses("CORDWOOD_NOT_FOUND", "/nowhere/at/all"):
        source("/nowhere/at/all", failOnDataLoss=False).schema()


@pytest.mark.parametrize("name", ["00000000000000000000.log", "00000000000000000000.timeindex", "*.log"])
def test_a_file_of_a_segment_is_named_with_the_directory_to_load(name: str) -> None:
    path = PARTS["cities-0"].path
    with refuses("CORDWOOD_NOT_FOUND", name, "the file 0000", f"of a segment: load its directory, {path}"):
        source(path / name).schema()


def test_a_file_is_named_as_one() -> None:
    with refuses("CORDWOOD_NOT_FOUND", "found the file meta.properties"):
        source(DATA / "meta.properties").schema()


PARTS_OF_NO_SEGMENT: list[dict[str, str]] = [
    {},
    {"leader-epoch-checkpoint": "0\n0\n"},
    {"leader-epoch-checkpoint": "0\n0\n", "partition.metadata": "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"},
]


@pytest.mark.parametrize("files", PARTS_OF_NO_SEGMENT, ids=len)
@pytest.mark.parametrize("path", ["cities-*", ""], ids=["glob", "data directory"])
def test_a_partition_that_kafka_has_just_created_is_skipped(
    copied_data: Path, path: str, files: dict[str, str]
) -> None:
    (copied_data / "cities-2").mkdir()
    for name, text in files.items():
        (copied_data / "cities-2" / name).write_text(text)
    assert got(copied_data / path, subscribe="cities") == expected(CITIES)
    stream = Engine(copied_data / path, subscribe="cities", **EARLIEST)
    assert flat(stream.all()) == expected(CITIES)


def test_partitions_without_a_segment_are_not_found_by_path_or_glob(
    tmp_path: Path, said: Callable[[], list[str]]
) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / "leader-epoch-checkpoint").write_text("0\n0\n")
    for path in (tmp_path / "t-*", tmp_path / "t-0", tmp_path):
        with refuses("CORDWOOD_NOT_FOUND", str(path)):
            source(path).schema()
        assert offsets(path, failOnDataLoss=False) == []
        assert len([text for text in said() if f"{path}: expected" in text]) == 1


LEFT_OF_SEGMENTS = ["00000000000000000000.index", "00000000000000000000.snapshot", ".cordwood.durable", None]


def lose_segments(path: Path, left: str | None) -> None:
    """Remove the segments; keep a file, or otherwise the data directory's recovery point."""
    for file in path.iterdir():
        file.unlink()
    (path / "leader-epoch-checkpoint").write_text("0\n0\n")
    if left is not None:
        offset = (31).to_bytes(8)
        synced = offset + google_crc32c.value(offset).to_bytes(4)
        (path / left).write_bytes(synced if left == ".cordwood.durable" else b"")
        (path.parent / "recovery-point-offset-checkpoint").unlink()


@pytest.mark.parametrize("left", LEFT_OF_SEGMENTS)
@pytest.mark.parametrize("path", ["cities-*", "cities-0", ""], ids=["glob", "partition", "data directory"])
def test_a_partition_that_lost_its_segments_is_lost_data(
    copied_data: Path, path: str, left: str | None, said: Callable[[], list[str]]
) -> None:
    loaded = copied_data / path
    lose_segments(copied_data / "cities-0", left)
    with refuses("CORDWOOD_SEGMENT_GONE", "cities-0", "expected a segment", "failOnDataLoss=false"):
        source(loaded).schema()
    with refuses("CORDWOOD_SEGMENT_GONE", "cities-0"):
        source(loaded).reader(schema=struct("offset")).partitions()
    assert said() == []
    rest = [] if path == "cities-0" else [PARTS["cities-1"]]
    assert got(loaded, failOnDataLoss=False, subscribePattern="^cities") == expected(rest)
    assert len([text for text in said() if text.startswith("[CORDWOOD_SEGMENT_GONE] cities-0:")]) == 1


def test_a_partition_that_is_not_selected_may_have_lost_its_segments(copied_data: Path) -> None:
    lose_segments(copied_data / "cities-0", None)
    assert got(copied_data, assign={"cities": [1]}) == expected([PARTS["cities-1"]])
    assert got(copied_data / "*-0", subscribe="rivers.compact") == expected([PARTS["rivers.compact-0"]])


def test_a_directory_of_another_name_with_files_of_a_partition_and_no_segment_is_lost_data(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "partition.metadata").touch()
    with refuses("CORDWOOD_SEGMENT_GONE", str(tmp_path / "copy")):
        source(tmp_path / "cop*").schema()
    assert offsets(tmp_path / "copy", failOnDataLoss=False) == []


def test_a_data_directory_may_be_named_like_a_partition(tmp_path: Path) -> None:
    shutil.copytree(DATA, tmp_path / "disk-0")
    (tmp_path / "disk-1").mkdir()
    assert got(tmp_path / "disk-*", subscribe="cities") == expected(CITIES)


def test_a_stream_warns_of_a_partition_that_lost_its_segments_once(
    copied_data: Path, said: Callable[[], list[str]]
) -> None:
    stream = Engine(copied_data, subscribe="cities", failOnDataLoss=False, maxOffsetsPerTrigger=50, **EARLIEST)
    lose_segments(copied_data / "cities-0", None)
    assert flat(stream.all()) == expected([PARTS["cities-1"]])
    assert len([text for text in said() if "has the recovery point" in text]) == 1


def test_the_message_names_the_path_that_is_missing() -> None:
    with refuses("CORDWOOD_NOT_FOUND", "cities-9"):
        source(DATA / "cities-9").schema()


def test_a_data_directory_with_many_partitions_and_foreign_entries(tmp_path: Path) -> None:
    """Deleted partitions, files and foreign folders are not partitions."""
    part = corpus.partition("15-one-record")
    for number in range(60):
        shutil.copytree(part.path, tmp_path / f"many-{number}")
    for foreign in ("many-3.0123456789abcdef0123456789abcdef-delete", "lost+found", "backup", "remote-log-index-cache"):
        (tmp_path / foreign).mkdir()
    shutil.copytree(part.path, tmp_path / "many-61.0123456789abcdef0123456789abcdef-delete")
    (tmp_path / "meta.properties").write_text("version=1\n")
    assert got(tmp_path) == [("many", number, 0) for number in range(60)]
    # small partitions share a task
    assert len(plan(tmp_path, schema=struct(*NAMES)).splits) < 60


def test_no_path_at_all_is_refused() -> None:
    with refuses("CORDWOOD_BAD_OPTION", "path"):
        source().schema()


def test_a_glob_skips_a_directory_whose_name_is_not_utf8(copied: Any) -> None:
    part = corpus.partition("01-plain")
    path = copied(part.path)
    Path(os.fsdecode(os.fsencode(path.parent) + b"/caf\xe9")).mkdir()
    assert len(plan(f"{path.parent}/*").rows()) == 1500
