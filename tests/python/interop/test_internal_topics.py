"""The tables of internal topics, beside what the Admin client of a running broker says of the same cluster."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

import cordwood as cw
from interop.kafka_classes import KafkaClasses

TOPIC = "readings"
# few partitions, and segments so small that the log of the metadata has snapshots
SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "2",
    "metadata.log.max.record.bytes.between.snapshots": "1000",
}


@pytest.fixture(scope="module")
def cluster(kafka: KafkaClasses, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The data directory of a stopped broker, and what it answered before it was stopped."""
    path = tmp_path_factory.mktemp("cluster") / "data"
    kafka.ask("start", dir=path, settings=SETTINGS)
    try:
        kafka.ask("create_topic", topic=TOPIC, settings={"retention.ms": "-1", "segment.bytes": "1048576"})
        value = base64.b64encode(b"reading").decode()
        records = [{"timestamp": 1_700_000_000_000 + n, "value": value} for n in range(20)]
        kafka.ask("produce", topic=TOPIC, records=records)
        kafka.ask("use_coordinators", topic=TOPIC)
        described = kafka.ask("describe_cluster", topic=TOPIC)
    finally:
        kafka.ask("stop")
    return path, described


def rows(table: cw.Table, names: list[str]) -> list[dict[str, Any]]:
    """The rows with these columns, in an order of their own."""
    return ordered([{name: row[name] for name in names} for row in table.to_dicts()])


def ordered(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda row: [str(value) for value in row.values()])


def test_committed_offsets_and_lag(cluster: tuple[Path, dict[str, Any]]) -> None:
    path, described = cluster
    names = ["group", "topic", "partition", "offset", "leader_epoch", "metadata"]
    table = cw.consumer_offsets(path)
    committed = [row for row in table.to_dicts() if row["offset"] is not None]
    assert ordered([{name: row[name] for name in names} for row in committed]) == ordered(described["offsets"])
    assert len(committed) >= 9
    assert {row["lag"] + row["offset"] for row in committed} == {described["end"]}


def test_offsets_of_a_transaction_are_committed_with_it(cluster: tuple[Path, dict[str, Any]]) -> None:
    by_group = {row["group"]: row for row in cw.consumer_offsets(cluster[0]).to_dicts()}
    found = {
        name: (by_group[name]["offset"], by_group[name]["pending_offset"])
        for name in ("offsets-of-committed", "offsets-of-open")
    }
    assert found == {"offsets-of-committed": (11, None), "offsets-of-open": (None, 13)}
    assert "offsets-of-aborted" not in by_group


def test_groups(cluster: tuple[Path, dict[str, Any]]) -> None:
    path, described = cluster
    names = ["group", "type", "state"]
    expected = [{**row, "type": row["type"].lower()} for row in described["groups"]]
    assert rows(cw.consumer_groups(path), names) == ordered(expected)


def test_transactions(cluster: tuple[Path, dict[str, Any]]) -> None:
    path, described = cluster
    names = ["transactional_id", "producer_id", "producer_epoch", "timeout_ms", "state"]
    expected = [{name: row[name] for name in names} for row in described["transactions"]]
    assert rows(cw.transactions(path), names) == ordered(expected)
    assert {row["state"] for row in expected} == {"CompleteCommit", "CompleteAbort", "Ongoing"}


def test_open_transactions(cluster: tuple[Path, dict[str, Any]]) -> None:
    path, described = cluster
    names = ["producer_id", "producer_epoch", "first_offset", "last_time"]
    assert len(described["open"]) == 1
    assert rows(cw.open_transactions(path, topics=[TOPIC]), names) == described["open"]


def test_topics_and_their_settings(cluster: tuple[Path, dict[str, Any]]) -> None:
    path, described = cluster
    found = cw.metadata(path)
    assert rows(found.topics, ["topic", "topic_id", "partitions"]) == ordered(described["topics"])
    configs = [row for row in found.configs.to_dicts() if row["resource_type"] == "topic"]
    names = ["resource", "name", "value"]
    assert ordered([{name: row[name] for name in names} for row in configs]) == ordered(described["configs"])
    assert found.errors.to_dicts() == []


def test_quotas_users_and_features(cluster: tuple[Path, dict[str, Any]]) -> None:
    path, described = cluster
    found = cw.metadata(path)
    expected = [
        {"user": row["user"], "client_id": row["client-id"], "ip": None, "key": row["key"], "value": row["value"]}
        for row in described["quotas"]
    ]
    assert rows(found.client_quotas, ["user", "client_id", "ip", "key", "value"]) == ordered(expected)
    names = ["user", "mechanism", "iterations"]
    assert rows(found.scram_credentials, names) == ordered(described["users"])
    assert rows(found.features, ["feature", "level"]) == ordered(described["features"])
