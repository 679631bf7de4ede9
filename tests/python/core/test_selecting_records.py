"""Records by key and value, the last ones, their number, and Parquet: compared with naive twins."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpus
import pyarrow.parquet
import pytest

import cordwood as cw

DATA = corpus.GOLDEN / "16-data-dir"
CASES = ("01-plain", "07-edge-values", "11-transactions", "12-compacted", "08-late-lz4", "17-v1-gzip", "15-empty")

Matches = Callable[[Any], bool]
SELECTIONS: list[tuple[dict[str, Any], Matches]] = [
    ({}, lambda _: True),
    ({"key": "k15"}, lambda r: r.key == b"k15"),
    ({"key": [b"k15", "k3", bytearray(b"absent")]}, lambda r: r.key in {b"k15", b"k3"}),
    ({"key": []}, lambda _: False),
    ({"key_prefix": b"k1"}, lambda r: (r.key or b"").startswith(b"k1")),
    ({"key_prefix": ["k1", "hot"], "grep": "e"}, lambda r: (r.key or b"").startswith((b"k1", b"hot")) and has(r, b"e")),
    ({"grep": ["(?i)FJORD", r"\d{6}"]}, lambda r: has(r, rb"(?i)FJORD") or has(r, rb"\d{6}")),
]


def has(record: Any, pattern: bytes) -> bool:
    return record.value is not None and re.search(pattern, record.value) is not None


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("given", "matches"), SELECTIONS, ids=[repr(given) for given, _ in SELECTIONS])
def test_records_scans_and_counts_have_the_records_of_a_naive_twin(
    case: str, given: dict[str, Any], matches: Matches
) -> None:
    part = corpus.partition(case)
    log = cw.Log(part.path, **part.overrides)
    wanted = [record.offset for record in corpus.visible(part) if matches(record)]
    for last in (None, 0, 1, len(wanted), len(wanted) + 1):
        chosen = wanted if last is None else wanted[max(0, len(wanted) - last) :]
        for limit in (None, 0, 2):
            assert [r.offset for r in log.records(**given, last=last, limit=limit)] == chosen[:limit]
            scan = log.scan(**given, last=last, limit=limit, columns=["offset"])
            for same in (scan, pickle.loads(pickle.dumps(scan))):
                assert same.to_arrow()["offset"].to_pylist() == chosen[:limit]
                assert same.stats.records == len(chosen[:limit])
                assert same.count() == len(chosen[:limit])
    assert log.scan(**given, threads=3, columns=["offset"]).to_arrow()["offset"].to_pylist() == wanted
    assert log.scan(**given, include_control=True).count() == len(log.scan(**given, include_control=True).to_arrow())


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_a_count_is_the_number_of_rows(isolation: Any) -> None:
    log = cw.Log(corpus.partition("11-transactions").path)
    for given in ({}, {"start_offset": 100, "end_offset": 700}, {"latest": True}, {"last": 7}):
        scan = log.scan(isolation_level=isolation, **given)  # type: ignore[arg-type]
        assert scan.count() == scan.to_arrow().num_rows > 0
    assert log.batches().count() == log.batches().to_arrow().num_rows
    split = log.plan(1 << 14)[1]
    assert log.scan(split=split).count() == log.scan(split=split).to_arrow().num_rows


def test_a_count_skips_damage_as_a_scan_does() -> None:
    log = cw.Log(corpus.GOLDEN / "damaged" / "flip-record" / "tickets-0")
    with pytest.raises(cw.CorruptLogError):
        log.scan().count()
    scan = log.scan(on_damage="skip")
    assert scan.count() == scan.to_arrow().num_rows
    assert scan.damaged_ranges
    assert log.scan(on_damage="report", last=10_000).count() == scan.count()


def test_a_directory_is_read_by_the_numbers_of_its_partitions() -> None:
    directory = cw.LogDir(DATA)
    for topics, numbers in ((["cities"], [1]), (None, [0]), (["cities"], [1, 0]), (["cities"], [])):
        scan = directory.scan(topics, partitions=numbers, columns=["topic", "partition", "offset"])
        everything = directory.scan(topics, columns=["topic", "partition", "offset"]).to_arrow().to_pylist()
        wanted = [row for row in everything if row["partition"] in numbers]
        for same in (scan, pickle.loads(pickle.dumps(scan))):
            assert same.to_arrow().to_pylist() == wanted
            assert same.count() == len(wanted)


def test_the_last_records_of_a_directory_are_those_of_each_partition() -> None:
    rows = cw.LogDir(DATA).scan(["cities"], last=2, columns=["partition", "offset"]).to_arrow().to_pylist()
    offsets = {number: [r.offset for r in cw.LogDir(DATA)[f"cities-{number}"].records()] for number in (0, 1)}
    assert [(row["partition"], row["offset"]) for row in rows] == [
        (number, offset) for number in (0, 1) for offset in offsets[number][-2:]
    ]


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"grep": "("}, cw.ConfigError, "grep: expected a regular expression"),
        ({"grep": ["a", "("]}, cw.ConfigError, r"grep\[1\]: expected a regular expression"),
        ({"key": 5}, TypeError, "key: expected bytes or str, or a list of them, found int"),
        ({"key_prefix": [b"a", 5]}, TypeError, r"key_prefix\[1\]: expected bytes or str"),
        ({"last": -1}, cw.ConfigError, "last: expected a number of records, 0 or more"),
        ({"latest": True, "key": b"a"}, cw.ConfigError, "latest: expected False with key"),
        ({"start_time": "2024-05-01T10:00", "tz": "Europe/Nowhere"}, cw.ConfigError, "tz: expected the name of a time"),
    ],
)
def test_wrong_arguments_are_named(given: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        cw.Log(corpus.partition("01-plain").path).scan(**given)


def test_a_split_has_no_last_records() -> None:
    log = cw.Log(corpus.partition("01-plain").path)
    with pytest.raises(cw.ConfigError, match="split: expected None with last"):
        log.scan(split=log.plan(1 << 14)[0], last=1)


def test_a_time_zone_is_that_of_texts() -> None:
    log = cw.Log(corpus.partition("01-plain").path)
    utc = log.scan(start_time="2023-11-14T22:13:21Z", columns=["offset"]).to_arrow()
    assert log.scan(start_time="2023-11-14T23:13:21", tz="Europe/Berlin", columns=["offset"]).to_arrow().equals(utc)
    first = log.offset_for_time("2023-11-14T22:13:21Z")
    assert first is not None
    assert log.offset_for_time("2023-11-14T23:13:21", tz="Europe/Berlin") == first
    assert next(log.records(start_time="2023-11-14T23:13:21", tz="Europe/Berlin")).offset == first.offset


def test_parquet_has_the_rows_of_the_scan(tmp_path: Path) -> None:
    scan = cw.LogDir(DATA).scan(["cities", "rivers.compact"], max_rows=100)
    path = tmp_path / "all.parquet"
    path.write_text("replaced")
    scan.to_parquet(path)
    assert pyarrow.parquet.read_table(path).to_pylist() == scan.to_arrow().to_pylist()
    # row groups are not record batches
    assert pyarrow.parquet.read_metadata(path).num_row_groups == 1
    assert [file.name for file in tmp_path.iterdir()] == ["all.parquet"]


def test_an_unfinished_parquet_file_is_not_visible(tmp_path: Path) -> None:
    log = cw.Log(corpus.GOLDEN / "damaged" / "flip-record" / "tickets-0")
    with pytest.raises(cw.CorruptLogError):
        log.scan(max_rows=10).to_parquet(tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(cw.ConfigError, match="path: expected a file outside of partition directories"):
        log.scan(on_damage="skip").to_parquet(Path(log.path) / "a.parquet")


def test_one_level_above_data_directories_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "disks" / "one").mkdir(parents=True)
    assert len(cw.LogDir(tmp_path / "disks")) == 0
    (tmp_path / "disks" / "one" / "meta.properties").write_text("version=1\n")
    with pytest.raises(cw.ConfigError, match=r"disks, which has none and whose folder .*one is one: give the path"):
        cw.LogDir(tmp_path / "disks")
    assert len(cw.LogDir(tmp_path / "disks" / "one")) == 0


def test_a_file_in_a_folder_that_is_missing_is_an_error_about_the_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="the folder of the new file does not exist") as raised:
        cw.Log(corpus.partition("01-plain").path).scan().to_parquet(tmp_path / "no" / "a.parquet")
    assert raised.value.filename == str(tmp_path / "no")
