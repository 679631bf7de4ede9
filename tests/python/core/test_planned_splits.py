"""Splits of an older plan: a scan returns the planned records, or raises an error that names the change.

The expected rows are those that were written; the log has four segments of thirty records, in batches of three.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from batches import name
from spark.changes import (
    END,
    SEGMENTS,
    SIZE,
    append,
    compacted,
    created_again,
    cut,
    cut_back,
    damaged,
    make,
    remove,
    values,
    written,
)

import cordwood as cw


def replaced(path: Path) -> None:
    """Replace the third segment by another one of the same size."""
    (path / name(60)).unlink()
    append(path, 60, 60, 90, "new")


def restored(path: Path) -> None:
    """Replace the third segment by a copy of it."""
    copy = path / "copy"
    copy.write_bytes((path / name(60)).read_bytes())
    copy.rename(path / name(60))


def grown(path: Path) -> None:
    append(path, 90, 120, 150)


def rolled(path: Path) -> None:
    append(path, 120, 120, 150)


@dataclass(frozen=True)
class Change:
    """A change of the log, the segments that an affected split contains, and what its error found."""

    step: Callable[[Path], None]
    changed: dict[int, str]
    damaged: tuple[int, ...] = ()


GONE, REPLACED = "no such segment", "another segment in its place"


def shortened(size: int) -> str:
    return f"a segment shortened to {size} bytes"


CHANGES = {
    "nothing": Change(lambda _: None, {}),
    "appended": Change(grown, {}),
    "rolled": Change(rolled, {}),
    "removed first": Change(remove(0), {0: GONE}),
    "removed in the middle": Change(remove(30, 60), {30: GONE, 60: GONE}),
    "removed last": Change(remove(90), {90: GONE}),
    "cut between batches": Change(cut(5 * SIZE), {60: shortened(5 * SIZE)}),
    "cut inside a batch": Change(cut(5 * SIZE + 40), {60: shortened(5 * SIZE + 40)}),
    "cut at the end": Change(lambda path: os.truncate(path / name(90), SIZE), {90: shortened(SIZE)}),
    "replaced": Change(replaced, {60: REPLACED}),
    "restored": Change(restored, {}),
    "written again": Change(written, {}),
    "damaged": Change(damaged, {}, damaged=(60,)),
    "compacted": Change(compacted, {0: "shortened", 30: "shortened"}),
    "cut back and written again": Change(cut_back(5), {30: REPLACED, 60: GONE, 90: GONE}),
    "created again": Change(created_again, dict.fromkeys(SEGMENTS, REPLACED)),
}


def rows(log: cw.Log, split: cw.Split) -> dict[int, bytes]:
    table = log.scan(split=split, columns=["offset", "value"]).to_arrow()
    return dict(zip(table["offset"].to_pylist(), table["value"].to_pylist(), strict=True))


@pytest.mark.parametrize("max_bytes", [4 * SIZE, 10 * SIZE, 1 << 40])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_split_of_an_older_plan_returns_the_planned_records_or_names_the_change(
    tmp_path: Path, change: Change, max_bytes: int
) -> None:
    path = tmp_path / "t-0"
    make(path)
    log = cw.Log(path, io="pread")
    splits = [pickle.loads(pickle.dumps(split)) for split in log.plan(max_bytes)]
    change.step(path)
    refused = 0
    for split in splits:
        bases = [segment.base_offset for segment in split.segments]
        first = next((base for base in bases if base in change.changed), None)
        now = cw.Log(path, io="pread")
        if first is not None:
            refused += 1
            with pytest.raises(cw.LogChangedError) as raised:
                now.scan(split=split)
            assert raised.value.file == str(path / name(first))
            assert change.changed[first] in str(raised.value.found)
        elif any(base in change.damaged for base in bases):
            try:
                found = rows(now, split)
            except cw.CorruptLogError:
                continue
            assert found == values("old", *range(split.start_offset, split.end_offset))
        else:
            assert rows(now, split) == values("old", *range(split.start_offset, split.end_offset))
    assert bool(refused) == bool(change.changed)


def test_a_split_lists_the_segments_of_its_range_and_pickles_with_them(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    make(path)
    [whole] = cw.Log(path).plan(1 << 40)
    assert [segment.base_offset for segment in whole.segments] == list(SEGMENTS)
    assert [segment.size for segment in whole.segments] == [(path / name(base)).stat().st_size for base in SEGMENTS]
    assert [segment.is_last for segment in whole.segments] == [False, False, False, True]
    first = (path / name(0)).read_bytes()
    assert whole.segments[0].first_batch_crc == int.from_bytes(first[17:21], "big")
    again = pickle.loads(pickle.dumps(whole))
    assert again == whole
    assert hash(again) == hash(whole)
    assert again.segments == whole.segments
    assert repr(again.segments[3]).startswith("PlannedSegment(base_offset=90, size=")
    without = cw.Split(whole.path, 0, END)
    assert without.segments == []
    assert without != whole


def test_a_split_without_segments_reads_the_current_log(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    make(path)
    remove(60)(path)
    split = cw.Split(path, 0, END)
    assert rows(cw.Log(path), split) == values("old", *range(60), *range(90, END))


def test_a_scan_of_a_split_compares_again_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    make(path)
    log = cw.Log(path, io="pread")
    [split] = log.plan(1 << 40)
    scan = log.scan(split=split)
    cut(5 * SIZE)(path)
    with pytest.raises(cw.LogChangedError, match="shortened"):
        scan.to_arrow()


def test_the_segments_of_a_split_are_checked_when_it_is_made() -> None:
    with pytest.raises(TypeError, match=r"^segments: expected a list of PlannedSegment, found int$"):
        cw.Split("/data/t-0", 0, 1, segments=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^segments\[0\]: expected a PlannedSegment, found tuple$"):
        cw.Split("/data/t-0", 0, 1, segments=[(0, 5)])  # type: ignore[list-item]
    with pytest.raises(cw.ConfigError, match=r"^first_batch_crc: expected a checksum"):
        cw.PlannedSegment(0, 5, first_batch_crc=1 << 32)
