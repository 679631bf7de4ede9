"""Positions of consumers: commits of several processes, kills between them, damage, and what leaves them alone."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pickle
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import corpus
import pytest
from batches import crc32c
from commands import files
from scripts import Command, run, write_script

import cordwood as cw

FOLDER = ".cordwood.positions"

COMMIT_TWICE = """
import sys
import cordwood as cw

position = cw.Log(sys.argv[1]).position("billing")
position.commit(2)
position.commit(3)
"""

# Commits rising numbers of its own residue class, and prints each before and after the commit.
COMMITTER = """
import os, sys
import cordwood as cw

path, first, step = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
position = cw.Log(path).position("billing")
offset = first
while True:
    os.write(1, b"begin %d\\n" % offset)
    position.commit(offset)
    os.write(1, b"done %d\\n" % offset)
    offset += step
"""


def new_log(path: Path, records: int) -> Path:
    with cw.LogWriter(path, flush="none") as writer:
        writer.append_many([cw.Record(value=b"v")] * records)
    return path


def test_a_committed_offset_is_there_in_other_logs_and_in_other_processes(
    tmp_path: Path, script_environment: dict[str, str]
) -> None:
    path = new_log(tmp_path / "orders-0", 10)
    position = cw.Log(path).position("billing")
    assert (position.name, position.offset, position.committed) == ("billing", None, None)
    before = time.time() * 1000 - 1
    position.commit(4)
    assert position.offset == 4
    committed = position.committed
    assert committed is not None
    assert committed.offset == 4
    assert before <= committed.timestamp <= time.time() * 1000
    assert repr(committed) == f"CommittedOffset(offset=4, timestamp={committed.timestamp})"
    text = "import sys, cordwood as cw\ncw.Log(sys.argv[1]).position('billing').commit(7)\n"
    run(write_script(tmp_path, text), path, env=script_environment)
    assert position.offset == 7
    assert [other.name for other in cw.Log(path).positions()] == ["billing"]


def test_wrong_names_and_offsets_are_named(tmp_path: Path) -> None:
    path = new_log(tmp_path / "orders-0", 10)
    log = cw.Log(path)
    for name in ("", ".", "..", "a/b", "a~", "x" * 250, "é"):
        with pytest.raises(cw.ConfigError, match="name: expected 1 to 249 characters") as raised:
            log.position(name)
        assert raised.value.argument == "name"
    with pytest.raises(TypeError, match="name"):
        log.position(7)  # type: ignore[arg-type]
    with pytest.raises(cw.OffsetOutOfRangeError, match="offset 11 is outside") as outside:
        log.position("billing").commit(11)
    assert (outside.value.offset, outside.value.log_start_offset, outside.value.log_end_offset) == (11, 0, 10)
    with pytest.raises(cw.OffsetOutOfRangeError, match="offset -1 is outside"):
        log.position("billing").commit(-1)
    with pytest.raises(TypeError, match="offset"):
        log.position("billing").commit(1.5)  # type: ignore[arg-type]
    assert not (path / FOLDER).exists()


def test_reading_a_position_writes_nothing(tmp_path: Path) -> None:
    path = Path(shutil.copytree(corpus.partition("01-plain").path, tmp_path / "orders-0"))
    before = files(path)
    log = cw.Log(path)
    assert (log.position("billing").offset, log.positions()) == (None, [])
    assert files(path) == before
    log.position("billing").commit(3)
    before = files(path)
    assert [position.offset for position in log.positions()] == [3]
    assert files(path) == before
    assert {name for name in before if name.startswith(FOLDER)} == {f"{FOLDER}/billing", f"{FOLDER}/~lock"}


def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path, command: Command) -> None:
    path = new_log(tmp_path / "orders-0", 10)
    log = cw.Log(path)
    log.position("billing").commit(4)
    log.position("audit").commit(9)
    assert cw.verify(path).findings == []
    file = path / FOLDER / "billing"
    whole = file.read_bytes()
    for contents in (b"", whole[:-1], whole.replace(b"4", b"5"), b"5\n", b'{"offset": 4}\n', whole * 2, b"x" * 9000):
        file.write_bytes(contents)
        with pytest.raises((cw.CorruptLogError, OSError), match="billing"):
            _ = log.position("billing").offset
    file.write_bytes(b"")
    assert [(finding.code, finding.severity, finding.file) for finding in cw.verify(path).findings] == [
        ("position_unreadable", "warning", str(file))
    ]
    code, out, error = command("positions", path)
    assert code == 1
    assert "audit" in out
    assert str(file) in error
    log.position("billing").commit(5)
    assert log.position("billing").offset == 5


def test_a_file_of_an_earlier_version_is_read_and_replaced_by_the_next_commit(tmp_path: Path) -> None:
    path = new_log(tmp_path / "orders-0", 10)
    text = b"0\noffset 4\ntimestamp 1700000000000\n"
    (path / FOLDER).mkdir()
    (path / FOLDER / "billing").write_bytes(text + b"crc32c %08x\n" % crc32c(text))
    position = cw.Log(path).position("billing")
    assert repr(position.committed) == "CommittedOffset(offset=4, timestamp=1700000000000)"
    for offset in (5, 6, 7):
        position.commit(offset)
        assert position.offset == offset


def test_a_commit_after_the_first_needs_no_space(tmp_path: Path) -> None:
    path = new_log(tmp_path / "orders-0", 10)
    position = cw.Log(path).position("billing")
    position.commit(1)
    file = path / FOLDER / "billing"
    before = file.stat()
    os.utime(path / FOLDER, ns=(0, 0))
    for offset in range(2, 8):
        position.commit(offset)
        assert position.offset == offset
    after = file.stat()
    assert (after.st_ino, after.st_size, after.st_blocks) == (before.st_ino, before.st_size, before.st_blocks)
    # no file was created, renamed or removed
    assert (path / FOLDER).stat().st_mtime_ns == 0


@pytest.mark.strace
def test_a_commit_after_the_first_is_one_write_and_one_flush(
    tmp_path: Path, script_environment: dict[str, str]
) -> None:
    if shutil.which("strace") is None:
        assert "CI" not in os.environ, "strace is missing, and here it must be there"
        pytest.skip("strace is not installed")
    path = new_log(tmp_path / "orders-0", 10)
    cw.Log(path).position("billing").commit(1)
    script = write_script(tmp_path, COMMIT_TWICE)
    output = tmp_path / "trace.txt"
    calls = "write,pwrite64,fsync,fdatasync,rename,renameat,renameat2,ftruncate"
    run(script, path, env=script_environment, before=("strace", "-f", "-y", "-e", f"trace={calls}", "-o", str(output)))
    lines = [line for line in output.read_text().splitlines() if f"{FOLDER}/billing" in line]
    names = [re.sub(r"^\d+ +", "", line).partition("(")[0] for line in lines]
    # the first look at the file syncs what another process may have left
    assert names[-4:] == ["pwrite64", "fdatasync"] * 2, lines
    assert names[:-4] in ([], ["fdatasync"]), lines


def test_positions_are_committed_in_an_event_loop(tmp_path: Path) -> None:
    path = new_log(tmp_path / "orders-0", 10)
    position = cw.Log(path).position("billing")

    async def main() -> None:
        await position.commit_async(4)
        assert position.offset == 4
        with pytest.raises(cw.OffsetOutOfRangeError):
            await position.commit_async(11)
        await asyncio.gather(*(cw.Log(path).position(f"p{number}").commit_async(number) for number in range(8)))

    asyncio.run(main())
    assert {other.name: other.offset for other in cw.Log(path).positions()} == {
        "billing": 4,
        **{f"p{number}": number for number in range(8)},
    }


def test_the_command_lists_offset_lag_and_time(tmp_path: Path, command: Command) -> None:
    data = tmp_path / "data"
    data.mkdir()
    path = new_log(data / "orders-0", 10)
    new_log(data / "orders-1", 1)
    assert command("positions", path)[0] == 1
    log = cw.Log(path)
    log.position("billing").commit(4)
    log.position("audit").commit(10)
    with cw.LogWriter(path) as writer:
        writer.roll()
        for _ in range(5):
            writer.append(b"v")
        writer.delete_before(10)
        log.position("audit").commit(13)
        writer.truncate_to(12)
    code, out, error = command("positions", path, "--json")
    assert (code, error) == (0, "")
    rows = json.loads(out)["positions"]
    assert [(row["name"], row["offset"], row["log_end_offset"], row["lag"]) for row in rows] == [
        ("audit", 13, 12, -1),
        ("billing", 4, 12, 8),
    ]
    committed = log.position("billing").committed
    assert committed is not None
    assert rows[1]["timestamp"] == committed.timestamp
    code, out, _ = command("positions", path)
    assert code == 0
    assert all(
        word in out
        for word in (
            "billing",
            "audit",
            "lag",
            "above the log end offset",
            "below the log start offset, 10",
            "2 positions",
        )
    )
    code, out, _ = command("positions", data, "--json")
    assert code == 0
    assert [(row["partition"], row["name"]) for row in json.loads(out)["positions"]] == [
        ("orders-0", "audit"),
        ("orders-0", "billing"),
    ]


def test_commits_of_processes_that_are_killed_are_never_torn_and_never_lost(
    tmp_path: Path, script_environment: dict[str, str]
) -> None:
    path = new_log(tmp_path / "orders-0", 200_000)
    script = write_script(tmp_path, COMMITTER)
    position = cw.Log(path).position("billing")
    choose = random.Random(18)
    before, commits = None, 0
    for generation in range(4):
        running = []
        for number in range(3):
            words = [sys.executable, str(script), str(path), str(10_000 * (generation + 1) + number), "3"]
            running.append(subprocess.Popen(words, stdout=subprocess.PIPE, env=script_environment))
        reads = [process.stdout.readline for process in running if process.stdout is not None]
        heard = [b""] * 3
        for _ in range(choose.randrange(10, 40)):
            heard = [before_it + read() for before_it, read in zip(heard, reads, strict=True)]
            # a reader beside them never sees a torn file
            _ = position.offset
        allowed, acknowledged = set(), 0
        for process in running:
            process.kill()
        for number, process in enumerate(running):
            told = heard[number] + process.communicate()[0]
            begun = [10_000 * (generation + 1) + number]
            begun += [int(line.split()[1]) for line in told.splitlines() if line.startswith(b"begin")]
            done = [int(line.split()[1]) for line in told.splitlines() if line.startswith(b"done")]
            acknowledged += len(done)
            # of each process, the last commit that was acknowledged, and the one that was not
            allowed |= {begun[-1], *done[-1:]}
        assert position.offset in (allowed if acknowledged else allowed | {before})
        before = position.offset
        commits += acknowledged
    assert commits > 50
    position.commit(1)
    assert {file.name for file in (path / FOLDER).iterdir()} == {"billing", "~lock"}


def test_a_kill_between_commits_of_one_process_loses_no_acknowledged_offset(
    tmp_path: Path, script_environment: dict[str, str]
) -> None:
    path = new_log(tmp_path / "orders-0", 200_000)
    script = write_script(tmp_path, COMMITTER)
    position = cw.Log(path).position("billing")
    choose = random.Random(19)
    for generation in range(5):
        words = [sys.executable, str(script), str(path), str(20_000 * generation), "1"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, env=script_environment) as process:
            assert process.stdout is not None
            for _ in range(choose.randrange(2, 40)):
                process.stdout.readline()
            process.send_signal(signal.SIGKILL)
            told = process.stdout.read().splitlines()
        done = [int(line.split()[1]) for line in told if line.startswith(b"done")]
        if done:
            assert position.offset in {done[-1], done[-1] + 1}


def test_a_copy_has_no_positions(tmp_path: Path) -> None:
    path = new_log(tmp_path / "orders-0", 10)
    cw.Log(path).position("billing").commit(4)
    cw.copy(path, tmp_path / "copy-0")
    assert cw.Log(tmp_path / "copy-0").positions() == []
    assert not (tmp_path / "copy-0" / FOLDER).exists()


def test_repair_recovery_and_the_writer_leave_positions_alone(tmp_path: Path) -> None:
    path = new_log(tmp_path / "orders-0", 10)
    cw.Log(path).position("billing").commit(4)
    before = {name: contents for name, contents in files(path).items() if name.startswith(FOLDER)}
    assert cw.classify(path).kind == "partition"
    assert cw.plan_kafka_load(path, clean=False, recovery_point=0).failure is None
    assert cw.repair(path).actions == []
    with (path / "00000000000000000000.log").open("ab") as file:
        file.write(b"torn")
    (path / ".cordwood.clean").unlink()
    with cw.LogWriter(path) as writer:
        assert writer.recovery is not None
        writer.append(b"next")
    assert {name: contents for name, contents in files(path).items() if name.startswith(FOLDER)} == before
    with cw.LogWriter(path) as writer:
        assert writer.recovery is None


def test_a_forked_child_commits_too_and_a_position_is_not_pickled(tmp_path: Path) -> None:
    path = new_log(tmp_path / "orders-0", 10)
    position = cw.Log(path).position("billing")
    position.commit(1)
    child = os.fork()
    if child == 0:
        position.commit(2)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert position.offset == 2
    with pytest.raises(TypeError):
        pickle.dumps(position)


@pytest.mark.long
def test_a_commit_that_waits_too_long_says_that_commits_take_turns(tmp_path: Path) -> None:
    path = new_log(tmp_path / "t-0", 3)
    position = cw.Log(path).position("billing")
    position.commit(1)
    with (path / FOLDER / "~lock").open("r+b") as file:
        fcntl.fcntl(file, 37, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        with pytest.raises(cw.LockedError) as raised:
            position.commit(2)
    assert raised.value.file == str(path / FOLDER / "~lock")
    assert "commits of positions take turns: commit again" in str(raised.value)
    assert "writer" not in str(raised.value)
    assert position.offset == 1
    position.commit(2)
