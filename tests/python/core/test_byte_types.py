"""`scan(key_type=…, value_type=…)`: keys and values as bytes or text, copied or as views."""

from __future__ import annotations

import pickle
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from batches import GZIP, Rec, batch, name, write_partition

import cordwood as cw

TYPES = {
    "binary": pa.binary(),
    "binary_view": pa.binary_view(),
    "string": pa.string(),
    "string_view": pa.string_view(),
}
VALUES = ["", "short", "a value of more than twelve bytes", "käse" * 10, None]

ENCODED = [None if value is None else value.encode() for value in VALUES]


def partition(path: Path) -> Path:
    records = [Rec(value, key=value) for value in ENCODED]
    batches = [batch(0, records), batch(5, records, codec=GZIP)]
    return write_partition(path / "orders-0", [(0, batches), (10, [batch(10, records)])])


@pytest.mark.parametrize("wanted", TYPES)
@pytest.mark.parametrize("io", ["auto", "mmap", "pread"])
def test_every_type_has_the_same_rows(tmp_path: Path, wanted: str, io: str) -> None:
    log = cw.Log(partition(tmp_path), io=io)  # type: ignore[arg-type]
    for threads in (1, 2):
        scan = log.scan(columns=["key", "value"], key_type=wanted, value_type=wanted, threads=threads)  # type: ignore[arg-type]
        rows = VALUES if wanted.startswith("string") else ENCODED
        for table in (scan.to_arrow(), pa.table(scan), pickle.loads(pickle.dumps(scan)).to_arrow()):
            table.validate(full=True)
            assert table.schema.field("key").type == table.schema.field("value").type == TYPES[wanted]
            assert table.column("key").to_pylist() == table.column("value").to_pylist() == 3 * rows


def test_the_types_are_those_of_key_and_value_alone(tmp_path: Path) -> None:
    log = cw.Log(partition(tmp_path))
    assert log.scan(key_type="string").schema.field("value").type == pa.binary()
    assert log.scan(key_type="string").schema.names == log.scan().schema.names
    directory = cw.LogDir(tmp_path).scan(value_type="string_view")
    assert directory.to_arrow().column("value").to_pylist() == 3 * VALUES


def test_polars_and_pandas(tmp_path: Path) -> None:
    log = cw.Log(partition(tmp_path))
    assert log.scan().to_polars().schema["value"] == pl.Binary
    frame = log.scan(value_type="string").to_polars()
    assert frame.schema["value"] == pl.String
    assert frame["value"].to_list() == 3 * VALUES
    assert frame["key"].to_list() == 3 * ENCODED
    assert log.scan(value_type="string").to_pandas()["value"].iloc[3] == VALUES[3]


def test_a_frame_outlives_its_files(tmp_path: Path) -> None:
    path = partition(tmp_path)
    frame = cw.Log(path).scan().to_polars()
    (path / name(0)).write_bytes(b"")
    assert frame["value"].to_list() == 3 * ENCODED


def test_bytes_that_are_not_utf8_are_an_error(tmp_path: Path) -> None:
    path = write_partition(tmp_path / "orders-0", [(0, [batch(0, [Rec(b"text", key=b"\xff"), Rec(b"\xff")])])])
    log = cw.Log(path)
    for wanted in ("string", "string_view"):
        with pytest.raises(cw.ConfigError, match=r"value_type.*offset 1") as raised:
            log.scan(value_type=wanted).to_arrow()  # type: ignore[arg-type]
        assert "binary" in str(raised.value)
        with pytest.raises(cw.ConfigError, match=r"key_type.*offset 0"):
            log.scan(key_type=wanted).to_polars()  # type: ignore[arg-type]
        assert log.scan(value_type=wanted, columns=["key"]).to_arrow().num_rows == 2  # type: ignore[arg-type]


def test_an_unknown_type_is_refused(tmp_path: Path) -> None:
    log = cw.Log(partition(tmp_path))
    with pytest.raises(cw.ConfigError, match=r'^key_type: expected "binary" or "binary_view"'):
        log.scan(key_type="bytes")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^value_type: expected"):
        log.scan(value_type=bytes)  # type: ignore[arg-type]
