"""The last record of a key, and of each key, against a dictionary."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Literal

import corpus
import pytest

import cordwood as cw

CASES = [
    "06-mixed-codecs",
    "11-transactions",
    "12-compacted",
    "12-compacted-codecs",
    "12-compacted-empty",
    "17-upgraded",
]
LEVELS: list[Literal["read_uncommitted", "read_committed"]] = ["read_uncommitted", "read_committed"]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("case", CASES)
def test_the_last_record_of_each_key_is_that_of_a_dictionary(
    case: str, level: Literal["read_uncommitted", "read_committed"]
) -> None:
    log = cw.Log(corpus.partition(case).path)
    last = {record.key: record for record in log.records(isolation_level=level) if record.key is not None}
    values = {key: record for key, record in last.items() if record.value is not None}
    for threads in (1, 3):
        scan = log.scan(latest=True, isolation_level=level, threads=threads)
        assert scan.to_arrow()["offset"].to_pylist() == sorted(record.offset for record in values.values())
        scan = log.scan(latest=True, include_tombstones=True, isolation_level=level, threads=threads)
        assert scan.to_arrow()["offset"].to_pylist() == sorted(record.offset for record in last.values())
        assert pickle.loads(pickle.dumps(scan)).to_arrow() == scan.to_arrow()
    for key in list(last)[:10]:
        found, wanted = log.latest(key, isolation_level=level), values.get(key)
        assert (found and (found.offset, found.value)) == (wanted and (wanted.offset, wanted.value))
    assert log.latest("no such key", isolation_level=level) is None


def test_the_last_records_of_a_range_are_those_of_the_range(tmp_path: Path) -> None:
    with cw.LogWriter(tmp_path / "orders-0") as writer:
        for number in range(10):
            writer.append(str(number), key=f"k{number % 3}", timestamp=number)
        writer.append(None, key="k0", timestamp=10)
        log = writer.reader()
    assert log.scan(latest=True).to_arrow()["offset"].to_pylist() == [7, 8]
    assert log.scan(latest=True, end_offset=10).to_arrow()["offset"].to_pylist() == [7, 8, 9]
    assert log.scan(latest=True, end_time=5).to_arrow()["offset"].to_pylist() == [2, 3, 4]
    assert log.scan(latest=True, limit=1).to_arrow()["offset"].to_pylist() == [7]
    assert log.scan(latest=True, include_tombstones=True).to_arrow()["offset"].to_pylist() == [7, 8, 10]
    assert log.latest("k0") is None
    assert "latest" in repr(log.scan(latest=True))
    with pytest.raises(cw.ConfigError, match="include_tombstones: expected False, unless latest is True"):
        log.scan(include_tombstones=True)


def test_each_partition_of_a_directory_has_its_own_last_records(tmp_path: Path) -> None:
    for number in range(2):
        with cw.LogWriter(tmp_path / f"orders-{number}") as writer:
            writer.append_many([cw.Record(value=str(n), key="k") for n in range(3 + number)])
    table = cw.LogDir(tmp_path).scan(latest=True).to_arrow()
    assert list(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True)) == [(0, 2), (1, 3)]
