"""Arrow export: the stream interface, exact types, and the dataframe libraries that accept it."""

from __future__ import annotations

from pathlib import Path

import corpus
import pyarrow as pa
import pytest
from scripts import run, write_script
from tables import DEFAULT_COLUMNS, MORE_COLUMNS, column, expected_rows, rows

import cordwood as cw

EDGE = corpus.partition("07-edge-values")
PLAIN = corpus.partition("01-plain")
EMPTY = corpus.partition("15-empty")

TYPES = {
    "offset": pa.int64(),
    "timestamp": pa.timestamp("ms", tz="UTC"),
    "timestamp_type": pa.int8(),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}


def without_nullability(kind: pa.DataType) -> pa.DataType:
    """The same type with default field names and nullability inside lists, which do not matter to a user."""
    if pa.types.is_list(kind):
        return pa.list_(without_nullability(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, without_nullability(f.type)) for f in kind])
    return kind


@pytest.mark.parametrize("part", [PLAIN, EDGE, EMPTY, corpus.partition("17-v0-none")], ids=str)
def test_the_default_columns_have_exactly_these_types(part: corpus.Partition) -> None:
    scan = cw.Log(part.path).scan()
    table = scan.to_arrow()
    assert {f.name: without_nullability(f.type) for f in table.schema} == TYPES
    assert pa.schema(scan.schema).names == DEFAULT_COLUMNS
    assert table.schema.equals(pa.schema(scan.schema))


def test_header_keys_as_bytes_have_a_binary_type() -> None:
    table = cw.Log(EDGE.path).scan(header_keys="binary", timestamp_unit="us").to_arrow()
    kind = without_nullability(table.schema.field("headers").type)
    assert kind == pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
    assert table.schema.field("timestamp").type == pa.timestamp("us", tz="UTC")


def test_integers_of_the_optional_columns_are_wide_enough() -> None:
    schema = cw.Log(EDGE.path).scan(columns=MORE_COLUMNS).to_arrow().schema
    for name in ("producer_id", "batch_base_offset", "segment_base_offset"):
        assert schema.field(name).type == pa.int64()
    for name in ("partition", "leader_epoch", "sequence", "position", "key_size", "value_size"):
        assert schema.field(name).type in (pa.int32(), pa.int64()), name
    for name in ("is_transactional", "is_control"):
        assert schema.field(name).type == pa.bool_()
    assert schema.field("producer_epoch").type in (pa.int16(), pa.int32())
    assert schema.field("magic").type == pa.int8()


@pytest.mark.parametrize("part", [EMPTY, PLAIN], ids=str)
@pytest.mark.parametrize("mode", ["raise", "report"])
def test_an_empty_result_keeps_the_schema(part: corpus.Partition, mode: str) -> None:
    log = cw.Log(part.path)
    empty = log.scan(start_offset=0, end_offset=0, on_damage=mode)
    full = log.scan(on_damage=mode)
    assert empty.to_arrow().num_rows == 0
    assert empty.to_arrow().schema.equals(full.to_arrow().schema)
    assert list(empty) == [] or all(b.num_rows == 0 for b in empty)
    assert ("error" in empty.to_arrow().column_names) == (mode == "report")


def test_an_empty_batch_listing_keeps_its_schema() -> None:
    assert cw.Log(EMPTY.path).batches().to_arrow().schema.equals(cw.Log(PLAIN.path).batches().to_arrow().schema)


def test_a_scan_is_consumed_as_a_stream_by_pyarrow() -> None:
    scan = cw.Log(EDGE.path).scan(max_rows=9)
    wanted = scan.to_arrow()
    assert pa.table(scan).equals(wanted)
    reader = pa.RecordBatchReader.from_stream(cw.Log(EDGE.path).scan(max_rows=9))
    assert reader.schema.equals(wanted.schema)
    assert reader.read_all().equals(wanted)
    assert rows(wanted) == expected_rows(corpus.visible(EDGE))


def test_the_capsule_has_the_name_of_the_interface() -> None:
    capsule = cw.Log(PLAIN.path).scan().__arrow_c_stream__()
    assert type(capsule).__name__ == "PyCapsule"
    assert '"arrow_array_stream"' in repr(capsule)
    del capsule  # a capsule that nobody consumed must free what it holds


def test_a_capsule_is_an_arrow_stream_with_a_requested_schema_ignored_or_met() -> None:
    scan = cw.Log(PLAIN.path).scan(columns=["offset"])
    table = pa.table(scan, schema=pa.schema([("offset", pa.int64())]))
    assert table["offset"].to_pylist() == list(range(1500))


def test_a_scan_can_be_consumed_again_and_twice_at_once() -> None:
    scan = cw.Log(EDGE.path).scan(max_rows=7)
    wanted = rows(scan.to_arrow())
    assert rows(scan.to_arrow()) == wanted
    assert rows(pa.table(scan)) == wanted
    left, right = iter(scan), iter(scan)
    pairs = list(zip(left, right, strict=True))
    assert all(one.equals(other) for one, other in pairs)
    assert len(pairs) == -(-len(wanted) // 7)


def test_a_partly_consumed_scan_can_be_dropped_and_started_again() -> None:
    scan = cw.Log(PLAIN.path).scan(max_rows=10)
    first = next(iter(scan))
    assert first.num_rows == 10
    assert next(iter(scan)).equals(first)


def test_arrow_data_outlives_the_scan_and_the_log() -> None:
    log = cw.Log(PLAIN.path, io="mmap")
    scan = log.scan()
    table = scan.to_arrow()
    del scan, log
    assert rows(table) == expected_rows(corpus.visible(PLAIN))


def test_every_batch_of_a_stream_is_valid_arrow() -> None:
    for part in (EDGE, corpus.partition("06-mixed-codecs"), corpus.partition("17-v0-lz4"), EMPTY):
        table = cw.Log(part.path).scan(columns=[*DEFAULT_COLUMNS, *MORE_COLUMNS], include_control=True).to_arrow()
        table.validate(full=True)
    cw.Log(EDGE.path).batches().to_arrow().validate(full=True)


def test_polars_accepts_the_stream() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(cw.Log(EDGE.path).scan(columns=["offset", "key", "value", "timestamp"]))
    wanted = corpus.visible(EDGE)
    assert frame["offset"].to_list() == [r.offset for r in wanted]
    assert frame["value"].to_list() == [r.value for r in wanted]
    assert frame.schema["timestamp"] == pl.Datetime("ms", "UTC")


def test_to_polars_is_the_same_frame() -> None:
    pl = pytest.importorskip("polars")
    frame = cw.Log(EDGE.path).scan().to_polars()
    wanted = corpus.visible(EDGE)
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == DEFAULT_COLUMNS
    assert frame["key"].to_list() == [r.key for r in wanted]
    headers = [None if h is None else [(x["key"], x["value"]) for x in h] for h in frame["headers"].to_list()]
    assert headers == [list(r.headers) or None for r in wanted]


def test_to_pandas_has_the_values_and_an_aware_index_of_time() -> None:
    pd = pytest.importorskip("pandas")
    frame = cw.Log(EDGE.path).scan().to_pandas()
    wanted = corpus.visible(EDGE)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == DEFAULT_COLUMNS
    assert frame["offset"].tolist() == [r.offset for r in wanted]
    assert [None if v is None or v is pd.NA else bytes(v) for v in frame["value"]] == [r.value for r in wanted]
    assert str(frame["timestamp"].dt.tz) == "UTC"
    assert [int(t.timestamp() * 1000 + 0.5) for t in frame["timestamp"]] == [r.timestamp for r in wanted]


def test_pandas_shows_a_missing_time_as_missing() -> None:
    pd = pytest.importorskip("pandas")
    part = corpus.partition("08-no-timestamps")
    frame = cw.Log(part.path).scan(columns=["timestamp"]).to_pandas()
    assert [pd.isna(t) for t in frame["timestamp"]] == [r.timestamp == -1 for r in corpus.visible(part)]


def test_null_and_empty_bytes_are_told_apart() -> None:
    table = cw.Log(EDGE.path).scan().to_arrow()
    wanted = corpus.visible(EDGE)
    assert None in [r.key for r in wanted]
    assert b"" in [r.key for r in wanted]
    assert table["key"].null_count == sum(r.key is None for r in wanted)
    assert table["value"].null_count == sum(r.value is None for r in wanted)
    assert table["headers"].null_count == sum(not r.headers for r in wanted)


def test_bulk_look_ups_accept_numpy_arrow_and_lists() -> None:
    np = pytest.importorskip("numpy")
    log = cw.Log(PLAIN.path)
    targets = [1499, 0, 700, 2000, 3, 3]
    wanted = log.locate_many(targets)
    assert [row["segment_base_offset"] for row in wanted.to_pylist()] == [1217, 0, 400, None, 0, 0]
    for form in (
        np.array(targets, dtype=np.int64),
        np.array(targets * 2, dtype=np.int64)[::1][: len(targets)],
        pa.array(targets),
        pa.chunked_array([targets[:2], targets[2:]], type=pa.int64()),
        tuple(targets),
    ):
        assert log.locate_many(form).equals(wanted), type(form)
    times = np.array([0, 1_700_000_010_000], dtype=np.int64)
    assert log.offsets_for_times(times).equals(log.offsets_for_times(times.tolist()))


def test_a_strided_array_is_read_in_its_own_order() -> None:
    np = pytest.importorskip("numpy")
    log = cw.Log(PLAIN.path)
    array = np.arange(1500, dtype=np.int64)[::-7]
    assert log.locate_many(array).equals(log.locate_many(array.tolist()))


def test_a_damaged_stream_ends_with_an_error_in_every_interface() -> None:
    path = corpus.GOLDEN / "damaged/flip-record/tickets-0"
    scan = cw.Log(path).scan()
    for consume in (scan.to_arrow, lambda: list(scan), scan.to_pandas, scan.to_polars):
        with pytest.raises(cw.CorruptLogError) as raised:
            consume()
        assert raised.value.position == 2126
    with pytest.raises((OSError, pa.ArrowException, cw.CorruptLogError), match="285"):
        pa.table(scan)


def test_only_the_selected_columns_are_in_memory() -> None:
    small = cw.Log(EDGE.path).scan(columns=["offset"]).to_arrow()
    assert column(small, "offset") == [r.offset for r in corpus.visible(EDGE)]
    assert small.nbytes < 20 * small.num_rows


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise ImportError('libarrow.so: bad ELF header')", "ImportError: libarrow.so: bad ELF header"),
        ("import a_module_that_pyarrow_needs", "ModuleNotFoundError: No module named 'a_module_that_pyarrow_needs'"),
        (None, 'ImportError: this needs pyarrow, which is not installed: pip install "cordwood[arrow]"'),
    ],
)
def test_only_a_missing_module_is_reported_as_not_installed(
    tmp_path: Path, script_environment: dict[str, str], body: str | None, wanted: str
) -> None:
    if body is not None:
        (tmp_path / "pyarrow.py").write_text(body)
    script = write_script(
        tmp_path,
        f"""
        import sys
        import cordwood as cw
        sys.path = [{str(tmp_path)!r}, *(path for path in sys.path if "site-packages" not in path)]
        try:
            cw.Log(sys.argv[1]).scan().to_arrow()
        except BaseException as error:
            print(f"{{type(error).__name__}}: {{error}}".removesuffix(": "))
        """,
    )
    done = run(script, corpus.partition("01-small").path, env=script_environment)
    assert done.stdout == f"{wanted}\n"
