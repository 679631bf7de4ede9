"""Gaps in offsets between segments: data loss, unless the log is compacted."""

from __future__ import annotations

import functools
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpus
import needs_pyspark  # noqa: F401
import pytest
from batches import name
from hypothesis import given
from hypothesis import strategies as st

import cordwood as cw
from cordwood._core import _SourceOptions
from cordwood.spark import errors
from spark.changes import aged
from spark.reading import offsets, plan, read, refuses
from spark.streaming import EARLIEST, Engine, flat, grow, rows_of

PLAIN = corpus.partition("01-plain")
MODES = ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"]
SPLITS: list[dict[str, Any]] = [{}, {"maxPartitionBytes": 9000}, {"maxPartitionBytes": 1}, {"minPartitions": 7}]


def options(**given: str) -> _SourceOptions:
    return _SourceOptions({"path": "x", **given})


def remove(path: Path, *bases: int) -> None:
    for base in bases:
        for file in path.glob(f"{base:020d}.*"):
            file.unlink()


def left(*bases: int) -> list[int]:
    return [r.offset for r in corpus.visible(PLAIN) if r.batch["segment"] not in bases]


def kept(path: Path) -> list[int]:
    """Truncate the second segment after its seventh batch; return the remaining offsets."""
    batches = [b for b in corpus.batches(PLAIN) if b["segment"] == 400]
    os.truncate(path / name(400), batches[7]["position"])
    return [r.offset for r in corpus.visible(PLAIN) if not batches[7]["baseOffset"] <= r.offset < 807]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_a_missing_segment_is_data_loss(copied: Any, mode: str, split: dict[str, Any]) -> None:
    path = copied(PLAIN.path)
    remove(path, 400)
    told = "407 offsets, 400 to 806, missing between segment 0 and segment 807"
    with refuses("CORDWOOD_SEGMENT_GONE", "orders-0 segment 0:", told, "failOnDataLoss=false", "cleanupPolicy=compact"):
        read(path, mode=mode, **split)


@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_a_sealed_segment_that_was_cut_between_two_batches_is_data_loss(copied: Any, split: dict[str, Any]) -> None:
    path = copied(PLAIN.path)
    kept(path)
    with refuses(
        "CORDWOOD_SEGMENT_GONE", "orders-0 segment 400:", "to 806, missing between segment 400 and segment 807"
    ):
        read(path, **split)


@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_the_place_of_a_batch_that_is_missing_within_a_segment_is_named(copied: Any, split: dict[str, Any]) -> None:
    path = copied(PLAIN.path)
    batches = [b for b in corpus.batches(PLAIN) if b["segment"] == 400]
    remove(path, 400)
    raw = (PLAIN.path / name(400)).read_bytes()
    gone, position = batches[3], batches[3]["position"]
    (path / name(400)).write_bytes(raw[:position] + raw[batches[4]["position"] :])
    first, last = gone["baseOffset"], gone["lastOffset"]
    place = f"orders-0 segment 400 position {position}:"
    told = f"{path / name(400)}: offsets {first} to {last} are missing before position {position}; failOnDataLoss=false"
    with refuses("CORDWOOD_SEGMENT_GONE", place, told) as raised:
        read(path, **split)
    error = errors.parse(raised.value)
    assert error is not None
    assert (error.topic, error.partition, error.segment, error.position) == ("orders", 0, 400, position)
    there = [offset for offset in range(1500) if not first <= offset <= last]
    assert offsets(path, failOnDataLoss=False, **split) == there


@pytest.mark.parametrize("split", SPLITS[:3], ids=str)
def test_a_range_that_begins_inside_a_gap_of_a_segment_is_data_loss(copied: Any, split: dict[str, Any]) -> None:
    path = copied(PLAIN.path)
    batches = [b for b in corpus.batches(PLAIN) if b["segment"] == 400]
    raw, gone = (path / name(400)).read_bytes(), batches[3]
    remove(path, 400)
    (path / name(400)).write_bytes(raw[: gone["position"]] + raw[batches[4]["position"] :])
    first, last = gone["baseOffset"], gone["lastOffset"]
    assert last > first
    for start in (first, first + 1, last):
        given = {"startingOffsets": {"orders": {"0": start}}, **split}
        with refuses("CORDWOOD_SEGMENT_GONE", f"offsets {first} to {last} are missing"):
            read(path, **given)
        assert offsets(path, failOnDataLoss=False, **given) == list(range(last + 1, 1500))
    assert offsets(path, startingOffsets={"orders": {"0": last + 1}}, **split) == list(range(last + 1, 1500))


@pytest.mark.parametrize("table", ["records", "batches"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("split", SPLITS[:3], ids=str)
def test_the_rest_is_read_with_one_warning_if_loss_is_allowed(
    copied: Any, table: str, mode: str, split: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    path = copied(PLAIN.path)
    remove(path, 400)
    with caplog.at_level(logging.WARNING, "cordwood"):
        found = plan(path, table=table, mode=mode, failOnDataLoss=False, **split).rows()
    wanted = left(400) if table == "records" else [b for b in corpus.batches(PLAIN) if b["segment"] != 400]
    assert len(found) == len(wanted)
    said = [record.getMessage() for record in caplog.records]
    [warning] = [text for text in said if text.startswith("[CORDWOOD_")]
    # each opening of the log by the core also logs the gap
    others = [text for text in said if text != warning]
    assert all(": offsets 400 to 806 are missing: " in text for text in others), others
    assert warning == (
        "[CORDWOOD_SEGMENT_GONE] orders-0 segment 0: expected segments without a gap in a log that is not compacted, "
        "found 407 offsets, 400 to 806, missing between segment 0 and segment 807"
    )


def test_a_range_outside_the_gap_is_complete(copied: Any) -> None:
    path = copied(PLAIN.path)
    remove(path, 400)
    for start, end in ((0, 400), (100, 400), (807, 1500), (900, 1000)):
        given = {"startingOffsets": {"orders": {"0": start}}, "endingOffsets": {"orders": {"0": end}}}
        assert offsets(path, **given) == list(range(start, end))
    for start, end, missing in (
        (399, 401, "1 offset, 400 to 400"),
        (500, 600, "100 offsets, 500 to 599"),
        (806, 808, "1 offset, 806 to 806"),
    ):
        given = {"startingOffsets": {"orders": {"0": start}}, "endingOffsets": {"orders": {"0": end}}}
        with refuses("CORDWOOD_SEGMENT_GONE", missing):
            offsets(path, **given)


def test_segments_deleted_by_retention_are_not_a_gap(copied: Any) -> None:
    path = copied(PLAIN.path)
    remove(path, 0, 400)
    assert offsets(path) == left(0, 400)


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Callable[[set[int]], Path]:
    """A cached copy of the partition without some of its segments."""

    @functools.cache
    def copy(gone: frozenset[int]) -> Path:
        path = tmp_path_factory.mktemp("without") / PLAIN.name
        shutil.copytree(PLAIN.path, path)
        remove(path, *gone)
        return path

    return lambda gone: copy(frozenset(gone))


@given(
    st.sets(st.sampled_from([400, 807]), max_size=2),
    st.integers(0, 1500),
    st.integers(0, 1500),
    st.sampled_from(SPLITS),
)
def test_a_range_returns_every_record_or_is_refused(
    without: Callable[[set[int]], Path], gone: set[int], one: int, other: int, split: dict[str, Any]
) -> None:
    start, end = sorted((one, other))
    there = set(left(*gone))
    chosen = {"startingOffsets": {"orders": {"0": start}}, "endingOffsets": {"orders": {"0": end}}, **split}
    wanted = list(range(start, end))
    if there.issuperset(wanted):
        assert offsets(without(gone), **chosen) == wanted
    else:
        with refuses("CORDWOOD_SEGMENT_GONE"):
            offsets(without(gone), **chosen)
    assert offsets(without(gone), failOnDataLoss=False, **chosen) == [o for o in wanted if o in there]


def test_the_option_takes_precedence_over_the_files(copied: Any) -> None:
    compacted = corpus.partition("12-compacted").path
    assert len(offsets(compacted)) == len(offsets(compacted, failOnDataLoss=False))
    with refuses("CORDWOOD_SEGMENT_GONE", "2894 to 2940"):
        offsets(compacted, cleanupPolicy="delete")
    path = copied(PLAIN.path)
    remove(path, 400)
    with refuses("CORDWOOD_SEGMENT_GONE"):
        offsets(path)
    assert offsets(path, cleanupPolicy="compact") == left(400)


def test_the_checkpoint_of_kafkas_cleaner_shows_that_a_log_is_compacted(copied: Any) -> None:
    path = copied(PLAIN.path)
    remove(path, 400)
    aged(path)
    (path.parent / "cleaner-offset-checkpoint").write_text("0\n1\nothers 0 1500\n")
    with refuses("CORDWOOD_SEGMENT_GONE"):
        read(path)
    (path.parent / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 1500\n")
    assert offsets(path) == left(400)
    with refuses("CORDWOOD_SEGMENT_GONE"):
        read(path, cleanupPolicy="delete")


def test_damage_is_not_treated_as_compaction(copied: Any) -> None:
    """A skipped damaged batch also leaves out its offsets."""
    path = copied(PLAIN.path)
    remove(path, 807)
    with (path / name(0)).open("r+b") as file:
        file.seek(corpus.batches(PLAIN)[3]["position"] + 70)
        file.write(b"\xff\xfe")
    assert not cw.Log(path).is_compacted
    with refuses("CORDWOOD_SEGMENT_GONE", "missing between segment 400 and segment 1217"):
        read(path, mode="DROPMALFORMED")


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("delete", "delete"),
        ("compact", "compact"),
        ("COMPACT", "compact"),
        ("compact,delete", "compact"),
        ("delete, compact", "compact"),
    ],
)
def test_the_cleanup_policy_is_written_as_in_kafka(text: str, policy: str) -> None:
    assert options(cleanupPolicy=text).texts["cleanupPolicy"] == policy


@pytest.mark.parametrize("text", ["", "none", "compact;delete", "delete,"])
def test_an_invalid_cleanup_policy_is_refused(text: str) -> None:
    with refuses("CORDWOOD_BAD_OPTION", "cleanupPolicy"):
        options(cleanupPolicy=text)


@pytest.mark.parametrize("most", [None, 1, 4, 100])
def test_a_stream_that_reaches_removed_segments_reports_data_loss(tmp_path: Path, most: int | None) -> None:
    path = tmp_path / "t-0"
    for base in range(0, 30, 6):
        grow(path, base, base, 2)
    limit = {} if most is None else {"maxOffsetsPerTrigger": most}
    engine = Engine(path, maxOffsetsPerTrigger=6, **EARLIEST)
    assert engine.batch() == rows_of("t", 0, range(6))
    remove(path, 6, 12)
    with refuses("CORDWOOD_SEGMENT_GONE", "t-0 segment 0:", "missing between segment 0 and segment 18"):
        Engine(path, checkpoint=engine.at, **limit, **EARLIEST).all()
    lenient = Engine(path, checkpoint=engine.at, failOnDataLoss=False, **limit, **EARLIEST)
    assert flat(lenient.all()) == rows_of("t", 0, range(18, 30))
    compacted = Engine(path, checkpoint=engine.at, cleanupPolicy="compact", **limit, **EARLIEST)
    assert flat(compacted.all()) == rows_of("t", 0, range(18, 30))
