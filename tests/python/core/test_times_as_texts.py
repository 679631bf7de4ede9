"""A time may be a string wherever the library accepts a time; the results equal those of the same time in ms."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import corpus
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cordwood as cw
from cordwood.times import parse

PLAIN = corpus.partition("01-plain").path
MS = 1_700_000_000_250
TEXTS = ["2023-11-14T22:13:20.250Z", "2023-11-14T23:13:20.250+01:00", str(MS), " 2023-11-14T22:13:20.249001Z "]


@pytest.mark.parametrize("text", TEXTS)
def test_a_time_may_be_a_string(text: str, tmp_path: Path) -> None:
    log = cw.Log(PLAIN)
    assert log.offset_for_time(text) == log.offset_for_time(MS)
    for bounds in ("start_time", "end_time"):
        for call in (log.scan, log.batches):
            given: Any = {bounds: text}
            assert call(**given).to_arrow().equals(call(**{bounds: MS}).to_arrow())  # type: ignore[arg-type]
    records = log.records(start_time=text, end_time=MS + 30)
    assert [record.timestamp for record in records] == [MS + 2, MS + 28]
    assert log.plan(10_000, start_time=text) == log.plan(10_000, start_time=MS)
    # the bound of a range is rounded up, and the time of a record down
    of_record = MS - 1 if "249001" in text else MS
    assert cw.Record(b"", timestamp=text).timestamp == of_record
    with cw.LogWriter(tmp_path / "orders-0") as writer:
        assert writer.append(b"", timestamp=text).max_timestamp == of_record
        assert writer.apply_retention(text).segments == []
    with cw.TimeIndex(PLAIN / "00000000000000000000.timeindex") as index:
        assert index.lookup(text) == index.lookup(MS)


def test_a_text_without_a_zone_is_in_the_zone_of_the_call(tmp_path: Path) -> None:
    local: dict[str, Any] = {"tz": "Europe/Berlin"}
    for number, limits in enumerate(({"start_time": "2023-11-14T23:13:20.250", **local}, {"start_time": MS})):
        cw.copy(PLAIN, tmp_path / f"copied-{number}", **limits)
        dumped = cw.dump(min(PLAIN.glob("*.log")), deep_iteration=True)
        (tmp_path / f"{number}").write_text(repr([batch.to_pylist() for batch in dumped.rows(**limits)]))
    assert cw.diff(tmp_path / "copied-0", tmp_path / "copied-1").is_same
    starts = [[segment.base_offset for segment in cw.Log(tmp_path / f"copied-{n}").segments] for n in range(2)]
    assert starts[0] == starts[1]
    assert (tmp_path / "0").read_text() == (tmp_path / "1").read_text()
    # records of 10:00 in Berlin are deleted when they are more than an hour old
    config = cw.LogConfig(cleanup_policy="compact,delete", retention_ms=3_600_000, segment_bytes=200)
    with (
        cw.LogWriter(tmp_path / "orders-0", config=config) as writer,
        cw.LogWriter(tmp_path / "orders-1", config=config) as other,
    ):
        for _ in range(3):
            writer.append(b"v" * 100, key=b"k", timestamp="2024-05-01T08:00Z")
            other.append(b"v" * 100, key=b"k", timestamp="2024-05-01T08:00Z")
        log = cw.Log(writer.path)
        for now, count in (("2024-05-01T11:00", 0), ("2024-05-01T11:00:00.001", 3)):
            assert len(cw.plan_retention(log, config, now, **local).segments) == count
            with pytest.raises(cw.ConfigError, match="a time with a time zone"):
                cw.plan_retention(log, config, now)
        assert cw.plan_compaction(log, config, "2024-05-01T11:00", **local).keys == 1
        assert other.compact("2024-05-01T11:00", **local).is_due
        assert writer.apply_retention("2024-05-01T11:00", **local).segments == []
        assert len(writer.apply_retention("2024-05-01T11:00:00.001", **local).segments) == 3
        for call in (writer.apply_retention, writer.compact):
            with pytest.raises(cw.ConfigError, match=r"^tz: expected the name of a time zone"):
                call(tz="Europe/Nowhere")


def test_a_date_is_midnight_in_utc() -> None:
    assert cw.Record(b"", timestamp="2024-05-01").timestamp == datetime(2024, 5, 1, tzinfo=UTC).timestamp() * 1000


def test_a_duration_with_a_minus_is_before_now() -> None:
    for text, ms in [("now", 0), ("-2h", 7_200_000), ("-1h30m", 5_400_000)]:
        before = time.time_ns() // 1_000_000
        given = cw.Record(b"", timestamp=text).timestamp
        assert before - ms <= given <= time.time_ns() // 1_000_000 - ms


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("soon", r"a time in one of the forms 2024-05-01T10:00Z, "),
        ("2024-05-01T10:00", r"a time with a time zone: add Z for UTC \(2024-05-01T10:00Z\)"),
        ("20240501", r"a date as 2024-05-01 or milliseconds since the epoch as 20240501ms"),
        ("2024", r"a date as 2024-01-01 or milliseconds since the epoch as 2024ms"),
        ("1969-12-31", r"a time from 1970-01-01"),
        ("-99999999999w", r"a time from 1970-01-01"),
    ],
)
def test_a_string_that_is_not_a_time_is_refused_with_the_name_of_the_argument(text: str, words: str) -> None:
    with pytest.raises(cw.ConfigError, match=rf"^start_time: expected {words}.*, found {text!r}".replace("'", '"')):
        cw.Log(PLAIN).scan(start_time=text)
    with pytest.raises(ValueError, match=f"^expected {words}"):
        parse(text)


@given(
    st.datetimes(min_value=datetime(1970, 1, 3), max_value=datetime(9998, 1, 1)),  # noqa: DTZ001
    st.integers(-1439, 1439),
    st.sampled_from(["hours", "minutes", "seconds", "milliseconds", "microseconds"]),
    st.sampled_from("T "),
    st.booleans(),
    st.booleans(),
)
def test_iso_8601_is_read_as_python_reads_it(  # noqa: PLR0917  (the parts of a text)
    local: datetime, minutes: int, precision: str, separator: str, is_basic: bool, rounds_up: bool
) -> None:
    moment = local.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    text = moment.isoformat(separator, precision)
    if is_basic:
        date, rest = text[:10], text[10:]
        text = date.replace("-", "") + rest.replace(":", "")
    since = datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)
    millisecond = timedelta(milliseconds=1)
    assert parse(text, rounds_up=rounds_up) == (-(-since // millisecond) if rounds_up else since // millisecond)
    naive = text[:-6] if not is_basic else text[:-5]
    assert parse(naive, zone=moment.tzinfo, rounds_up=rounds_up) == parse(text, rounds_up=rounds_up)


def test_a_zone_has_its_offset_at_that_time() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    for text, offset in [("2024-01-15", 1), ("2024-07-15T12:30", 2), ("2024-07-15 12:30:00.5", 2)]:
        hours = timezone(timedelta(hours=offset))
        assert parse(text, zone=berlin) == datetime.fromisoformat(text).replace(tzinfo=hours).timestamp() * 1000


@pytest.mark.parametrize(
    ("text", "zone", "words"),
    [
        ("2024-10-27 02:30", "Europe/Berlin", "has twice.*: 2024-10-27 02:30+02:00 or 2024-10-27 02:30+01:00"),
        ("2024-03-31T02:30", "Europe/Berlin", "leaves out.*: 2024-03-31T02:30+01:00 or 2024-03-31T02:30+02:00"),
        ("2024-11-03T01:00:00.5", "America/St_Johns", "has twice.*: 2024-11-03T01:00:00.5-02:30 or .*-03:30"),
    ],
)
def test_a_local_time_that_is_not_one_time_is_refused_with_the_two_that_it_may_be(
    text: str, zone: str, words: str
) -> None:
    pattern = words.replace("+", r"\+")
    with pytest.raises(ValueError, match=pattern):
        parse(text, zone=ZoneInfo(zone))
    for bound in ({"start_time": text}, {"end_time": text}):
        with pytest.raises(cw.ConfigError, match=pattern):
            cw.Log(PLAIN).scan(**bound, tz=zone)  # type: ignore[arg-type]


def test_a_day_begins_at_its_first_moment() -> None:
    """Its midnight may be left out, or be there twice."""
    for text, zone, moment in [
        ("2018-11-04", "America/Sao_Paulo", "2018-11-04T03:00Z"),
        ("2024-11-03", "America/Havana", "2024-11-03T04:00Z"),
        ("2024-10-27", "Europe/Berlin", "2024-10-26T22:00Z"),
    ]:
        assert parse(text, zone=ZoneInfo(zone)) == parse(moment)
