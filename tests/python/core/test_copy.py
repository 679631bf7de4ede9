"""`copy`: partitions, ranges, data directories, and logs that are written to during the copy."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from commands import cordwood
from corpus import partition

import cordwood as cw

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
DATA = GOLDEN / "16-data-dir"
T = 1_700_000_000_000
KILLS = int(os.environ.get("CORDWOOD_KILLS", "8"))


def files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir() if file.is_file() and file.name[0] != "."}


def test_a_copy_reports_what_it_has_copied(tmp_path: Path) -> None:
    source = partition("11-transactions").path
    report = cw.copy(source, tmp_path / "payments-0", start_offset=100, end_offset=500)
    log = cw.Log(tmp_path / "payments-0")
    assert (report.source, report.path) == (str(source), log.path)
    assert (report.start_offset, report.end_offset) == (98, 500) == (log.log_start_offset, log.log_end_offset)
    assert report.segments == [segment.base_offset for segment in log.segments]
    assert (report.bytes, report.bytes_written) == (log.size, log.size)
    assert (report.partitions, report.damaged_ranges, report.linked, report.warnings) == ([], [], 0, [])
    assert report.open_transactions == 4
    # the oldest open transaction begins at the last stable offset
    assert log.last_stable_offset == 418
    assert "start_offset=98" in repr(report)
    again = cw.copy(source, tmp_path / "payments-0", start_offset=100, end_offset=500)
    assert again.bytes_written == 0
    assert (again.bytes, again.segments) == (report.bytes, report.segments)


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    source = partition("01-plain").path
    with pytest.raises(TypeError, match="destination: expected"):
        cw.copy(source, 7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="progress: expected"):
        cw.copy(source, tmp_path / "a-0", progress=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="start_offset"):
        cw.copy(source, tmp_path / "a-0", startoffset=1)  # type: ignore[call-arg]
    with pytest.raises(cw.ConfigError, match="topics: expected none for a partition"):
        cw.copy(source, tmp_path / "a-0", topics=["a"])
    with pytest.raises(cw.OffsetOutOfRangeError):
        cw.copy(source, tmp_path / "a-0", start_offset=1501)
    with pytest.raises(cw.LogNotFoundError):
        cw.copy(tmp_path / "missing", tmp_path / "a-0")
    assert list(tmp_path.iterdir()) == []


def test_progress_grows_to_all_bytes_and_an_exception_ends_the_copy(tmp_path: Path) -> None:
    source = partition("01-plain").path
    seen: list[tuple[int, int]] = []
    cw.copy(source, tmp_path / "orders-0", progress=lambda done, total: seen.append((done, total)))
    size = cw.Log(source).size
    assert seen[-1] == (size, size)

    def fail(_done: int, _total: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cw.copy(source, tmp_path / "orders-1", progress=fail)
    with pytest.raises(cw.LogNotFoundError):
        cw.Log(tmp_path / "orders-1")
    with pytest.raises(cw.UnsupportedFormatError, match="run the copy again"):
        cw.LogWriter(tmp_path / "orders-1")
    assert [finding.code for finding in cw.verify(tmp_path / "orders-1").findings] == ["unfinished_copy"]
    with pytest.raises(cw.ConfigError, match="the unfinished copy of another range"):
        cw.copy(source, tmp_path / "orders-1", end_offset=500)
    cw.copy(source, tmp_path / "orders-1")
    assert files(tmp_path / "orders-1") == files(tmp_path / "orders-0")


def test_hard_links_share_sealed_segments_and_only_on_request(tmp_path: Path) -> None:
    source = tmp_path / "tickets-0"
    shutil.copytree(partition("01-small").path, source)
    before = files(source)
    report = cw.copy(source, tmp_path / "linked-0", hard_links=True)
    assert report.linked == 3
    assert report.bytes_written < report.bytes
    copied = cw.copy(source, tmp_path / "copied-0")
    assert copied.linked == 0
    assert files(tmp_path / "linked-0") == files(tmp_path / "copied-0")
    for name in before:
        inodes = {(tmp_path / folder / name).stat().st_ino for folder in ("tickets-0", "linked-0", "copied-0")}
        is_sealed = name.endswith(".log") and not name.startswith(f"{285:020}")
        assert len(inodes) == (2 if is_sealed else 3), name
    assert files(source) == before
    # a range inside a segment shares nothing with it
    part = cw.copy(source, tmp_path / "part-0", start_offset=5, end_offset=200, hard_links=True)
    assert part.linked == 1
    assert files(source) == before


def test_a_copy_that_skips_damage_does_not_write_to_a_linked_file(tmp_path: Path) -> None:
    source = tmp_path / "tickets-0"
    shutil.copytree(partition("01-small").path, source)
    log = source / f"{96:020}.log"
    flipped = bytearray(log.read_bytes())
    flipped[6000] ^= 1
    log.write_bytes(flipped)
    before = files(source)
    report = cw.copy(source, tmp_path / "linked-0", hard_links=True, on_damage="skip")
    assert (report.linked, len(report.damaged_ranges)) == (2, 1)
    assert files(source) == before
    offsets = cw.Log(report.path).scan().to_arrow()["offset"].to_pylist()
    assert offsets == cw.Log(source).scan(on_damage="skip").to_arrow()["offset"].to_pylist()


def test_a_copy_of_a_folder_without_the_properties_of_a_broker_is_intact(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    for name in ("q-0", "q-1"):
        with cw.LogWriter(tmp_path / "own" / name) as writer:
            writer.append(b"x")
    cw.copy(tmp_path / "own", tmp_path / "copied")
    assert cw.verify(tmp_path / "copied").findings == []
    with cw.LogWriter(tmp_path / "copied" / "q-0") as writer:
        assert writer.append(b"y").first_offset == 1


def test_a_data_directory_is_copied_with_its_checkpoints(tmp_path: Path) -> None:
    report = cw.copy(DATA, tmp_path / "backup")
    source, copied = cw.LogDir(DATA), cw.LogDir(tmp_path / "backup")
    assert list(copied) == list(source)
    assert [Path(one.path).name for one in report.partitions] == sorted(source)
    assert report.bytes == sum(log.size for log in source.values())
    for name, log in source.items():
        assert copied[name].log_start_offset == log.log_start_offset, name
        assert copied[name].log_end_offset == log.log_end_offset, name
    assert copied["cities-1"].log_start_offset == 31
    for name in ("log-start-offset-checkpoint", "cleaner-offset-checkpoint", "replication-offset-checkpoint"):
        assert sorted((tmp_path / "backup" / name).read_text().split("\n")) == sorted(
            (DATA / name).read_text().split("\n")
        ), name
    assert (tmp_path / "backup/meta.properties").read_bytes() == (DATA / "meta.properties").read_bytes()
    assert (tmp_path / "backup/.kafka_cleanshutdown").exists()
    assert not list((tmp_path / "backup").rglob(".cordwood.copy"))
    again = cw.copy(DATA, tmp_path / "backup")
    assert (again.bytes, again.bytes_written) == (report.bytes, 0)
    some = cw.copy(DATA, tmp_path / "some", topics=["cit*"])
    assert [Path(one.path).name for one in some.partitions] == ["cities-0", "cities-1"]
    with pytest.raises(cw.ConfigError, match="topics"):
        cw.copy(DATA, tmp_path / "none", topics=["citys"])


def values(log: cw.Log) -> list[bytes]:
    return log.scan(columns=["value"]).to_arrow()["value"].to_pylist()


def test_a_copy_of_a_log_that_is_written_to_is_the_log_as_of_one_moment(tmp_path: Path) -> None:
    """Appends, rolls, truncations and retention go on during the copies. Every record has a unique value."""
    path = tmp_path / "live-0"
    # each state of the log that a copy may show: the values by generation of the truncations
    history: list[list[bytes]] = [[]]
    config = cw.LogConfig(segment_bytes=40_000, index_interval_bytes=512, retention_bytes=400_000, retention_ms=-1)
    stop, begun = threading.Event(), threading.Event()

    def write() -> None:
        choose = random.Random(7)
        number = 0
        with cw.LogWriter(path, config=config, flush="none") as writer:
            while not stop.wait(0.002):
                records = [cw.Record(value=b"%d/" % (number + k) + b"x" * 200, timestamp=T + number) for k in range(20)]
                number += 20
                history[-1].extend(record.value or b"" for record in records)
                writer.append_many(records)
                if number > 2000:
                    begun.set()
                if choose.random() < 0.02:
                    writer.apply_retention(T + number)
                if choose.random() < 0.01:
                    # between two batches
                    end = max(writer.log_start_offset, writer.log_end_offset - 20 * choose.randrange(1, 20))
                    history.append(history[-1][:end])
                    writer.truncate_to(end)

    writing = threading.Thread(target=write)
    writing.start()
    copies: int = 0
    changed: list[Exception] = []
    assert begun.wait(60)
    try:
        for number in range(12):
            to = tmp_path / f"copy-{number}"
            try:
                report = cw.copy(path, to)
            except cw.LogChangedError as error:
                changed.append(error)
                continue
            copies += 1
            assert report.start_offset is not None
            log = cw.Log(to)
            found = values(log)
            states = [state[log.log_start_offset : log.log_end_offset] for state in list(history)]
            assert found in states, (number, report)
            shutil.rmtree(to)
    finally:
        stop.set()
        writing.join()
    assert copies > 2, (copies, changed)


COPIER = """
import sys
import cordwood as cw
print("begin", flush=True)
cw.copy(sys.argv[1], sys.argv[2])
"""


@pytest.mark.long
def test_a_killed_copy_is_no_log_or_whole_and_is_continued(tmp_path: Path) -> None:
    source = tmp_path / "orders-0"
    with cw.LogWriter(source, config=cw.LogConfig(segment_bytes=1 << 20), flush="none") as writer:
        for number in range(200):
            writer.append_many([cw.Record(value=random.Random(number).randbytes(2000), timestamp=T) for _ in range(50)])
    cw.copy(source, tmp_path / "whole-0")
    expected = files(tmp_path / "whole-0")
    choose = random.Random(1)
    for _ in range(KILLS):
        to = tmp_path / "killed-0"
        for attempt in itertools.count(1):
            copying = subprocess.Popen([sys.executable, "-c", COPIER, source, to], stdout=subprocess.PIPE)
            assert copying.stdout is not None
            copying.stdout.readline()
            with suppress(subprocess.TimeoutExpired):
                copying.wait(choose.random() * 0.2 * attempt)
            copying.send_signal(signal.SIGKILL)
            copying.stdout.close()
            if copying.wait() == 0:
                break
            with suppress(cw.LogNotFoundError):
                assert values(cw.Log(to)) == values(cw.Log(source))
        assert files(to) == expected
        shutil.rmtree(to)


def test_the_command_says_what_was_copied_and_what_was_left_out(tmp_path: Path) -> None:
    source = partition("01-plain").path
    done = cordwood("copy", source, tmp_path / "orders-0", "--start-offset", 300)
    assert done.returncode == 0, done.stderr
    assert b"copied: offsets " in done.stdout
    again = cordwood("copy", source, tmp_path / "orders-0", "--start-offset", 300)
    assert again.returncode == 0
    assert b"is a complete copy" in again.stdout
    other = cordwood("copy", source, tmp_path / "orders-0")
    assert other.returncode == 2
    assert b"destination: expected a directory that does not exist or is empty" in other.stderr
    damaged = GOLDEN / "damaged/flip-record-first-segment"
    broken = next(folder for folder in damaged.iterdir() if folder.is_dir() and folder.name != "expected")
    failed = cordwood("copy", broken, tmp_path / "broken-0")
    assert failed.returncode == 1
    saved = cordwood("copy", broken, tmp_path / "broken-0", "--on-damage", "skip")
    assert saved.returncode == 1
    assert b"left out " in saved.stdout
    assert cw.Log(tmp_path / "broken-0").log_end_offset == cw.Log(broken).log_end_offset
