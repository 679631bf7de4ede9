"""`LogWriter.backup`: a copy of the log beside its writer."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import corpus
import pytest
from batches import Rec, batch

import cordwood as cw

T = 1_700_000_000_000
KEEPS_PRODUCERS: dict[str, Any] = {"producer_id_expiration_ms": 10**15}
SMALL = cw.LogConfig(segment_bytes=2000, index_interval_bytes=100)


Fields = tuple[int, int, bytes | None, bytes | None, Any]


def fields(records: Iterable[cw.Record]) -> list[Fields]:
    return [(record.offset, record.timestamp, record.key, record.value, record.headers) for record in records]


def records(path: Path | str, **keywords: Any) -> list[Fields]:
    return fields(cw.Log(path).records(**keywords))


def logs(path: Path | str) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(Path(path).glob("*.log"))}


def checked(
    backup: cw.CopyReport, config: cw.LogConfig | None = None, *, beside_appends: bool = False
) -> cw.CopyReport:
    """A backup that is a whole log, in which a writer with the same settings has nothing to recover.

    An index entry of an append meanwhile may be missing in an index; it is made by the default interval then.
    """
    assert cw.verify(backup.path).findings == []
    with cw.LogWriter(backup.path, config=config, **KEEPS_PRODUCERS) as writer:
        plan = writer.recovery
        assert plan is None or (beside_appends and not (plan.cuts or plan.file_changes or plan.splits))
        assert (writer.log_start_offset, writer.log_end_offset) == (backup.log_start_offset, backup.end_offset)
    return backup


@pytest.mark.parametrize("preallocate", [False, True])
def test_a_backup_has_what_was_appended_before_it(tmp_path: Path, preallocate: bool) -> None:
    config = cw.LogConfig(segment_bytes=2000, index_interval_bytes=100, preallocate=preallocate)
    with cw.LogWriter(tmp_path / "orders-0", config=config, flush="none", topic_id="AAAAAAAAAAAAAAAAAAAAAQ") as writer:
        for number in range(100):
            writer.append(b"%d" % number, key=b"k", headers={"h": b"1"}, timestamp=T + number)
        writer.delete_before(10)
        writer.reader().position("billing").commit(50)
        reader = writer.reader()
        expected = fields(reader.records())
        backup = writer.backup(tmp_path / "backup-0")
        writer.append(b"later")
        assert (backup.source, backup.path) == (writer.path, str(tmp_path / "backup-0"))
        assert (backup.start_offset, backup.log_start_offset, backup.end_offset) == (0, 10, 100)
        assert backup.segments == [segment.base_offset for segment in reader.segments]
        assert len(backup.segments) > 3
        assert records(backup.path) == expected
    assert cw.Log(backup.path).positions() == []
    assert cw.Log(backup.path).topic_id == "AAAAAAAAAAAAAAAAAAAAAQ"
    checked(backup, config)


def test_a_backup_of_a_log_with_producers_and_transactions_reads_as_the_log(tmp_path: Path, copied: Any) -> None:
    golden = corpus.partition("11-transactions")
    path = copied(golden.path, under="log")
    with cw.LogWriter(path, **KEEPS_PRODUCERS) as writer:
        first = writer.backup(tmp_path / "first-0")
        raw = b"".join(logs(golden.path).values())
        end = writer.log_end_offset
        writer.append_many([b"between"] * 5)
        second = writer.backup(tmp_path / "second-0")
        stable = writer.last_stable_offset
        epochs = writer.leader_epochs
    assert (first.end_offset, second.end_offset) == (end, end + 5)
    assert b"".join(logs(first.path).values()) == raw
    for isolation in ("read_uncommitted", "read_committed"):
        assert records(first.path, isolation_level=isolation) == records(golden.path, isolation_level=isolation)
        assert records(second.path, isolation_level=isolation) == records(path, isolation_level=isolation)
    assert cw.Log(second.path).last_stable_offset == stable
    for backup in (first, second):
        checked(backup)
    with cw.LogWriter(second.path, **KEEPS_PRODUCERS) as writer:
        assert writer.leader_epochs == epochs
        assert writer.last_stable_offset == stable


def test_a_backup_knows_the_producers_of_the_log(tmp_path: Path) -> None:
    def raw(sequence: int) -> bytes:
        records = [Rec(value=b"%d" % sequence, timestamp=T)]
        return batch(0, records, producer_id=7, producer_epoch=0, base_sequence=sequence)

    with cw.LogWriter(tmp_path / "orders-0", **KEEPS_PRODUCERS) as writer:
        for sequence in range(3):
            writer.append_batches(raw(sequence))
        backup = checked(writer.backup(tmp_path / "backup-0"))
        writer.append_batches(raw(3))
    with cw.LogWriter(backup.path, **KEEPS_PRODUCERS) as writer:
        # a retry of its last batch
        assert writer.append_batches(raw(2)).first_offset == 2
        with pytest.raises(cw.OutOfOrderSequenceError):
            writer.append_batches(raw(4))
        assert writer.append_batches(raw(3)).first_offset == 3


def test_a_backup_has_the_names_of_producers_and_transactional_ids(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path) as writer:
        producer = writer.producer("deleted")
        producer.append_many(["a", "b"])
        writer.delete_before(2)
        writer.producer("import").append("c")
        transaction = writer.transaction("billing")
        transaction.append("open")
        backup = checked(writer.backup(tmp_path / "backup-0"))
        # the names may change after a backup, and it is still one of this log
        writer.producer("later")
        writer.backup(backup.path)
    with cw.LogWriter(backup.path) as writer:
        assert [writer.producer(name).next_sequence for name in ("import", "deleted", "later")] == [1, 2, 0]
        assert writer.last_stable_offset == 3
        with writer.transaction("billing") as transaction:
            transaction.append("closed")
        assert writer.last_stable_offset == writer.log_end_offset
        assert [record.value for record in writer.reader().records(isolation_level="read_committed")] == [
            b"c",
            b"closed",
        ]
    # damage of the names is no obstacle
    (path / ".cordwood.producers").write_bytes(b"0\n")
    report = cw.copy(path, tmp_path / "copy-0")
    assert [".cordwood.producers" in warning for warning in report.warnings] == [True]
    with cw.LogWriter(report.path) as writer:
        assert writer.producer("import").next_sequence == 0


def test_a_backup_beside_appends_is_a_prefix_of_the_log(tmp_path: Path) -> None:
    path, done = tmp_path / "orders-0", threading.Event()
    acknowledged: list[int] = []
    backups: list[tuple[int, cw.CopyReport]] = []
    with cw.LogWriter(path, config=SMALL, flush="none") as writer:

        def append() -> None:
            number = 0
            while not done.is_set():
                acknowledged.append(writer.append(b"%d" % number).first_offset)
                number += 1

        thread = threading.Thread(target=append)
        thread.start()
        try:
            for turn in range(5):
                before = len(acknowledged)
                backups.append((before, writer.backup(tmp_path / f"backup-{turn}")))
        finally:
            done.set()
            thread.join()
    whole = records(path)
    assert [value for *_, value, _ in whole] == [b"%d" % number for number in range(len(acknowledged))]
    for before, backup in backups:
        found = records(checked(backup, SMALL, beside_appends=True).path)
        assert before <= len(found) == backup.end_offset
        assert found == whole[: len(found)]


def test_calls_that_remove_records_wait_for_a_backup(tmp_path: Path) -> None:
    """Without that, a backup finds that the log has changed."""
    path, done = tmp_path / "orders-0", threading.Event()
    failures: list[BaseException] = []
    config = cw.LogConfig(segment_bytes=500, retention_bytes=5000, retention_ms=-1)
    with cw.LogWriter(path, config=config, flush="none") as writer:

        def remove() -> None:
            try:
                while not done.is_set():
                    for _ in range(20):
                        writer.append(b"x" * 50)
                    writer.truncate_to(writer.log_end_offset - 3)
                    writer.delete_before(writer.log_start_offset + 1)
                    writer.apply_retention()
            except BaseException as error:  # noqa: BLE001  (a thread's exception would be lost)
                failures.append(error)

        thread = threading.Thread(target=remove)
        thread.start()
        try:
            for turn in range(10):
                checked(writer.backup(tmp_path / f"backup-{turn}"), config, beside_appends=True)
        finally:
            done.set()
            thread.join()
    assert failures == []


def test_a_second_backup_to_a_path_adds_nothing_or_is_refused(tmp_path: Path) -> None:
    with cw.LogWriter(tmp_path / "orders-0", config=SMALL, flush="none") as writer:
        writer.append_many([b"a"] * 10)
        first = writer.backup(tmp_path / "backup-0")
        again = writer.backup(tmp_path / "backup-0")
        assert (first.bytes_written > 0, again.bytes_written, again.end_offset) == (True, 0, 10)
        before = logs(first.path)
        writer.append(b"b")
        with pytest.raises(cw.ConfigError) as raised:
            writer.backup(tmp_path / "backup-0")
        assert raised.value.argument == "destination"
        assert logs(first.path) == before
        assert len(records(writer.backup(tmp_path / "backup-1").path)) == 11


def test_an_interrupted_backup_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of an interrupted copy are those of one whose last step did not happen."""
    monkeypatch.chdir(tmp_path)
    with cw.LogWriter("orders-0", config=SMALL, flush="none") as writer:
        writer.append_many([b"%d" % number for number in range(500)])

        def interrupt(*_: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            cw.copy(writer.path, "backup-0", progress=interrupt)
        with pytest.raises(cw.LogNotFoundError):
            cw.Log("backup-0").records()
        backup = writer.backup("backup-0")
        assert backup.path == str(tmp_path / "backup-0")
    assert records(backup.path) == records("orders-0")


def test_a_backup_is_refused_where_it_would_harm(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with cw.LogWriter(path) as writer, cw.LogWriter(tmp_path / "used-0"):
        writer.append(b"a")
        for destination in (path, path / "backup-0", tmp_path / "other"):
            with pytest.raises(cw.ConfigError):
                writer.backup(destination)
        with pytest.raises((cw.LockedError, cw.ConfigError)):
            writer.backup(tmp_path / "used-0")
        with pytest.raises(FileNotFoundError):
            writer.backup(tmp_path / "no" / "backup-0")
        assert sorted(child.name for child in (tmp_path / "other").iterdir()) == ["file"]
        # the writer goes on
        assert writer.append(b"b").first_offset == 1
    with pytest.raises(cw.ClosedError):
        writer.backup(tmp_path / "backup-0")
    assert not (tmp_path / "backup-0").exists()


def test_the_backup_of_an_empty_log_is_an_empty_log(tmp_path: Path) -> None:
    with cw.LogWriter(tmp_path / "orders-0") as writer:
        backup = checked(writer.backup(tmp_path / "backup-0"))
        assert (backup.start_offset, backup.end_offset, backup.segments) == (0, 0, [0])
        writer.append_many([b"x"] * 5)
        writer.truncate_fully_and_start_at(70)
        backup = checked(writer.backup(tmp_path / "backup-1"))
        assert (backup.start_offset, backup.end_offset, backup.segments) == (70, 70, [70])
