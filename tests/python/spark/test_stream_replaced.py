"""Logs that were replaced when a stream continues: truncated and rewritten, deleted and recreated, or compacted."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpus
import needs_pyspark  # noqa: F401
import pytest
from batches import Rec, batch, name

import cordwood as cw
from spark.reading import refuses
from spark.streaming import EARLIEST, Engine, flat, rows_of, through_json

PLAIN = corpus.partition("01-plain")
IDS = ("aFsHoJ8mSkaI5w7rWQb5Qg", "6sc1tPBuS4ODmV6YKUWCjg")


def write(
    path: Path, first: int, end: int, *, epoch: int = 0, value: str = "old", topic_id: str | None = None, base: int = 0
) -> None:
    """Append a batch for each offset to the segment `base`."""
    path.mkdir(parents=True, exist_ok=True)
    with (path / name(base)).open("ab") as file:
        for offset in range(first, end):
            file.write(batch(offset, [Rec(value.encode(), timestamp=1000 + offset)], leader_epoch=epoch))
    if topic_id is not None:
        (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")


def recreated(path: Path, **options: Any) -> None:
    shutil.rmtree(path)
    write(path, 0, 100, **options)


def cut_back(path: Path, offset: int, **options: Any) -> None:
    """Truncate and rewrite, as a follower of a new leader does."""
    batches = cw.Log(path).batches().to_arrow().to_pylist()
    os.truncate(path / name(0), next(row["position"] for row in batches if row["base_offset"] == offset))
    write(path, offset, 100, **options)


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "cut back, and written again in the next epoch": (
        lambda path: cut_back(path, 20, epoch=1),
        "leader epoch 1, not 0",
    ),
    "cut back, and written again in the same epoch": (
        lambda path: cut_back(path, 20, value="new"),
        "truncated and rewritten",
    ),
    "deleted, and created again": (lambda path: recreated(path, topic_id=IDS[1]), f"{IDS[1]}, not {IDS[0]}"),
    "deleted, and created again without an id": (lambda path: recreated(path, value="new"), "rewritten"),
    "deleted, and created again with the same records": (
        lambda path: recreated(path, topic_id=IDS[1]),
        f"{IDS[1]}, not {IDS[0]}",
    ),
    "cut back to less": (lambda path: os.truncate(path / name(0), 700), "the log now ends at offset"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("when", ["running", "started again", "done again"])
def test_a_replaced_log_is_data_loss(tmp_path: Path, change: str, when: str) -> None:
    path = tmp_path / "t-0"
    write(path, 0, 40, topic_id=IDS[0])
    engine = Engine(path, maxOffsetsPerTrigger=30, **EARLIEST)
    assert engine.batch() == rows_of("t", 0, range(30))
    end = engine.latest()
    happen, words = CHANGES[change]
    happen(path)
    if when == "started again":
        engine = Engine(path, checkpoint=engine.at, **EARLIEST)
    with refuses("CORDWOOD_SEGMENT_GONE", "t-0", "expected to continue from offset 30", words):
        engine.read(engine.at, end) if when == "done again" else engine.batch()


@pytest.mark.parametrize("change", [change for change in CHANGES if change != "cut back to less"])
def test_a_replaced_log_is_read_with_one_warning_if_loss_is_allowed(
    tmp_path: Path, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "t-0"
    write(path, 0, 40, topic_id=IDS[0])
    engine = Engine(path, failOnDataLoss=False, **EARLIEST)
    assert engine.batch() == rows_of("t", 0, range(40))
    CHANGES[change][0](path)
    with caplog.at_level(logging.WARNING, "cordwood"):
        assert flat(engine.all()) == rows_of("t", 0, range(40, 100))
        assert engine.batch() is None
    [warning] = [record.getMessage() for record in caplog.records]
    assert warning.startswith("[CORDWOOD_SEGMENT_GONE] t-0: expected to continue from offset 40")
    assert "load()" not in warning


def test_a_log_that_was_truncated_above_the_position_continues(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    write(path, 0, 40)
    engine = Engine(path, maxOffsetsPerTrigger=30, **EARLIEST)
    assert engine.batch() == rows_of("t", 0, range(30))
    cut_back(path, 30, epoch=3, value="new")
    assert flat(engine.all()) == rows_of("t", 0, range(30, 100))


def test_a_log_that_a_writer_truncated_and_rewrote_is_data_loss(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    with cw.LogWriter(path) as writer:
        for number in range(100):
            writer.append(f"old {number}")
    engine = Engine(path, **EARLIEST)
    assert engine.batch() == rows_of("t", 0, range(100))
    with cw.LogWriter(path) as writer:
        writer.truncate_to(50)
        for number in range(100):
            writer.append(f"new {number}")
    with refuses("CORDWOOD_SEGMENT_GONE", "t-0", "offset 100", "truncated and rewritten"):
        Engine(path, checkpoint=engine.at, **EARLIEST).batch()


def test_retention_up_to_the_position_is_not_data_loss(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    write(path, 0, 10)
    write(path, 10, 20, base=10)
    engine = Engine(path, maxOffsetsPerTrigger=10, **EARLIEST)
    assert engine.batch() == rows_of("t", 0, range(10))
    (path / name(0)).unlink()
    assert engine.batch() == rows_of("t", 0, range(10, 20))


def compacted(path: Path) -> None:
    """Compact the first segment as Kafka's cleaner: a batch with two of three records, and gaps."""
    batches = [
        batch(0, [Rec(b"kept", timestamp=1000)]),
        batch(27, [Rec(b"kept", timestamp=1027), Rec(b"kept", timestamp=1029)], count=2, last_offset_delta=2),
    ]
    (path / name(0)).write_bytes(b"".join(batches))


@pytest.mark.parametrize("policy", [None, "compact", "compact,delete"])
def test_a_compacted_log_continues(tmp_path: Path, policy: str | None) -> None:
    """The batch before the position is rewritten, with another checksum and the same leader epoch."""
    path = tmp_path / "t-0"
    path.mkdir()
    raws = [batch(n, [Rec(b"v", timestamp=1000 + n + i) for i in range(3)]) for n in range(0, 30, 3)]
    (path / name(0)).write_bytes(b"".join(raws))
    write(path, 30, 40, base=30)
    options = EARLIEST if policy is None else {**EARLIEST, "cleanupPolicy": policy}
    engine = Engine(path, maxOffsetsPerTrigger=30, **options)
    assert engine.batch() == rows_of("t", 0, range(30))
    compacted(path)
    assert flat(engine.all()) == rows_of("t", 0, range(30, 40))


def with_delete_horizon(path: Path) -> None:
    """Rewrite a batch with a tombstone as Kafka's cleaner: all records are kept, the base timestamp is the horizon."""
    size = len(batch(0, [Rec(b"old", timestamp=1000)]))
    raw = batch(29, [Rec(b"old", timestamp=1029)], attributes=0x40, base_timestamp=1_700_000_000_000)
    with (path / name(0)).open("r+b") as file:
        file.seek(29 * size)
        rest = file.read()[size:]
        file.seek(29 * size)
        file.write(raw + rest)


@pytest.mark.parametrize(("policy", "is_same"), [(None, True), ("compact", True), ("delete", False)])
def test_a_delete_horizon_is_data_loss_only_if_the_log_is_not_compacted(
    tmp_path: Path, policy: str | None, is_same: bool
) -> None:
    path = tmp_path / "t-0"
    write(path, 0, 40)
    options = EARLIEST if policy is None else {**EARLIEST, "cleanupPolicy": policy}
    engine = Engine(path, maxOffsetsPerTrigger=30, **options)
    assert engine.batch() == rows_of("t", 0, range(30))
    before = cw.Log(path).scan().to_arrow()
    with_delete_horizon(path)
    assert cw.Log(path).scan().to_arrow() == before
    if is_same:
        assert flat(engine.all()) == rows_of("t", 0, range(30, 40))
        return
    with refuses("CORDWOOD_SEGMENT_GONE", "t-0", "offset 30", "or it is compacted", "cleanupPolicy=compact"):
        engine.batch()


def test_a_changed_log_is_data_loss_with_cleanup_policy_delete(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    write(path, 0, 30)
    write(path, 30, 40, base=30)
    engine = Engine(path, maxOffsetsPerTrigger=30, cleanupPolicy="delete", **EARLIEST)
    assert engine.batch() == rows_of("t", 0, range(30))
    compacted(path)
    with refuses("CORDWOOD_SEGMENT_GONE", "t-0", "offset 30", "truncated and rewritten"):
        engine.batch()


@pytest.mark.parametrize("part", corpus.partitions(), ids=lambda part: f"{part.case}/{part.name}")
def test_positions_of_the_corpus_are_stable(part: corpus.Partition) -> None:
    """A stream that starts again where it ended finds nothing new and no difference."""
    engine = Engine(part.path, isolationLevel="read_uncommitted", **EARLIEST)
    engine.all()
    log = cw.Log(part.path)
    assert engine.offsets == {part.topic: {str(part.number): log.log_end_offset}}
    assert through_json(engine.at) == engine.at
    assert Engine(part.path, checkpoint=engine.at, **EARLIEST).batch() is None


def test_the_offsets_of_sparks_kafka_source_are_positions_too() -> None:
    engine = Engine(PLAIN.path, checkpoint={"orders": {"0": 1497}}, **EARLIEST)
    assert flat(engine.all()) == rows_of("orders", 0, range(1497, 1500))


@pytest.mark.parametrize("value", ["5", None, 1.5, {}, {"offset": "5"}, {"offset": 5, "later": 1}, [5]])
def test_values_that_are_not_offsets_are_refused(value: Any) -> None:
    engine = Engine(PLAIN.path, **EARLIEST)
    engine.at = {"orders": {"0": value}}
    with refuses("CORDWOOD_BAD_OPTION", "checkpointLocation"):
        engine.batch()
