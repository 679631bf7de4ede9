"""Logs whose first or last segments, or all of them, are missing: one answer from `verify`, readers and writers."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

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


@pytest.mark.parametrize("has_checkpoints", [True, False])
def test_without_any_log_file_every_reader_says_that_the_segments_are_lost(
    command: Command, tmp_path: Path, *, has_checkpoints: bool
) -> None:
    data = whole(tmp_path / "data")
    path = data / "cities-0"
    remove(path, "*.log")
    if not has_checkpoints:
        for file in data.iterdir():
            if file.is_file():
                file.unlink()
    left = f"a segment, because the partition had one .* found none, and {name(268, '.snapshot')}"
    for read in (cw.Log, cw.repair, cw.rebuild_indexes):
        with pytest.raises(cw.CorruptLogError, match=left):
            read(path)
    for arguments in (("ls",), ("cat",), ("count",), ("find", "--offset", 5), ("repair",), ("reindex",)):
        code, shown, error = command(arguments[0], path, *arguments[1:])
        assert (code, shown) == (1, ""), arguments
        assert name(268, ".snapshot") in error, error
        assert "no log at" not in error, error
    code, shown, error = command("copy", path, tmp_path / "copy-0")
    assert (code, name(268, ".snapshot") in error) == (1, True), error


def last_removed(path: Path) -> None:
    remove(path, name(236, ".*"))


def last_emptied(path: Path) -> None:
    (path / name(236)).write_bytes(b"")


def last_cut(path: Path) -> None:
    file = path / name(236)
    file.write_bytes(file.read_bytes()[:-10])


@pytest.mark.parametrize("damage", [last_removed, last_emptied, last_cut])
def test_a_writer_refuses_a_log_that_ends_below_the_recovery_point_of_its_broker(
    damage: Callable[[Path], None], command: Command, tmp_path: Path
) -> None:
    data = whole(tmp_path / "data")
    path = data / "cities-0"
    damage(path)
    end = cw.Log(path).log_end_offset
    assert end < 268
    assert "recovery_point_beyond_end" in codes(path)
    error = refused(path)
    for words in (
        "recovery-point-offset-checkpoint",
        '"cities 0 268"',
        f"its end at offset {end}",
        "restore the segments",
        "repair with --policy salvage",
    ):
        assert words in error
    before = state(path)
    commands = (
        ("append", path),
        ("recover", path),
        ("recover", path, "--yes"),
        ("truncate", path, "--to", 200, "--yes"),
        ("apply-retention", path, "--set", "retention.bytes=1", "--set", "retention.ms=-1", "--yes"),
    )
    for arguments in commands:
        code, shown, error = command(*arguments)
        assert code == 1, (arguments, shown, error)
        assert '"cities 0 268"' in error, (arguments, error)
    assert state(path) == before
    with pytest.raises(cw.CorruptLogError, match=r"polic(ies|y) salvage"):
        cw.repair(path)


@pytest.mark.parametrize("policy", ["salvage", "kafka"])
@pytest.mark.parametrize("damage", [last_removed, last_emptied, last_cut])
def test_a_repair_continues_below_the_recovery_point(
    damage: Callable[[Path], None], policy: Literal["salvage", "kafka"], tmp_path: Path
) -> None:
    data = whole(tmp_path / "data")
    path = data / "cities-0"
    snapshot = (path / name(268, ".snapshot")).read_bytes()
    damage(path)
    end = cw.Log(path).log_end_offset
    rest = [row.offset for row in cw.Log(path).records()]
    plan = cw.repair(path, policy=policy, dry_run=False)
    assert not (path / name(268, ".snapshot")).exists()
    assert snapshot in state(path / "quarantine").values()
    assert plan.log_end_offset == end
    [point] = re.findall(r"^cities 0 (\d+)$", (data / "recovery-point-offset-checkpoint").read_text(), re.MULTILINE)
    assert int(point) <= end
    assert codes(path) == set()
    with cw.LogWriter(path, config=cw.LogConfig(retention_ms=-1)) as writer:
        assert writer.append("more").first_offset == end
    assert [row.offset for row in cw.Log(path).records()] == [*rest, end]


def test_a_snapshot_above_the_end_of_a_log_is_no_loss_to_a_writer(tmp_path: Path) -> None:
    """A roll of a broker writes it before the log is flushed: a power loss may keep it alone."""
    data = whole(tmp_path / "data")
    path = data / "cities-0"
    last_removed(path)
    points = data / "recovery-point-offset-checkpoint"
    points.write_text(points.read_text().replace("cities 0 268", "cities 0 236"))
    with cw.LogWriter(path, config=cw.LogConfig(retention_ms=-1)) as writer:
        assert writer.log_end_offset == 236


def test_a_log_whose_first_segments_are_missing_is_a_warning_of_every_reader(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    shutil.copytree(PLAIN, path)
    first, second = sorted(int(file.stem) for file in path.glob("*.log"))[:2]
    remove(path, name(first, ".*"))
    log = cw.Log(path)
    lost = f"offsets {first} to {second - 1} are missing: the first segment begins at offset {second}"
    [warning] = log.warnings
    assert lost in warning
    assert "leader-epoch-checkpoint" in warning
    assert log.refresh().warnings == [warning]
    for arguments in (("cat", path), ("count", path), ("ls", path), ("copy", path, tmp_path / "copy-0")):
        _, shown, error = command(*arguments)
        assert lost in " ".join(f"{shown} {error}".split()), arguments
    _, shown, _ = command("ls", tmp_path, "--json")
    assert lost in shown
    # what a broker deletes or deleted is no loss
    (path / "leader-epoch-checkpoint").write_text(f"0\n1\n0 {second}\n")
    assert cw.Log(path).warnings == []


@pytest.mark.parametrize("is_closed", [True, False])
def test_the_first_segments_of_a_writer_that_are_missing_are_a_warning(tmp_path: Path, *, is_closed: bool) -> None:
    path = tmp_path / "orders-0"
    writer = cw.LogWriter(path, config=cw.LogConfig(segment_bytes=1000, retention_ms=-1))
    for number in range(60):
        writer.append(f"value {number}" * 5)
    writer.delete_before(1)
    if is_closed:
        writer.close()
    remove(path, name(0, ".*"))
    [warning] = [text for text in cw.Log(path).warnings if "first segment" in text]
    assert ".cordwood.checkpoint" in warning
    assert "offset 1 to" in warning.replace("offsets", "offset")


def test_a_writer_that_deletes_its_first_segments_causes_no_warning(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path, config=cw.LogConfig(segment_bytes=1000, retention_ms=-1)) as writer:
        for number in range(60):
            writer.append(f"value {number}" * 5)
        log = cw.Log(path)
        writer.delete_before(40)
        assert cw.Log(path).warnings == log.refresh().warnings
        assert not [text for text in log.refresh().warnings if "first segment" in text]
    assert not [text for text in cw.Log(path).warnings if "first segment" in text]


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
