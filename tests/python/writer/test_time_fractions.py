"""Times with a fraction of a millisecond, in records to append."""

from __future__ import annotations

import calendar
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
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


def test_no_row_of_an_arrow_table_moves_to_the_next_day(tmp_path: Path) -> None:
    late = datetime(2024, 5, 1, 23, 59, 59, 999_400, tzinfo=UTC)
    table = pa.table({"value": [b"v"], "timestamp": pa.array([late], pa.timestamp("us", "UTC"))})
    with cw.LogWriter(tmp_path / "orders-0") as writer:
        writer.append_arrow(table)
        (record,) = writer.reader().records()
    assert datetime.fromtimestamp(record.timestamp / 1000, UTC) == late.replace(microsecond=999_000)
