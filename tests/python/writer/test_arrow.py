"""`LogWriter.append_arrow`: tables and streams of any library, and the results of scans."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import corpus
import polars as pl
import pyarrow as pa
import pytest

import cordwood as cw

T = 1_700_000_000_000


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[cw.LogWriter]:
    with cw.LogWriter(tmp_path / "orders-0", config=cw.LogConfig(max_message_bytes=2 << 20)) as writer:
        yield writer


def values(writer: cw.LogWriter) -> list[bytes | None]:
    return [record.value for record in writer.reader().records()]


@pytest.mark.parametrize("name", ["01-plain", "07-edge-values", "06-mixed-codecs"])
def test_the_result_of_a_scan_can_be_appended(writer: cw.LogWriter, name: str) -> None:
    log = cw.Log(corpus.partition(name).path)
    columns = ["timestamp", "key", "value", "headers"]
    appended = writer.append_arrow(log.scan(max_rows=100))
    wanted = log.scan(columns=columns).to_arrow()
    copy = writer.reader().scan(columns=columns).to_arrow()
    assert copy.equals(wanted)
    assert (appended.first_offset, appended.last_offset, appended.durable) == (0, wanted.num_rows - 1, True)


@pytest.mark.parametrize(
    "kind",
    [pa.binary(), pa.large_binary(), pa.binary_view(), pa.string(), pa.large_string(), pa.string_view()],
    ids=str,
)
def test_bytes_of_every_kind(writer: cw.LogWriter, kind: pa.DataType) -> None:
    given = ["", None, "x" * 100, "short"]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or kind == pa.binary_view():
        given = [None if v is None else v.encode() for v in given]
    table = pa.table({"value": pa.array(given, kind), "key": pa.array(given[::-1], kind)}).slice(1)
    writer.append_arrow(table)
    got = [(r.value, r.key) for r in writer.reader().records()]
    assert got == [(None, b"x" * 100), (b"x" * 100, None), (b"short", b"")]


@pytest.mark.parametrize(
    ("column", "wanted"),
    [
        (pa.array([1000, None], pa.int64()), 1000),
        (pa.array([-1, None], pa.int64()), -1),
        (pa.array([2, None], pa.timestamp("s", "UTC")), 2000),
        (pa.array([2000, None], pa.timestamp("ms", "Europe/Berlin")), 2000),
        (pa.array([1_000_001, None], pa.timestamp("us", "UTC")), 1000),
        (pa.array([1_000_000_000, None], pa.timestamp("ns", "UTC")), 1000),
        (pa.nulls(2), -1),
    ],
    ids=lambda given: str(getattr(given, "type", given)),
)
def test_times_of_every_kind(writer: cw.LogWriter, column: pa.Array, wanted: int | None) -> None:
    writer.append_arrow(pa.table({"value": ["a", "b"], "timestamp": column}))
    assert [record.timestamp for record in writer.reader().records()] == [wanted, -1]


def test_without_a_column_of_times_the_time_is_now(writer: cw.LogWriter) -> None:
    now = time.time_ns() // 1_000_000
    writer.append_arrow(pa.table({"value": ["a"]}))
    [record] = writer.reader().records()
    assert abs(record.timestamp - now) < 60_000


HEADERS = [[{"key": "a", "value": b"1"}, {"key": "b", "value": None}], None, []]
PAIR = pa.struct([("key", pa.string()), ("value", pa.binary())])


@pytest.mark.parametrize(
    "kind", [pa.list_(PAIR), pa.large_list(PAIR), pa.map_(pa.string(), pa.binary())], ids=["list", "large_list", "map"]
)
def test_headers_of_every_kind(writer: cw.LogWriter, kind: pa.DataType) -> None:
    given: list[Any] = HEADERS
    if pa.types.is_map(kind):
        given = [None if pairs is None else [(p["key"], p["value"]) for p in pairs] for pairs in HEADERS]
    table = pa.table({"value": ["x", "y", "z"], "headers": pa.array(given, kind)})
    writer.append_arrow(table)
    writer.append_arrow(table.slice(1))
    found = [record.headers for record in writer.reader().records()]
    assert found == [[("a", b"1"), ("b", None)], [], [], [], []]


def test_a_polars_frame(writer: cw.LogWriter) -> None:
    frame = pl.DataFrame(
        {
            "value": ["a", "b"],
            "key": [b"k", None],
            "headers": [[{"key": "h", "value": b"1"}], None],
            "timestamp": pl.Series([T, T + 1]).cast(pl.Datetime("ms", "UTC")),
        }
    )
    assert writer.append_arrow(frame).max_timestamp == T + 1
    assert [(r.value, r.key, r.headers) for r in writer.reader().records()] == [
        (b"a", b"k", [("h", b"1")]),
        (b"b", None, []),
    ]


@pytest.mark.parametrize(
    ("table", "named"),
    [
        (pa.table({"value": ["a"], "colour": ["b"], "size": [1]}), "colour, size"),
        (pa.table({"key": ["a"]}), "value"),
        (pa.table({"value": [1]}), "value"),
        (pa.table({"value": ["a"], "key": [1.5]}), "key"),
        (pa.table({"value": ["a"], "timestamp": pa.array([1], pa.timestamp("ms"))}), "time zone"),
        (pa.table({"value": ["a"], "timestamp": pa.array([1], pa.int32())}), "timestamp"),
        (pa.table({"value": ["a"], "headers": [["h"]]}), "headers"),
        (pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["value", "value"]), "once"),
        (pa.table({"value": ["a"], "headers": pa.array([[{"key": None, "value": b""}]], pa.list_(PAIR))}), "name"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_other_columns_are_an_error_that_names_them(writer: cw.LogWriter, table: pa.Table, named: str) -> None:
    with pytest.raises(cw.ConfigError, match=named):
        writer.append_arrow(table)
    assert writer.log_end_offset == 0


def test_a_value_that_is_not_a_table_is_a_type_error(writer: cw.LogWriter) -> None:
    for wrong in ([{"value": b"a"}], b"abc", None):
        with pytest.raises(TypeError, match="__arrow_c_stream__"):
            writer.append_arrow(wrong)  # type: ignore[arg-type]


def test_buffers_that_contradict_each_other_are_refused(writer: cw.LogWriter) -> None:
    offsets = pa.py_buffer(b"".join(n.to_bytes(4, "little") for n in (0, 900, 3)))
    broken = pa.Array.from_buffers(pa.binary(), 2, [None, offsets, pa.py_buffer(b"abc")])
    with pytest.raises(cw.ConfigError, match="value"):
        writer.append_arrow(pa.table({"value": broken}))
    text = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")])
    with pytest.raises(cw.ConfigError, match="value"):
        writer.append_arrow(pa.table({"value": text}))
    assert writer.log_end_offset == 0


def test_an_empty_stream_returns_the_next_offset(writer: cw.LogWriter) -> None:
    writer.append(b"x")
    schema = pa.schema([("value", pa.binary())])
    for empty in (schema.empty_table(), pa.RecordBatchReader.from_batches(schema, [])):
        appended = writer.append_arrow(empty)
        assert (appended.first_offset, appended.last_offset, appended.durable) == (1, 0, True)


def test_a_stream_is_appended_batch_by_batch(writer: cw.LogWriter) -> None:
    """Each batch is in the log before the next is requested."""
    schema = pa.schema([("value", pa.string())])
    seen = []

    def made() -> Iterator[pa.RecordBatch]:
        for number in range(5):
            seen.append(writer.log_end_offset)
            yield pa.record_batch([pa.array([str(number)] * 10)], schema=schema)

    appended = writer.append_arrow(pa.RecordBatchReader.from_batches(schema, made()))
    assert seen == [0, 10, 20, 30, 40]
    assert (appended.first_offset, appended.last_offset) == (0, 49)


def test_a_stream_that_fails_keeps_the_batches_before(writer: cw.LogWriter) -> None:
    schema = pa.schema([("value", pa.string())])

    def made() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array(["kept"])], schema=schema)
        raise RuntimeError("no more of it")

    with pytest.raises(cw.ConfigError, match="no more of it"):
        writer.append_arrow(pa.RecordBatchReader.from_batches(schema, made()))
    assert values(writer) == [b"kept"]
