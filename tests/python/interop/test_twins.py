"""The same steps with `LogWriter` and with Kafka: the same files, byte for byte."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import pytest

import cordwood as cw
from interop import scenarios
from interop.kafka_classes import KafkaClasses
from interop.twins import (
    START,
    Step,
    Written,
    assert_the_same,
    assert_the_same_answers,
    our_lines,
    write_as_told,
    write_with_cordwood,
    write_with_kafka,
)

COMBINATIONS = itertools.count()


def both(
    kafka: KafkaClasses, folder: Path, settings: dict[str, Any], steps: list[Step], **options: Any
) -> tuple[Written, dict[str, Any], Path]:
    """Run the steps with both and compare. Returns the results, Kafka's response, and our directory."""
    number = next(COMBINATIONS)
    ours, kafkas = folder / f"ours-{number}", folder / f"kafkas-{number}"
    written = write_with_cordwood(ours, settings, steps, **options)
    answer = write_with_kafka(kafka, kafkas, settings, steps, written)
    assert_the_same(written, answer, ours, kafkas)
    return written, answer, ours


@pytest.mark.parametrize("index_bytes", [24, 67, 65_536])
@pytest.mark.parametrize("interval", [0, 1, 512, 4096])
@pytest.mark.parametrize("segment_bytes", [2000, 16_384])
def test_appends(kafka: KafkaClasses, tmp_path: Path, segment_bytes: int, interval: int, index_bytes: int) -> None:
    """67 bytes are 8 entries of an offset index, 5 of a time index; 24 bytes are 3 and 2."""
    settings = {
        "segment.bytes": segment_bytes,
        "index.interval.bytes": interval,
        "segment.index.bytes": index_bytes,
        "preallocate": str(interval == 512).lower(),
        "retention.ms": -1,
    }
    for timestamps in scenarios.TIMESTAMPS if index_bytes == 65_536 else ["disordered"]:
        _, answer, _ = both(kafka, tmp_path, settings, scenarios.appends(interval, 60, timestamps))
        assert answer["complaints"] == []
        assert len(answer["segments"]) > 1 or segment_bytes > 2000
    logged = {**settings, "message.timestamp.type": "LogAppendTime"}
    _, answer, _ = both(kafka, tmp_path, logged, scenarios.appends(interval + 1, 30, "rising"))
    assert answer["complaints"] == []


def test_appends_at_the_defaults(kafka: KafkaClasses, tmp_path: Path) -> None:
    _, answer, _ = both(kafka, tmp_path, {}, scenarios.appends(1, 300, "rising"))
    assert answer["complaints"] == []
    assert len(answer["segments"]) == 1
    assert answer["segments"][0]["offset_entries"] > 0


@pytest.mark.parametrize("timestamps", ["rising", "disordered", "leaping"])
def test_segments_roll_by_time(kafka: KafkaClasses, tmp_path: Path, timestamps: str) -> None:
    """For records with a time: without one, the clock decides, and the two clocks differ."""
    for segment_ms in (1, 60_000, 3_600_000):
        settings = {
            "segment.ms": segment_ms,
            "index.interval.bytes": 100,
            "segment.index.bytes": 4096,
            "retention.ms": -1,
        }
        _, answer, _ = both(kafka, tmp_path, settings, scenarios.appends(segment_ms, 40, timestamps))
        if segment_ms == 1:
            assert len(answer["segments"]) > 5


@pytest.mark.parametrize("make", [scenarios.producers_batches, scenarios.leaders_batches])
@pytest.mark.parametrize("timestamps", ["disordered", "absent", "leaping"])
@pytest.mark.parametrize("interval", [0, 512])
def test_raw_batches(kafka: KafkaClasses, tmp_path: Path, interval: int, timestamps: str, make: Any) -> None:
    for segment_bytes in (3000, 1 << 20):
        settings = {
            "segment.bytes": segment_bytes,
            "index.interval.bytes": interval,
            "segment.index.bytes": 65_536,
            "retention.ms": -1,
        }
        written, answer, _ = both(kafka, tmp_path, settings, make(interval, 40, timestamps))
        assert written.errors() == []
        assert answer["complaints"] == []


def test_a_producers_batches_at_the_time_of_the_log(kafka: KafkaClasses, tmp_path: Path) -> None:
    settings = {"message.timestamp.type": "LogAppendTime", "index.interval.bytes": 100, "segment.bytes": 3000}
    for timestamps in scenarios.TIMESTAMPS:
        both(kafka, tmp_path, settings, scenarios.producers_batches(9, 30, timestamps))


@pytest.mark.parametrize("codec", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_a_producers_batches_in_another_codec(kafka: KafkaClasses, tmp_path: Path, codec: str) -> None:
    """Compressed bytes, and so positions, depend on the library: only the records and the results are compared."""
    settings = {"compression.type": codec, "retention.ms": -1}
    steps = scenarios.producers_batches(11, 30, "disordered")
    ours, kafkas = tmp_path / "ours-0", tmp_path / "kafkas-0"
    written = write_with_cordwood(ours, settings, steps)
    answer = write_with_kafka(kafka, kafkas, settings, steps, written)
    assert_the_same_answers(written, answer)
    mine, theirs = cw.Log(ours), cw.Log(kafkas)
    assert our_lines(mine) == our_lines(theirs)
    headers = ["base_offset", "last_offset", "count", "codec", "timestamp_type", "max_timestamp", "leader_epoch"]
    assert mine.batches().to_arrow().select(headers) == theirs.batches().to_arrow().select(headers)


@pytest.mark.parametrize("seed", range(12))
def test_sequences_of_operations(kafka: KafkaClasses, tmp_path: Path, seed: int) -> None:
    """Rolls, truncations, deletions, new openings and epochs between the appends."""
    settings = {
        "segment.bytes": [1500, 8000][seed % 2],
        "index.interval.bytes": [0, 200, 512][seed % 3],
        "segment.index.bytes": [120, 65_536][seed // 2 % 2],
        "preallocate": str(seed % 4 == 3).lower(),
        "retention.ms": -1,
    }
    timestamps = list(scenarios.TIMESTAMPS)[seed % 5]
    both(kafka, tmp_path, settings, scenarios.lives(seed, 80, timestamps))


def test_a_truncation_inside_a_batch_leaves_a_hole_that_can_be_truncated(kafka: KafkaClasses, tmp_path: Path) -> None:
    """Whole batches are removed, but the log end is at the requested offset, until the log is opened again."""
    five: Step = {"do": "append", "records": [{"timestamp": START, "value": ""}] * 5}
    steps: list[Step] = [five, five, {"do": "truncate_to", "offset": 8}, {"do": "truncate_to", "offset": 6}]
    written, _, _ = both(kafka, tmp_path, {}, steps)
    assert written.ends == [5, 10, 8, 6]
    written, _, _ = both(kafka, tmp_path, {}, [*steps, five])
    assert written.ends[-1] == 11
    written, _, _ = both(kafka, tmp_path, {}, [*steps, {"do": "reopen"}])
    assert written.ends[-1] == 5


@pytest.mark.parametrize(
    "retention", [{"retention.bytes": 4000}, {"retention.ms": 30}, {"retention.bytes": 6000, "retention.ms": 200}]
)
def test_retention(kafka: KafkaClasses, tmp_path: Path, retention: dict[str, int]) -> None:
    settings = {"segment.bytes": 1500, "index.interval.bytes": 0, "retention.ms": -1, **retention}
    steps = scenarios.appends(7, 60, "rising")
    steps.insert(30, {"do": "retain", "now": START + 60})
    steps.append({"do": "retain", "now": START + 100})
    _, answer, _ = both(kafka, tmp_path, settings, steps)
    assert answer["log_start_offset"] > 0


def test_an_empty_log(kafka: KafkaClasses, tmp_path: Path) -> None:
    _, answer, _ = both(kafka, tmp_path, {}, [])
    assert answer["log_end_offset"] == 0


def test_an_empty_segment_after_a_roll(kafka: KafkaClasses, tmp_path: Path) -> None:
    steps: list[Step] = [*scenarios.appends(1, 3, "rising"), {"do": "roll"}]
    both(kafka, tmp_path, {}, steps)
    both(kafka, tmp_path, {}, [*steps, {"do": "reopen"}, *scenarios.appends(2, 3, "rising")])


def test_a_topic_id(kafka: KafkaClasses, tmp_path: Path) -> None:
    topic_id = "wiLAl7EYRG2VvdUL_RRl7A"
    steps = scenarios.appends(1, 3, "rising")
    ours, kafkas = tmp_path / "ours-0", tmp_path / "kafkas-0"
    written = write_with_cordwood(ours, {}, steps, topic_id=topic_id)
    answer = write_with_kafka(kafka, kafkas, {}, steps, written, topic_id=topic_id)
    assert_the_same(written, answer, ours, kafkas)
    assert (ours / "partition.metadata").exists()


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize("seed", range(16))
def test_producers_and_transactions(kafka: KafkaClasses, tmp_path: Path, seed: int, refused: bool) -> None:
    """Sequences, epochs, duplicates, markers; the snapshots and transaction indexes; the last stable offset."""
    settings = {
        "segment.bytes": 1 << 20 if refused else [1500, 4000][seed % 2],
        "index.interval.bytes": [0, 200][seed // 2 % 2],
        "segment.index.bytes": 65_536,
        "retention.ms": -1,
    }
    now = time.time_ns() // 1_000_000
    expiration = {"producer_id_expiration_ms": [scenarios.DAY_MS, (1 << 31) - 1][seed // 4 % 2]}
    ours, kafkas = tmp_path / "ours-0", tmp_path / "kafkas-0"
    told = scenarios.Producers(seed, now, refused=refused).steps(120)
    steps, written = write_as_told(ours, settings, told, **expiration)
    answer = write_with_kafka(kafka, kafkas, settings, steps, written, now=now, **expiration)
    assert_the_same(written, answer, ours, kafkas)
    kinds = {type(result) for result in written.results}
    assert cw.Appended in kinds
    assert list(ours.glob("*.snapshot"))
