"""`max_batch_bytes` of the calls that decompress only those batches whose offsets are in their records."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpus
import pytest

import cordwood as cw

LIMIT = 300

CALLS: dict[str, Callable[..., Any]] = {
    "rebuild_indexes": cw.rebuild_indexes,
    "torn_tail": cw.repair,
    "salvage": lambda path, **limit: cw.repair(path, policy="salvage", **limit),
    "kafka": lambda path, **limit: cw.repair(path, policy="kafka", **limit),
    "plan_recovery": cw.LogWriter.plan_recovery,
    "plan_kafka_load": lambda path, **limit: cw.plan_kafka_load(path, clean=False, **limit),
}


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    path = tmp_path / "orders-0"
    shutil.copytree(corpus.partition("17-v1-gzip").path, path)
    return path


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_larger_batch_is_a_limit_and_no_damage(call: Callable[..., Any], partition: Path) -> None:
    before = {file: file.read_bytes() for file in partition.iterdir()}
    with pytest.raises(cw.BatchTooLargeError) as error:
        call(partition, max_batch_bytes=LIMIT)
    assert error.value.code == "batch_too_large"
    assert Path(error.value.file or "").parent == partition
    assert call(partition, max_batch_bytes=1 << 20) == call(partition)
    assert {file: file.read_bytes() for file in partition.iterdir()} == before


def test_salvage_does_not_leave_out_a_larger_batch_in_a_damaged_range(partition: Path) -> None:
    """The header of the first batch of a sealed segment is wrong: the range is searched for whole batches."""
    log = min(partition.glob("*.log"))
    content = bytearray(log.read_bytes())
    content[8] ^= 0x40
    log.write_bytes(content)
    with pytest.raises(cw.BatchTooLargeError):
        cw.repair(partition, policy="salvage", max_batch_bytes=LIMIT)
    assert cw.repair(partition, policy="salvage").lost_ranges == []


TABLES: dict[str, Callable[..., Any]] = {
    "consumer_offsets": cw.consumer_offsets,
    "consumer_groups": cw.consumer_groups,
    "transactions": cw.transactions,
    "metadata": cw.metadata,
    "metadata_records": cw.metadata_records,
}


@pytest.mark.parametrize("on_damage", ["raise", "skip", "report"])
@pytest.mark.parametrize("read", TABLES.values(), ids=TABLES)
def test_a_table_never_leaves_out_a_larger_batch(read: Callable[..., Any], on_damage: str) -> None:
    data = corpus.GOLDEN / "16-data-dir"
    with pytest.raises(cw.BatchTooLargeError):
        read(data, on_damage=on_damage, max_batch_bytes=80)
    assert read(data, on_damage=on_damage, max_batch_bytes=1 << 20) == read(data)


def test_open_transactions_need_no_record_of_their_logs() -> None:
    path = corpus.partition("11-transactions").path
    assert cw.open_transactions(path, max_batch_bytes=1 << 20) == cw.open_transactions(path)
