"""Kafka opens logs that Spark wrote, with what the sink keeps beside them."""

from __future__ import annotations

from pathlib import Path

import pytest
from spark.writing import Sink, left

import cordwood as cw
from interop.kafka_classes import KafkaClasses
from interop.twins import our_lines

SETTINGS = {"segment.bytes": 10_000, "retention.ms": -1}
OPTIONS = {"kafka__internal__segment__bytes": 10_000, "numPartitions": 2}


@pytest.mark.parametrize("overwrite", [False, True])
def test_kafka_opens_the_partitions_of_a_stream_and_of_a_batch(
    kafka: KafkaClasses, tmp_path: Path, overwrite: bool
) -> None:
    for batch in range(4):
        rows = [{"key": f"{batch}.{n}".encode(), "value": b"v" * 100, "partition": n % 2} for n in range(300)]
        sink = Sink(tmp_path, "key", "value", "partition", topic="orders", batch=batch, overwrite=overwrite, **OPTIONS)
        sink.run(rows[::2], rows[1::2])
    # a task that outlives its job
    Sink(tmp_path, "key", "value", "partition", topic="orders", **OPTIONS).stage(0, rows)
    assert left(tmp_path)
    for number in range(2):
        log = cw.Log(tmp_path / f"orders-{number}")
        start = 450 if overwrite else 0
        assert len(log.segments) > 1
        assert (log.log_start_offset, log.log_end_offset) == (start, 600)
        for clean in (True, False):
            opened = kafka.ask("open", dir=log.path, settings=SETTINGS, clean=clean, lines=True, log_start_offset=start)
            assert (opened["complaints"], opened["bytes_cut"], opened["log_end_offset"]) == ([], 0, 600), clean
            assert opened["records"]["lines"] == our_lines(log), clean
