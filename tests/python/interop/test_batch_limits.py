"""A batch that expands to more than the default of `max_batch_bytes`: a broker stores it, and its consumer reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from batches import GZIP, Rec, batch

import cordwood as cw
from interop.kafka_classes import KafkaClasses
from interop.produce_requests import RawProducer

TOPIC = "large"
RECORDS, VALUE_BYTES = 2000, 70_000


def test_a_broker_and_its_consumer_have_no_such_limit(kafka: KafkaClasses, tmp_path: Path) -> None:
    raw = batch(0, [Rec(bytes(VALUE_BYTES))] * RECORDS, codec=GZIP)
    address = kafka.ask("start", dir=tmp_path / "data")["address"]
    try:
        kafka.ask("create_topic", topic=TOPIC, settings={"retention.ms": "-1"})
        with RawProducer(address, TOPIC) as producer:
            assert producer.send(raw) == (0, 0)
        served = kafka.ask("consume", topic=TOPIC)
    finally:
        kafka.ask("stop")
    assert served["end"] == RECORDS
    path = tmp_path / "data" / f"{TOPIC}-0"
    with pytest.raises(cw.BatchTooLargeError):
        cw.Log(path).scan(on_damage="skip").to_arrow()
    records = cw.Log(path, max_batch_bytes=1 << 28).records()
    assert sum(len(record.value or b"") for record in records) == RECORDS * VALUE_BYTES
    with cw.LogWriter(path) as writer:
        assert writer.log_end_offset == RECORDS
