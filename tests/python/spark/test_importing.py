"""Imports of Parquet files into logs: each row once, though they are interrupted and repeated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from batches import GZIP, LOG_APPEND_TIME, Rec, batch, name, read_records, write_partition

import cordwood as cw
from cordwood.spark import jobs
from spark.conftest import OPTIONS
from spark.exporting import PLAIN
from spark.reading import refuses
from spark.writing import Sink, all_texts, records, texts, values

pytestmark = pytest.mark.python_source


def write_files(folder: Path, files: int, rows: int = 10, **columns: Any) -> list[str]:
    """Files in which the values ascend. Returns all values."""
    folder.mkdir(exist_ok=True)
    for file in range(files):
        found = [f"{file}.{row:03}" for row in range(rows)]
        pq.write_table(pa.table({"value": found, **columns}), folder / f"{file}.parquet")
    (folder / "_SUCCESS").touch()
    return [f"{file}.{row:03}" for file in range(files) for row in range(rows)]


def test_an_import_appends_a_record_for_each_row_in_order(spark: Any, root: Path) -> None:
    given = write_files(root / "in", 3)
    seen: list[jobs.Progress] = []
    dry = jobs.import_parquet(spark, root / "in", root / "data", topic="orders")
    assert (dry.rows, dry.files, dry.skipped, dry.dry_run, dry.columns) == (30, 3, 0, True, ["value"])
    assert not (root / "data").exists()
    done = jobs.import_parquet(
        spark, root / "in", root / "data", topic="orders", step_bytes=1, dry_run=False, progress=seen.append
    )
    assert texts(root / "data" / "orders-0") == given
    assert (done.steps, done.skipped, done.dry_run) == (3, 0, False)
    assert [(one.steps_done, one.rows) for one in seen] == [(0, 0), (1, 10), (2, 20), (3, 30)]
    again = jobs.import_parquet(spark, root / "in", root / "data", topic="orders", step_bytes=1, dry_run=False)
    assert (again.steps, again.skipped) == (3, 3)
    assert texts(root / "data" / "orders-0") == given


def test_an_interrupted_import_continues(spark: Any, root: Path) -> None:
    given = write_files(root / "in", 3)

    class StopError(Exception):
        pass

    def stop(progress: jobs.Progress) -> None:
        if progress.steps_done == 2:
            raise StopError

    arguments = {"topic": "orders", "step_bytes": 1, "dry_run": False}
    with pytest.raises(StopError):
        jobs.import_parquet(spark, root / "in", root / "data", progress=stop, **arguments)
    assert all_texts(root / "data") == Counter(given[:20])
    # others write meanwhile
    Sink(root / "data", "value", topic="orders").run(values("other"))
    done = jobs.import_parquet(spark, root / "in", root / "data", **arguments)
    assert (done.steps, done.skipped) == (3, 2)
    assert texts(root / "data" / "orders-0") == [*given[:20], "other", *given[20:]]


@pytest.mark.long
def test_files_or_arguments_that_changed_are_refused(spark: Any, root: Path) -> None:
    write_files(root / "in", 2)
    jobs.import_parquet(spark, root / "in", root / "data", topic="orders", dry_run=False)
    write_files(root / "in", 3)
    for arguments in ({}, {"dry_run": False}):
        with pytest.raises(jobs.ImportRowsError) as raised:
            jobs.import_parquet(spark, root / "in", root / "data", topic="orders", **arguments)
        assert raised.value.code == "import_changed"
    # the new file alone is another import, and so is another topic
    jobs.import_parquet(spark, root / "in" / "2.parquet", root / "data", topic="orders", dry_run=False)
    jobs.import_parquet(spark, root / "in", root / "data", topic="others", dry_run=False)
    assert [len(texts(root / "data" / name)) for name in ("orders-0", "others-0")] == [30, 30]


@pytest.mark.long
def test_what_was_exported_is_imported_in_its_order(spark: Any, root: Path) -> None:
    jobs.export(spark, PLAIN.path, root / "out", step_bytes=50_000, includeHeaders=True)
    done = jobs.import_parquet(spark, root / "out", root / "data", dry_run=False)
    assert set(done.ignored) == {"date", "timestampType"}

    def contents(path: Path | str) -> list[Any]:
        return [(one.key, one.value, one.timestamp, tuple(one.headers)) for one in cw.Log(path).records()]

    assert contents(root / "data" / "orders-0") == contents(PLAIN.path)


# keys, values, headers and times as a log may have them; headers with one name twice, with null, and without
# a name
RECORDS = [
    Rec(b"v", b"k", 1_700_000_000_000, ((b"a", b"1"),)),
    Rec(None, b"", 1_699_999_999_999, ((b"a", None), (b"b", b""), (b"a", b"2"), (b"a", None))),
    Rec(b"", None, -1, ((b"", b"\xff\x00"), ("é".encode(), None))),
    Rec(b"\xff\xfe", b"\x00", 0),
]


def test_an_export_and_an_import_keep_every_column_of_a_record(spark: Any, root: Path) -> None:
    """Offsets begin at 0 again, and a writer gives no record the time of the append that another log had."""
    late = [Rec(b"late", headers=((b"h", b"x"),), timestamp=1_700_000_001_000)]
    built = [batch(7, RECORDS), batch(11, RECORDS, codec=GZIP), batch(15, late, attributes=LOG_APPEND_TIME)]
    write_partition(root / "given" / "orders-3", [(7, built)])
    given = [*RECORDS, *RECORDS, *late]
    jobs.export(spark, root / "given", root / "out")
    table = ds.dataset(root / "out", format="parquet", partitioning="hive").to_table().sort_by("offset")
    rows = [
        (
            row["offset"],
            row["timestampType"],
            Rec(
                row["value"],
                row["key"],
                unix_millis(row["timestamp"]),
                tuple((one["key"].encode(), one["value"]) for one in row["headers"] or ()),
            ),
        )
        for row in table.to_pylist()
    ]
    raw = (root / "given" / "orders-3" / name(7)).read_bytes()
    assert rows == list(read_records(raw)) == list(zip(range(7, 16), [0] * 8 + [1], given, strict=True))

    jobs.import_parquet(spark, root / "out", root / "data", dry_run=False)
    raw = (root / "data" / "orders-3" / name(0)).read_bytes()
    assert list(read_records(raw)) == [(offset, 0, record) for offset, record in enumerate(given)]


@pytest.mark.parametrize("option", [{"includeHeaders": False}, {"columns": "value"}], ids=str)
def test_an_export_has_the_headers_unless_an_option_leaves_them_out(
    spark: Any, root: Path, option: dict[str, Any]
) -> None:
    write_partition(root / "given" / "orders-0", [(0, [batch(0, RECORDS)])])
    jobs.export(spark, root / "given", root / "all")
    jobs.export(spark, root / "given", root / "some", **option)
    names = [ds.dataset(root / folder, format="parquet").schema.names for folder in ("all", "some")]
    assert ["headers" in found for found in names] == [True, False]


def test_damage_of_an_export_is_not_imported(spark: Any, root: Path) -> None:
    built = [bytearray(batch(4 * n, RECORDS)) for n in range(3)]
    built[1][-1] ^= 1
    write_partition(root / "given" / "orders-0", [(0, [bytes(one) for one in built])])
    done = jobs.export(spark, root / "given", root / "out", mode="PERMISSIVE")
    assert done.rows == 9
    seen: list[Any] = []
    result = jobs.import_parquet(spark, root / "out", root / "data", dry_run=False, progress=seen.append)
    assert (result.rows, result.damage_rows, seen[-1].rows) == (8, 1, 8)
    raw = (root / "data" / "orders-0" / name(0)).read_bytes()
    assert [record for _, _, record in read_records(raw)] == 2 * RECORDS
    # a column of this name that means something else is only ignored
    (root / "other").mkdir()
    pq.write_table(pa.table({"value": ["a", "b"], "_error": [None, "none"]}), root / "other" / "1.parquet")
    result = jobs.import_parquet(spark, root / "other", root / "data", topic="others", dry_run=False)
    assert (result.rows, result.damage_rows) == (2, 0)
    assert texts(root / "data" / "others-0") == ["a", "b"]


def unix_millis(when: datetime) -> int:
    return (when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


@pytest.mark.parametrize("topic", [None, "copied"])
def test_a_new_topic_has_the_partitions_that_the_rows_of_an_import_name(
    spark: Any, root: Path, topic: str | None
) -> None:
    rows = [("orders", 2, b"a"), ("orders", 0, b"b"), ("payments", 1, b"c")]
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    columns[1] = columns[1].cast(pa.int32())
    (root / "in").mkdir()
    pq.write_table(pa.table(columns, ["topic", "partition", "value"]), root / "in" / "1.parquet")
    # left by an import that was interrupted
    (root / "data").mkdir()
    cw.LogWriter(root / "data" / f"{topic or 'orders'}-1").close()
    options = {} if topic is None else {"topic": topic}
    jobs.import_parquet(spark, root / "in", root / "data", dry_run=False, **options)  # type: ignore[arg-type]
    names = (
        ["copied-0", "copied-1", "copied-2"]
        if topic
        else [f"orders-{n}" for n in range(3)] + ["payments-0", "payments-1"]
    )
    assert sorted(path.name for path in (root / "data").iterdir()) == names
    assert all_texts(root / "data") == Counter("abc")


@pytest.mark.long
def test_columns_are_expressions_over_the_files(spark: Any, root: Path) -> None:
    pq.write_table(pa.table({"id": [7, 8], "city": ["Bern", None]}), root / "cities.parquet")
    columns = {"key": "CAST(id AS STRING)", "value": "to_json(struct(*))", "timestamp": "timestamp_millis(id)"}
    jobs.import_parquet(
        spark, root / "cities.parquet", root / "data", columns=columns, topic="cities", numPartitions=1, dry_run=False
    )
    first, second = records(root / "data" / "cities-0")
    assert (first.key, first.timestamp) == (b"7", 7)
    assert [json.loads(one.value or b"") for one in (first, second)] == [{"id": 7, "city": "Bern"}, {"id": 8}]


@pytest.mark.long
def test_a_file_that_is_not_parquet_is_named(spark: Any, root: Path) -> None:
    write_files(root / "in", 1)
    (root / "in" / "x.parquet").write_bytes(b"PAR1 but no more")
    with pytest.raises(jobs.ImportRowsError, match=r"x\.parquet"):
        jobs.import_parquet(spark, root / "in", root / "data", topic="orders")
    (root / "empty").mkdir()
    for path in (root / "none", root / "empty"):
        with pytest.raises(jobs.ImportRowsError, match=path.name):
            jobs.import_parquet(spark, path, root / "data", topic="orders")
    write_files(root / "names", 1, value=[1] * 10)
    with refuses("CORDWOOD_BAD_OPTION", "bigint"):
        jobs.import_parquet(spark, root / "names", root / "data", topic="orders")


@pytest.mark.long
def test_the_command_is_a_dry_run_until_yes(root: Path) -> None:
    given = write_files(root / "in", 2)
    command = [sys.executable, "-m", "cordwood.spark", "import", str(root / "in"), str(root / "data")]
    command += ["--topic", "orders", "--column", "key=substr(value, 3)", "--master", "local[1]"]

    # the defaults are for larger machines
    (root / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in OPTIONS.items()))
    environment = {**os.environ, "SPARK_CONF_DIR": str(root)}

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *more], env=environment, capture_output=True, text=True, check=False)

    dry = run()
    assert dry.returncode == 0, dry.stderr
    assert "20 rows of 2 files" in dry.stdout
    assert "--yes" in dry.stdout
    assert not (root / "data").exists()
    done = run("--yes", "--json", "--step-bytes", "1")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["steps"] == 2
    assert texts(root / "data" / "orders-0") == given
    assert [record.key for record in records(root / "data" / "orders-0")][:2] == [b"000", b"001"]
    wrong = run("--option", "topik=x")
    assert wrong.returncode == 2
    assert "did you mean topic" in wrong.stderr
