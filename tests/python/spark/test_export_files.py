"""The Parquet files of an export are compared with the log."""

from __future__ import annotations

import shutil
from pathlib import Path

import needs_pyspark  # noqa: F401
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cordwood.spark.jobs.errors import ExportError
from cordwood.spark.jobs.footers import read_footer
from cordwood.spark.jobs.journal import Plan
from cordwood.spark.jobs.ranges import Range, Step
from spark.exporting import DATES, a_plan, go, seen, tree, wanted, write_step


def test_a_finished_export_repeated_changes_nothing(tmp_path: Path) -> None:
    plan = a_plan()
    output = tmp_path / "out"
    first = go(output, plan)
    before = tree(output)

    def never(_: Step, __: Path) -> None:
        raise AssertionError("a finished step was written again")

    again = go(output, plan, write=never)
    assert tree(output) == before
    assert (again.rows, again.files, again.size) == (first.rows, first.files, first.size)
    assert (again.ranges, again.skipped) == (0, first.ranges)


def test_a_removed_file_is_an_error_with_partition_and_counts(tmp_path: Path) -> None:
    output = tmp_path / "out"
    go(output, a_plan())
    gone = output / "topic=orders" / f"date={DATES[0]}" / "part-00001-0000.parquet"
    gone.unlink()
    with pytest.raises(ExportError, match=r"orders-0: the log has 30 records and the Parquet files 25") as caught:
        go(output, a_plan())
    assert str(gone) in str(caught.value)
    assert (caught.value.expected, caught.value.found) == ("30", "25")


def test_a_foreign_file_in_the_output_is_an_error(tmp_path: Path) -> None:
    output = tmp_path / "out"
    go(output, a_plan())
    ours = output / "topic=orders" / f"date={DATES[0]}" / "part-00001-0000.parquet"
    shutil.copy(ours, ours.with_name("copy.parquet"))
    with pytest.raises(ExportError, match=r"copy\.parquet is not part of this export"):
        go(output, a_plan())


def test_a_file_with_other_rows_is_an_error(tmp_path: Path) -> None:
    output = tmp_path / "out"
    go(output, a_plan())
    ours = output / "topic=orders" / f"date={DATES[0]}" / "part-00001-0000.parquet"
    pq.write_table(pq.read_table(ours, partitioning=None).slice(1), ours)
    with pytest.raises(ExportError, match=r"orders-0: the log has 30 records and the Parquet files 29"):
        go(output, a_plan())


def test_a_torn_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    output = tmp_path / "out"
    go(output, a_plan())
    ours = output / "topic=orders" / f"date={DATES[0]}" / "part-00001-0000.parquet"
    ours.write_bytes(ours.read_bytes()[:-1])
    with pytest.raises(ExportError, match=r"part-00001-0000\.parquet"):
        go(output, a_plan())


def test_a_step_that_lost_rows_is_not_published(tmp_path: Path) -> None:
    def losing(step: Step, staging: Path) -> None:
        write_step(step, staging)
        if step.number == 1:
            next(staging.rglob("*.parquet")).unlink()

    output = tmp_path / "out"
    with pytest.raises(ExportError, match=r"orders-[01]: the log has 10 records and the Parquet files 5, in step 1"):
        go(output, a_plan(), write=losing)
    assert seen(output).total() == 20
    go(output, a_plan())
    assert seen(output) == wanted(a_plan())


def test_a_step_without_records_has_no_files(tmp_path: Path) -> None:
    plan = Plan(["/data"], {}, {}, "{}", "{}", [Step(0, (Range("orders", 0, "/data/orders-0", 5, 5),))])
    output = tmp_path / "out"

    def nothing(_: Step, staging: Path) -> None:
        staging.mkdir()
        (staging / "_SUCCESS").touch()

    assert go(output, plan, write=nothing).rows == 0
    assert go(output, plan, write=nothing).skipped == 1


def test_a_footer_tells_partitions_and_damage_apart(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    error = pa.array([None, {"file": "0.log", "endOffset": None}, None, None])
    one = pa.table({"partition": pa.array([3, None, 3, 3], pa.int32()), "_error": error})
    pq.write_table(one, path)
    assert (read_footer(path).rows, read_footer(path).records) == (4, {3: 3})
    mixed = pa.table({"partition": pa.array([3, None, 3, 4], pa.int32()), "_error": error})
    pq.write_table(mixed, path)
    assert read_footer(path).records == {3: 2, 4: 1}
    pq.write_table(mixed, path, write_statistics=False)
    assert read_footer(path).records == {3: 2, 4: 1}
    pq.write_table(mixed.slice(0, 0), path)
    assert (read_footer(path).rows, read_footer(path).records) == (0, {})
