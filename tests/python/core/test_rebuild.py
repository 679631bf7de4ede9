"""`rebuild_indexes`: the files that Kafka's recovery writes, its report, and its arguments."""

from __future__ import annotations

import hashlib
import itertools
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path

import corpus
import pytest
from batches import crc32c
from corpus import Partition

import cordwood as cw

DERIVED = {".index", ".timeindex", ".txnindex", ".snapshot"}


def settings(partition: Partition) -> cw.LogConfig:
    """Return the settings of a case; a data directory has some for each topic."""
    given = corpus.cases()[partition.case]["settings"]
    given = given.get(partition.name.rpartition("-")[0], given)
    names = {"index.interval.bytes", "segment.index.bytes"}
    default = {"index.interval.bytes": "4096"}
    return cw.LogConfig.from_properties(default | {name: text for name, text in given.items() if name in names})


def copied(partition: Partition, folder: Path) -> Path:
    return Path(shutil.copytree(partition.path, folder / partition.name))


def expected(partition: Partition) -> dict[str, tuple[int, str]]:
    return {
        line["name"]: (line["bytes"], line["sha256"])
        for line in partition.lines("rebuild.jsonl")
        if line["type"] == "file" and Path(line["name"]).suffix in DERIVED
    }


def remove_derived(path: Path) -> None:
    for file in path.iterdir():
        if file.suffix in DERIVED:
            file.unlink()


def snapshots_in_any_order(snapshot: bytes) -> Iterator[bytes]:
    """The files with the same producers: Kafka writes them in the order of a hash map."""
    entries = [snapshot[at : at + 46] for at in range(10, len(snapshot), 46)]
    assert len(entries) < 7
    for ordered in itertools.permutations(entries):
        body = snapshot[6:10] + b"".join(ordered)
        yield snapshot[:2] + crc32c(body).to_bytes(4, "big") + body


@pytest.mark.parametrize("partition", corpus.partitions(), ids=str)
def test_rebuilt_files_have_the_bytes_of_kafkas_recovery(partition: Partition, tmp_path: Path) -> None:
    path = copied(partition, tmp_path)
    remove_derived(path)
    report = cw.rebuild_indexes(path, config=settings(partition), dry_run=False, threads=len(partition.name) % 3 + 1)
    for name, (size, checksum) in expected(partition).items():
        content = (path / name).read_bytes()
        assert len(content) == size, name
        written = snapshots_in_any_order(content) if name.endswith(".snapshot") else [content]
        assert checksum in [hashlib.sha256(one).hexdigest() for one in written], name
    assert report.interval_source == "given"
    assert {file.reason for file in report.files} <= {"missing"}
    assert cw.rebuild_indexes(path, config=settings(partition)).is_clean


def test_a_report_names_what_differs_and_where(tmp_path: Path) -> None:
    path = copied(corpus.partition("01-plain"), tmp_path)
    index = path / "00000000000000000400.index"
    right = index.read_bytes()
    wrong = right[:16] + bytes([right[16] ^ 1]) + right[17:]
    index.write_bytes(wrong)
    (path / "00000000000000000807.timeindex").unlink()
    (path / "00000000000000001217.snapshot").write_bytes(b"no snapshot")
    report = cw.rebuild_indexes(path)
    assert not report.is_clean
    assert report.dry_run
    assert (report.index_interval_bytes, report.interval_source, report.log_end_offset) == (1024, "inferred", 1500)
    found = {Path(file.file).name: file for file in report.files if file.reason != "unchanged"}
    assert {name: file.reason for name, file in found.items()} == {
        index.name: "differs",
        "00000000000000000807.timeindex": "missing",
        "00000000000000001217.snapshot": "damaged",
    }
    file = found[index.name]
    assert (file.old_size, file.new_size, file.first_difference) == (len(right), len(right), 16)
    assert file.quarantine is None
    assert str(file) == f"{index}: differs from what the log gives, from byte 16 on"
    assert repr(file).startswith(f'DerivedFile(file="{index}", reason="differs", old_size=')
    assert index.read_bytes() == wrong
    done = cw.rebuild_indexes(path, dry_run=False)
    assert not done.dry_run
    kept = {Path(file.file).name: file.quarantine for file in done.files if file.quarantine}
    assert set(kept) == {index.name, "00000000000000001217.snapshot"}
    assert Path(str(kept[index.name])).read_bytes() == wrong
    assert index.read_bytes() == right
    assert cw.rebuild_indexes(path).is_clean
    assert cw.rebuild_indexes(path) == cw.rebuild_indexes(path)


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    path = copied(corpus.partition("01-small"), tmp_path)
    for keywords, kind, words in [
        ({"threads": 0}, cw.ConfigError, "threads: expected a whole number, 1 or more, found 0"),
        ({"dry_run": "no"}, TypeError, "dry_run: expected a bool, found"),
        ({"segments": 7}, TypeError, "segments: expected a list of base offsets, found"),
        ({"segments": [0, "7"]}, TypeError, r"segments\[1\]: expected"),
        ({"segments": [0, 7]}, cw.ConfigError, "segments: expected base offsets of segments of the log, found 7"),
        ({"config": 7}, TypeError, "config: expected a LogConfig, found"),
    ]:
        with pytest.raises(kind, match=words):
            cw.rebuild_indexes(path, **keywords)  # type: ignore[arg-type]
    with pytest.raises(cw.LogNotFoundError):
        cw.rebuild_indexes(tmp_path, dry_run=False)
    assert sorted(file.name for file in tmp_path.iterdir()) == [path.name]
    report = cw.rebuild_indexes(path, segments=iter([96]))
    assert {Path(file.file).stem for file in report.files} == {f"{96:020}"}
    assert pickle.loads(pickle.dumps(report)) == report
