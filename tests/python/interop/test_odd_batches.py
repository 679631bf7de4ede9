"""Random odd batches, sent to a real broker as they are: what it stores and its consumer returns is what is read here.

`CORDWOOD_ODD_BATCHES` is the number of batches.
"""

from __future__ import annotations

import os
from pathlib import Path

import cordwood as cw
from interop.kafka_classes import KafkaClasses, Row
from interop.odd_batches import odd_batch
from interop.produce_requests import RawProducer
from interop.twins import our_lines

TOPIC = "odd"
BATCHES = int(os.environ.get("CORDWOOD_ODD_BATCHES", "300"))
PATIENCE = 110  # seconds for the consumer; below that of a question
# one batch a response: where batches overlap, what a consumer skips of the second depends on the size of its responses
ONE_BATCH = {"max.partition.fetch.bytes": "1", "fetch.max.bytes": "1"}


def test_what_a_broker_accepts_is_read_as_its_consumer_reads_it(kafka: KafkaClasses, tmp_path: Path) -> None:
    address = kafka.ask("start", dir=tmp_path / "data")["address"]
    try:
        kafka.ask("create_topic", topic=TOPIC, settings={"retention.ms": "-1"})
        stored: dict[int, str] = {}
        with RawProducer(address, TOPIC) as producer:
            for seed in range(BATCHES):
                oddity, raw = odd_batch(seed)
                error, base_offset = producer.send(raw)
                if error == 0:
                    stored[base_offset] = f"{seed}: {oddity}"
        question = {"lines": True, "skip_refused": True, "patience": PATIENCE, "settings": ONE_BATCH}
        served = kafka.ask("consume", topic=TOPIC, **question)
    finally:
        kafka.ask("stop")
    assert len(stored) > BATCHES // 4
    log = cw.Log(tmp_path / "data" / f"{TOPIC}-0")

    def oddity_of(offset: int) -> str:
        return stored[max(base for base in stored if base <= offset)]

    # a batch that ends with an error for the consumer ends with one here, after the same records
    refused = {oddity_of(error["offset"]) for error in served["refused"]}
    scan = log.scan(on_damage="skip")
    scan.to_arrow()
    assert {oddity_of(damaged.start_offset) for damaged in scan.damaged_ranges} == refused
    assert log.log_end_offset == served["end"]
    ours = our_lines(log, on_damage="skip")
    first = next((n for n, (a, b) in enumerate(zip(ours, served["lines"], strict=False)) if a != b), None)
    assert first is None, (ours[first], served["lines"][first], oddity_of(int(served["lines"][first].split()[0])))
    assert ours == served["lines"]
    epoch = epoch_of(log)
    assert [line(record, epoch) for record in log.records(on_damage="skip")] == ours

    errors = [finding for finding in cw.verify(log.path, deep=True).findings if finding.severity == "error"]
    assert {oddity_of(finding.start_offset or 0) for finding in errors} <= refused, errors


def epoch_of(log: cw.Log) -> int:
    """The broker writes all batches in one leader epoch."""
    (epoch,) = set(log.batches().to_arrow()["leader_epoch"].to_pylist())
    return int(epoch)


def line(record: cw.Record, epoch: int) -> str:
    return str(
        Row(
            record.offset,
            int(record.timestamp_type),
            record.timestamp,
            epoch,
            record.key,
            record.value,
            [(name, value) for name, value in record.headers],
        )
    )
