"""Logs whose leader epochs fall: Kafka loads and reads all of their records."""

from __future__ import annotations

from pathlib import Path

import pytest
from epoch_logs import FALLS, write

import cordwood as cw
from interop.kafka_classes import KafkaClasses


@pytest.mark.parametrize("name", FALLS)
def test_kafka_keeps_all_records_of_a_log_whose_epochs_fall(kafka: KafkaClasses, tmp_path: Path, name: str) -> None:
    partition = tmp_path / "orders-0"
    values = write(partition, FALLS[name])
    plan = cw.LogWriter.plan_recovery(partition)
    opened = kafka.ask(
        "open", dir=partition, settings={"retention.ms": -1}, clean=False, lines=True, log_start_offset=0
    )
    assert (plan.log_end_offset, opened["log_end_offset"]) == (len(values), len(values))
    assert cw.Log(partition).scan().to_arrow()["value"].to_pylist() == values
