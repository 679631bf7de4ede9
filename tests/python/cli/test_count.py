"""`cordwood count` against a naive count of the records."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import corpus
import pytest
from batches import GZIP, Rec, batch, crc32c, write_partition
from core.test_damaged import BROKEN, Damage
from scripts import Command

import cordwood as cw
from cordwood._core import _Counter

DATA = corpus.GOLDEN / "16-data-dir"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def total(log: cw.Log, **keywords: Any) -> int:
    counter = _Counter([log], ["partition"], **keywords)
    while counter.advance() is not None:
        pass
    return sum(row[-1] for row in counter.finish())


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("part", corpus.partitions(), ids=str)
def test_logs_of_real_brokers(part: corpus.Partition, isolation: Any) -> None:
    log = cw.Log(part.path, **part.overrides)
    offsets = log.scan(columns=["offset", "timestamp"], isolation_level=isolation).to_arrow()
    assert total(log, isolation_level=isolation) == offsets.num_rows
    start, end = log.log_start_offset, log.log_end_offset
    times = [time for time in offsets["timestamp"].cast("int64").to_pylist() if time is not None] or [0]
    middle = sorted(times)[len(times) // 2]
    for ranges in (
        {"start_offset": (start + end) // 2},
        {"start_offset": start + (end - start) // 3, "end_offset": start + (end - start) * 2 // 3},
        {"start_time": middle},
        {"start_time": min(times), "end_time": middle},
    ):
        wanted = log.scan(columns=["offset"], isolation_level=isolation, **ranges).to_arrow().num_rows
        assert total(log, isolation_level=isolation, **ranges) == wanted, ranges


@pytest.mark.parametrize("damage", BROKEN, ids=str)
def test_damaged_logs(damage: Damage) -> None:
    log = cw.Log(damage.path)
    wanted = log.scan(columns=["offset"], on_damage="skip").to_arrow().num_rows
    assert total(log, on_damage="skip") == wanted
    with pytest.raises(cw.CorruptLogError):
        total(log)


def rows(command: Command, *arguments: object) -> list[dict[str, Any]]:
    code, out, error = command("count", *arguments, "--json")
    assert code == 0, error
    document = json.loads(out)
    assert document["records"] == sum(group["records"] for group in document["groups"])
    return list(document["groups"])


def test_partitions_of_a_data_directory(command: Command) -> None:
    found = {(row["topic"], row["partition"]): row["records"] for row in rows(command, DATA)}
    table = cw.LogDir(DATA).scan(columns=["topic", "partition"]).to_arrow()
    assert found == Counter(zip(table["topic"].to_pylist(), table["partition"].to_pylist(), strict=True))
    by_topic = {row["topic"]: row["records"] for row in rows(command, DATA, "--by", "topic")}
    assert by_topic == Counter(table["topic"].to_pylist())
    assert [row["partition"] for row in rows(command, DATA, "--topic", "cities", "--partition", "1")] == [1]


@pytest.mark.parametrize("zone", [None, "Europe/Berlin", "Asia/Kathmandu"])
@pytest.mark.parametrize("period", ["minute", "hour", "day"])
@pytest.mark.parametrize("case", ["01-plain", "08-late", "09-append-time", "08-no-timestamps"])
def test_periods(command: Command, case: str, period: str, zone: str | None) -> None:
    part = corpus.partition(case)
    wanted: Counter[str | None] = Counter()
    for record in corpus.visible(part):
        local = (EPOCH + timedelta(milliseconds=record.timestamp)).astimezone(ZoneInfo(zone) if zone else UTC)
        match period:
            case "day":
                text = local.date().isoformat()
            case "hour":
                text = local.replace(minute=0).isoformat(timespec="minutes")
            case _:
                text = local.isoformat(timespec="minutes")
        wanted[None if record.timestamp < 0 else text.replace("+00:00", "Z")] += 1
    found = rows(command, part.path, "--by", period, *(["--tz", zone] if zone else []))
    assert {row[period]: row["records"] for row in found} == wanted
    named = [row[period] for row in found if row[period] is not None]
    assert named == sorted(named)


def test_an_hour_that_a_clock_repeats_is_two(command: Command, tmp_path: Any) -> None:
    # 2024-10-27 02:30 in Berlin, first in summer time and then in winter time; and the day has both
    times = [1_729_989_000_000, 1_729_992_600_000]
    path = write_partition(
        tmp_path / "clock-0", [(0, [batch(0, [Rec(timestamp=time) for time in times], base_timestamp=0)])]
    )
    hours = rows(command, path, "--by", "hour", "--tz", "Europe/Berlin")
    assert [row["hour"] for row in hours] == ["2024-10-27T02:00+02:00", "2024-10-27T02:00+01:00"]
    days = rows(command, path, "--by", "day", "--tz", "Europe/Berlin")
    assert days == [{"day": "2024-10-27", "records": 2}]


def test_keys_and_several_groups(command: Command) -> None:
    part = corpus.partition("01-plain")
    wanted = Counter(record.key for record in corpus.visible(part))
    found = rows(command, part.path, "--by", "key")
    assert {row["key"]: row["records"] for row in found} == {key and key.decode(): n for key, n in wanted.items()}
    counts = [row["records"] for row in found]
    assert counts == sorted(counts, reverse=True)
    top = json.loads(command("count", part.path, "--by", "key", "--limit", "3", "--json")[1])
    assert top["groups"] == found[:3]
    assert top["records"] == 1500
    both = rows(command, part.path, "--by", "key", "--by", "minute", "--by", "topic")
    assert sum(row["records"] for row in both) == 1500
    assert list(both[0]) == ["topic", "minute", "key", "records"]


def test_bytes_and_missing_keys(command: Command, tmp_path: Any) -> None:
    records = [Rec(key=b"\xff"), Rec(key=b"\xff"), Rec(), Rec(key=b"")]
    path = write_partition(tmp_path / "keys-0", [(0, [batch(0, records)])])
    assert {json.dumps(row["key"]): row["records"] for row in rows(command, path, "--by", "key")} == {
        '{"base64": "/w=="}': 2,
        "null": 1,
        '""': 1,
    }
    out = command("count", path, "--by", "key", "--csv")[1]
    assert out.splitlines()[:2] == ["key,records", "base64:/w==,2"]


def test_filters(command: Command) -> None:
    part = corpus.partition("01-plain")
    wanted = sum(record.value is not None and b"jetty" in record.value for record in corpus.visible(part))
    assert rows(command, part.path, "--grep", "jetty")[0]["records"] == wanted > 0
    key = sum(record.key == b"k15" for record in corpus.visible(part))
    assert rows(command, part.path, "--key", "k15")[0]["records"] == key > 0


def test_table_and_csv(command: Command) -> None:
    code, out, _ = command("count", DATA, "--topic", "cities")
    assert code == 0
    assert " in 2 partitions" in out
    table = list(csv.DictReader(io.StringIO(command("count", DATA, "--csv")[1])))
    assert table[0].keys() == {"topic", "partition", "records"}
    assert len(table) == len(cw.LogDir(DATA))


def test_the_records_of_an_empty_partition_are_zero(command: Command) -> None:
    found = rows(command, corpus.partition("15-empty").path)
    assert [row["records"] for row in found] == [0]


def test_headers_are_enough_by_partition(command: Command, tmp_path: Any) -> None:
    """Records that do not decode, in a compressed batch with a correct checksum, are counted by its header."""
    raw = bytearray(batch(0, [Rec(value=b"x" * 10)] * 3, codec=GZIP))
    raw[61:] = b"\xff" * len(raw[61:])
    raw[17:21] = crc32c(bytes(raw[21:])).to_bytes(4, "big")
    path = write_partition(tmp_path / "headers-0", [(0, [bytes(raw), batch(3, [Rec()])])])
    assert rows(command, path) == [{"topic": "headers", "partition": 0, "path": str(path), "records": 4}]
    code, out, error = command("count", path, "--by", "hour")
    assert (code, out) == (1, "")
    assert "is damaged at position" in error
    code, out, error = command("count", path, "--by", "hour", "--on-damage", "skip", "--csv")
    assert (code, out) == (1, "hour,records\n1970-01-01T00:00Z,1\n")
    assert "cordwood: left out " in error


def test_a_counter_is_finished_once() -> None:
    counter = _Counter([DATA / "cities-0"], ["partition"])
    counter.finish()
    with pytest.raises(cw.ConfigError, match="counter"):
        counter.finish()
    assert counter.advance() is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--by", "week"), "--by"),
        (("--by", "hour", "--by", "day"), "--by: expected one of minute, hour and day at most"),
        (("--json", "--csv"), "either --json or --csv"),
        (("--since", "soon"), "expected a time"),
        (("--start-offset", "5", "--end-offset", "3"), "--end-offset: expected 5 or more, found 3"),
    ],
)
def test_wrong_usage(command: Command, arguments: tuple[str, ...], said: str) -> None:
    code, out, error = command("count", corpus.partition("01-plain").path, *arguments)
    assert (code, out) == (2, "")
    assert said in error
