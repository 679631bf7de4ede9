"""`verify --as-kafka` of data directories: what becomes of every partition."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from batches import Rec, batch
from interop.broken_directories import METADATA, UNIQUE, another_of_broker, copy_whole
from scripts import Command

import cordwood as cw
from cli.start_verdicts import verdicts

OTHERS = {"rivers.compact-0", "__consumer_offsets-0", "__transaction_state-0", "cities-0", "cities-1"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return copy_whole(tmp_path / "data")


def test_without_the_metadata_of_the_cluster_all_partitions_are_stray(command: Command, data: Path) -> None:
    shutil.rmtree(data / METADATA)
    code, fates, (summary,) = verdicts(command, data)
    assert code == 1
    assert fates == dict.fromkeys(OTHERS, "stray")
    assert (summary["starts"], summary["partitions"], summary["stray"], summary["whole"]) == (True, 5, 5, 0)
    code, shown, _ = command("verify", data, "--as-kafka", "-q")
    assert code == 1
    assert "starts; 5 partitions: 0 kept as they are, 5 renamed to -stray" in shown
    assert f"{data / 'cities-0'} is renamed to -stray: expected the metadata of the cluster" in shown


def test_the_metadata_may_be_in_another_data_directory_of_the_same_broker(
    command: Command, data: Path, tmp_path: Path
) -> None:
    other = another_of_broker(data, tmp_path / "other")
    (data / "cities-1").rename(other / "cities-1")
    code, fates, summaries = verdicts(command, data, other)
    assert code == 0
    assert fates == dict.fromkeys(OTHERS, "kept") | {METADATA: "metadata"}
    assert [summary["stray"] for summary in summaries] == [0, 0]
    shown = command("verify", data, other, "--as-kafka", "-q")[1]
    assert shown.count("with these data directories starts") == 2
    assert "with this data directory alone starts" in command("verify", data, "--as-kafka", "-q")[1]
    # it is alone, or that of another broker
    assert verdicts(command, other)[1] == {"cities-1": "stray"}
    text = (other / "meta.properties").read_text()
    (other / "meta.properties").write_text(text.replace("node.id=1", "node.id=2"))
    assert verdicts(command, data, other)[1]["cities-1"] == "stray"
    assert "these data directories" not in command("verify", data, other, "--as-kafka", "-q")[1]


@pytest.mark.parametrize("kind", ["whole", "without a segment", "damaged", "a file"])
def test_a_second_metadata_log_is_an_error_that_names_it(
    command: Command, data: Path, tmp_path: Path, kind: str
) -> None:
    """Neither log answers for the other, whether or not it can be loaded."""
    other = another_of_broker(data, tmp_path / "other")
    (data / "cities-1").rename(other / "cities-1")
    second = other / METADATA
    if kind == "a file":
        second.write_bytes(b"")
    else:
        shutil.copytree(data / METADATA, second)
    for file in second.glob("0*"):
        if kind == "without a segment":
            file.unlink()
        elif kind == "damaged":
            file.write_bytes(bytes(file.stat().st_size))
    for paths in ((data, other), (other, data)):
        code, shown, _ = command("verify", *paths, "--as-kafka", "-q")
        assert (code, shown.count("with these data directories does not start") > 0) == (1, True)
        assert f"{data / METADATA}: expected one directory for each partition" in shown
        assert str(second) in shown
        code, shown, error = command("metadata", *paths)
        assert (code, shown) == (2, "")
        assert all(str(path) in error for path in paths)
    # the settings of a partition are those of its own data directory
    if kind == "whole":
        assert cw.LogConfig.from_metadata(other / "cities-1") == cw.LogConfig.from_metadata(data / "cities-0")
    else:
        with pytest.raises((cw.CordwoodError, OSError), match=METADATA):
            cw.LogConfig.from_metadata(other / "cities-1")


def test_a_data_directory_that_is_given_by_two_names_has_one_verdict(command: Command, data: Path) -> None:
    link = data.parent / "link"
    link.symlink_to(data)
    assert len(verdicts(command, data, link)[2]) == 1
    assert verdicts(command, link / "cities-0", data)[2][0]["partitions"] == len(OTHERS) + 1


def test_partitions_that_the_metadata_does_not_have_are_stray(command: Command, data: Path) -> None:
    shutil.copytree(data / "cities-0", data / "cities-7")
    shutil.copytree(data / "cities-0", data / "towns-0")
    shutil.copytree(data / "cities-0", data / "towns-7")
    code, fates, (summary,) = verdicts(command, data)
    assert code == 1
    # a broker does not compare the name of the topic
    assert {name: fates[name] for name in ("cities-7", "towns-0", "towns-7")} == {
        "cities-7": "stray",
        "towns-0": "unserved",
        "towns-7": "stray",
    }
    assert (summary["whole"], summary["lossy"], summary["stray"]) == (6, 1, 2)
    found = {(Path(finding.file).parent.name, finding.code) for finding in cw.verify(data).findings}
    assert {("cities-7", "stray_partition"), ("towns-0", "topic_id_mismatch")} <= found
    # an empty directory has no records to lose
    for name in ("cities-7", "towns-0", "towns-7"):
        shutil.rmtree(data / name)
    (data / "cities-7").mkdir()
    code, fates, (summary,) = verdicts(command, data)
    assert (code, fates["cities-7"], summary["stray"]) == (0, "stray", 1)


def test_partitions_of_other_brokers_are_stray(command: Command, data: Path) -> None:
    properties = data / "meta.properties"
    properties.write_text(properties.read_text().replace("node.id=1", "node.id: 2"))
    _, fates, (summary,) = verdicts(command, data)
    assert fates == dict.fromkeys(OTHERS, "stray") | {METADATA: "metadata"}
    assert summary["strays"][0]["reason"].endswith("found one that it has on other brokers: 1")


def test_a_partition_by_itself_is_compared_with_the_metadata_around_it(command: Command, data: Path) -> None:
    shutil.copytree(data / "cities-0", data / "cities-7")
    assert verdicts(command, data / "cities-7")[:2] == (1, {"cities-7": "stray"})
    assert verdicts(command, data / "cities-0")[:2] == (0, {"cities-0": "kept"})
    assert "renames the directory to -stray" in command("verify", data / "cities-7", "--as-kafka")[1]
    # without metadata there, it may be in another data directory
    shutil.rmtree(data / METADATA)
    assert verdicts(command, data / "cities-7")[:2] == (0, {"cities-7": "kept"})


def test_a_partition_whose_directory_is_gone_becomes_an_empty_one(command: Command, data: Path, tmp_path: Path) -> None:
    shutil.move(data / "cities-1", tmp_path / "cities-1")
    code, fates, (summary,) = verdicts(command, data)
    assert (code, summary["starts"], summary["partitions"], summary["whole"]) == (1, True, 6, 5)
    assert fates.keys() == OTHERS - {"cities-1"} | {METADATA}
    assert summary["missing_directories"] == [
        {
            "file": str(data / "cities-1"),
            "reason": "expected a directory of the partition, which the metadata of the cluster has in this data "
            "directory, found none, and offset 150 of it in replication-offset-checkpoint",
        }
    ]
    (finding,) = cw.verify(data).findings
    assert (finding.severity, finding.code, finding.file) == ("error", "partition_missing", str(data / "cities-1"))
    code, shown, _ = command("verify", data, "--as-kafka", "-q")
    assert "starts; 6 partitions: 5 kept as they are, 1 missing" in shown
    assert f"{data / 'cities-1'} is missing, and becomes an empty partition" in shown
    # nothing shows that it had records: a broker may not have created it yet
    for checkpoint in data.glob("*-checkpoint"):
        checkpoint.write_text("0\n0\n")
    code, _, (summary,) = verdicts(command, data)
    assert (code, summary["partitions"], summary["missing"]) == (0, 5, 0)
    assert [(found.severity, found.code) for found in cw.verify(data).findings] == [("info", "partition_missing")]


def test_a_missing_partition_of_a_broker_that_knows_no_directories(command: Command, data: Path) -> None:
    """Before `metadata.version` 3.7: a checkpoint shows that the partition was in this directory."""
    properties = data / "meta.properties"
    lines = properties.read_text().splitlines()
    properties.write_text("\n".join(line for line in lines if not line.startswith("directory.id")) + "\n")
    shutil.rmtree(data / "cities-1")
    (finding,) = [finding for finding in cw.verify(data).findings if finding.code == "partition_missing"]
    assert (finding.severity, finding.file) == ("error", str(data / "cities-1"))
    assert "has on this broker" in finding.expected
    code, _, (summary,) = verdicts(command, data)
    assert (code, summary["missing"]) == (1, 1)
    # it may be in another directory of the broker
    for checkpoint in data.glob("*-checkpoint"):
        checkpoint.write_text("0\n0\n")
    assert "partition_missing" not in {finding.code for finding in cw.verify(data).findings}


@pytest.mark.parametrize("broken", ["recovery-point-offset-checkpoint", "quorum-state", "meta.properties", "cities-0"])
def test_a_broker_ends_if_the_directory_with_the_metadata_log_is_offline(
    command: Command, data: Path, tmp_path: Path, broken: str
) -> None:
    """Without it, the others have no metadata."""
    other = another_of_broker(data, tmp_path / "other")
    if broken == "quorum-state":
        (data / METADATA / broken).unlink()
        (data / METADATA / broken).mkdir()
    elif broken == "meta.properties":
        (data / broken).write_text((data / broken).read_text().replace("version=1", "version=2"))
    elif broken == "cities-0":
        (data / broken / "leader-epoch-checkpoint").write_bytes(bytes(20))
    else:
        (data / broken).write_bytes(bytes(20))
    code, _, summaries = verdicts(command, data, other)
    assert (code, [summary["starts"] for summary in summaries]) == (1, [False, False])
    assert summaries[0]["reasons"] == summaries[1]["reasons"]
    shown = command("verify", data, other, "--as-kafka", "-q")[1]
    assert shown.count("with these data directories does not start") == 2


def test_a_broker_reads_bootstrap_checkpoint_only_beside_the_metadata_log(
    command: Command, data: Path, tmp_path: Path
) -> None:
    other = another_of_broker(data, tmp_path / "other")
    (other / "bootstrap.checkpoint").write_bytes(bytes(20))
    assert [summary["starts"] for summary in verdicts(command, data, other)[2]] == [True, True]
    assert [summary["starts"] for summary in verdicts(command, other)[2]] == [False]
    (data / "bootstrap.checkpoint").write_bytes(bytes(20))
    assert [summary["starts"] for summary in verdicts(command, data, other)[2]] == [False, False]


@pytest.mark.parametrize("state", ["delete", "stray"])
def test_deleted_and_stray_directories_are_loaded_too(command: Command, data: Path, state: str) -> None:
    path = data / f"cities-1.{UNIQUE}-{state}"
    (data / "cities-1").rename(path)
    code, fates, (summary,) = verdicts(command, data)
    # the live directory is missing
    assert (code, summary["starts"], summary["partitions"], summary["missing"]) == (1, True, 6, 1)
    assert fates[path.name] == {"delete": "deleted", "stray": "set_aside"}[state]
    (path / "notes.log").write_bytes(b"x")
    code, _, (summary,) = verdicts(command, data)
    assert (code, summary["starts"]) == (1, False)
    assert [reason["file"] for reason in summary["reasons"]] == [str(path / "notes.log")]
    (finding,) = [finding for finding in cw.verify(data).findings if finding.stops_broker]
    assert (finding.code, finding.file) == ("load_fails", str(path / "notes.log"))


def test_several_directories_of_a_partition_stop_a_broker(command: Command, data: Path) -> None:
    shutil.copytree(data / "cities-0", data / "cities-00")
    code, fates, (summary,) = verdicts(command, data)
    assert (code, summary["starts"]) == (1, False)
    assert fates["cities-0"] == fates["cities-00"] == "refused"
    shutil.rmtree(data / "cities-00")
    future = data / f"cities-0.{UNIQUE}-future"
    shutil.copytree(data / "cities-0", future)
    _, fates, (summary,) = verdicts(command, data)
    assert not summary["starts"]
    assert (fates[future.name], fates["cities-0"]) == ("refused", "kept")
    # it takes the place of the live one
    shutil.rmtree(data / "cities-0")
    assert verdicts(command, data)[0] == 0


@pytest.mark.parametrize("name", [f"e-0.{UNIQUE}-future", "a b-0"])
def test_an_empty_directory_of_a_name_without_checkpoints_is_no_wrong_usage(
    command: Command, data: Path, name: str
) -> None:
    (data / name).mkdir()
    assert cw.verify(data).is_intact
    assert command("verify", data)[0] == 0
    assert command("verify", data, "--as-kafka", "-q")[0] == 0


@pytest.mark.parametrize("start", [0, 31])
def test_a_partition_that_has_only_snapshots_and_leader_epochs_has_lost_its_records(
    command: Command, data: Path, start: int
) -> None:
    """Kafka's loader creates an empty log at the log start offset, and deletes the snapshots."""
    path = data / "cities-0"
    for file in path.iterdir():
        if file.suffix in {".log", ".index", ".timeindex", ".txnindex"}:
            file.unlink()
    (data / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    (data / "log-start-offset-checkpoint").write_text(f"0\n1\ncities 0 {start}\n")
    code, _, (summary,) = verdicts(command, data)
    assert (code, summary["starts"], summary["lossy"], summary["whole"]) == (1, True, 1, 5)
    shown = command("verify", path, "--as-kafka")[1]
    assert f"afterwards the log starts at offset {start} and ends at offset {start}, in 1 segment" in shown
    assert "found none, and 00000000000000000268.snapshot" in shown.replace("\n", " ")
    (finding,) = [finding for finding in cw.verify(data).findings if finding.code == "no_segment"]
    assert "empty log at the partition's offset in log-start-offset-checkpoint, without one at 0" in finding.kafka


def test_a_missing_file_is_one_reason(command: Command, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (data / "meta.properties").unlink()
    monkeypatch.chdir(data.parent)
    _, _, (summary,) = verdicts(command, Path("data"))
    assert [Path(reason["file"]).name for reason in summary["reasons"]] == ["meta.properties"]
    # in a folder of a writer it is no finding
    shutil.copytree(data / "cities-0", data.parent / "logs" / "cities-0")
    _, _, (summary,) = verdicts(command, data.parent / "logs")
    assert [Path(reason["file"]).name for reason in summary["reasons"]] == ["meta.properties"]
    assert cw.verify(data.parent / "logs").is_intact


def test_a_wrong_topic_id_is_that_of_its_partition_alone(command: Command, data: Path) -> None:
    shutil.copy(data / "rivers.compact-0" / "partition.metadata", data / "cities-0")
    found = {Path(finding.file).parent.name for finding in cw.verify(data).findings if finding.severity == "error"}
    assert found == {"cities-0"}
    _, fates, (summary,) = verdicts(command, data)
    assert (fates["cities-0"], fates["cities-1"], summary["lossy"]) == ("unserved", "kept", 1)


def test_a_negative_offset_of_a_checkpoint_does_not_stop_a_broker(command: Command, data: Path) -> None:
    (data / "log-start-offset-checkpoint").write_text("0\n1\ncities 1 -5\n")
    (finding,) = [finding for finding in cw.verify(data).findings if finding.severity != "info"]
    assert (finding.code, finding.severity) == ("checkpoint_offset_negative", "warning")
    assert finding.kafka == "takes the start of the log in its place"
    assert verdicts(command, data)[2][0]["starts"]


def test_a_metadata_record_of_a_later_version_is_no_damage(command: Command, data: Path) -> None:
    file = data / "bootstrap.checkpoint"
    # frame version 1, type 99, version 0
    file.write_bytes(file.read_bytes() + batch(1, [Rec(b"\x01\x63\x00")]))
    (finding,) = [finding for finding in cw.verify(data).findings if finding.severity != "info"]
    assert (finding.code, finding.severity, finding.stops_broker) == ("metadata_snapshot_damaged", "warning", True)
    assert "Unknown metadata id 99" in finding.found
    assert not verdicts(command, data)[2][0]["starts"]
    # with damage beside it, it is an error
    file.write_bytes(file.read_bytes() + batch(2, [Rec(b"\x01")]))
    (finding,) = [finding for finding in cw.verify(data).findings if finding.severity != "info"]
    assert finding.severity == "error"


@pytest.mark.parametrize("broken", ["00000000000000000000.log", "00000000000000000038-0000000001.checkpoint"])
def test_partitions_are_planned_without_the_settings_of_metadata_that_cannot_be_read(
    command: Command, data: Path, broken: str
) -> None:
    (data / METADATA / broken).unlink()
    if broken.endswith(".checkpoint"):
        (data / METADATA / broken).mkdir()
    _, fates, (summary,) = verdicts(command, data)
    assert fates == dict.fromkeys(OTHERS, "kept") | {METADATA: "metadata"}
    # without its only segment, the metadata log has lost what no snapshot has
    lossy = int(broken.endswith(".log"))
    assert (summary["starts"], summary["unreadable"], summary["whole"], summary["lossy"]) == (True, 0, 6 - lossy, lossy)


def test_high_watermarks_that_cannot_be_read_do_not_stop_a_broker_without_partitions(
    command: Command, data: Path
) -> None:
    (data / "replication-offset-checkpoint").write_bytes(bytes(20))
    assert not verdicts(command, data)[2][0]["starts"]
    for name in OTHERS:
        shutil.rmtree(data / name)
    assert verdicts(command, data)[2][0]["starts"]
    (finding,) = [finding for finding in cw.verify(data).findings if finding.code == "checkpoint_unreadable"]
    assert (finding.severity, finding.evidence) == (
        "warning",
        ["a broker without partitions does not read it, and starts"],
    )


def test_the_verdict_names_the_segments_that_a_broker_deletes(command: Command, data: Path) -> None:
    first = min((data / "cities-0").glob("*.log"))
    renamed = first.rename(f"{first}.deleted")
    (*_, summary) = verdicts(command, data)[2]
    assert summary["deleted_files"] == [str(renamed)]
    for path in (data, data / "cities-0"):
        assert f"{renamed}: the broker deletes it" in command("verify", path, "--as-kafka", "-q")[1]


def test_what_is_wrong_with_meta_properties_is_shown_as_in_the_file(command: Command, data: Path) -> None:
    properties = data / "meta.properties"
    for text, found in (
        ("garbage\n", "no broker.id"),
        ("version=1\nnode.id=x\n", "node.id=x"),
        ("version=2\n", "version=2"),
        ("version=1\nnode.id=1\n", "no cluster.id"),
        ("version=0\nbroker.id=1\n", "no cluster.id"),
        ("version=0\ncluster.id=x\nnode.id=1\n", "no broker.id"),
        ("version=1\ncluster.id=x\nnode.id=-1\n", "node.id=-1"),
        (f"version=1\ncluster.id=x\nnode.id=1\ndirectory.id={'A' * 21}Q\n", f'"{"A" * 21}Q"'),
    ):
        properties.write_text(text)
        (finding,) = [finding for finding in cw.verify(data).findings if finding.code == "meta_properties_unreadable"]
        assert finding.found == found
    # one sentence for all partitions whose shutdown is not known
    folders = [data.parent / name for name in ("a", "b")]
    for folder in folders:
        for name in ("cities-0", "cities-1"):
            shutil.copytree(data / name, folder / name)
    assert command("verify", *folders, "--as-kafka", "-q")[2].count("--clean or --unclean") == 1


def test_the_verdict_names_the_partitions_that_lose_records(command: Command, data: Path) -> None:
    log = max((data / "cities-1").glob("*.log"))
    content = bytearray(log.read_bytes())
    content[100] ^= 1
    log.write_bytes(content)
    lost = cw.plan_kafka_load(data / "cities-1", clean=False).lost_offsets
    assert lost
    code, shown, _ = command("verify", data, "--as-kafka", "--unclean", "-q")
    assert code == 1
    assert "1 with records lost or hidden" in shown
    assert f"{data / 'cities-1'}: {lost[0]}" in shown.splitlines()
    (summary,) = verdicts(command, data, "--unclean", "-q")[2]
    assert summary["losses"] == [{"file": str(data / "cities-1"), "reason": str(lost[0])}]
    # also of partitions that are given by themselves
    shown = command("verify", data / "cities-1", data / "cities-0", "--as-kafka", "--unclean", "-q")[1]
    assert f"{data / 'cities-1'}: {lost[0]}" in shown.splitlines()


def test_settings_that_cannot_be_read_are_wrong_usage(command: Command, data: Path, tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    for text in ("retention.ms=7d\n", "log.retention.ms=x\n"):
        properties.write_text(text)
        code, shown, errors = command("verify", "--as-kafka", str(data), "--properties", str(properties))
        assert (code, shown) == (2, ""), errors


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
def test_the_verdict_names_files_of_another_user(command: Command, data: Path) -> None:
    os.chown(data / "cities-0" / "00000000000000000000.log", 4242, -1)
    _, shown, _ = command("verify", "--as-kafka", str(data))
    assert "unless the broker runs as root" in shown
    assert "user 4242" in shown
