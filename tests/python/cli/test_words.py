"""Messages of the command line: they use its own terms, are not wrapped inside words, and are correct."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shutil
import struct
import termios
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import corpus
import pytest
from commands import environment, run_with
from scripts import Command

import cordwood as cw

PLAIN = corpus.partition("01-plain").path
DAMAGED = corpus.GOLDEN / "damaged"

# of the library: arguments, classes, calls
PYTHONS = re.compile(
    r"\b\w+=[\"'\w]*[\"']|\bLogDir\b|\bLog\b|\bLogWriter\b|\brefresh\(|\bcw\.|"
    r"\b(on_damage|log_start_offset|start_offset|end_offset|start_time|end_time|isolation_level|topic_id)\b"
)


def on_a_terminal(*arguments: object, columns: int = 80) -> str:
    """The output of a command on a terminal with this number of columns, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    settings = {k: v for k, v in environment(TERM="xterm").items() if k not in {"COLUMNS", "LINES"}}

    def read() -> bytes:
        shown = b""
        # an error: the other side was closed
        with suppress(OSError):
            while chunk := os.read(ours, 65_536):
                shown += chunk
        return shown

    with ThreadPoolExecutor() as pool:
        reading = pool.submit(read)
        code = run_with([os.open(os.devnull, os.O_RDONLY), os.dup(theirs), theirs], arguments, settings)
        shown = reading.result()
    os.close(ours)
    assert code == 0, shown
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).replace("\r\n", "\n")


def lost_segments(folder: Path) -> Path:
    path = folder / "data" / "cities-0"
    shutil.copytree(corpus.GOLDEN / "16-data-dir", folder / "data")
    for file in path.glob("*.log"):
        file.unlink()
    return path


def strange(folder: Path) -> Path:
    path = folder / "strange"
    shutil.copytree(PLAIN, path)
    (folder / "meta.properties").write_bytes(b"version=1\nbroker.id=1\n")
    return path


def compacting(folder: Path) -> Path:
    path = folder / "orders-0"
    shutil.copytree(PLAIN, path)
    (path / "00000000000000000000.log.swap").write_bytes(b"")
    return path


FAILING: list[tuple[object, ...]] = [
    ("ls", "{empty}"),
    ("find", "{empty}", "--offset", "5"),
    ("find", "{data}", "--offset", "500000"),
    ("cat", DAMAGED / "flip-record/tickets-0"),
    ("find", DAMAGED / "flip-record/tickets-0", "--offset", "302"),
    ("cat", PLAIN, "--start-offset", "10", "--end-offset", "5"),
    ("cat", PLAIN, "--start-offset", "99999"),
    ("cat", PLAIN, "--start-offset", "-5"),
    ("cat", PLAIN, "--start-offset", str(2**70)),
    ("cat", PLAIN, "--since", "2024-05-01", "--until", "2023-05-01"),
    ("cat", PLAIN, "--columns", "offsett"),
    ("cat", PLAIN, "--columns", "offset,offset"),
    ("find", PLAIN, "--offset", str(2**70)),
    ("find", PLAIN, "--offset", "-1"),
    ("append", "{empty}/a-0", "--flush", "often"),
    ("append", "{empty}/a-0", "--topic-id", "x"),
    ("append", "{empty}/nowhere/a-0"),
    ("append", "{strange}"),
    ("apply-retention", "{compacting}"),
    ("apply-retention", PLAIN, "--set", "retention.ms=soon"),
    ("apply-retention", PLAIN, "--set", "on.damage=skip"),
    ("apply-retention", PLAIN, "--now", "soon"),
    ("truncate", "{lost}", "--to", "5"),
    ("truncate", PLAIN, "--to", "-5"),
    ("trace", PLAIN / "leader-epoch-checkpoint", "5"),
    ("trace", "{empty}/x.index", "5"),
    ("ls", "{lostdata}"),
]


@pytest.mark.parametrize("arguments", FAILING, ids=lambda arguments: " ".join(map(str, arguments))[-60:])
def test_errors_use_the_terms_of_the_command_line(
    tmp_path: Path, command: Command, arguments: tuple[object, ...]
) -> None:
    made = {
        "{empty}": lambda: tmp_path,
        "{data}": lambda: corpus.GOLDEN / "16-data-dir",
        "{lost}": lambda: lost_segments(tmp_path),
        "{lostdata}": lambda: lost_segments(tmp_path).parent,
        "{strange}": lambda: strange(tmp_path),
        "{compacting}": lambda: compacting(tmp_path),
    }
    given = [str(argument) for argument in arguments]
    for name, make in made.items():
        if any(name in argument for argument in given):
            path = str(make())
            given = [argument.replace(name, path) for argument in given]
    code, out, error = command(*given)
    assert code in (1, 2)
    *warnings, said = error.splitlines()
    assert said.startswith("cordwood: ")
    assert all(warning.startswith("warning: ") for warning in warnings)
    assert not PYTHONS.search(error), error
    assert not PYTHONS.search(out), out
    assert "fault of cordwood" not in error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("cat", PLAIN, "--start-offset", "10", "--end-offset", "5"), "--end-offset: expected 10 or more, found 5"),
        (
            ("cat", PLAIN, "--since", "2024-05-01", "--until", "2023-05-01"),
            "--until 2023-05-01T00:00:00.000Z is before --since 2024-05-01T00:00:00.000Z",
        ),
        (("cat", PLAIN, "--columns", "offsett"), "--columns: expected one of "),
        (("append", "never-0", "--flush", "often"), "--flush: expected "),
        (("append", "never-0", "--topic-id", "x"), "--topic-id: expected "),
        (("cat", DAMAGED / "flip-record/tickets-0"), "; --on-damage skip leaves it out"),
        (
            ("find", DAMAGED / "flip-record/tickets-0", "--offset", "302"),
            "; cordwood verify --explain shows what is damaged, and cordwood repair what can be saved",
        ),
        (
            ("cat", PLAIN, "--since", "2024-05-01T10:00"),
            "(2024-05-01T10:00Z) or an offset (2024-05-01T10:00+02:00), or give --tz, found '2024-05-01T10:00'",
        ),
        (("cat", PLAIN, "--since", "2024-05-01T10:00"), "--since: expected a time with a time zone: add Z for UTC ("),
        (("count", PLAIN, "--until", "soon"), "--until: expected a time in one of the forms "),
        (("find", PLAIN, "--time", "2024-05-01T10:00"), "--time: expected a time with a time zone: add Z for UTC "),
        (("copy", PLAIN, "never-0", "--until", "soon"), "--until: expected a time in one of the forms "),
        (("dump", PLAIN, "--format", "csv", "--since", "soon"), "--since: expected a time in one of the forms "),
        (("apply-retention", PLAIN, "--now", "soon"), "--now: expected a time in one of the forms "),
        (
            ("report", corpus.GOLDEN / "16-data-dir"),
            "; cordwood ls shows the partitions of a data directory",
        ),
    ],
)
def test_errors_name_the_options(command: Command, arguments: tuple[object, ...], said: str) -> None:
    assert said in command(*arguments)[2]


def test_warnings_use_the_terms_of_the_command_line(command: Command) -> None:
    code, out, _ = command("ls", corpus.GOLDEN / "16-data-dir/cities-1")
    assert code == 0
    assert "hidden below the log start offset 31" in out
    assert not PYTHONS.search(out)


@pytest.mark.parametrize("part", corpus.partitions(), ids=str)
def test_no_time_number_or_path_is_wrapped(command: Command, part: corpus.Partition) -> None:
    shown = on_a_terminal("ls", part.path)
    times = re.findall(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", shown)
    log = cw.Log(part.path)
    assert len(times) == sum(1 for segment in log.segments if segment.largest_record_timestamp >= 0)
    for segment in log.segments:
        assert re.search(rf"(?m)^ *{segment.base_offset} +{segment.end_offset} +[\d.]+ [KM]?i?B ", shown)
    if times:
        place = json.loads(command("find", part.path, "--time", "0", "--json")[1])
        table = on_a_terminal("find", part.path, "--time", "0", columns=40)
        assert re.search(rf"(?m) {re.escape(place['file'])}$", table)


def test_text_is_wrapped_at_words() -> None:
    data = corpus.GOLDEN / "16-data-dir"
    shown = on_a_terminal("ls", data, columns=60)
    for name in cw.LogDir(data):
        assert re.search(rf"(?m)^{re.escape(name)} ", shown)


@pytest.mark.parametrize(
    ("case", "said"),
    [("15-one-record", " in 1 segment\n"), ("15-empty", " in 1 segment\n"), ("01-plain", " in 4 segments\n")],
)
def test_a_count_of_one_segment_is_singular(command: Command, case: str, said: str) -> None:
    assert said in command("ls", corpus.partition(case).path)[1]


def test_counts_of_one_are_singular(command: Command, tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    with cw.LogWriter(tmp_path / "orders-0") as writer:
        for _ in range(3):
            writer.append(b"x")
            writer.roll()
    assert ": 1 partition, " in command("ls", tmp_path)[1]
    assert ", 1 whole segment with them" in command("truncate", tmp_path / "orders-0", "--to", "2")[1]
    index = tmp_path / "00000000000000000000.index"
    index.write_bytes(struct.pack(">ii", 5, 10))
    assert ": 1 entry on 1 page; " in command("trace", index, "5")[1]
