"""JSON lines and CSV of `cordwood cat` are those of Python's `json` and of pyarrow's `CSVWriter`."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import corpus
import pyarrow as pa
import pytest
from batches import Rec, batch, name, write_partition
from core.test_damaged import BROKEN, Damage
from hypothesis import given
from hypothesis import strategies as st
from scripts import Command, run, write_script

import cordwood as cw
from cli import text_twin, text_vectors
from cli.test_words import on_a_terminal
from cli.text_twin import FORMATS
from cordwood.cli.terminal import escape
from cordwood.spark.jobs.json_lines import write_jsonl

CASES: list[dict[str, Any]] = json.loads(text_vectors.VECTORS.read_text(encoding="utf-8"))
PLAIN = corpus.partition("01-plain").path


def agree(scan: cw.Scan, table: pa.Table | None = None) -> None:
    table = scan.to_arrow() if table is None else table
    for text_format in FORMATS:
        text, rows = text_twin.joined(scan, text_format)
        assert text == text_twin.lines(table, text_format)
        assert rows == table.num_rows


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_vectors_are_the_lines_of_their_logs(command: Command, tmp_path: Path, case: dict[str, Any]) -> None:
    path = text_vectors.write_log(tmp_path, bytes.fromhex(case["log"]))
    scan = cw.Log(path).scan(columns=case["columns"], on_damage=case["on_damage"], include_control=True)
    for text_format in FORMATS:
        text, _ = text_twin.joined(scan, text_format)
        assert text.decode() == case[text_format].replace("{path}", str(path))
    for given_format in ("jsonl", "csv"):
        options = ("--columns", ",".join(case["columns"]), "--on-damage", case["on_damage"], "--include-control")
        target = tmp_path / f"out.{given_format}"
        command("cat", path, *options, "-o", target)
        assert target.read_bytes().decode() == case[given_format].replace("{path}", str(path))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_results_of_spark_jobs_write_bytes_as_cat_does(tmp_path: Path, case: dict[str, Any]) -> None:
    path = text_vectors.write_log(tmp_path, bytes.fromhex(case["log"]))
    scan = cw.Log(path).scan(columns=["offset", "key", "value"], on_damage=case["on_damage"], include_control=True)
    text = io.BytesIO()
    write_jsonl(scan.to_arrow().to_pylist(), text)
    assert text.getvalue() == text_twin.joined(scan, "jsonl")[0]


def test_the_vectors_are_those_that_their_program_writes() -> None:
    assert [text_vectors.vector(label, *case) for label, case in text_vectors.cases().items()] == CASES


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("part", corpus.partitions(), ids=str)
def test_logs_of_real_brokers(part: corpus.Partition, isolation: Any) -> None:
    log = cw.Log(part.path, **part.overrides)
    agree(log.scan(isolation_level=isolation))
    agree(log.scan(columns=text_vectors.ALL, isolation_level=isolation, include_control=True))


@pytest.mark.long
@pytest.mark.parametrize("on_damage", ["skip", "report"])
@pytest.mark.parametrize("damage", BROKEN, ids=str)
def test_damaged_logs(damage: Damage, on_damage: Any) -> None:
    for columns in (None, text_vectors.ALL):
        scan = cw.Log(damage.path).scan(columns=columns, on_damage=on_damage, include_control=True)
        table = scan.to_arrow()
        found, stats = scan.damaged_ranges, scan.stats
        agree(scan, table)
        assert (scan.damaged_ranges, scan.stats) == (found, stats)
        for limit in (1, table.num_rows) if columns else (table.num_rows - 1,):
            limited = cw.Log(damage.path).scan(columns=columns, on_damage=on_damage, include_control=True, limit=limit)
            agree(limited, table.slice(0, limit))


def points() -> Iterator[str]:
    for start in range(0, 0x110000, 64):
        yield "".join(chr(point) for point in range(start, start + 64) if not 0xD800 <= point < 0xE000)


@pytest.mark.long
def test_every_character(tmp_path: Path) -> None:
    """Each in a key, a value, a header's name and a header's value; also as the command line escapes it elsewhere."""
    records = [Rec(key=text.encode(), value=text.encode(), headers=((text.encode(),) * 2,)) for text in points()]
    batches = [batch(base, records[base : base + 500]) for base in range(0, len(records), 500)]
    scan = cw.Log(write_partition(tmp_path / "points-0", [(0, batches)])).scan()
    agree(scan)
    text, _ = text_twin.joined(cw.Log(tmp_path / "points-0").scan(columns=["value"]), "terminal_csv")
    wanted = ["" if not text else '"' + escape(text).replace('"', '""') + '"' for text in points()]
    assert text.decode().split("\n")[1:-1] == [line or '""' for line in wanted]


TEXTS = st.text(max_size=40) | st.text('ab"\\,\n\x7fé', max_size=60)
CONTENTS = st.none() | st.binary(max_size=40) | TEXTS.map(str.encode)
HEADERS = st.lists(st.tuples(CONTENTS.map(lambda name: name or b""), CONTENTS), max_size=3).map(tuple)
TIMES = st.just(-1) | st.integers(0, text_twin.MAX_ARROW_TIME)
RECORDS = st.builds(Rec, value=CONTENTS, key=CONTENTS, timestamp=TIMES, headers=HEADERS)


@given(records=st.lists(RECORDS, min_size=1, max_size=20))
def test_any_records(tmp_path: Path, records: list[Rec]) -> None:
    path = tmp_path / "any-0"
    shutil.rmtree(path, ignore_errors=True)
    agree(cw.Log(write_partition(path, [(0, [batch(0, records, base_timestamp=0)])])).scan())


def test_times_that_pyarrow_cannot_format(command: Command, tmp_path: Path) -> None:
    """It reports an error after the year 32767, or returns another time."""
    times = [text_twin.MAX_ARROW_TIME + 1, 2**63 - 1]
    records = [Rec(timestamp=time) for time in times]
    path = write_partition(tmp_path / "late-0", [(0, [batch(0, records, base_timestamp=0)])])
    out = command("cat", path, "--columns", "timestamp", "--format", "csv")[1]
    assert out == '"timestamp"\n32768-01-01 00:00:00.000Z\n292278994-08-17 07:12:55.807Z\n'


def test_rows_of_several_partitions() -> None:
    for limit in (None, 0, 45):
        agree(cw.LogDir(corpus.GOLDEN / "16-data-dir").scan(limit=limit))


def test_rows_of_a_split() -> None:
    log = cw.Log(PLAIN)
    splits = log.plan(50_000)
    assert len(splits) > 1
    for split in splits:
        agree(log.scan(split=split))


def test_arguments_for_arrow_do_not_change_the_text() -> None:
    log = cw.Log(corpus.partition("07-edge-values").path)
    wanted = [text_twin.joined(log.scan(), text_format) for text_format in FORMATS]
    scan = log.scan(header_keys="binary", timestamp_unit="us", max_rows=3, max_bytes=10, threads=2)
    assert [text_twin.joined(scan, text_format) for text_format in FORMATS] == wanted


def test_a_format_that_does_not_exist_is_named() -> None:
    scan = cw.Log(PLAIN).scan()
    wanted = r'^text_format: expected "jsonl" or "csv" or "terminal_csv" or "raw" or "terminal_raw", found "xml"'
    with pytest.raises(cw.ConfigError, match=wanted):
        text_twin.joined(scan, "xml")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^text_format: expected .*, found int"):
        text_twin.joined(scan, 5)  # type: ignore[arg-type]


@pytest.mark.parametrize("text_format", ["jsonl", "csv"])
def test_the_rows_before_damage_are_written(command: Command, text_format: str) -> None:
    path = corpus.GOLDEN / "damaged/flip-record/tickets-0"
    log = cw.Log(path)
    with pytest.raises(cw.CorruptLogError) as caught:
        list(log.records())
    before = [record.offset for record in log.records(end_offset=caught.value.offset)]
    code, out, error = command("cat", path, "--columns", "offset", "--format", text_format)
    assert code == 1
    assert "is damaged at position" in error
    headings = ['"offset"'] if text_format == "csv" else []
    assert out.splitlines() == headings + [
        str(offset) if text_format == "csv" else f'{{"offset": {offset}}}' for offset in before
    ]


def test_neither_needs_pyarrow(tmp_path: Path, script_environment: dict[str, str]) -> None:
    script = write_script(
        tmp_path,
        """
        import sys
        sys.modules["pyarrow"] = None
        from cordwood.cli import main
        path, damaged = sys.argv[1:]
        for text_format in ("jsonl", "csv"):
            assert main(["cat", path, "--format", text_format, "--columns", "topic,headers,magic"]) == 0
            assert main(["cat", damaged, "--format", text_format, "--on-damage", "report", "--include-control"]) == 1
            assert main(["cat", path, "--format", text_format, "--isolation", "read_committed"]) == 0
        for binary in ("arrow", "parquet"):
            assert main(["cat", path, "--format", binary]) == 1
        """,
    )
    done = run(script, PLAIN, corpus.GOLDEN / "damaged/flip-record/tickets-0", env=script_environment)
    assert len(done.stdout.splitlines()) > 6000
    assert done.stderr.count("pyarrow") == 2


def test_csv_on_a_terminal_has_no_control_characters(tmp_path: Path) -> None:
    path = write_partition(tmp_path / "notes-0", [(0, [batch(0, [Rec(value=b"\x1b[2J\xc2\x9b\n", key=b"\xff")])])])
    shown = on_a_terminal("cat", path, "--format", "csv", "--columns", "key,value")
    assert shown == '"key","value"\n"base64:/w==","\\x1b[2J\\x9b\\x0a"\n'
    assert json.loads(on_a_terminal("cat", path))["value"] == "\x1b[2J\x9b\n"


def test_a_reader_that_stops_early_ends_the_command(tmp_path: Path, script_environment: dict[str, str]) -> None:
    path = tmp_path / "big-0"
    path.mkdir()
    raw = batch(0, [Rec(value=b"x" * 900)] * 1000)[8:]
    with (path / name(0)).open("wb") as file:
        for base in range(0, 40_000, 1000):
            file.write(base.to_bytes(8, "big") + raw)
    for options in ((), ("--format", "csv")):
        words = [sys.executable, "-m", "cordwood.cli", "cat", str(path), *options]
        pipe = subprocess.PIPE
        with subprocess.Popen(words, stdout=pipe, stderr=pipe, env=script_environment) as process:
            assert process.stdout is not None
            assert os.read(process.stdout.fileno(), 1)
            process.stdout.close()
            assert process.stderr is not None
            assert process.stderr.read() == b""
        assert process.returncode == 0
