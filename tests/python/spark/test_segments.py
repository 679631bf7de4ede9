"""Segments as rows while a broker is writing; and logs with times that a datetime cannot hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import corpus
import pytest
from batches import Rec, batch, name, write_partition

from spark.reading import plan, refuses

FAR = 1 << 57
"""Milliseconds that do not fit in microseconds."""

NO_CALENDAR = 1 << 50
"""Milliseconds that fit in microseconds, but not in a datetime."""


def rows(found: Any) -> list[dict[str, Any]]:
    return [row for table in found.tables() for row in table.drop_columns(TIMES).to_pylist()]


TIMES = ["firstTimestamp", "largestTimestamp"]


def test_a_removed_segment_has_no_row(copied: Any) -> None:
    path = copied(corpus.partition("01-plain").path)
    found = plan(path, table="segments", failOnDataLoss=False)
    for file in path.glob("00000000000000000400.*"):
        file.unlink()
    assert [row["segmentBaseOffset"] for row in rows(found)] == [0, 807, 1217]


def test_a_gap_after_a_segment_is_in_its_row(copied: Any) -> None:
    """In a log that lost a segment, and in compacted ones."""
    path = copied(corpus.partition("20-many-segments").path)
    bases = corpus.partition("20-many-segments").bases
    for file in path.glob(f"{bases[3]:020d}.*"):
        file.unlink()
    gaps = {row["segmentBaseOffset"]: row["offsetGap"] for row in rows(plan(path, table="segments"))}
    assert gaps == {base: bases[4] - bases[3] if base == bases[2] else 0 for base in bases if base != bases[3]}
    for part in (corpus.partition("12-compacted"), corpus.partition("12-compacted-empty")):
        found = rows(plan(part.path, table="segments"))
        following = [row["segmentBaseOffset"] for row in found[1:]]
        assert [row["endOffset"] + row["offsetGap"] for row in found[:-1]] == following
        assert sum(row["offsetGap"] for row in found) > 0
        assert found[-1]["offsetGap"] == 0


def test_a_segment_that_grew_is_described_as_of_one_moment(tmp_path: Path) -> None:
    path = write_partition(tmp_path / "t-0", [(0, [batch(0, [Rec(b"a")])])])
    found = plan(path, table="segments")
    with (path / name(0)).open("ab") as file:
        file.write(batch(1, [Rec(b"b"), Rec(b"c")]))
    (row,) = rows(found)
    assert row["bytes"] == (path / name(0)).stat().st_size
    assert (row["endOffset"], row["batches"], row["records"]) == (3, 2, 3)


def test_half_a_batch_at_the_end_is_not_damage(tmp_path: Path) -> None:
    """A broker may be writing it."""
    path = write_partition(tmp_path / "t-0", [(0, [batch(0, [Rec(b"a")])])])
    with (path / name(0)).open("ab") as file:
        file.write(batch(1, [Rec(b"b" * 100)])[:-50])
    for mode in ("DROPMALFORMED", "PERMISSIVE"):
        (row,) = rows(plan(path, table="segments", mode=mode))
        assert (row["endOffset"], row["damagedBytes"]) == (1, 0)


@pytest.mark.parametrize("table", ["batches", "segments"])
def test_a_time_beyond_microseconds_is_an_error_with_a_code(tmp_path: Path, table: str) -> None:
    path = write_partition(tmp_path / "late-0", [(0, [batch(0, [Rec(b"a", timestamp=FAR)])])])
    with refuses("CORDWOOD_UNSUPPORTED", "late-0"):
        plan(path, table=table).tables()


def test_times_that_a_datetime_cannot_hold_are_described_and_planned(tmp_path: Path) -> None:
    records = [Rec(b"v", timestamp=NO_CALENDAR) for _ in range(20)]
    path = write_partition(tmp_path / "late-0", [(0, [batch(0, records)])])
    (table,) = plan(path, table="segments").tables()
    assert [table[column].cast("int64").to_pylist() for column in TIMES] == [[NO_CALENDAR * 1000]] * 2
    assert len(plan(path, columns="offset", maxRecordsPerPartition=5).tables()) == 4
