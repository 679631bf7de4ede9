"""Times with a fraction of a millisecond, in records to append."""

from __future__ import annotations

import calendar
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import cordwood as cw

MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(MOMENTS)
@example(datetime(2024, 5, 1, 23, 59, 59, 999_400, tzinfo=UTC))
def test_a_fraction_of_a_millisecond_is_left_out(moment: datetime) -> None:
    """By a datetime and by its text; a column of Arrow is tested in the core."""
    whole = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    expected = calendar.timegm(whole.utctimetuple()) * 1000 + whole.microsecond // 1000
    assert cw.Record(b"", timestamp=moment).timestamp == expected
    assert cw.Record(b"", timestamp=moment.isoformat()).timestamp == expected


@given(st.datetimes(datetime(1969, 12, 31, 23, 59, 59, 999_000), datetime(1969, 12, 31, 23, 59, 59, 999_999)))  # noqa: DTZ001
@example(datetime(1969, 12, 31, 23, 59, 59, 999_500))  # noqa: DTZ001
def test_a_time_in_the_last_millisecond_before_1970_is_not_taken_for_none(local: datetime) -> None:
    moment = local.replace(tzinfo=UTC)
    for timestamp in (moment, moment.isoformat()):
        with pytest.raises(cw.ConfigError, match="timestamp: expected a time"):
            cw.Record(b"", timestamp=timestamp)
    with tempfile.TemporaryDirectory() as folder, cw.LogWriter(Path(folder, "orders-0")) as writer:
        with pytest.raises(cw.ConfigError, match="timestamp: expected a time"):
            writer.append(b"", timestamp=moment)
        assert writer.log_end_offset == 0


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_a_column_of_arrow_has_no_time_in_the_last_millisecond_before_1970(tmp_path: Path, unit: str) -> None:
    factor = {"us": 1000, "ns": 1_000_000}[unit]

    def table(*values: int | None) -> pa.Table:
        return pa.table({"value": ["v"] * len(values), "timestamp": pa.array(values, pa.timestamp(unit, "UTC"))})

    with cw.LogWriter(tmp_path / "orders-0") as writer:
        for value in (-1, 1 - factor, -factor // 2):
            with pytest.raises(
                cw.ConfigError, match=f"timestamp: expected a time from 1970.*found {value} .s in row 2"
            ):
                writer.append_arrow(table(0, None, value))
        assert writer.log_end_offset == 0
        # -1 ms as a whole is the time of a record without one, as Spark's source has it
        writer.append_arrow(table(0, None, -factor))
        assert [record.timestamp for record in writer.reader().records()] == [0, -1, -1]


def test_no_row_of_an_arrow_table_moves_to_the_next_day(tmp_path: Path) -> None:
    late = datetime(2024, 5, 1, 23, 59, 59, 999_400, tzinfo=UTC)
    table = pa.table({"value": [b"v"], "timestamp": pa.array([late], pa.timestamp("us", "UTC"))})
    with cw.LogWriter(tmp_path / "orders-0") as writer:
        writer.append_arrow(table)
        (record,) = writer.reader().records()
    assert datetime.fromtimestamp(record.timestamp / 1000, UTC) == late.replace(microsecond=999_000)
