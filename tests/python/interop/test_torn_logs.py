"""Records that are whole logs, torn at any byte: the log ends where Kafka's recovery ends it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from batches import GZIP, NONE, Rec, batch

import cordwood as cw
from interop.kafka_classes import KafkaClasses

LOG = f"{0:020}.log"


def torn_log(first_offset: int, codec: int, field: str) -> tuple[bytes, int]:
    """Return two records, one that holds a log with these offsets, and one more; and where the second batch begins."""
    nested = b"".join(batch(offset, [Rec(b"n" * 30)]) for offset in range(first_offset, first_offset + 4))
    records = {"value": Rec(nested), "key": Rec(b"v", nested), "header": Rec(b"v", headers=((b"log", nested),))}
    before = batch(0, [Rec(b"first"), Rec(b"second")])
    outer = batch(2, [records[field]], codec=codec)
    return before + outer + batch(3, [Rec(b"last")]), len(before)


@pytest.mark.parametrize("first_offset", [0, 2, 1000])
@pytest.mark.parametrize(("codec", "field"), [(NONE, "value"), (NONE, "key"), (NONE, "header"), (GZIP, "value")])
def test_a_log_ends_before_a_torn_record_that_is_a_log_as_in_kafka(
    kafka: KafkaClasses, tmp_path: Path, first_offset: int, codec: int, field: str
) -> None:
    content, start = torn_log(first_offset, codec, field)
    for cut in range(start + first_offset % 7, len(content), 17):
        partition = tmp_path / "captures-0"
        partition.mkdir()
        (partition / LOG).write_bytes(content[:cut])
        log = cw.Log(partition)
        end, offsets = log.log_end_offset, [record.offset for record in log.records()]
        skipped = [record.offset for record in log.records(on_damage="skip")]
        plan = cw.LogWriter.plan_recovery(partition)
        opened = kafka.ask(
            "open", dir=partition, settings={"retention.ms": -1}, clean=False, lines=True, log_start_offset=0
        )
        assert (end, plan.log_end_offset) == (opened["log_end_offset"], opened["log_end_offset"]), cut
        assert offsets == skipped == list(range(end)), cut
        shutil.rmtree(partition)
