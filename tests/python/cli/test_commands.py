"""The command line: output, errors and exit codes."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import corpus
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import cordwood, environment, ok
from tables import expected_rows, rows

pytest.importorskip("typer")

PLAIN = corpus.partition("01-plain")
SMALL = corpus.partition("01-small")
DATA = corpus.GOLDEN / "16-data-dir"


def parsed(text: str) -> list[Any]:
    """One JSON document, or one per line."""
    try:
        whole = json.loads(text)
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return whole if isinstance(whole, list) else [whole]


def leaves(value: Any) -> set[Any]:
    """All numbers and strings in a value."""
    if isinstance(value, dict):
        return set().union(*map(leaves, value.values())) if value else set()
    if isinstance(value, list):
        return set().union(*map(leaves, value)) if value else set()
    return {value}


def failed(done: subprocess.CompletedProcess[bytes], code: int) -> str:
    """One paragraph on the standard error, nothing on the standard output, no traceback."""
    error = done.stderr.decode()
    assert done.returncode == code, error
    assert done.stdout == b""
    assert error.strip()
    assert "Traceback" not in error
    return error


def test_help_names_the_commands() -> None:
    text = ok("--help")
    for command in ("ls", "find", "cat", "trace"):
        assert command in text


def test_ls_lists_the_partitions_of_a_data_directory() -> None:
    text = ok("ls", DATA)
    for name in ("cities", "rivers.compact", "268", "150", "634"):
        assert name in text


def test_ls_lists_the_segments_of_a_partition() -> None:
    text = ok("ls", PLAIN.path)
    for base in PLAIN.bases:
        assert str(base) in text


def test_ls_as_json_has_the_same_facts() -> None:
    assert leaves(parsed(ok("ls", PLAIN.path, "--json"))) >= {0, 400, 807, 1217}
    found = leaves(parsed(ok("ls", DATA, "--json")))
    assert {268, 150, 31} <= found
    assert found & {"cities", "cities-0"}


def test_find_an_offset_gives_segment_and_position() -> None:
    b = next(b for b in corpus.batches(PLAIN) if b["baseOffset"] <= 700 <= b["lastOffset"])
    text = ok("find", PLAIN.path, "--offset", 700)
    assert str(b["position"]) in text
    assert {b["segment"], b["position"], b["size"], b["baseOffset"]} <= leaves(
        parsed(ok("find", PLAIN.path, "--offset", 700, "--json"))
    )


@pytest.mark.parametrize("time", ["1700000010000", "2023-11-14T22:13:30Z", "2023-11-14T23:13:30+01:00"])
def test_find_a_time_gives_the_first_record_at_or_after(time: str) -> None:
    wanted = corpus.first_at_or_after(corpus.visible(PLAIN), 1_700_000_010_000)
    assert wanted is not None
    assert str(wanted.offset) in ok("find", PLAIN.path, "--time", time)
    assert wanted.offset in leaves(parsed(ok("find", PLAIN.path, "--time", time, "--json")))


def test_cat_writes_a_line_of_json_for_each_record() -> None:
    lines = [json.loads(line) for line in ok("cat", SMALL.path, "--format", "jsonl").splitlines()]
    assert [line["offset"] for line in lines] == list(range(370))


def test_cat_keeps_the_columns_asked_for_in_their_order() -> None:
    text = ok("cat", SMALL.path, "--format", "csv", "--columns", "offset,magic,codec")
    table = list(csv.reader(io.StringIO(text)))
    assert table[0] == ["offset", "magic", "codec"]
    assert table[1:] == [[str(n), "2", "none"] for n in range(370)]
    first = ok("cat", SMALL.path, "--format", "jsonl", "--columns", "magic,offset").splitlines()[0]
    assert json.loads(first) == {"magic": 2, "offset": 0}


def test_cat_writes_every_record_to_a_parquet_file(tmp_path: Path) -> None:
    target = tmp_path / "out.parquet"
    ok("cat", SMALL.path, "--format", "parquet", "-o", target)
    assert rows(pq.read_table(target)) == expected_rows(corpus.visible(SMALL))


def test_cat_writes_every_record_to_an_arrow_file(tmp_path: Path) -> None:
    target = tmp_path / "out.arrow"
    ok("cat", SMALL.path, "--format", "arrow", "-o", target)
    with pa.memory_map(str(target)) as file:
        try:
            table = pa.ipc.open_file(file).read_all()
        except pa.ArrowInvalid:
            file.seek(0)
            table = pa.ipc.open_stream(file).read_all()
        assert rows(table) == expected_rows(corpus.visible(SMALL))


def test_cat_writes_bytes_that_are_not_utf8_as_json_and_csv() -> None:
    edge = corpus.partition("07-edge-values")
    lines = [json.loads(line) for line in ok("cat", edge.path, "--format", "jsonl").splitlines()]
    assert [line["offset"] for line in lines] == [r.offset for r in corpus.visible(edge)]
    assert [line["value"] is None for line in lines] == [r.value is None for r in corpus.visible(edge)]
    table = list(csv.reader(io.StringIO(ok("cat", edge.path, "--format", "csv", "--columns", "offset,key"))))
    assert len(table) == 111


@pytest.mark.parametrize(
    ("since", "until"),
    [
        ("2023-11-14T22:13:25Z", "2023-11-14T22:13:30Z"),
        ("2023-11-14T22:13Z", "2023-11-14T22:13:30.500Z"),
        ("1700000005000", "1700000010000"),
    ],
)
def test_cat_of_a_time_range_is_half_open(since: str, until: str) -> None:
    from datetime import datetime

    def ms(text: str) -> int:
        return int(text) if text.isdigit() else round(datetime.fromisoformat(text).timestamp() * 1000)

    text = ok("cat", PLAIN.path, "--format", "jsonl", "--columns", "offset", "--since", since, "--until", until)
    wanted = [r.offset for r in corpus.visible(PLAIN) if ms(since) <= r.timestamp < ms(until)]
    assert wanted
    assert [json.loads(line)["offset"] for line in text.splitlines()] == wanted


def test_cat_of_old_data_since_two_hours_ago_finds_nothing() -> None:
    done = cordwood("cat", PLAIN.path, "--format", "jsonl", "--since=-2h")
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"cordwood: no record matches\n")


def index_file(folder: Path) -> Path:
    import struct

    path = folder / "00000000000000000000.index"
    path.write_bytes(b"".join(struct.pack(">ii", n + 1, 50 * n) for n in range(13 * 512)))
    return path


def test_trace_shows_the_pages_of_a_search(tmp_path: Path) -> None:
    path = index_file(tmp_path)
    for arguments in (("trace", path, 13 * 512), ("trace", path, 13 * 512, "--json")):
        text = ok(*arguments)
        for page in ("10", "11", "12"):
            assert page in text
    found = parsed(ok("trace", path, 13 * 512, "--json"))
    assert "[10, 11, 12]" in json.dumps(found)


@pytest.mark.parametrize("command", ["ls", "find", "cat"])
def test_a_missing_path_is_one_paragraph_and_exit_code_2(tmp_path: Path, command: str) -> None:
    more = ("--offset", "1") if command == "find" else ()
    error = failed(cordwood(command, tmp_path / "nothing-0", *more), 2)
    assert "nothing-0" in error.replace("\n", "")
    assert "\n\n" not in error.strip()


def test_an_offset_out_of_range_is_named() -> None:
    error = failed(cordwood("find", PLAIN.path, "--offset", 1500), 1)
    assert "1500" in error


def test_damage_is_exit_code_1_with_file_and_position() -> None:
    done = cordwood("cat", corpus.GOLDEN / "damaged/flip-record/tickets-0", "--format", "jsonl")
    error = done.stderr.decode()
    assert done.returncode == 1
    assert "Traceback" not in error
    assert "285.log" in error.replace("\n", "")
    assert "2126" in error


@pytest.mark.parametrize(
    "arguments",
    [
        ("no-such-command",),
        ("ls",),
        ("find", str(PLAIN.path)),
        ("find", str(PLAIN.path), "--offset", "five"),
        ("find", str(PLAIN.path), "--offset", "1", "--time", "1"),
        ("find", str(PLAIN.path), "--time", "the day after tomorrow"),
        ("cat", str(PLAIN.path), "--format", "xml"),
        ("cat", str(PLAIN.path), "--since", "yesterday-ish"),
        ("cat", str(PLAIN.path), "--no-such-option"),
    ],
    ids=str,
)
def test_a_mistake_in_the_arguments_is_exit_code_2(arguments: tuple[str, ...]) -> None:
    done = cordwood(*arguments)
    assert done.returncode == 2, done.stderr.decode()
    assert b"Traceback" not in done.stderr + done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("cat", ""),
        ("ls", ""),
        ("find", "", "--offset", 0),
        ("recover", ""),
        ("append", ""),
        ("truncate", "", "--to", 0, "--yes"),
        ("apply-retention", ""),
        ("trace", "", 0),
    ],
    ids=lambda arguments: arguments[0],
)
def test_an_empty_path_is_a_usage_error_and_not_the_current_directory(arguments: tuple[object, ...]) -> None:
    assert "expected a path, which is not empty" in failed(cordwood(*arguments), 2)


def test_an_unknown_column_is_a_usage_error_that_names_the_nearest() -> None:
    done = cordwood("cat", PLAIN.path, "--format", "jsonl", "--columns", "offsett")
    assert done.returncode in (1, 2)
    error = done.stderr.decode()
    assert "offsett" in error
    assert "Traceback" not in error


def test_standard_output_has_only_the_data() -> None:
    """So that it can be piped: no progress, no colours, no greeting."""
    done = cordwood("cat", SMALL.path, "--format", "jsonl", "--columns", "offset")
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout
    assert len(done.stdout.splitlines()) == 370


def test_a_reader_that_closes_the_pipe_causes_no_traceback() -> None:
    command = [sys.executable, "-m", "cordwood.cli", "cat", str(PLAIN.path), "--format", "jsonl"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        error = process.stderr.read()
    assert b"Traceback" not in error


def test_the_target_of_trace_may_be_a_time_before_now() -> None:
    path = corpus.partition("01-plain").path / f"{0:020d}.timeindex"
    before = time.time_ns() // 1_000_000
    [found] = parsed(ok("trace", path, "-2h", "--json"))
    after = time.time_ns() // 1_000_000
    assert found["index"] == str(path)
    assert before <= found["target"] + 2 * 3_600_000 <= after


def test_ls_lists_the_other_partitions_if_a_file_of_one_cannot_be_opened(tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(corpus.GOLDEN / "16-data-dir", data)
    log = max((data / "cities-0").glob("*.log"))
    log.unlink()
    log.symlink_to(log.name)
    done = cordwood("ls", data)
    assert done.returncode == 1
    assert b"cities-1" in done.stdout
    assert b"1 of " in done.stderr
    assert b"cities-0" in done.stderr
