"""Logs whose first segments, or all of them, are missing: one answer from `verify`, `ls`, readers and writers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import corpus
import pytest
from batches import Rec, batch, name, write_partition
from scripts import Command

import cordwood as cw

BROKER = corpus.GOLDEN / "16-data-dir"
PLAIN = corpus.GOLDEN / "01-plain" / "orders-0"
STARTS = "log-start-offset-checkpoint"


def whole(into: Path) -> Path:
    shutil.copytree(BROKER, into, ignore=lambda _folder, names: [n for n in names if n == "expected"])
    return into


def remove(path: Path, pattern: str) -> None:
    for file in path.glob(pattern):
        file.unlink()


def state(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def codes(path: Path, severity: str = "error") -> set[str]:
    return {finding.code for finding in cw.verify(path).findings if finding.severity == severity}


def refused(path: Path) -> str:
    """A writer refuses the log, before a change."""
    before = state(path)
    with pytest.raises(cw.CorruptLogError) as error:
        cw.LogWriter(path)
    with pytest.raises(cw.CorruptLogError):
        cw.LogWriter.plan_recovery(path)
    after = {file: text for file, text in state(path).items() if file != ".cordwood.lock"}
    assert after == before
    return str(error.value)


@pytest.mark.parametrize(
    "part",
    [
        part
        for part in corpus.partitions()
        if len(list(part.path.glob("*.log"))) > 1 and part.case not in {"13-retention", "16-data-dir"}
    ],
    ids=lambda part: f"{part.case} {part.name}",
)
def test_a_missing_first_segment_is_an_error_where_leader_epochs_begin_below_it(
    part: corpus.Partition, tmp_path: Path
) -> None:
    path = tmp_path / part.name
    shutil.copytree(part.path, path)
    assert "lost_start" not in codes(path)
    file = path / "leader-epoch-checkpoint"
    epochs = file.read_text().split("\n")[2:] if file.exists() else []
    remove(path, f"{min(path.glob('*.log')).stem}.*")
    begins_below = bool(epochs and epochs[0]) and int(epochs[0].split()[1]) < int(min(path.glob("*.log")).stem)
    assert ("lost_start" in codes(path)) == begins_below
    if begins_below:
        assert "leader-epoch-checkpoint" in refused(path)
        with pytest.raises(cw.CorruptLogError):
            cw.repair(path)


def test_salvage_continues_without_the_first_segment(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    shutil.copytree(PLAIN, path)
    remove(path, name(0, ".*"))
    rest = [row.offset for row in cw.Log(path).records()]
    cw.repair(path, policy="salvage", dry_run=False)
    assert codes(path) == set()
    with cw.LogWriter(path, config=cw.LogConfig(retention_ms=-1)) as writer:
        assert writer.append("more").last_offset == rest[-1] + 1
    assert [row.offset for row in cw.Log(path).records()] == [*rest, rest[-1] + 1]


def test_without_any_log_file_every_answer_is_that_the_records_are_lost(command: Command, tmp_path: Path) -> None:
    data = whole(tmp_path / "data")
    path = data / "cities-0"
    remove(path, "*.log")
    (data / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    assert "no_segment" in codes(data)
    assert "no_segment" in codes(path)
    with pytest.raises(cw.CorruptLogError):
        cw.LogDir(data)["cities-0"]
    code, shown, _ = command("ls", data, "--json")
    [row] = [row for row in json.loads(shown)["partitions"] if row["name"] == "cities-0"]
    assert code == 1
    assert "a segment, because the partition had one" in str(row)
    refused(path)


def test_a_new_partition_of_a_broker_has_lost_nothing(tmp_path: Path) -> None:
    data = whole(tmp_path / "data")
    path = data / "cities-2"
    path.mkdir()
    shutil.copy(data / "cities-0" / "partition.metadata", path)
    (path / "leader-epoch-checkpoint").touch()
    assert codes(data) == set()
    cw.LogWriter(path).close()


def test_a_line_below_the_first_segment_is_no_finding(tmp_path: Path) -> None:
    """As a broker leaves it for a minute after retention: it has raised the first epoch."""
    data = whole(tmp_path / "data")
    path = data / "cities-0"
    remove(path, name(0, ".*"))
    (path / "leader-epoch-checkpoint").write_text("0\n1\n0 197\n")
    (data / STARTS).write_text("0\n2\ncities 1 31\ncities 0 0\n")
    assert cw.verify(data).findings == []
    with cw.LogWriter(path, config=cw.LogConfig(retention_ms=-1)) as writer:
        assert writer.log_start_offset == 197


def test_a_writer_refuses_a_log_whose_start_is_in_remote_storage(tmp_path: Path) -> None:
    data = whole(tmp_path / "data")
    path = data / "cities-0"
    remove(path, name(0, ".*"))
    (data / STARTS).write_text("0\n2\ncities 1 31\ncities 0 0\n")
    found = [finding for finding in cw.verify(data).findings if finding.code == "remote_start"]
    assert [finding.severity for finding in found] == ["warning"]
    assert codes(data) == set()
    before = state(data)
    assert "remote storage" in refused(path)
    for policy in ("torn_tail", "salvage"):
        with pytest.raises(cw.CorruptLogError):
            cw.repair(path, policy=policy)  # type: ignore[arg-type]
    assert {file: text for file, text in state(data).items() if not file.endswith(".lock")} == before


def test_a_log_that_a_broker_does_not_load_is_not_intact() -> None:
    found = cw.verify(corpus.GOLDEN / "damaged" / "zero-tail-page" / "tickets-0")
    assert not found.is_intact
    [finding] = [finding for finding in found.findings if finding.code == "load_fails"]
    assert finding.stops_broker
    assert "CorruptRecordException" in finding.found
    # as after `kill -9`: a broker recovers it
    assert cw.verify(corpus.partition("14-killed-preallocated-log").path).is_intact


def test_what_recovery_finds_depends_on_the_interval_that_the_indexes_show(command: Command) -> None:
    path = corpus.GOLDEN / "damaged" / "batches-swapped" / "tickets-0"
    load = cw.plan_kafka_load(path, clean=False)
    assert (load.index_interval_bytes, load.interval_source) == (512, "inferred")
    given = cw.plan_kafka_load(path, clean=False, config=cw.LogConfig(index_interval_bytes=512))
    assert load.log == given.log
    assert [(lost.start_offset, lost.end_offset) for lost in load.lost_offsets] == [(285, 370)]
    code, shown, _ = command("verify", path, "--as-kafka", "--unclean")
    assert code == 1
    assert "index.interval.bytes 512, as the indexes show" in shown
    code, shown, _ = command("verify", path, "--as-kafka", "--unclean", "--set", "index.interval.bytes=4096")
    assert "index.interval.bytes 4096, as given" in shown
    assert code == 0


def deleted(path: Path, base: int) -> None:
    """Rename the files of a segment, as a broker does before it deletes them."""
    for file in path.glob(f"{base:020d}.*"):
        file.rename(f"{file}.deleted")


def test_a_deletion_that_a_broker_had_begun_is_no_loss(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    shutil.copytree(PLAIN, path)
    first, second = sorted(int(file.stem) for file in path.glob("*.log"))[:2]
    deleted(path, first)
    assert codes(path) == set()
    [found] = [finding for finding in cw.verify(path).findings if finding.code == "lost_start"]
    assert (found.severity, found.start_offset, found.end_offset) == ("warning", first, second)
    assert ".deleted" in found.advice
    # the records may be nowhere else
    kept = [Path(file).name for file in cw.LogWriter.plan_recovery(path).kept_files]
    assert name(first, ".log.deleted") in kept
    with cw.LogWriter(path) as writer:
        assert writer.log_start_offset == second
    assert (path / name(first, ".log.deleted")).exists()


@pytest.mark.parametrize("around", ["", "meta.properties"])
def test_what_a_writer_keeps_of_a_deletion_it_keeps_at_each_opening(tmp_path: Path, around: str) -> None:
    path = tmp_path / "orders-0"
    shutil.copytree(PLAIN, path)
    if around:
        (tmp_path / around).write_text("version=1\nnode.id=1\ncluster.id=x\n")
    first, second = sorted(int(file.stem) for file in path.glob("*.log"))[:2]
    deleted(path, first)
    loaded = cw.plan_kafka_load(path, clean=True)
    assert loaded.log is not None
    kept = {file.name for file in path.glob("*.deleted")}
    for number in range(3):
        with cw.LogWriter(path) as writer:
            assert (writer.log_start_offset, loaded.log.log_start_offset) == (second, second)
            if number:
                writer.append(b"x")
        assert {file.name for file in path.glob("*.deleted")} == kept
        assert codes(path) == set()
    # taken back, the records are in the log again
    with cw.LogWriter(path) as writer:
        writer.delete_before(second + 1)
    cw.LogWriter(path).close()
    assert not list(path.glob("*.log.deleted"))


def test_a_deletion_of_which_a_segment_is_missing_is_a_loss(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    shutil.copytree(PLAIN, path)
    first, second = sorted(int(file.stem) for file in path.glob("*.log"))[:2]
    deleted(path, first)
    remove(path, name(second, ".*"))
    assert codes(path) == {"lost_start"}
    refused(path)
    [found] = [finding for finding in cw.verify(path).findings if finding.code == "lost_start"]
    offsets = f"{name(first, '.log.deleted')} has offsets {first} to {second - 1}"
    assert f"{offsets}: without .deleted it is a segment again" in found.evidence


def test_a_deleted_segment_stays_if_the_live_one_has_lost_batches_of_it(tmp_path: Path) -> None:
    batches = [batch(offset, [Rec(b"v%d" % offset)]) for offset in range(4)]
    for number, live in enumerate((batches, [batches[0], *batches[2:]])):
        path = write_partition(tmp_path / f"orders-{number}", [(0, live), (4, [batch(4, [Rec(b"x")])])])
        (path / name(1, ".log.deleted")).write_bytes(b"".join(batches[1:3]))
        plan = cw.LogWriter.plan_recovery(path)
        changed = [Path(change.file).name for change in plan.file_changes]
        kept = [Path(file).name for file in plan.kept_files]
        assert (name(1, ".log.deleted") in changed, name(1, ".log.deleted") in kept) == (number == 0, number == 1)
