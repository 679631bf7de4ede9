"""The same histories compacted by `LogWriter` and by Kafka's `Cleaner`: the same files, byte for byte."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import cordwood as cw
from interop.compactions import CODECS, EXPIRATION_MS, RETENTION_MS, Keyed
from interop.kafka_classes import KafkaClasses
from interop.twins import (
    Written,
    assert_the_same,
    assert_the_same_answers,
    assert_the_same_files,
    our_lines,
    write_as_told,
    write_with_kafka,
)

FIELDS = ["first_dirty_offset", "first_uncleanable_offset", "clean_bytes", "cleanable_bytes", "dirty_ratio", "end_offset"]


def settings(seed: int) -> dict[str, Any]:
    return {
        "cleanup.policy": ["compact", "compact,delete"][seed % 2],
        "segment.bytes": [700, 2000, 6000][seed % 3],
        "index.interval.bytes": [0, 100, 512][seed // 3 % 3],
        "segment.index.bytes": [200, 65_536][seed // 2 % 2],
        "min.cleanable.dirty.ratio": [0, 0.3][seed // 4 % 2],
        "min.compaction.lag.ms": [0, 0, 300][seed // 5 % 3],
        "max.compaction.lag.ms": [1 << 62, 2000][seed // 7 % 2],
        "delete.retention.ms": RETENTION_MS,
        "retention.ms": -1,
    }


def both(kafka: KafkaClasses, folder: Path, seed: int, codecs: list[int]) -> tuple[Written, dict[str, Any]]:
    now = time.time_ns() // 1_000_000
    ours, kafkas = folder / "ours-0", folder / "kafkas-0"
    expiration = {"producer_id_expiration_ms": EXPIRATION_MS}
    # a truncation at another offset than Kafka's writes other files: see test_twins
    told = Keyed(seed, now, codecs).steps(90)
    steps, written = write_as_told(ours, settings(seed), told, **expiration)
    answer = write_with_kafka(kafka, kafkas, settings(seed), steps, written, now=now, **expiration)
    return written, answer


def assert_the_same_compactions(written: Written, answer: dict[str, Any], *, bytes_too: bool) -> int:
    """Compare the results of the compactions. Return how many were due."""
    due = 0
    for number, (result, step) in enumerate(zip(written.results, answer["steps"], strict=True)):
        if not isinstance(result, cw.Compaction):
            continue
        if bytes_too:
            assert result.is_due == step["is_due"], (number, result, step)
        if result.is_due and step["is_due"]:
            fields = [field for field in FIELDS if bytes_too or "bytes" not in field and "ratio" not in field]
            assert {field: getattr(result, field) for field in fields} == {field: step[field] for field in fields}, number
            due += 1
    return due


@pytest.mark.parametrize("seed", range(60))
def test_histories_without_compression(kafka: KafkaClasses, tmp_path: Path, seed: int) -> None:
    written, answer = both(kafka, tmp_path, seed, [0])
    assert assert_the_same_compactions(written, answer, bytes_too=True) > 0
    assert_the_same(written, answer, tmp_path / "ours-0", tmp_path / "kafkas-0")


@pytest.mark.parametrize("seed", range(100, 124))
def test_histories_in_all_codecs(kafka: KafkaClasses, tmp_path: Path, seed: int) -> None:
    """A batch that loses records is compressed again, and the bytes depend on the library: its contents are compared."""
    written, answer = both(kafka, tmp_path, seed, [0, *CODECS])
    assert_the_same_compactions(written, answer, bytes_too=False)
    assert_the_same_answers(written, answer)
    ours, kafkas = cw.Log(tmp_path / "ours-0"), cw.Log(tmp_path / "kafkas-0")
    assert our_lines(ours) == our_lines(kafkas)
    headers = ["base_offset", "last_offset", "count", "codec", "timestamp_type", "max_timestamp", "leader_epoch"]
    headers += ["producer_id", "producer_epoch", "base_sequence", "is_transactional", "is_control"]
    assert ours.batches().to_arrow().select(headers) == kafkas.batches().to_arrow().select(headers)
    assert_the_same_files(tmp_path / "ours-0", tmp_path / "kafkas-0", ["*.txnindex", "leader-epoch-checkpoint"])
