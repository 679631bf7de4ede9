"""`cordwood cat --follow` in real processes, beside a writer that appends, rolls, deletes and truncates."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import corpus
import pytest
from scripts import Command

import cordwood as cw

POLLING = "import sys, cordwood.watch as watch\ndef none(paths):\n    raise OSError\nwatch._watch_directories = none\n"
MAIN = "import sys\nfrom cordwood.cli import main\nsys.exit(main(sys.argv[1:]))\n"


@contextmanager
def following(
    environment: dict[str, str], *arguments: object, is_polling: bool = False
) -> Iterator[subprocess.Popen[str]]:
    program = (POLLING if is_polling else "") + MAIN
    words = [sys.executable, "-c", program, "cat", "--follow", *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def read(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline().rstrip("\n") for _ in range(count)]


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, error = process.communicate(timeout=60)
    return process.returncode, error


@contextmanager
def stopped(process: subprocess.Popen[str]) -> Iterator[None]:
    """Changes in the block are one change for the process."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    yield
    process.send_signal(signal.SIGCONT)


def new_log(folder: Path, name: str = "t-0", count: int = 3) -> tuple[Path, cw.LogWriter]:
    path = folder / name
    path.mkdir(parents=True)
    writer = cw.LogWriter(path, flush="none")
    for number in range(count):
        writer.append(b"v%d" % number)
    return path, writer


@pytest.mark.parametrize("is_polling", [False, True])
def test_new_records_are_written_across_rolls_until_ctrl_c(
    tmp_path: Path, script_environment: dict[str, str], is_polling: bool
) -> None:
    path, writer = new_log(tmp_path)
    with writer, following(script_environment, path, "--raw", "--last", "2", is_polling=is_polling) as process:
        assert read(process, 2) == ["v1", "v2"]
        for number in range(3, 8):
            writer.append(b"v%d" % number)
            assert read(process, 1) == [f"v{number}"]
            writer.roll()
        with stopped(process):
            for number in range(8, 12):
                writer.append(b"v%d" % number)
                writer.roll()
        assert read(process, 4) == ["v8", "v9", "v10", "v11"]
        process.send_signal(signal.SIGINT)
        code, error = ended(process)
        assert code == 130
        assert "Traceback" not in error


def test_filters_limits_and_headings_hold_for_the_whole_output(
    tmp_path: Path, script_environment: dict[str, str]
) -> None:
    path, writer = new_log(tmp_path, count=0)
    writer.append(b"a1", key=b"k")
    options = ("--format", "csv", "--columns", "offset,value", "--grep", "^a", "--key", "k", "--limit", "3")
    with writer, following(script_environment, path, *options) as process:
        assert read(process, 2) == ['"offset","value"', '0,"a1"']
        writer.append(b"b1", key=b"k")
        writer.append(b"a2", key=b"other")
        writer.append(b"a2", key=b"k")
        assert read(process, 1) == ['3,"a2"']
        writer.append_many([cw.Record(value=b"a3", key=b"k")] * 5)
        assert read(process, 1) == ['4,"a3"']
        assert ended(process) == (0, "")


def test_records_that_retention_deletes_unread_are_named(tmp_path: Path, script_environment: dict[str, str]) -> None:
    path, writer = new_log(tmp_path)
    with writer, following(script_environment, path, "--raw") as process:
        assert read(process, 3) == ["v0", "v1", "v2"]
        with stopped(process):
            for number in range(3, 6):
                writer.append(b"v%d" % number)
                writer.roll()
            writer.delete_before(5)
        assert read(process, 1) == ["v5"]
        process.send_signal(signal.SIGINT)
        code, error = ended(process)
        assert code == 130
        said = "the records from offset 3 to 4 were deleted before being read; continuing at offset 5, where"
        assert error.startswith(f"cordwood: {path}: {said}")


def test_records_that_are_withdrawn_are_an_error(tmp_path: Path, script_environment: dict[str, str]) -> None:
    path, writer = new_log(tmp_path)
    with writer, following(script_environment, path, "--raw") as process:
        assert read(process, 3) == ["v0", "v1", "v2"]
        writer.truncate_to(1)
        code, error = ended(process)
        assert code == 1
        said = "at least the records from offset 1 to 2 were withdrawn after being written out"
        assert f"cordwood: {path}: {said}: the log was truncated and ends at offset 1 now\n" in error


def test_a_log_that_was_truncated_and_rewritten_is_an_error(tmp_path: Path, script_environment: dict[str, str]) -> None:
    path, writer = new_log(tmp_path)
    with writer, following(script_environment, path, "--raw") as process:
        assert read(process, 3) == ["v0", "v1", "v2"]
        with stopped(process):
            writer.truncate_to(2)
            writer.append(b"other")
            writer.append(b"v3")
        code, error = ended(process)
        assert code == 1
        assert "records below offset 3 were withdrawn after being written out: the batch before it has CRC" in error


def test_records_above_the_position_may_be_truncated(tmp_path: Path, script_environment: dict[str, str]) -> None:
    path, writer = new_log(tmp_path)
    with writer, following(script_environment, path, "--raw") as process:
        assert read(process, 3) == ["v0", "v1", "v2"]
        with stopped(process):
            writer.append(b"gone")
            writer.truncate_to(3)
            writer.append(b"v3")
        assert read(process, 1) == ["v3"]


def test_partitions_of_a_data_directory_are_followed_and_new_ones_too(
    tmp_path: Path, script_environment: dict[str, str]
) -> None:
    data = tmp_path / "data"
    _, first = new_log(data, "t-0", 1)
    _, second = new_log(data, "t-1", 1)
    with (
        first,
        second,
        following(script_environment, data, "--columns", "topic,partition,offset", "--last", "1") as process,
    ):

        def places(count: int) -> list[tuple[object, ...]]:
            return [tuple(json.loads(line).values()) for line in read(process, count)]

        assert places(2) == [("t", 0, 0), ("t", 1, 0)]
        second.append(b"x")
        assert places(1) == [("t", 1, 1)]
        third_path, third = new_log(data, "u-7", 3)
        with third:
            # of a new partition all records are new
            assert places(3) == [("u", 7, 0), ("u", 7, 1), ("u", 7, 2)]
            third.append(b"x")
            assert places(1) == [("u", 7, 3)]
        shutil.rmtree(third_path)
        first.append(b"x")
        assert places(1) == [("t", 0, 1)]
        assert process.stderr is not None
        assert process.stderr.readline().startswith("cordwood: no longer followed: ")


def test_a_log_that_is_deleted_ends_it(tmp_path: Path, script_environment: dict[str, str]) -> None:
    path, writer = new_log(tmp_path)
    writer.close()
    with following(script_environment, path, "--raw") as process:
        assert read(process, 3) == ["v0", "v1", "v2"]
        shutil.rmtree(path)
        code, error = ended(process)
        assert code == 1
        assert error.startswith("cordwood: ")
        assert "Traceback" not in error


@pytest.mark.parametrize("successor", [None, "another"])
def test_a_log_whose_directory_is_renamed_or_replaced_ends_it(
    successor: str | None, tmp_path: Path, script_environment: dict[str, str]
) -> None:
    path, writer = new_log(tmp_path)
    writer.close()
    with following(script_environment, path, "--raw") as process:
        assert read(process, 3) == ["v0", "v1", "v2"]
        if successor is not None:
            new_log(tmp_path, "successor-0", 5)[1].close()
        with stopped(process):
            path.rename(path.with_name(f"{path.name}.0123456789abcdef0123456789abcdef-delete"))
            if successor is not None:
                (tmp_path / "successor-0").rename(path)
        code, error = ended(process)
        assert code == 1
        found = "no such directory" if successor is None else "another directory than the one that was opened"
        assert found in error


@pytest.mark.parametrize("count", [1, 2])
def test_partitions_of_a_data_directory_that_are_replaced_are_followed_from_the_start(
    count: int, tmp_path: Path, script_environment: dict[str, str]
) -> None:
    data = tmp_path / "data"
    names = [f"t-{number}" for number in range(count)]
    for name in names:
        new_log(data, name, 1)[1].close()
    with following(script_environment, data, "--columns", "partition,offset") as process:
        assert len(read(process, count)) == count
        for name in names:
            new_log(tmp_path / "new", name, 2)[1].close()
        with stopped(process):
            for name in names:
                (data / name).rename(tmp_path / f"old-{name}")
                (tmp_path / "new" / name).rename(data / name)
        places = [tuple(json.loads(line).values()) for line in read(process, 2 * count)]
        assert sorted(places) == [(number, offset) for number in range(count) for offset in range(2)]


def test_a_reader_that_stops_ends_it_without_a_new_record(tmp_path: Path, script_environment: dict[str, str]) -> None:
    path, writer = new_log(tmp_path)
    with writer, following(script_environment, path, "--raw") as process:
        assert read(process, 3) == ["v0", "v1", "v2"]
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(timeout=60) == 0
        assert process.stderr.read() == ""


def test_open_transactions_are_named_or_left_out(tmp_path: Path, script_environment: dict[str, str]) -> None:
    part = corpus.partition("11-transactions")
    path = Path(shutil.copytree(part.path, tmp_path / "payments-0"))
    with following(script_environment, path, "--columns", "offset") as process:
        lines = read(process, len(corpus.visible(part)))
        assert [json.loads(line)["offset"] for line in lines] == [record.offset for record in corpus.visible(part)]
        assert process.stderr is not None
        assert "--isolation read_committed leaves them out" in process.stderr.readline()
    committed = cw.Log(path).scan(columns=["offset"], isolation_level="read_committed").to_arrow()
    with following(script_environment, path, "--columns", "offset", "--isolation", "read_committed") as process:
        lines = read(process, committed.num_rows)
        assert [json.loads(line)["offset"] for line in lines] == committed["offset"].to_pylist()


def test_nothing_is_written_into_the_directory(tmp_path: Path, script_environment: dict[str, str]) -> None:
    path = Path(shutil.copytree(corpus.partition("15-one-record").path, tmp_path / "one-0"))
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    with following(script_environment, path, "--raw") as process:
        read(process, 1)
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before


def test_an_offset_outside_the_log_is_an_error(command: Command) -> None:
    code, out, error = command("cat", corpus.partition("01-plain").path, "--follow", "--start-offset", "99999")
    assert (code, out) == (1, "")
    assert "offset 99999 is outside" in error
