"""`cordwood.verify`: its results, arguments, threads and progress."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import corpus
import pytest
from batches import Rec, batch, write_partition

import cordwood as cw

DATA = corpus.GOLDEN / "16-data-dir"
PLAIN = corpus.GOLDEN / "01-plain" / "orders-0"
DAMAGED = corpus.GOLDEN / "damaged" / "flip-record" / "tickets-0"


def places(found: cw.Verification) -> list[tuple[str, str, int | None]]:
    return [(finding.code, Path(finding.file).name, finding.position) for finding in found.findings]


def test_a_finding_says_what_where_and_what_to_do() -> None:
    found = cw.verify(DAMAGED)
    assert not found.is_intact
    [finding] = found.findings
    assert (finding.severity, finding.code) == ("error", "damaged_batch")
    assert finding.file == str(DAMAGED / "00000000000000000285.log")
    assert (finding.position, finding.end_position) == (2126, 2296)
    assert (finding.start_offset, finding.end_offset) == (302, 303)
    assert finding.expected.startswith("CRC 0x")
    assert finding.evidence == ["the next whole batch is at position 2296, offset 303"]
    assert "deletes all segments after it" in finding.kafka
    assert finding.advice == f"cordwood repair {DAMAGED} --policy salvage --apply"
    assert str(finding).startswith(f"error damaged_batch: {finding.file} at position 2126, offset 302: expected ")
    assert finding == cw.verify(DAMAGED).findings[0]
    assert hash(finding) == hash(cw.verify(DAMAGED).findings[0])


def test_threads_find_the_same_in_the_same_order() -> None:
    damaged = sorted((corpus.GOLDEN / "damaged").glob("*/*-0"))
    one = cw.verify(damaged)
    assert one == cw.verify(damaged, threads=4)
    assert len(one.findings) > 60


def test_a_single_segment_is_verified_with_its_indexes() -> None:
    intact = cw.verify(DAMAGED / "00000000000000000096.log")
    assert (intact.findings, intact.segments_checked) == ([], 1)
    assert places(cw.verify(DAMAGED / "00000000000000000285.index")) == [
        ("damaged_batch", "00000000000000000285.log", 2126)
    ]


def test_a_data_directory_has_the_findings_of_its_partitions_and_its_own(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    shutil.copytree(PLAIN, data / "orders-0")
    shutil.copytree(DAMAGED, data / "tickets-0")
    (data / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=x\n")
    (data / "recovery-point-offset-checkpoint").write_text("0\n2\norders 0 2000\ntickets 0 370\n")
    (data / "log-start-offset-checkpoint").write_text("0\n5\n")
    (data / "lost").mkdir()
    found = cw.verify(data)
    assert sorted(places(found)) == [
        ("checkpoint_unreadable", "log-start-offset-checkpoint", None),
        ("damaged_batch", "00000000000000000285.log", 2126),
        ("foreign_directory", "lost", None),
        ("meta_properties_unreadable", "meta.properties", None),
        ("recovery_point_beyond_end", "recovery-point-offset-checkpoint", None),
    ]
    assert found.partitions == 2


def test_progress_ends_with_all_bytes_and_its_exception_ends_the_call() -> None:
    calls: list[tuple[int, int]] = []
    found = cw.verify(PLAIN, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (found.bytes_checked, found.bytes_checked)

    def stop(_done: int, _total: int) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        cw.verify(PLAIN, progress=stop)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threads": 0}, "threads: expected a whole number, 1 or more"),
        ({"io": "fast"}, 'io: expected "auto" or "mmap" or "pread"'),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(cw.ConfigError) as raised:
        cw.verify(PLAIN, **arguments)  # type: ignore[arg-type]
    assert message in str(raised.value)
    with pytest.raises(TypeError, match="progress: expected a function"):
        cw.verify(PLAIN, progress=7)  # type: ignore[arg-type]
    with pytest.raises(cw.ConfigError, match=r"the \.log file of a segment, whose name is an offset of 20"):
        cw.verify(PLAIN / "partition.metadata")
    with pytest.raises(cw.LogNotFoundError):
        cw.verify(PLAIN / "nowhere")


def test_files_of_other_types_are_findings_and_are_not_opened(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    shutil.copytree(PLAIN, partition)
    os.mkfifo(partition / "00000000000000009999.log")
    index = next(partition.glob("*.timeindex"))
    index.rename(tmp_path / "elsewhere")
    index.symlink_to(tmp_path / "elsewhere")
    codes = {(finding.code, Path(finding.file).name) for finding in cw.verify(partition).findings}
    assert ("not_a_file", "00000000000000009999.log") in codes
    assert ("linked_file", index.name) in codes


def test_an_index_that_cannot_be_opened_is_reported_once(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    shutil.copytree(PLAIN, partition)
    for suffix in ("index", "timeindex"):
        index = partition / f"00000000000000000400.{suffix}"
        index.rename(tmp_path / suffix)
        index.symlink_to(tmp_path / suffix)
    codes = sorted((finding.code, Path(finding.file).suffix) for finding in cw.verify(partition).findings)
    assert codes == [("linked_file", ".index"), ("linked_file", ".timeindex")]


def test_nothing_is_written_and_no_file_is_created(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    shutil.copytree(DAMAGED, partition)

    def state() -> dict[str, tuple[int, int, bytes]]:
        return {
            path.name: (path.stat().st_mtime_ns, path.stat().st_ctime_ns, path.read_bytes())
            for path in partition.iterdir()
        }

    before, folder = state(), partition.stat().st_mtime_ns
    cw.verify(partition, deep=True, threads=2)
    assert (state(), partition.stat().st_mtime_ns) == (before, folder)


def test_a_log_of_a_writer_is_intact_and_a_lost_end_is_found(tmp_path: Path) -> None:
    partition = tmp_path / "notes-0"
    with cw.LogWriter(partition, config=cw.LogConfig(segment_bytes=4096)) as writer:
        for number in range(200):
            writer.append(f"value {number}" * 5, timestamp=1_700_000_000_000 + number)
        assert cw.verify(partition).is_intact
    found = cw.verify(partition, deep=True)
    assert (found.findings, found.segments_checked > 3) == ([], True)
    last = max(partition.glob("*.log"))
    torn = last.read_bytes()[:-1]
    last.write_bytes(torn)
    advice = {finding.code: finding.advice for finding in cw.verify(partition).findings}
    assert advice["torn_tail"] == f"cordwood repair {partition} --policy salvage --apply"
    with pytest.raises(cw.CorruptLogError):
        cw.repair(partition)
    assert cw.repair(partition, policy="salvage").lost_ranges
    for path in partition.glob(f"{last.stem}.*"):
        path.unlink()
    assert {"lost_end", "not_as_closed"} & {finding.code for finding in cw.verify(partition).findings}


def test_findings_about_a_data_directory_are_reported_once_for_many_partitions(tmp_path: Path) -> None:
    (tmp_path / "recovery-point-offset-checkpoint").write_bytes(bytes(20))
    paths = [tmp_path / f"orders-{number}" for number in range(130)]
    for path in paths:
        write_partition(path, [(0, [batch(0, [Rec(b"x")])])])
    found = [finding.code for finding in cw.verify(paths).findings]
    assert found.count("checkpoint_unreadable") == 1


def test_files_that_a_broker_builds_with_the_offset_index_are_no_errors(tmp_path: Path) -> None:
    part = corpus.partition("11-transactions")
    path = tmp_path / part.path.name
    shutil.copytree(part.path, path)
    for suffix in ("timeindex", "txnindex", "snapshot"):
        for file in path.glob(f"*.{suffix}"):
            file.unlink()
    [first, *_] = with_errors = [finding for finding in cw.verify(path).findings if finding.severity == "error"]
    assert {finding.code for finding in with_errors} == {"transaction_index_entry_missing"}
    assert "committed readers get records" in first.kafka
    for file in path.glob("*.index"):
        file.unlink()
    findings = cw.verify(path).findings
    assert {finding.severity for finding in findings} == {"warning"}
    built = [finding for finding in findings if finding.code != "index_missing"]
    assert {finding.code for finding in built} == {
        "time_index_missing",
        "transaction_index_entry_missing",
        "snapshot_missing",
    }
    assert all(finding.kafka.startswith("builds it, also after a clean stop") for finding in built)
    actions = cw.plan_kafka_load(path, clean=True).actions
    made = {str(path / action.file) for action in actions if action.reason == "missing_index"}
    assert made >= {finding.file for finding in built if finding.code != "snapshot_missing"}
    assert any(action.file.endswith(".snapshot") for action in actions)
