"""A timestamp in another unit than milliseconds is refused by everything that appends."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import cordwood as cw
from cordwood._core import _other_unit

NOW_NS = 1_795_875_753_508_123_456
NUMBERS = {"seconds": NOW_NS // 10**9, "microseconds": NOW_NS // 1000, "nanoseconds": NOW_NS}
APPENDS: dict[str, Callable[[cw.LogWriter, int], object]] = {
    "append": lambda writer, timestamp: writer.append(b"", timestamp=timestamp),
    "append_many": lambda writer, timestamp: writer.append_many([cw.Record(b"", timestamp=timestamp)]),
    "append_async": lambda writer, timestamp: writer.append_async(b"", timestamp=timestamp).send(None),
    "append_arrow": lambda writer, timestamp: writer.append_arrow(
        pa.table({"value": [b"", b""], "timestamp": [-1, timestamp]})
    ),
    "producer": lambda writer, timestamp: writer.producer().append(b"", timestamp=timestamp),
    "transaction": lambda writer, timestamp: writer.transaction("t").append(b"", timestamp=timestamp),
}


@pytest.mark.parametrize("unit", NUMBERS)
@pytest.mark.parametrize("append", APPENDS)
def test_a_timestamp_in_another_unit_is_an_error_that_names_it(append: str, unit: str, tmp_path: Path) -> None:
    with cw.LogWriter(tmp_path / "orders-0") as writer:
        with pytest.raises(cw.ConfigError, match=rf"timestamp.* found {NUMBERS[unit]}, .* in {unit}"):
            APPENDS[append](writer, NUMBERS[unit])
        assert writer.log_end_offset == 0


@pytest.mark.parametrize("timestamp", [-1, 0, 1, 12_345, 86_400_000, NOW_NS // 10**6, 1 << 62, (1 << 63) - 1])
def test_other_numbers_are_milliseconds(timestamp: int, tmp_path: Path) -> None:
    config = cw.LogConfig(message_timestamp_after_max_ms=(1 << 63) - 1)
    with cw.LogWriter(tmp_path / "orders-0", config=config) as writer:
        writer.append(b"", timestamp=timestamp)
        writer.append_arrow(pa.table({"value": [b""], "timestamp": [timestamp]}))
        assert [record.timestamp for record in writer.reader().records()] == [timestamp] * 2


def test_a_time_with_a_unit_is_stored_whatever_it_is(tmp_path: Path) -> None:
    early = NUMBERS["seconds"]
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=early)
    with cw.LogWriter(tmp_path / "orders-0") as writer:
        writer.append(b"", timestamp=moment)
        writer.append(b"", timestamp=moment.isoformat())
        writer.append_arrow(pa.table({"value": [b""], "timestamp": pa.array([early], pa.timestamp("ms", "UTC"))}))
        # what was read has its unit
        writer.append_many(list(writer.reader().records()))
        assert [record.timestamp for record in writer.reader().records()] == [early] * 6


def test_the_unit_of_a_number_is_named_with_the_time_that_it_is() -> None:
    for unit, number in NUMBERS.items():
        found = _other_unit(number)
        assert found is not None
        name, milliseconds = found
        assert name == unit
        assert abs(milliseconds - NOW_NS // 10**6) < 1000
    assert _other_unit(NOW_NS // 10**6) is None
