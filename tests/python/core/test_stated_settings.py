"""What deletes records needs limits and a policy that somebody has stated: the caller, a file, or the metadata."""

from __future__ import annotations

import copy
import dataclasses
import json
import logging
import pickle
import shutil
from pathlib import Path

import commands
import pytest
from clusters import BROKER, OLD, TOPIC, Cluster
from corpus import GOLDEN

import cordwood as cw
from cordwood.config import stated_names

DAYS_7 = 7 * 86_400_000
PROFILES = GOLDEN / "12-compacted" / "profiles-0"
PAYMENTS = GOLDEN / "11-transactions" / "payments-0"
INTACT = GOLDEN / "01-small" / "tickets-0"
SWAPPED = GOLDEN / "damaged" / "batches-swapped" / "tickets-0"
NOBODYS = "Kafka's defaults, not this topic's settings; a broker's server.properties may say otherwise"


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path / "data")


def bases(path: Path) -> list[int]:
    return [segment.base_offset for segment in cw.Log(path).segments]


def server_properties(folder: Path, *lines: str) -> Path:
    file = folder / "server.properties"
    file.write_text("\n".join(["node.id=3", *lines]))
    return file


def damage(cluster: Cluster) -> None:
    """Flip a bit of the first record of the metadata."""
    log = cluster.path / "__cluster_metadata-0" / f"{0:020}.log"
    records = bytearray(log.read_bytes())
    records[70] ^= 1
    log.write_bytes(records)


def assert_refused(path: Path, setting: str, config: cw.LogConfig | None = None) -> None:
    """By the plan, a writer and a timer; no segment is deleted."""
    with pytest.raises(cw.ConfigError) as planned:
        cw.plan_retention(cw.Log(path), config)
    with cw.LogWriter(path, config=config) as writer:
        before = bases(path)
        with pytest.raises(cw.ConfigError) as raised:
            writer.apply_retention()
        assert [error.value.argument for error in (planned, raised)] == [setting, setting]
        with cw.retention_timer(writer, every=3600) as timer:
            timer.stop()
            assert isinstance(timer.last_error, cw.ConfigError)
    assert bases(path)[: len(before)] == before


def test_kafkas_default_deletes_nothing_where_a_brokers_file_may_have_another_limit(
    cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "cordwood")
    path = cluster.write()
    before = bases(path)
    for config in (None, cw.LogConfig(), cw.LogConfig(compression_type="zstd"), cw.LogConfig(retention_bytes=1 << 30)):
        assert_refused(path, "retention.ms", config)
    for yes in ((), ("--yes",)):
        done = commands.cordwood("apply-retention", path, *yes)
        assert done.returncode == 2
        assert "Kafka's defaults, not this topic's settings" in done.stderr.decode()
        assert "give it with --properties" in done.stderr.decode()
    assert bases(path) == before
    # the broker's file says it, also if it is silent: then the default is the topic's
    file = server_properties(tmp_path, "log.retention.hours=-1")
    done = commands.cordwood("apply-retention", path, "--properties", file, "--yes")
    assert (done.returncode, "no segment" in done.stdout.decode()) == (0, True)
    assert f"settings: {file}; cleanup.policy, retention.bytes: Kafka's defaults\n" in done.stdout.decode()
    file = server_properties(tmp_path, "log.segment.bytes=2097152")
    done = commands.cordwood("apply-retention", path, "--properties", file)
    assert "would be deleted with retention.ms=604800000" in done.stdout.decode()
    assert "settings: Kafka's defaults\n" in done.stdout.decode()
    # and so does the caller
    assert len(cw.plan_retention(cw.Log(path), cw.LogConfig(retention_ms=DAYS_7)).segments) == 3
    assert cw.plan_retention(cw.Log(path), cw.LogConfig(cleanup_policy="compact")).segments == []
    done = commands.cordwood("apply-retention", path, "--set", "retention.ms=1", "--yes")
    assert f"settings: --set; cleanup.policy, retention.bytes: {NOBODYS}" in done.stdout.decode()
    assert bases(path) == before[-1:]


def test_so_it_is_in_a_data_directory_without_metadata(cluster: Cluster) -> None:
    """A broker has the metadata in one of its data directories."""
    path = cluster.write()
    shutil.rmtree(cluster.path / "__cluster_metadata-0")
    assert_refused(path, "retention.ms")
    assert commands.cordwood("apply-retention", path, "--yes").returncode == 2
    assert len(cw.plan_retention(cw.Log(path), cw.LogConfig(retention_ms=1)).segments) == 3


def test_a_log_outside_a_data_directory_has_the_documented_default(tmp_path: Path) -> None:
    path = tmp_path / "own" / "orders-0"
    path.parent.mkdir()
    with cw.LogWriter(path) as writer:
        for number in range(3):
            writer.append(b"x", timestamp=OLD + number)
            writer.roll()
        assert len(writer.apply_retention(OLD + DAYS_7).segments) == 0
    shown = commands.cordwood("apply-retention", path).stdout.decode()
    assert "would be deleted" in shown
    assert f"settings: {NOBODYS}" in shown
    with cw.LogWriter(path) as writer:
        assert len(writer.apply_retention(OLD + DAYS_7 + 3).segments) == 3


def test_a_compacted_log_needs_a_policy_although_the_metadata_knows_its_topic(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "cordwood")
    cluster = Cluster(tmp_path / "data", "profiles")
    path = cluster.path / "profiles-0"
    shutil.copytree(PROFILES, path, ignore=shutil.ignore_patterns("partition.metadata"))
    for settings in ({}, {"retention_ms": "1000"}):
        cluster.set(TOPIC, "profiles", **settings)
        assert_refused(path, "cleanup.policy")
        assert commands.cordwood("apply-retention", path, "--yes").returncode == 2
    file = server_properties(tmp_path, "log.cleanup.policy=compact")
    assert b"no segment" in commands.cordwood("apply-retention", path, "--properties", file).stdout
    cluster.set(BROKER, "3", log_cleanup_policy="compact")
    assert cw.plan_retention(cw.Log(path)).segments == []
    cluster.set(BROKER, "3", log_cleanup_policy="delete")
    assert cw.plan_retention(cw.Log(path)).segments != []


def test_settings_that_are_given_do_not_hide_those_of_the_topic(cluster: Cluster) -> None:
    cluster.set(TOPIC, "orders", retention_ms="-1", max_message_bytes="5000")
    path = cluster.write()
    before = bases(path)
    with cw.LogWriter(path, config=cw.LogConfig(compression_type="zstd", max_message_bytes=6000)) as writer:
        config = writer.config
        assert (config.retention_ms, config.compression_type, config.max_message_bytes) == (-1, "zstd", 6000)
        with cw.retention_timer(writer, every=3600) as timer:
            timer.stop()
            assert timer.last_error is None
    assert bases(path)[: len(before)] == before
    assert len(cw.plan_retention(cw.Log(path), cw.LogConfig(retention_ms=DAYS_7)).segments) >= 3


def test_a_config_knows_which_settings_were_given() -> None:
    config = cw.LogConfig(retention_ms=DAYS_7, segment_bytes=4096)
    assert config == cw.LogConfig(segment_bytes=4096)
    assert hash(config) == hash(cw.LogConfig(segment_bytes=4096))
    given = {"retention.ms", "segment.bytes"}
    for same in (config, copy.copy(config), pickle.loads(pickle.dumps(config)), dataclasses.replace(config)):
        assert (same, stated_names(same)) == (config, given)
    assert stated_names(dataclasses.replace(config, segment_ms=5)) == {*given, "segment.ms"}
    file = {"cleanup.policy": "delete", "internal.segment.bytes": "4096"}
    assert stated_names(cw.LogConfig.from_properties(file)) == {"cleanup.policy", "segment.bytes"}
    file = {"node.id": "1", "log.retention.hours": "168"}
    assert stated_names(cw.LogConfig.from_properties(file)) == {"retention.ms"}
    assert cw.LogConfig.from_properties(config.to_properties()) == config


def test_damaged_metadata_does_not_prevent_what_deletes_nothing(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.set(TOPIC, "orders", retention_ms="-1")
    path = cluster.write()
    before = bases(path)
    damage(cluster)
    with cw.LogWriter(path) as writer:
        writer.append(b"x", timestamp=OLD)
        assert len([line for line in caplog.messages if "the settings of the topic orders are not known" in line]) == 1
        for _ in range(2):
            with pytest.raises(cw.CorruptLogError, match="__cluster_metadata-0"):
                writer.apply_retention()
    assert bases(path)[: len(before)] == before
    for command, given in (
        (("recover", path), b""),
        (("recover", path, "--set", "index.interval.bytes=4096", "--yes"), b""),
        (("append", path), b"one more\n"),
        (("truncate", path, "--to", 4, "--yes"), b""),
    ):
        done = commands.cordwood(*command, given=given)
        assert done.returncode == 0, done.stderr
        warnings = [line for line in done.stderr.decode().splitlines() if line.startswith("warning: the settings")]
        assert len(warnings) == 1, command
    # what deletes needs the settings that decide
    for settings in ((), ("retention.ms=1",), ("cleanup.policy=delete",)):
        arguments = [word for setting in settings for word in ("--set", setting)]
        done = commands.cordwood("apply-retention", path, *arguments, "--yes")
        assert (done.returncode, b"__cluster_metadata-0" in done.stderr) == (1, True), settings
    assert commands.cordwood("compact", path).returncode == 2
    assert commands.cordwood("compact", path, "--set", "cleanup.policy=compact").returncode == 0
    assert bases(path)[: len(before)] == before
    arguments = ("--set", "retention.ms=1", "--set", "cleanup.policy=delete", "--yes")
    assert commands.cordwood("apply-retention", path, *arguments).returncode == 0
    assert bases(path) != before


def test_an_open_transaction_is_aborted_beside_damaged_metadata(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "data", "payments")
    cluster.set(TOPIC, "payments", retention_ms="-1")
    path = cluster.path / "payments-0"
    shutil.copytree(PAYMENTS, path)
    damage(cluster)
    done = commands.cordwood("transactions", path, "--abort", "4", "--yes")
    assert done.returncode == 0, done.stderr
    assert b"aborted the transaction of producer 4" in done.stdout
    assert b"warning: the settings of the topic payments are not known" in done.stderr


def test_a_compaction_needs_a_policy_that_somebody_has_stated(cluster: Cluster, tmp_path: Path) -> None:
    path = cluster.write()
    done = commands.cordwood("compact", path, "--yes")
    assert (done.returncode, NOBODYS in done.stderr.decode()) == (2, True)
    own = tmp_path / "own" / "orders-0"
    shutil.copytree(path, own)
    file = server_properties(tmp_path, "log.retention.hours=1")
    for options in ((), ("--properties", file)):
        done = commands.cordwood("compact", own, *options)
        assert done.returncode == 0, done.stderr
    file = server_properties(tmp_path, "log.cleanup.policy=delete")
    done = commands.cordwood("compact", own, "--properties", file)
    assert (done.returncode, b"expected compact, found delete" in done.stderr) == (2, True)


def test_the_sources_are_named_by_their_precedence(cluster: Cluster, tmp_path: Path) -> None:
    cluster.set(TOPIC, "orders", cleanup_policy="delete")
    cluster.set(BROKER, "", log_retention_bytes="1000000")
    path = cluster.write()
    file = server_properties(tmp_path, "log.retention.ms=-1", "log.cleanup.policy=compact")

    def source(*options: object) -> str:
        done = commands.cordwood("apply-retention", path, "--json", *options)
        assert done.returncode == 0, done.stderr
        words: str = json.loads(done.stdout)["source"]
        return words.replace(str(cluster.path), "DATA").replace(str(tmp_path), "")

    topics, brokers = "the topic's in the metadata of DATA", "the broker's in the metadata of DATA"
    assert source("--properties", file) == f"{topics}, then {brokers}, then /server.properties"
    assert source("--set", "retention.ms=5") == f"--set, then {topics}, then {brokers}"
    (tmp_path / "topic.properties").write_text("retention.ms=5\n")
    assert source("--properties", tmp_path / "topic.properties") == f"/topic.properties, then {topics}, then {brokers}"
    cluster.set(BROKER, "", log_retention_bytes=None)
    unstated = f"retention.bytes: {NOBODYS}: give it with --properties"
    assert source("--set", "retention.ms=5") == f"--set, then {topics}; {unstated}"
    assert source("--properties", file) == f"{topics}, then /server.properties; retention.bytes: Kafka's defaults"


def test_other_settings_do_not_hide_the_interval_of_the_indexes(tmp_path: Path) -> None:
    """The indexes have an entry every 512 bytes, and a broker with this interval loses records."""
    path = tmp_path / "tickets-0"
    shutil.copytree(SWAPPED, path)
    file = server_properties(tmp_path, "log.retention.hours=1")
    for options in ((), ("--set", "segment.index.bytes=1048576"), ("--properties", file)):
        done = commands.cordwood("verify", path, "--as-kafka", "--unclean", *options)
        assert done.returncode == 1
        assert b"index.interval.bytes 512, as the indexes show" in done.stdout
        shown = commands.cordwood("reindex", INTACT, *options).stdout
        assert b"index.interval.bytes 512, as the indexes show" in shown, options
    file = server_properties(tmp_path, "log.index.interval.bytes=4096")
    for options in (("--set", "index.interval.bytes=4096"), ("--properties", file)):
        done = commands.cordwood("verify", path, "--as-kafka", "--unclean", *options)
        assert (done.returncode, b"index.interval.bytes 4096, as given" in done.stdout) == (0, True)


def test_other_settings_do_not_hide_the_interval_of_the_topic(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "data", "tickets")
    cluster.set(TOPIC, "tickets", index_interval_bytes="1024")
    path = cluster.path / "tickets-0"
    shutil.copytree(INTACT, path, ignore=shutil.ignore_patterns("partition.metadata"))
    file = server_properties(tmp_path, "log.index.interval.bytes=2048", "log.index.size.max.bytes=1048576")
    for options in ((), ("--set", "segment.index.bytes=1048576"), ("--properties", file)):
        for command in (("verify", "--as-kafka", "--unclean"), ("reindex",)):
            shown = commands.cordwood(*command, path, *options).stdout.decode()
            assert "index.interval.bytes 1024, the topic's" in shown, (command, options)
    shown = commands.cordwood("reindex", path, "--set", "index.interval.bytes=2048").stdout.decode()
    assert "index.interval.bytes 2048, as given" in shown


@pytest.mark.parametrize("name", ["__transaction_state-0", "__consumer_offsets-0"])
def test_retention_of_kafkas_own_topics_needs_a_policy(tmp_path: Path, name: str) -> None:
    path = Path(shutil.copytree(GOLDEN / "16-data-dir" / name, tmp_path / name))
    with pytest.raises(cw.ConfigError, match="its topic is Kafka's own"):
        cw.plan_retention(cw.Log(path), cw.LogConfig())
    with cw.LogWriter(path) as writer, pytest.raises(cw.ConfigError, match="its topic is Kafka's own"):
        writer.apply_retention()
    assert cw.plan_retention(cw.Log(path), cw.LogConfig(cleanup_policy="compact")).segments == []
