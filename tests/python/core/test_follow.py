"""`Log.follow` beside writers that append, roll, delete, truncate, are killed, and run in other processes."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import corpus
import pytest
from scripts import write_script

import cordwood as cw
from core.following import append, descriptors, later, new_log, open_watches, taken, without_inotify

# Appends numbers from the end of the log on, rolls, and ends after some of them or is killed.
APPENDER = """
import sys
import cordwood as cw

path, count = sys.argv[1], int(sys.argv[2])
writer = cw.LogWriter(path, flush="none", config=cw.LogConfig(segment_bytes=20_000, retention_ms=-1))
start = writer.log_end_offset
print(start, flush=True)
for number in range(start, start + count):
    writer.append(b"%d" % number)
print("appended", flush=True)
sys.stdin.read()
writer.close()
"""


@pytest.fixture(params=["inotify", "polling"])
def watched(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "polling":
        without_inotify(monkeypatch)
    return str(request.param)


@pytest.mark.usefixtures("watched")
def test_records_of_the_log_come_first_and_then_new_ones_across_rolls(tmp_path: Path) -> None:
    with new_log(tmp_path / "t-0", 3) as writer, cw.Log(tmp_path / "t-0").follow(timeout=30) as records:
        assert taken(records, 3) == [0, 1, 2]
        for _ in range(3):
            with later(lambda: (append(writer, 1), writer.roll(), append(writer, 2))):
                start = records.next_offset
                assert taken(records, 3) == list(range(start, start + 3))
        assert records.next_offset == 12
        # several rolls at once
        for _ in range(4):
            append(writer, 1)
            writer.roll()
        assert taken(records, 4) == [12, 13, 14, 15]


def test_a_reader_of_the_writer_is_woken_at_once(tmp_path: Path) -> None:
    with new_log(tmp_path / "t-0", 1) as writer, writer.reader().follow(1, timeout=30) as records:
        waits = []
        for _ in range(5):
            times: list[float] = []
            with later(lambda times=times: (times.append(time.monotonic()), append(writer, 1)), 0.05):
                next(records)
            waits.append(time.monotonic() - times[0])
        # far below the time between two looks without inotify
        assert min(waits) < 0.2


def test_a_thousand_appends_of_another_process_come_once_and_in_order(
    tmp_path: Path, script_environment: dict[str, str]
) -> None:
    path = tmp_path / "t-0"
    new_log(path, 0).close()
    script = write_script(tmp_path, APPENDER)
    with cw.Log(path).follow(timeout=60) as records:
        expected = 0
        for kind in ("closed", "killed", "killed", "closed"):
            words = [sys.executable, str(script), str(path), "300"]
            with subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=script_environment
            ) as process:
                assert process.stdout is not None
                assert int(process.stdout.readline()) == expected
                assert taken(records, 300) == list(range(expected, expected + 300))
                expected += 300
                assert process.stdout.readline() == b"appended\n"
                if kind == "killed":
                    process.kill()
        assert len(cw.Log(path).segments) > 3
        with pytest.raises(StopIteration):
            next(cw.Log(path).follow(expected, timeout=0))


def test_a_start_outside_the_log_is_an_error_at_once(tmp_path: Path) -> None:
    with new_log(tmp_path / "t-0", 3) as writer:
        log = cw.Log(tmp_path / "t-0")
        append(writer, 2)
        # the log is refreshed first
        assert [record.offset for record in log.follow(4, timeout=0)] == [4]
        assert list(log.follow(5, timeout=0)) == []
        writer.roll()
        writer.delete_before(2)
        for offset in (1, 6):
            with pytest.raises(cw.OffsetOutOfRangeError) as raised:
                log.follow(offset)
            assert (raised.value.log_start_offset, raised.value.log_end_offset) == (2, 5)
        assert [record.offset for record in log.follow(timeout=0)] == [2, 3, 4]


def test_arguments_are_named(tmp_path: Path) -> None:
    new_log(tmp_path / "t-0", 3).close()
    log = cw.Log(tmp_path / "t-0")
    for timeout in (-1, float("nan"), float("inf")):
        with pytest.raises(cw.ConfigError, match="timeout: expected a number of seconds, 0 or more"):
            log.follow(timeout=timeout)
    for wrong in ("1", True):
        with pytest.raises(TypeError, match="timeout"):
            log.follow(timeout=wrong)  # type: ignore[arg-type]
    with pytest.raises(cw.ConfigError, match="isolation_level"):
        log.follow(isolation_level="committed")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="start_offset"):
        log.follow("0")  # type: ignore[arg-type]


@pytest.mark.usefixtures("watched")
def test_the_timeout_begins_again_with_each_record(tmp_path: Path) -> None:
    with new_log(tmp_path / "t-0", 1) as writer:
        records = cw.Log(tmp_path / "t-0").follow(timeout=0.4)
        assert taken(records, 1) == [0]
        for offset in (1, 2, 3):
            with later(lambda: append(writer, 1), 0.2):
                assert taken(records, 1) == [offset]
        started = time.monotonic()
        assert list(records) == []
        assert 0.3 < time.monotonic() - started < 20
        append(writer, 1)
        # an iterator that has ended stays so
        assert list(records) == []


def test_retention_of_what_was_read_is_no_error(tmp_path: Path) -> None:
    with new_log(tmp_path / "t-0", 3) as writer, cw.Log(tmp_path / "t-0").follow(timeout=30) as records:
        assert taken(records, 3) == [0, 1, 2]
        for start in (3, 6, 9):
            append(writer, 3)
            assert taken(records, 3) == [start, start + 1, start + 2]
            writer.roll()
            writer.delete_before(start + 3)
        append(writer, 1)
        assert taken(records, 1) == [12]


def test_retention_of_what_was_not_read_is_an_error_with_the_offsets(tmp_path: Path) -> None:
    with new_log(tmp_path / "t-0", 3) as writer, cw.Log(tmp_path / "t-0").follow(timeout=30) as records:
        assert taken(records, 3) == [0, 1, 2]
        append(writer, 4)
        writer.roll()
        writer.delete_before(5)
        with pytest.raises(
            cw.OffsetOutOfRangeError,
            match="the records from offset 3 to 4 were deleted before being read: the log starts at offset 5 now",
        ) as raised:
            next(records)
        error = raised.value
        assert (error.offset, error.log_start_offset, error.log_end_offset) == (3, 5, 7)
        assert list(records) == []


def test_truncation_of_what_was_returned_is_an_error_with_the_offsets(tmp_path: Path) -> None:
    with new_log(tmp_path / "t-0", 3) as writer, cw.Log(tmp_path / "t-0").follow(timeout=30) as records:
        assert taken(records, 3) == [0, 1, 2]
        writer.truncate_to(1)
        with pytest.raises(
            cw.LogChangedError,
            match=r"at least the records from offset 1 to 2 were withdrawn after being read: .* ends at offset 1 now",
        ) as raised:
            next(records)
        assert (raised.value.offset, raised.value.log_end_offset) == (1, 1)


@pytest.mark.parametrize("again", [1, 2, 50])
def test_records_that_were_truncated_and_written_again_are_an_error(tmp_path: Path, again: int) -> None:
    with new_log(tmp_path / "t-0", 3) as writer, cw.Log(tmp_path / "t-0").follow(timeout=30) as records:
        assert taken(records, 3) == [0, 1, 2]
        writer.truncate_to(2)
        for number in range(again):
            writer.append(b"other %d" % number)
        with pytest.raises(cw.LogChangedError, match="records below offset 3 were withdrawn after being read"):
            next(records)


def compacted(path: Path) -> cw.LogWriter:
    """A log with records at the offsets 1 and 2, of which the first was compacted, in a segment of its own."""
    config = cw.LogConfig(cleanup_policy="compact", min_cleanable_dirty_ratio=0.0)
    writer = cw.LogWriter(path, config=config, flush="none")
    writer.append_many([cw.Record(b"0", key=b"a"), cw.Record(b"1", key=b"a")])
    writer.roll()
    writer.compact()
    writer.append(b"2", key=b"b")
    assert [record.offset for record in writer.reader().records()] == [1, 2]
    return writer


@pytest.mark.parametrize("again", [1, 2, 50])
def test_records_of_a_compacted_log_that_were_truncated_and_written_again_are_an_error(
    tmp_path: Path, again: int
) -> None:
    with compacted(tmp_path / "t-0") as writer, cw.Log(tmp_path / "t-0").follow(timeout=30) as records:
        assert taken(records, 2) == [1, 2]
        writer.truncate_to(2)
        for number in range(again):
            writer.append(b"other", key=b"%d" % number)
        with pytest.raises(cw.LogChangedError, match="records below offset 3 were withdrawn after being read"):
            next(records)


def test_records_that_were_truncated_written_again_and_compacted_are_an_error(tmp_path: Path) -> None:
    with compacted(tmp_path / "t-0") as writer, cw.Log(tmp_path / "t-0").follow(timeout=30) as records:
        assert taken(records, 2) == [1, 2]
        writer.truncate_to(2)
        writer.append_many([cw.Record(b"other", key=b"a"), cw.Record(b"other", key=b"a")])
        writer.roll()
        writer.compact()
        with pytest.raises(cw.LogChangedError, match="records below offset 3 were withdrawn after being read"):
            next(records)


def test_a_compaction_of_what_was_read_is_no_error(tmp_path: Path) -> None:
    with compacted(tmp_path / "t-0") as writer, cw.Log(tmp_path / "t-0").follow(timeout=30) as records:
        assert taken(records, 2) == [1, 2]
        writer.append_many([cw.Record(b"3", key=b"b"), cw.Record(b"4", key=b"c")])
        assert taken(records, 2) == [3, 4]
        writer.append(b"5", key=b"b")
        writer.roll()
        writer.compact()
        assert [record.offset for record in writer.reader().records()] == [1, 4, 5]
        assert taken(records, 1) == [5]
        writer.append(b"6", key=b"d")
        assert taken(records, 1) == [6]


def test_records_that_were_not_returned_may_be_truncated(tmp_path: Path) -> None:
    with new_log(tmp_path / "t-0", 3) as writer, cw.Log(tmp_path / "t-0").follow(timeout=30) as records:
        assert taken(records, 3) == [0, 1, 2]
        append(writer, 5)
        writer.truncate_to(3)
        append(writer, 2)
        assert taken(records, 2) == [3, 4]


def test_a_truncation_in_the_middle_of_a_long_reading_is_noticed(tmp_path: Path) -> None:
    with new_log(tmp_path / "t-0", 0) as writer:
        for _ in range(20):
            writer.append_many([cw.Record(value=b"x")] * 1000)
        records = cw.Log(tmp_path / "t-0").follow(timeout=30)
        returned = [next(records).offset for _ in range(9_000)]
        assert returned == list(range(9_000))
        writer.truncate_to(2_000)
        for _ in range(20):
            writer.append_many([cw.Record(value=b"y")] * 1000)
        values = []
        with pytest.raises(cw.LogChangedError, match="withdrawn after being read"):
            values.extend(record.value for record in records)
        # those that were read ahead
        assert set(values) <= {b"x"}


def test_records_that_another_program_replaces_in_the_middle_of_a_long_reading_are_noticed(tmp_path: Path) -> None:
    for name, value in (("t-0", b"x"), ("u-0", b"y")):
        with new_log(tmp_path / name, 0) as writer:
            for _ in range(20):
                writer.append_many([cw.Record(value=value, timestamp=0)] * 1000)
    records = cw.Log(tmp_path / "t-0").follow(timeout=30)
    assert [next(records).offset for _ in range(4000)] == list(range(4000))
    # as a broker does after a truncation, in the same file, without a word to cordwood
    name = "00000000000000000000.log"
    with (tmp_path / "t-0" / name).open("r+b") as file:
        file.write((tmp_path / "u-0" / name).read_bytes())
    values = []
    with pytest.raises(cw.LogChangedError, match="withdrawn after being read"):
        values.extend(record.value for record in records)
    assert set(values) <= {b"x"}


def test_a_directory_that_is_deleted_is_an_error(tmp_path: Path) -> None:
    new_log(tmp_path / "t-0", 3).close()
    records = cw.Log(tmp_path / "t-0").follow(timeout=30)
    assert taken(records, 3) == [0, 1, 2]
    with later(lambda: shutil.rmtree(tmp_path / "t-0")), pytest.raises(cw.LogNotFoundError):
        next(records)


def test_records_before_damage_come_before_its_error(tmp_path: Path) -> None:
    with new_log(tmp_path / "t-0", 10) as writer:
        position = cw.Log(tmp_path / "t-0").locate(6)
    assert position is not None
    assert writer.closed
    file = tmp_path / "t-0" / "00000000000000000000.log"
    contents = bytearray(file.read_bytes())
    contents[position.position + position.size - 1] ^= 1
    file.write_bytes(contents)
    found = []
    with pytest.raises(cw.CorruptLogError) as raised:
        found.extend(record.offset for record in cw.Log(tmp_path / "t-0").follow(timeout=0))
    assert found == [0, 1, 2, 3, 4, 5]
    assert raised.value.offset == 6


def test_with_read_committed_it_waits_at_the_last_stable_offset(tmp_path: Path) -> None:
    part = corpus.partition("11-transactions")
    whole = Path(shutil.copytree(part.path, tmp_path / "whole-0"))
    last = cw.Log(whole).segments[-1]
    ends = [
        row["position"] + row["size"]
        for row in cw.Log(whole).batches(start_offset=last.base_offset).to_arrow().to_pylist()
    ]
    path = Path(shutil.copytree(whole, tmp_path / "payments-0"))
    bytes_of_last = (whole / Path(last.path).name).read_bytes()
    file = path / Path(last.path).name
    file.write_bytes(b"")
    for other in path.glob(f"{last.base_offset:020}.*index"):
        other.unlink()
    records = cw.Log(path).follow(timeout=0.3, isolation_level="read_committed")
    found: list[int] = []
    written = 0
    for end in sorted({*ends[:: len(ends) // 20], ends[-1]}):
        with file.open("ab") as log:
            log.write(bytes_of_last[written:end])
        written = end
        now = cw.Log(path)
        expected = [record.offset for record in now.records(isolation_level="read_committed")]
        found += [next(records).offset for _ in range(len(expected) - len(found))]
        assert found == expected
        assert records.next_offset <= now.last_stable_offset
    assert len(found) > 10
    assert list(records) == []


def test_descriptors_are_freed_however_it_ends(tmp_path: Path) -> None:
    assert open_watches() == 0
    with new_log(tmp_path / "t-0", 3) as writer:
        log = cw.Log(tmp_path / "t-0")
        with log.follow(timeout=0.01) as records:
            assert len(list(records)) == 3
            assert open_watches() == 0
        # with the files that the log keeps open
        before = len(descriptors())
        with log.follow(3, timeout=30) as records, later(lambda: append(writer, 1)):
            next(records)
            assert open_watches() == 2
        assert open_watches() == 0
        records = log.follow(3, timeout=30)
        with later(lambda: append(writer, 1)):
            taken(records, 2)
        del records
        assert open_watches() == 0
        records = log.follow(4, timeout=30)
        assert taken(records, 1) == [4]
        with later(lambda: writer.truncate_to(1)), pytest.raises(cw.LogChangedError):
            next(records)
        assert open_watches() == 0
        assert len(descriptors()) <= before


@pytest.mark.usefixtures("watched")
def test_close_ends_a_wait_of_another_thread(tmp_path: Path) -> None:
    new_log(tmp_path / "t-0", 3).close()
    records = cw.Log(tmp_path / "t-0").follow()
    with later(records.close):
        assert taken(records, 3) == [0, 1, 2]
        started = time.monotonic()
        assert list(records) == []
    assert time.monotonic() - started < 1.5
    assert open_watches() == 0
    assert list(records) == []


def test_threads_share_the_records(tmp_path: Path) -> None:
    with new_log(tmp_path / "t-0", 2_000) as writer:
        records = cw.Log(tmp_path / "t-0").follow(timeout=0.5)
        found: list[list[int]] = [[], [], []]

        def read(into: list[int]) -> None:
            into.extend(record.offset for record in records)

        threads = [threading.Thread(target=read, args=(into,)) for into in found]
        for thread in threads:
            thread.start()
        append(writer, 2_000)
        for thread in threads:
            thread.join()
        assert sorted(itertools.chain.from_iterable(found)) == list(range(4_000))


def test_a_forked_child_refuses_it_and_does_not_take_the_events(tmp_path: Path) -> None:
    with new_log(tmp_path / "t-0", 1) as writer, cw.Log(tmp_path / "t-0").follow(timeout=30) as records:
        with later(lambda: append(writer, 1)):
            assert taken(records, 2) == [0, 1]
        assert open_watches() == 2
        child = os.fork()
        if child == 0:
            try:
                next(records)
            except cw.ForkedHandleError:
                records.close()
                os._exit(open_watches())
            os._exit(99)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        with later(lambda: append(writer, 1)):
            assert taken(records, 1) == [2]


def is_watching(process: int) -> bool:
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        # it may be closed meanwhile
        with suppress(FileNotFoundError):
            if "inotify" in str(descriptor.readlink()):
                return True
    return False


def test_ctrl_c_ends_a_wait(tmp_path: Path, script_environment: dict[str, str]) -> None:
    new_log(tmp_path / "t-0", 1).close()
    text = """
    import os, sys
    import cordwood as cw

    records = cw.Log(sys.argv[1]).follow()
    try:
        for record in records:
            print(record.offset, flush=True)
    except KeyboardInterrupt:
        names = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
        print("interrupted", sum("inotify" in name or "eventfd" in name for name in names), list(records), flush=True)
    """
    words = [sys.executable, str(write_script(tmp_path, text)), str(tmp_path / "t-0")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=script_environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"
        while not is_watching(process.pid):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted 0 []\n"
        assert process.wait(timeout=60) == 0


def test_after_the_end_the_next_offset_is_that_of_the_first_record_that_was_not_returned(tmp_path: Path) -> None:
    with new_log(tmp_path / "t-0", 1) as writer, cw.Log(tmp_path / "t-0").follow(timeout=30) as records:
        with later(lambda: writer.append_many([cw.Record(value=b"x")] * 10)):
            offsets = [next(records).offset for _ in range(4)]
        assert offsets == [0, 1, 2, 3]
        records.close()
        assert list(records) == []
        assert records.next_offset == 4


def test_a_consumer_continues_at_its_position(tmp_path: Path) -> None:
    with new_log(tmp_path / "t-0", 10) as writer:
        done = []
        for stop in (4, 7, 12):
            log = cw.Log(tmp_path / "t-0")
            position = log.position("billing")
            with log.follow(position.offset, timeout=0) as records:
                for record in records:
                    done.append(record.offset)
                    position.commit(records.next_offset)
                    if record.offset == stop:
                        break
            if stop == 7:
                append(writer, 3)
        assert done == list(range(13))
        assert cw.Log(tmp_path / "t-0").position("billing").offset == 13


def test_nothing_is_written_into_the_directory(tmp_path: Path) -> None:
    path = Path(shutil.copytree(corpus.partition("01-plain").path, tmp_path / "orders-0"))
    before = {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in path.iterdir()}
    assert len(list(cw.Log(path).follow(timeout=0.1))) == 1500
    assert {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in path.iterdir()} == before
