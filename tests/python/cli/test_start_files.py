"""`verify` and `verify --as-kafka` of data directories with one wrong file. A real broker is asked in `interop`."""

from __future__ import annotations

from pathlib import Path

import pytest
from interop.broken_directories import METADATA, another_of_broker, cases, copy_whole
from scripts import Command

import cordwood as cw
from cli.start_verdicts import verdicts

CASES = cases()
LOG = f"{METADATA}/00000000000000000000.log"
STATE = f"{METADATA}/quorum-state"
# with each of these, a broker does not start; the file of the first finding that says it
STOPPED = {
    f"{METADATA}: a record of a later version": LOG,
    f"{METADATA}: a record of frame version 9": LOG,
    f"{METADATA}: a record without bytes": LOG,
    f"{METADATA}: a record of other bytes": LOG,
    f"{METADATA}: a record with bytes after it": LOG,
    f"{METADATA}: a record of an unknown topic": LOG,
    f"{METADATA}: a record that ends no transaction": LOG,
    f"{METADATA}: a record of control type 9": LOG,
    f"{METADATA}: a record of a commit": LOG,
    f"{METADATA}: a directory leader-epoch-checkpoint.tmp": f"{METADATA}/leader-epoch-checkpoint.tmp",
    f"{METADATA}: a directory quorum-state.tmp with a file": f"{METADATA}/quorum-state.tmp",
    **dict.fromkeys(
        (
            f"{STATE}: {how}"
            for how in (
                'leaderEpoch "1"',
                "leaderEpoch 1.0",
                "leaderEpoch null",
                "leaderEpoch 9999999999",
                "leaderId true",
                "leaderId 9999999999",
                "votedId 9999999999",
                'appliedOffset "0"',
                "clusterId null",
                "currentVoters null",
                "currentVoters [{}]",
                'currentVoters [{"voterId":"1"}]',
                "of version 1, without a UUID",
            )
        ),
        STATE,
    ),
    "cities-0/partition.metadata: no space before the version": "cities-0/partition.metadata",
    "cities-0/partition.metadata: no space before the id": "cities-0/partition.metadata",
    "cities-0/partition.metadata: a space after the id": "cities-0/partition.metadata",
    "cities-0: a directory leader-epoch-checkpoint.tmp": "cities-0/leader-epoch-checkpoint.tmp",
    "cities-0: a directory 00000000000000000000.txnindex": "cities-0/00000000000000000000.txnindex",
    "cities-0: a directory 00000000000000000236.index": "cities-0/00000000000000000236.index",
    "cities-0: a directory 00000000000000000268.snapshot": "cities-0/00000000000000000268.snapshot",
    ".kafka_cleanshutdown: a directory with a file": ".kafka_cleanshutdown",
    "cities-0: a directory leader-epoch-checkpoint.tmp, after a crash": "cities-0/leader-epoch-checkpoint.tmp",
    "meta.properties: a path with backslashes": "meta.properties",
    "meta.properties: a space after node.id": "meta.properties",
}
# of these, a broker reads what it needs
STARTED = (
    f"{METADATA}: a record of no effect",
    f"{METADATA}: damage before a record of other bytes",
    f"{METADATA}: a directory quorum-state.tmp",
    "a directory cities-+1",
    "a directory cities-+7",
    f"{STATE}: text after the object",
    f"{STATE}: of version 1",
    f"{STATE}: appliedOffset 9999999999",
    f"{STATE}: currentVoters []",
    f'{STATE}: data_version "0"',
    "cities-0/partition.metadata: tabs",
    "cities-0/partition.metadata: line ends of one CR",
    "cities-0: a directory 00000000000000000000.index",
    "cities-0: a directory 00000000000000000197.snapshot",
    ".kafka_cleanshutdown: a directory",
    "meta.properties: a path with backslashes in a comment",
    "meta.properties: a line that is continued",
    "meta.properties: a space after the version",
    "recovery-point-offset-checkpoint: a negative count",
    "recovery-point-offset-checkpoint: version 00",
    "log-start-offset-checkpoint: line ends of one CR",
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return copy_whole(tmp_path / "data")


@pytest.mark.parametrize("case", STOPPED)
def test_the_verdict_and_verify_name_the_file_with_which_a_broker_does_not_start(
    command: Command, data: Path, case: str
) -> None:
    CASES[case](data)
    code, _, (summary,) = verdicts(command, data)
    assert (code, summary["starts"]) == (1, False)
    assert [reason["file"] for reason in summary["reasons"]] == [str(data / STOPPED[case])]
    verification = cw.verify(data)
    is_later = case.endswith(("of a later version", "of control type 9"))
    severity = "warning" if is_later else "error"
    found = [finding for finding in verification.findings if finding.severity == severity]
    assert str(data / STOPPED[case]) in {finding.file for finding in found}, found
    assert verification.is_intact == is_later


@pytest.mark.parametrize("case", STARTED)
def test_a_broker_starts_with_a_file_that_it_can_read(command: Command, data: Path, case: str) -> None:
    CASES[case](data)
    (summary,) = verdicts(command, data)[2]
    assert (summary["starts"], summary["reasons"]) == (True, [])


def test_damage_of_the_metadata_counts_more_than_a_record_of_a_later_version(data: Path) -> None:
    CASES[f"{METADATA}: a record of a later version"](data)
    (finding,) = [finding for finding in cw.verify(data).findings if finding.severity != "info"]
    assert (finding.code, finding.start_offset, finding.stops_broker) == ("metadata_record_unreadable", 98, True)
    assert finding.advice == "start a broker of the version that wrote it"
    other = copy_whole(data.parent / "other")
    CASES[f"{METADATA}: a record of a later version, and one of other bytes"](other)
    (finding,) = [finding for finding in cw.verify(other).findings if finding.severity != "info"]
    assert (finding.severity, finding.start_offset) == ("error", 99)


@pytest.mark.parametrize("how", ["no number", "a number that is too large", "a negative count"])
def test_high_watermarks_that_are_no_numbers_leave_all_partitions_without_a_leader(
    command: Command, data: Path, tmp_path: Path, how: str
) -> None:
    other = another_of_broker(data, tmp_path / "other")
    (data / "cities-1").rename(other / "cities-1")
    CASES[f"replication-offset-checkpoint: {how}"](data)
    code, fates, summaries = verdicts(command, data, other)
    assert code == 1
    assert {name for name, fate in fates.items() if fate == "no_leader"} == fates.keys() - {METADATA}
    assert [(summary["starts"], summary["whole"]) for summary in summaries] == [(True, 1), (True, 0)]
    reason = summaries[1]["losses"][0]["reason"]
    assert reason.startswith(
        "it gets no leader on this broker, which serves none of its records: expected a replication-"
    )


@pytest.mark.parametrize("how", ["another directory.id", "no directory.id"])
def test_partitions_at_another_directory_id_than_that_of_the_metadata_get_no_leader(
    command: Command, data: Path, tmp_path: Path, how: str
) -> None:
    whole = (data / "meta.properties").read_bytes()
    CASES[f"meta.properties: {how}"](data)
    code, fates, (summary,) = verdicts(command, data)
    assert (code, summary["starts"], summary["whole"]) == (1, True, 1)
    assert {name for name, fate in fates.items() if fate == "no_leader"} == fates.keys() - {METADATA}
    (finding,) = [finding for finding in cw.verify(data).findings if finding.severity != "info"]
    assert (finding.code, finding.file) == ("meta_properties_unreadable", str(data / "meta.properties"))
    assert finding.expected.startswith("directory.id zO4OUtJ5GLKMkZgwDAkxoA, at which the metadata of the cluster has ")
    assert (finding.severity, finding.stops_broker) == ("error", False)
    # a directory of the broker that has the id is one to which the partitions can be moved
    other = tmp_path / "other"
    other.mkdir()
    (other / "meta.properties").write_bytes(whole)
    assert not {"no_leader"} & set(verdicts(command, data, other)[1].values())


@pytest.mark.parametrize(
    "name",
    [
        "meta.properties",
        "bootstrap.checkpoint",
        "replication-offset-checkpoint",
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "cleaner-offset-checkpoint",
        STATE,
        "cities-0/00000000000000000000.log",
        "cities-0/00000000000000000000.index",
        "cities-0/leader-epoch-checkpoint",
        "cities-0/partition.metadata",
    ],
)
def test_no_verdict_is_given_where_a_broker_follows_a_link(
    command: Command, data: Path, tmp_path: Path, name: str
) -> None:
    file = data / name
    if not file.exists():
        file.write_bytes(b"0\n0\n")
    target = tmp_path / "target"
    file.rename(target)
    file.symlink_to(target)
    found = [finding for finding in cw.verify(data).findings if finding.file == str(file)]
    assert {(finding.code, finding.stops_broker) for finding in found} == {("linked_file", False)}
    assert all("cp -RL" in finding.advice for finding in found)
    code, shown, errors = command("verify", "--as-kafka", str(data))
    assert code == 1
    assert f"cannot open {file}: a symbolic link, which is not followed" in errors
    assert "does not start" not in shown


def test_the_node_id_of_the_settings_is_compared(command: Command, data: Path, tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    node = next(
        line.partition("=")[2] for line in (data / "meta.properties").read_text().split() if line.startswith("node.id")
    )
    for configured, starts in ((f"node.id={node}", True), ("node.id=77", False), ("broker.id = 77", False), ("", True)):
        properties.write_text(f"{configured}\nlog.retention.ms=1000\n")
        code, _, (summary,) = verdicts(command, data, "--properties", str(properties))
        assert (code, summary["starts"]) == (0 if starts else 1, starts)
        found = [f"expected node.id=77, as in {properties}, found node.id={node}"]
        assert [reason["reason"] for reason in summary["reasons"]] == ([] if starts else found)
