"""The column `error` of scans, batches and `cat`: structs equal to `damaged_ranges`, null in other rows."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.test_commands import cordwood

import cordwood as cw
from core.test_damaged import BROKEN, ENDS, HARMLESS, LAWFUL, Damage

STRUCT = pa.struct(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("start_position", pa.int64(), nullable=False),
        pa.field("end_position", pa.int64(), nullable=False),
        pa.field("start_offset", pa.int64(), nullable=False),
        pa.field("end_offset", pa.int64()),
        pa.field("reason", pa.string(), nullable=False),
    ]
)
ALL = HARMLESS + LAWFUL + ENDS + BROKEN
(FLIPPED,) = (damage for damage in BROKEN if damage.name == "flip-record")
(TORN,) = (damage for damage in ENDS if damage.name == "torn-in-header")


def as_structs(ranges: list[cw.DamagedRange]) -> list[dict[str, Any]]:
    return [{name: getattr(damage, name) for name in (field.name for field in STRUCT)} for damage in ranges]


def check(scan: cw.Scan, *, names: tuple[str, str]) -> None:
    """*names* are the columns of the offset and of the position."""
    field = scan.schema.field("error")
    assert (field.type, field.nullable) == (STRUCT, True)
    table = scan.to_arrow()
    table.validate(full=True)
    bad = table.filter(table["error"].is_valid()).to_pylist()
    assert [row["error"] for row in bad] == as_structs(scan.damaged_ranges)
    for row in bad:
        assert [row[name] for name in names] == [row["error"]["start_offset"], row["error"]["start_position"]]
    good = table.filter(table["error"].is_null())
    assert all(good[name].null_count == 0 for name in names)


@pytest.mark.parametrize("damage", ALL, ids=str)
def test_each_damaged_range_is_a_struct_in_its_row(damage: Damage) -> None:
    log = damage.open()
    for settings in ({}, {"max_rows": 1}, {"threads": 2}):
        check(log.scan(on_damage="report", columns=["offset", "position"], **settings), names=("offset", "position"))
    check(log.batches(on_damage="report"), names=("base_offset", "position"))
    if damage in BROKEN:
        assert any(row is not None for row in log.scan(on_damage="report").to_arrow()["error"].to_pylist())


@pytest.mark.parametrize("damage", ALL, ids=str)
def test_a_range_without_an_end_offset_is_the_tail_of_the_log(damage: Damage) -> None:
    log = damage.open()
    scan = log.scan(on_damage="skip")
    scan.to_arrow()
    for damaged in scan.damaged_ranges:
        assert damaged.is_tail == (damaged.end_offset is None)
        assert not damaged.is_tail or damaged.file == log.segments[-1].path
    if damage in ENDS:
        assert [damaged.is_tail for damaged in scan.damaged_ranges] in ([], [True])


def test_a_data_directory_has_the_same_column(copied: Any) -> None:
    path = copied(FLIPPED.path)
    scan = cw.LogDir(path.parent).scan(on_damage="report")
    assert scan.schema.field("error").type == STRUCT
    errors = [error for error in scan.to_arrow()["error"].to_pylist() if error is not None]
    assert errors == as_structs(scan.damaged_ranges)
    assert len(errors) == 1


def test_the_other_modes_have_no_such_column() -> None:
    for mode in ("raise", "skip"):
        assert "error" not in FLIPPED.open().scan(on_damage=mode).schema.names


@pytest.mark.parametrize("damage", [FLIPPED, TORN], ids=str)
def test_cat_writes_the_struct_in_every_format(damage: Damage, tmp_path: Path) -> None:
    scan = damage.open().scan(on_damage="report")
    table = scan.to_arrow()
    wanted = table["error"].to_pylist()
    report = ("cat", damage.path, "--on-damage", "report")
    code = 1 if scan.damaged_ranges else 0

    def output(*arguments: object) -> bytes:
        done = cordwood(*report, *arguments)
        assert done.returncode == code, done.stderr
        return done.stdout

    lines = [json.loads(line) for line in output().splitlines()]
    assert [line["error"] for line in lines] == wanted
    cells = [row["error"] for row in csv.DictReader(io.StringIO(output("--format", "csv").decode()))]
    assert [json.loads(cell) if cell else None for cell in cells] == wanted
    output("-o", tmp_path / "x.arrow")
    with pa.ipc.open_file(tmp_path / "x.arrow") as file:
        read = file.read_all()
    assert (read.schema.field("error").type, read["error"].to_pylist()) == (STRUCT, wanted)
    output("-o", tmp_path / "x.parquet")
    assert pq.read_table(tmp_path / "x.parquet")["error"].to_pylist() == wanted
