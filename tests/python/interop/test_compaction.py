"""The same histories compacted by `LogWriter` and by Kafka's `Cleaner`: the same files, byte for byte."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import corpus
import pyarrow.compute as pc
import pytest

import cordwood as cw
from interop.compactions import CODECS, EXPIRATION_MS, RETENTION_MS, Keyed
from interop.kafka_classes import KafkaClasses
from interop.twins import (
    Step,
    Written,
    assert_the_same,
    assert_the_same_answers,
    assert_the_same_files,
    contents,
    our_lines,
    write_as_told,
    write_with_cordwood,
    write_with_kafka,
)

FIELDS = [
    "first_dirty_offset",
    "first_uncleanable_offset",
    "clean_bytes",
    "cleanable_bytes",
    "dirty_ratio",
    "end_offset",
]


def settings(seed: int) -> dict[str, Any]:
    return {
        "cleanup.policy": ["compact", "compact,delete"][seed % 2],
        "segment.bytes": [700, 2000, 6000][seed % 3],
        "index.interval.bytes": [0, 100, 512][seed // 3 % 3],
        "segment.index.bytes": [480, 65_536][seed // 2 % 2],
        "min.cleanable.dirty.ratio": [0, 0.3][seed // 4 % 2],
        "min.compaction.lag.ms": [0, 0, 300][seed // 5 % 3],
        "max.compaction.lag.ms": [1 << 62, 2000][seed // 7 % 2],
        "delete.retention.ms": RETENTION_MS,
        "retention.ms": -1,
    }


def settings_of(case: str) -> dict[str, Any]:
    """The settings under which a broker wrote a case, as far as a log has them."""
    found = next(entry["settings"] for entry in corpus.manifest()["cases"] if entry["case"] == case)
    known = {"index.interval.bytes", "internal.segment.bytes", "segment.bytes", "segment.index.bytes"}
    return {name: int(value) for name, value in found.items() if name in known}


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
            fields = [field for field in FIELDS if bytes_too or ("bytes" not in field and "ratio" not in field)]
            assert {field: getattr(result, field) for field in fields} == {field: step[field] for field in fields}, (
                number
            )
            due += 1
    return due


# seed 20: Kafka takes records of a committed transaction for aborted ones, because a pass begins after the
# marker of an aborted transaction of the same producer and in the same segment. It keeps older records of
# their keys
SEEDS = [seed for seed in range(32) if seed != 20]


@pytest.mark.parametrize("seed", SEEDS)
def test_histories_without_compression(kafka: KafkaClasses, tmp_path: Path, seed: int) -> None:
    written, answer = both(kafka, tmp_path, seed, [0])
    assert assert_the_same_compactions(written, answer, bytes_too=True) > 0
    assert_the_same(written, answer, tmp_path / "ours-0", tmp_path / "kafkas-0")


@pytest.mark.parametrize("seed", range(100, 110))
def test_histories_in_all_codecs(kafka: KafkaClasses, tmp_path: Path, seed: int) -> None:
    """A batch that loses records is compressed again, to bytes that depend on the library: compare its contents."""
    written, answer = both(kafka, tmp_path, seed, [0, *CODECS])
    assert_the_same_compactions(written, answer, bytes_too=False)
    assert_the_same_answers(written, answer)
    assert_the_same_contents(tmp_path / "ours-0", tmp_path / "kafkas-0")


def assert_the_same_contents(ours: Path, kafkas: Path) -> None:
    """Compare what does not depend on the sizes of compressed batches."""
    mine, theirs = cw.Log(ours), cw.Log(kafkas)
    assert our_lines(mine) == our_lines(theirs)
    headers = ["base_offset", "last_offset", "count", "codec", "timestamp_type", "max_timestamp", "leader_epoch"]
    headers += ["producer_id", "producer_epoch", "base_sequence", "is_transactional", "is_control", "magic"]
    assert mine.batches().to_arrow().select(headers) == theirs.batches().to_arrow().select(headers)
    aborted = [b"".join(contents(folder, "*.txnindex").values()) for folder in (ours, kafkas)]
    assert aborted[0] == aborted[1]
    assert_the_same_files(ours, kafkas, ["leader-epoch-checkpoint"])


LATE_EPOCH = 100
CASES = [
    "01-plain",
    "06-mixed-codecs",
    "08-no-timestamps",
    "09-append-time",
    "10-idempotent",
    "11-transactions",
    "12-compacted",
]
CASES += ["12-compacted-codecs", "12-compacted-empty", "17-v0-none", "17-v0-gzip", "17-upgraded", "17-v1-append-time"]
CASES += ["18-leaps", "20-many-segments", "23-truncated"]
# the last batch of the range has no key: Kafka fails, because it makes no empty batch of an old one
REFUSED_BY_KAFKA = {"17-v1-none", "17-v1-lz4"}


@pytest.mark.parametrize("case", [*CASES, *sorted(REFUSED_BY_KAFKA)])
def test_logs_of_brokers(kafka: KafkaClasses, tmp_path: Path, case: str) -> None:
    """Compacted once more, or for the first time. Batches of old formats become batches of magic 2."""
    golden = corpus.GOLDEN / case
    settings = {**settings_of(case), "cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0}
    partition = next(path for path in golden.iterdir() if path.is_dir() and path.name != "expected")
    ours, kafkas = tmp_path / "ours-0", tmp_path / "kafkas-0"
    for copied in (ours, kafkas):
        shutil.copytree(partition, copied)
    now = time.time_ns() // 1_000_000
    steps: list[Step] = [{"do": "roll", "now": now}]
    for later in (0, 1000, 90_000_000, 180_000_000):
        steps += [{"do": "compact", "bytes": 1 << 20, "now": now + later}]
        record = {"timestamp": now, "key": "a2V5", "value": ""}
        steps += [{"do": "append", "records": [record], "leader_epoch": LATE_EPOCH}, {"do": "roll"}]
    expiration = {"producer_id_expiration_ms": EXPIRATION_MS}
    written = write_with_cordwood(ours, settings, steps, leader_epoch=LATE_EPOCH, **expiration)
    answer = write_with_kafka(kafka, kafkas, settings, steps, written, now=now, **expiration)
    errors = [step["error"] for step in answer["steps"] if "error" in step]
    assert written.errors() == []
    if case in REFUSED_BY_KAFKA:
        assert all("Empty batches are only supported for magic v2" in error for error in errors)
        assert [finding for finding in cw.verify(ours).findings if finding.severity == "error"] == []
        return
    assert errors == []
    assert assert_the_same_compactions(written, answer, bytes_too=False) > 0
    assert_the_same_contents(ours, kafkas)
    if not cw.Log(ours).batches().to_arrow().filter(pc.field("codec") != "none").num_rows:
        # an opening by cordwood writes the snapshots again, unless cordwood closed the log
        assert_the_same_files(ours, kafkas, ["*.log", "*.index", "*.timeindex", "*.txnindex"])
