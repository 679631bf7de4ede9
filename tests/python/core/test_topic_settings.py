"""The settings of a topic, from the metadata of its data directory.

The metadata is a real broker's (`16-data-dir`), or that of a `Cluster`.
"""

from __future__ import annotations

import dataclasses
import logging
import shutil
import uuid
from pathlib import Path

import commands
import corpus
import pytest
from batches import Rec, batch, write_partition
from clusters import BROKER, TOPIC, Cluster, kafkas
from corpus import GOLDEN

import cordwood as cw
from cordwood.config import stated_names


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path / "data")


def config_of(path: Path) -> cw.LogConfig:
    config = cw.LogConfig.from_metadata(path)
    assert config is not None
    return config


def test_retention_without_a_limit_in_the_metadata_deletes_nothing(cluster: Cluster) -> None:
    cluster.set(TOPIC, "orders", retention_ms="-1")
    path = cluster.write()
    assert cw.plan_retention(cw.Log(path)).segments == []
    before = [segment.base_offset for segment in cw.Log(path).segments]
    done = commands.cordwood("apply-retention", path, "--yes")
    assert done.returncode == 0, done.stderr
    assert f"the topic's in the metadata of {cluster.path}" in done.stdout.decode()
    with cw.LogWriter(path) as writer:
        assert (writer.config.retention_ms, writer.apply_retention().segments) == (-1, [])
        with cw.retention_timer(writer, every=3600) as timer:
            timer.stop()
            assert timer.last_error is None
    assert [segment.base_offset for segment in cw.Log(path).segments] == before


def test_retention_of_a_topic_that_the_metadata_says_is_compacted_deletes_nothing(cluster: Cluster) -> None:
    cluster.set(TOPIC, "orders", cleanup_policy="compact")
    path = cluster.write()
    assert cw.Log(path).is_compacted
    assert cw.plan_retention(cw.Log(path)).segments == []
    # settings of which none is a policy do not hide that of the topic
    assert cw.plan_retention(cw.Log(path), cw.LogConfig(retention_ms=1)).segments == []
    with cw.LogWriter(path, config=cw.LogConfig(retention_ms=1)) as writer:
        assert writer.apply_retention().segments == []
        assert (writer.config.retention_ms, writer.config.cleanup_policy) == (1, "compact")
    cluster.set(TOPIC, "orders", cleanup_policy="compact,delete", retention_ms="1000")
    assert len(cw.plan_retention(cw.Log(path)).segments) == 3


def test_explicit_settings_take_precedence_over_the_metadata(cluster: Cluster) -> None:
    cluster.set(TOPIC, "orders", retention_ms="-1", cleanup_policy="compact")
    path = cluster.write()
    given = cw.LogConfig(retention_ms=1, cleanup_policy="delete")
    assert len(cw.plan_retention(cw.Log(path), given).segments) == 3
    arguments = ("apply-retention", path, "--set", "cleanup.policy=delete", "--set", "retention.ms=1")
    assert b"would be deleted" in commands.cordwood(*arguments).stdout
    # one that is given does not hide the others
    assert b"no segment" in commands.cordwood("apply-retention", path, "--set", "retention.ms=1").stdout


def test_settings_of_the_broker_stand_below_those_of_the_topic_and_above_its_file(cluster: Cluster) -> None:
    path = cluster.write()
    file = {"node.id": "3", "log.retention.ms": "1", "log.segment.bytes": "2097152", "log.cleanup.policy": "compact"}
    assert (config_of(path), stated_names(config_of(path))) == (cw.LogConfig(), set())
    cluster.set(BROKER, "", log_retention_ms="20", log_cleaner_delete_retention_ms="30")
    cluster.set(BROKER, "3", log_retention_ms="21")
    cluster.set(BROKER, "4", log_retention_ms="22")
    config = cw.LogConfig.from_metadata(path, properties=file)
    assert config is not None
    assert (config.retention_ms, config.delete_retention_ms) == (21, 30)
    assert (config.segment_bytes, config.cleanup_policy) == (2097152, "compact")
    cluster.set(TOPIC, "orders", retention_ms="40", segment_bytes="4096", setting_of_tomorrow="1")
    assert (config_of(path).retention_ms, config_of(path).segment_bytes) == (40, 4096)
    cluster.set(TOPIC, "orders", retention_ms=None)
    assert config_of(path).retention_ms == 21
    overridden = cw.LogConfig.from_metadata(path, overrides={"retention.ms": "50"})
    assert overridden is not None
    assert overridden.retention_ms == 50


def test_a_topic_with_another_id_is_another_topic(cluster: Cluster) -> None:
    cluster.set(TOPIC, "orders", retention_ms="-1")
    path = cluster.write(topic_id=cluster.ids["orders"])
    assert config_of(path).retention_ms == -1
    file = path / "partition.metadata"
    file.write_text(f"version: 0\ntopic_id: {kafkas(uuid.UUID(int=1 << 64 | 1))}")
    assert cw.LogConfig.from_metadata(path) is None
    with pytest.raises(cw.ConfigError, match="orders"):
        cw.LogConfig.from_metadata(path, metadata=cluster.path)


def test_the_metadata_of_another_directory_can_be_given(cluster: Cluster, tmp_path: Path) -> None:
    cluster.set(TOPIC, "orders", retention_ms="-1")
    path = tmp_path / "other" / "orders-0"
    shutil.copytree(cluster.write(), path)
    done = commands.cordwood("apply-retention", path)
    assert b"defaults, not this topic's settings" in done.stdout
    assert b"would be deleted" in done.stdout
    for metadata in (cluster.path, cluster.path / "__cluster_metadata-0"):
        done = commands.cordwood("apply-retention", path, "--metadata", metadata)
        assert b"no segment" in done.stdout, done.stderr


def test_metadata_with_missing_records_is_an_error_and_not_a_default(cluster: Cluster) -> None:
    cluster.set(TOPIC, "orders", retention_ms="-1")
    path = cluster.write()
    log = cluster.path / "__cluster_metadata-0" / f"{0:020}.log"
    records = log.read_bytes()
    # the first batch, with the topic, is gone
    log.write_bytes(records[12 + int.from_bytes(records[8:12]) :])
    for config in (None, cw.LogConfig(retention_ms=1)):
        with pytest.raises(cw.CorruptLogError, match="missing"):
            cw.plan_retention(cw.Log(path), config)
        with cw.LogWriter(path, config=config) as writer, pytest.raises(cw.CorruptLogError, match="missing"):
            writer.apply_retention()
    given = cw.LogConfig(retention_ms=1, cleanup_policy="delete")
    assert len(cw.plan_retention(cw.Log(path), given).segments) == 3


def test_a_compacted_log_without_metadata_is_refused_without_a_policy(tmp_path: Path) -> None:
    path = tmp_path / "profiles-0"
    shutil.copytree(GOLDEN / "12-compacted" / "profiles-0", path)
    for config in (None, cw.LogConfig(), dataclasses.replace(cw.LogConfig(), retention_ms=1)):
        with pytest.raises(cw.ConfigError, match=r"cleanup\.policy.*compaction"):
            cw.plan_retention(cw.Log(path), config)
    done = commands.cordwood("apply-retention", path, "--yes")
    assert done.returncode == 2
    assert b"cleanup.policy" in done.stderr
    with cw.LogWriter(path) as writer, pytest.raises(cw.ConfigError):
        writer.apply_retention()
    assert cw.plan_retention(cw.Log(path), cw.LogConfig(cleanup_policy="compact")).segments == []
    assert cw.plan_retention(cw.Log(path), cw.LogConfig(cleanup_policy="delete")).segments != []


def test_the_timer_keeps_the_refusal_and_deletes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "profiles-0"
    shutil.copytree(GOLDEN / "12-compacted" / "profiles-0", path)
    before = [segment.base_offset for segment in cw.Log(path).segments]
    with caplog.at_level(logging.CRITICAL, "cordwood"), cw.LogWriter(path) as writer:
        with cw.retention_timer(writer, every=3600) as timer:
            timer.stop()
            assert isinstance(timer.last_error, cw.ConfigError)
        assert [segment.base_offset for segment in writer.reader().segments][: len(before)] == before


def test_a_compaction_of_a_topic_that_is_deleted_from_needs_a_policy(cluster: Cluster) -> None:
    cluster.set(TOPIC, "orders", cleanup_policy="delete")
    path = cluster.write()
    done = commands.cordwood("compact", path, "--yes")
    assert (done.returncode, b"expected compact, found delete" in done.stderr) == (2, True)
    assert commands.cordwood("compact", path, "--set", "cleanup.policy=compact").returncode == 0


def test_the_settings_that_a_broker_wrote(tmp_path: Path) -> None:
    """The records of `16-data-dir`, from its snapshots and the log after them."""
    directory = tmp_path / "data"
    shutil.copytree(GOLDEN / "16-data-dir", directory)
    rows = cw.metadata(directory).configs.to_dicts()
    topics = {row["topic"] for row in cw.metadata(directory).topics.to_dicts()}
    assert {"cities", "rivers.compact"} <= topics
    for topic in topics:
        properties = config_of(directory / f"{topic}-0").to_properties()
        stored = {row["name"]: row["value"] for row in rows if row["resource"] == topic}
        assert {name: properties[name] for name in stored} == stored
        # with which the topics were created
        given = corpus.cases()["16-data-dir"]["settings"].get(topic, {})
        assert {name: properties[name] for name in given} == given
    assert config_of(directory / "rivers.compact-0").cleanup_policy == "compact"
    assert cw.LogConfig.from_metadata(directory / "nothing-0") is None
    assert cw.LogConfig.from_metadata(directory / "__cluster_metadata-0") is None


def test_new_metadata_is_read_again_in_the_same_process(cluster: Cluster) -> None:
    path = cluster.write()
    for interval in ("1000", "2000"):
        cluster.set(TOPIC, "orders", index_interval_bytes=interval)
        assert config_of(path).index_interval_bytes == int(interval)
        load = cw.plan_kafka_load(path, clean=True)
        assert (load.index_interval_bytes, load.interval_source) == (int(interval), "topic")
    log = cluster.path / "__cluster_metadata-0" / f"{0:020d}.log"
    content = log.read_bytes()
    log.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(cw.CorruptLogError, match="metadata without errors"):
        config_of(path)
    log.write_bytes(content)
    assert config_of(path).index_interval_bytes == 2000


@pytest.mark.parametrize("setting", [{"remote_storage_enable": "true"}, {"retention_ms": "never"}])
def test_a_setting_that_a_load_does_not_use_does_not_end_its_plan(cluster: Cluster, setting: dict[str, str]) -> None:
    path = cluster.write()
    cluster.set(TOPIC, "orders", index_interval_bytes="1234", segment_index_bytes="4096", **setting)
    with pytest.raises(cw.ConfigError):
        config_of(path)
    for clean in (True, False):
        load = cw.plan_kafka_load(path, clean=clean)
        assert (load.index_interval_bytes, load.interval_source) == (1234, "topic")
        sizes = {Path(file.name).suffix: file.new_size for file in load.files if file.name.startswith(f"{3:020d}")}
        assert sizes[".index"] == 4096
    report = cw.rebuild_indexes(path)
    assert (report.index_interval_bytes, report.interval_source) == (1234, "topic")


@pytest.mark.parametrize("policy", ["compact", "delete"])
def test_verify_asks_the_metadata_whether_a_gap_is_that_of_a_compaction(cluster: Cluster, policy: str) -> None:
    """The cleaner's checkpoint is lost, and no batch shows that it was rewritten."""
    cluster.set(TOPIC, "orders", cleanup_policy=policy)
    path = write_partition(cluster.path / "orders-0", [(0, [batch(0, [Rec(b"a")])]), (5, [batch(5, [Rec(b"b")])])])
    found = [finding.severity for finding in cw.verify(path).findings if finding.code == "offset_gap"]
    assert found == ["error" if policy == "delete" else "warning"]
    assert cw.Log(path).is_compacted == (policy == "compact")


def test_segments_that_a_compaction_emptied_are_no_finding(tmp_path: Path) -> None:
    config = cw.LogConfig(cleanup_policy="compact", min_cleanable_dirty_ratio=0.0, segment_bytes=300)
    with cw.LogWriter(tmp_path / "orders-0", config=config) as writer:
        for number in range(40):
            writer.append("v" * 40, key=f"k{number % 3}")
        writer.compact()
    assert cw.verify(tmp_path / "orders-0").findings == []
