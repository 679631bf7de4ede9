"""Times that headers do not show: entries of v1 in wrappers of v0, and a largest timestamp that no record has."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from batches import GZIP, LOG_APPEND_TIME, NONE, Rec, batch, name, write_partition
from commands import cordwood
from interop.odd_files import message

import cordwood as cw

NOW = 1_700_000_000_000
LATE = NOW + 99
APPEND_TIME = 8


def written(path: Path, raw: bytes) -> cw.Log:
    path.mkdir()
    (path / name(0)).write_bytes(raw)
    return cw.Log(path)


def wrapper(magic: int, inner: int, attributes: int = 0, first: int = 0) -> bytes:
    # in a wrapper of v1 the offsets are relative
    base = 0 if magic else first
    entries = b"".join(message(base + n, b"v", magic=inner, timestamp=NOW + n) for n in range(3))
    packed = gzip.compress(entries, mtime=0)
    return message(first + 2, packed, magic=magic, attributes=1 | attributes, timestamp=LATE)


# what `DeepRecordsIterator` of Kafka 4.3 returns; tests/python/interop/test_odd_files.py asks it
@pytest.mark.parametrize(
    ("formats", "attributes", "times"),
    [
        ((0, 0), 0, None),
        ((0, 1), 0, [NOW, NOW + 1, NOW + 2]),
        ((1, 0), 0, None),
        ((1, 1), 0, [NOW, NOW + 1, NOW + 2]),
        ((0, 0), APPEND_TIME, None),
        ((0, 1), APPEND_TIME, [NOW, NOW + 1, NOW + 2]),
        ((1, 0), APPEND_TIME, None),
        ((1, 1), APPEND_TIME, [LATE, LATE, LATE]),
    ],
)
@pytest.mark.parametrize("place", ["alone", "followed", "preceded"])
def test_entries_of_a_wrapper_have_the_times_of_their_format(
    tmp_path: Path, formats: tuple[int, int], attributes: int, times: list[int] | None, place: str
) -> None:
    path = tmp_path / "old-0"
    expected = times or [-1] * 3
    if place == "preceded":
        # the cleaner of a broker whose topic was set back to v0 left such segments
        log = written(path, message(0, b"v", magic=1, timestamp=NOW) + wrapper(*formats, attributes, first=1))
        expected = [NOW, *expected]
    elif place == "followed":
        log = written(path, wrapper(*formats, attributes) + message(3, b"v", magic=1, timestamp=NOW + 1))
        expected = [*expected, NOW + 1]
    else:
        log = written(path, wrapper(*formats, attributes))
    assert [record.timestamp for record in log.records()] == expected
    column = log.scan(columns=["timestamp"]).to_arrow()["timestamp"].cast("int64").to_pylist()
    assert [-1 if time is None else time for time in column] == expected
    ranges: list[dict[str, Any]] = [
        {"start_time": start, "end_time": end}
        for start in (None, NOW, NOW + 1, NOW + 2, NOW + 3, LATE, LATE + 1)
        for end in (None, NOW + 1, LATE, LATE + 1)
        if (start, end) != (None, None) and (start is None or end is None or start <= end)
    ]
    for limits in ranges:
        start, end = limits["start_time"] or 0, limits["end_time"] or LATE + 9
        wanted = [offset for offset, time in enumerate(expected) if start <= time < end]
        assert [record.offset for record in log.records(**limits)] == wanted, limits
        assert log.scan(columns=["offset"], **limits).to_arrow()["offset"].to_pylist() == wanted, limits
        assert log.scan(**limits).count() == len(wanted), limits
        assert [record.offset for record in log.records(last=2, **limits)] == wanted[-2:], limits
        splits = log.plan(10, **limits)
        assert sum(log.scan(split=split).count() for split in splits) == len(wanted) if splits else not wanted
    counted = cordwood("count", path, "--by", "day")
    assert counted.returncode == 0
    out = counted.stdout.decode()
    assert ("2023-11-14" in out) == (max(expected) >= 0)
    assert ("none" in out) == (-1 in expected)


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_the_largest_time_of_a_header_does_not_include_a_record(tmp_path: Path, codec: int) -> None:
    raws = [
        batch(0, [Rec(timestamp=NOW)], codec=codec, max_timestamp=NOW + 5000),
        batch(1, [Rec(timestamp=NOW + 6000)], codec=codec),
        batch(2, [Rec(timestamp=NOW)], codec=codec, attributes=LOG_APPEND_TIME, max_timestamp=NOW + 7000),
    ]
    log = cw.Log(write_partition(tmp_path / "t-0", [(0, raws)]))
    expected = [NOW, NOW + 6000, NOW + 7000]
    assert [record.timestamp for record in log.records()] == expected
    bounds = [None, *(NOW + ms for ms in (0, 1, 1000, 5000, 5001, 6000, 6001, 7000, 7001))]
    for start in bounds:
        for end in bounds:
            if start is not None and end is not None and start > end:
                continue
            limits: dict[str, Any] = {"start_time": start, "end_time": end}
            wanted = sum((start or 0) <= time < (end or NOW * 2) for time in expected)
            assert log.scan(columns=["offset"], **limits).to_arrow().num_rows == wanted, limits
            assert log.scan(**limits).count() == wanted, limits


def test_more_records_than_bytes_are_not_counted_from_the_header(tmp_path: Path) -> None:
    most = 2**31 - 1
    raws = [batch(0, [Rec()] * 3), batch(3, [Rec()], codec=GZIP, count=most, last_offset_delta=most - 1)]
    log = cw.Log(write_partition(tmp_path / "t-0", [(0, raws)]))
    for read in (log.scan().to_arrow, log.scan().count):
        with pytest.raises(cw.CorruptLogError):
            read()
