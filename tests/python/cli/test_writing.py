"""`cordwood append`."""

from __future__ import annotations

import io
import json
import random
import shutil
import signal
import string
import subprocess
import sys
from pathlib import Path
from typing import Any

import commands
import corpus
import pytest
from commands import files, ok, outputs

import cordwood as cw

pytest.importorskip("typer")

T = 1_700_000_000_000


def start(*arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "cordwood.cli", *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=commands.environment())


def fields(path: Path) -> list[Any]:
    return [(r.timestamp, r.key, r.value, r.headers) for r in cw.Log(path).records()]


@pytest.mark.parametrize("options", [(), ("--format", "jsonl"), ("--key-separator", ":")])
def test_an_empty_input_opens_and_changes_no_log(tmp_path: Path, options: tuple[str, ...]) -> None:
    # an opening would rebuild its indexes, which have another interval than the default
    path = Path(shutil.copytree(corpus.GOLDEN / "01-plain" / "orders-0", tmp_path / "orders-0"))
    before = files(path)
    code, out, error = outputs("append", path, *options)
    assert (code, out) == (0, f"{path}: nothing to append\n")
    assert "nothing was opened or changed" in error
    assert files(path) == before


def test_an_append_says_once_what_its_opening_changed(tmp_path: Path) -> None:
    path = Path(shutil.copytree(corpus.GOLDEN / "01-plain" / "orders-0", tmp_path / "orders-0"))
    torn = max(path.glob("*.log"))
    torn.write_bytes(torn.read_bytes()[:-10])
    # not that of the indexes
    interval = ("--set", "index.interval.bytes=4096")
    plan = cw.LogWriter.plan_recovery(path, config=cw.LogConfig(index_interval_bytes=4096))
    changed = len(plan.cuts) + len(plan.rebuilt_indexes)
    assert (len(plan.cuts), changed) == (1, 9)
    code, _, error = outputs("append", path, *interval, given=b"one\n")
    assert code == 0
    warnings = [line for line in error.splitlines() if line.startswith("warning: ")]
    assert sum(line.startswith(f"warning: {torn}: cut 3683 bytes") for line in warnings) == 1
    assert [line.split(": ")[1] for line in error.splitlines() if line not in warnings] == [
        "opening the log changed 00000000000000000000.index and 7 other files",
        "the indexes were rebuilt with index.interval.bytes 4096, as given",
    ]
    assert outputs("append", path, given=b"two\n")[2] == ""


def test_lines_are_values(tmp_path: Path) -> None:
    path = tmp_path / "notes-0"
    text = ok("append", path, given=b"one\n\n\xff\xfe\r\nlast without an end")
    assert [r.value for r in cw.Log(path).records()] == [b"one", b"", b"\xff\xfe\r", b"last without an end"]
    assert text == f"{path}: appended 4 records, offsets 0 to 3\n"
    document = json.loads(ok("append", path, "--json", given=b"more\n"))
    assert document == {"path": str(path), "first_offset": 4, "last_offset": 4, "count": 1}


def test_the_key_is_before_the_separator(tmp_path: Path) -> None:
    path = tmp_path / "notes-0"
    ok("append", path, "--key-separator", ": ", given=b"a: one: two\n: empty\n")
    assert [(r.key, r.value) for r in cw.Log(path).records()] == [(b"a", b"one: two"), (b"", b"empty")]
    code, out, error = outputs("append", path, "--key-separator", ":", given=b"b:kept\nnothing\nc:never\n")
    assert (code, out) == (1, "")
    assert "line 2" in error
    assert "offsets 2 to 2" in error
    assert [r.value for r in cw.Log(path).records()][2:] == [b"kept"]


@pytest.mark.parametrize("name", ["01-plain", "07-edge-values", "17-v0-none"])
def test_output_of_cat_can_be_appended(tmp_path: Path, name: str) -> None:
    source = corpus.partition(name).path
    path = tmp_path / "copy-0"
    lines = ok("cat", source)
    settings = ("--set", "compression.type=zstd", "--set", "max.message.bytes=2097152")
    ok("append", path, "--format", "jsonl", "--flush", "none", *settings, given=lines.encode())
    assert fields(path) == fields(source)
    codecs = set(cw.Log(path).batches().to_arrow()["codec"].to_pylist())
    assert codecs == {"zstd"}


def test_a_line_of_json_needs_only_a_value(tmp_path: Path) -> None:
    path = tmp_path / "notes-0"
    given = [
        {"value": "text"},
        {
            "value": None,
            "key": {"base64": "/w=="},
            "timestamp": None,
            "headers": [["h", {"base64": "AQ=="}], ["i", None]],
        },
        {"value": "é", "timestamp": T},
    ]
    ok("append", path, "--format", "jsonl", given="\n".join(map(json.dumps, given)).encode())
    found = fields(path)
    assert found[0][0] > T
    assert found[1:] == [(-1, b"\xff", None, [("h", b"\x01"), ("i", None)]), (T, None, "é".encode(), [])]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("{", "not JSON"),
        ("5", "not a JSON object"),
        ('{"key": "k"}', "value"),
        ('{"value": "v", "colour": 1}', "colour"),
        ('{"value": 5}', "value: expected text"),
        ('{"value": {"base64": "!"}}', "base64"),
        ('{"value": "v", "headers": {"a": "b"}}', "headers"),
        ('{"value": "v", "headers": [["a"]]}', "headers"),
        ('{"value": "v", "headers": [[null, "a"]]}', "name"),
        ('{"value": "v", "timestamp": "soon"}', "timestamp"),
        ('{"value": "v", "headers": false}', "headers"),
        ('{"value": "v", "headers": "ab"}', "headers"),
        ('{"value": "v", "headers": [["a", 5]]}', "a header: expected text"),
        ('{"value": "v", "timestamp": true}', "timestamp: expected a number"),
        ('{"value": "v", "timestamp": 1.5}', "timestamp: expected a number"),
        ('{"value": "v", "timestamp": -5}', "timestamp: expected milliseconds from 0 up"),
        ('{"value": "v", "timestamp": 99999999999999999999}', "timestamp: expected milliseconds within 64 bits"),
        ('{"value": "v", "timestamp": 9999999999999}', "timestamp: expected a time no more than"),
        ('{"value": {"base64": "é"}}', "value: expected base64"),
        ('{"value": ' + "[" * 100_000, "nested too deeply"),
        ('{"value": "\\ud800"}', "line 2"),
        ("", "line 2"),
    ],
)
def test_a_line_that_is_not_a_record_is_named(tmp_path: Path, line: str, named: str) -> None:
    path = tmp_path / "notes-0"
    given = f'{{"value": "kept"}}\n{line}\n{{"value": "never"}}\n'
    code, out, error = outputs("append", path, "--format", "jsonl", given=given.encode())
    assert (code, out) == (1, "")
    assert "line 2" in error
    assert named in error
    assert [r.value for r in cw.Log(path).records()] == [b"kept"]


def test_stored_timestamps_in_other_units_are_appended_as_they_are(tmp_path: Path) -> None:
    source, target = tmp_path / "sensors-0", tmp_path / "copy-0"
    stored = [1_700_000_012, 1_700_000_012_345_678, 1_700_000_012_345, -1]
    settings = cw.LogConfig(message_timestamp_after_max_ms=2**63 - 1)
    with cw.LogWriter(source, config=settings) as writer:
        writer.append_many([cw.Record(b"v", timestamp=f"{t}ms" if t >= 0 else t) for t in stored])
    _, lines, _ = outputs("cat", source)
    ok("append", target, "--set", f"message.timestamp.after.max.ms={2**63 - 1}", given=lines.encode())
    assert [r.timestamp for r in cw.Log(target).records()] == stored


def test_a_timestamp_may_be_a_text_and_a_number_without_an_offset_has_a_plausible_unit(tmp_path: Path) -> None:
    path = tmp_path / "notes-0"
    texts = ['{"value": "a", "timestamp": "2024-05-01T10:00Z"}', '{"value": "b", "timestamp": "1714557600s"}']
    ok("append", path, "--format", "jsonl", given="\n".join(texts).encode())
    assert [r.timestamp for r in cw.Log(path).records()] == [1_714_557_600_000] * 2
    for given, named in (("1714557600", "a time with a unit"), ('"soon"', "expected a time in one of the forms")):
        line = f'{{"value": "c", "timestamp": {given}}}'
        code, _, error = outputs("append", path, "--format", "jsonl", given=line.encode())
        assert code == 1
        assert named in error


@pytest.mark.parametrize("codec", ["producer", "zstd"])
def test_a_line_that_the_log_refuses_is_named_and_those_before_it_are_appended(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "notes-0"
    # random text that no codec compresses below the limit
    large = "".join(random.Random(7).choices(string.printable[:90], k=5000))
    lines = [f"line {number}" for number in range(1, 101)]
    lines[76] = large
    limit = ("--set", "max.message.bytes=1000", "--set", f"compression.type={codec}")
    code, out, error = outputs("append", path, *limit, given="\n".join(lines).encode())
    assert (code, out) == (1, "")
    assert "line 77 is not a record" in error
    assert "max.message.bytes" in error
    assert "offsets 0 to 75" in error
    assert [r.value for r in cw.Log(path).records()] == [line.encode() for line in lines[:76]]


def test_a_line_without_a_key_for_a_compacted_log_is_named(tmp_path: Path) -> None:
    path = tmp_path / "notes-0"
    lines = b'{"value": "v", "key": "k"}\n{"value": "v"}\n'
    code, out, error = outputs("append", path, "--format", "jsonl", "--set", "cleanup.policy=compact", given=lines)
    assert (code, out) == (1, "")
    assert "line 2 is not a record: key: expected a key" in error
    assert cw.Log(path).log_end_offset == 1


def test_without_standard_input_nothing_is_created(tmp_path: Path) -> None:
    path = tmp_path / "notes-0"
    command = 'exec "$0" -m cordwood.cli append "$1" <&-'
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, str(path)],
        env=commands.environment(),
        stderr=subprocess.PIPE,
        check=False,
    )
    assert done.returncode == 2
    assert b"standard input is closed" in done.stderr
    assert not path.exists()


def test_lines_are_appended_as_they_arrive(tmp_path: Path) -> None:
    """Lines are appended while the pipe is still open; Ctrl-C closes the log cleanly."""
    path = tmp_path / "notes-0"
    with start("append", path) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"first\nhalf a li")
        process.stdin.flush()
        while True:
            try:
                if cw.Log(path).log_end_offset == 1:
                    break
            except (cw.LogNotFoundError, cw.LogChangedError):
                pass
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert b"offsets 0 to 0" in process.stderr.read()
    assert process.returncode == 130
    assert [r.value for r in cw.Log(path).records()] == [b"first"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("append",),
        ("append", "x-0", "--flush", "often"),
        ("append", "x-0", "--format", "xml"),
        ("append", "x-0", "--set", "segment.bytes"),
        ("append", "x-0", "--set", "segment.byts=1"),
        ("append", "x-0", "--set", "segment.bytes=-1"),
        ("append", "x-0", "--key-separator", ""),
        ("append", "x-0", "--key-separator", ":", "--format", "jsonl"),
        ("truncate", "x-0"),
        ("truncate", "x-0", "--to", "-1"),
        ("truncate", "x-0", "--to", str(2**63)),
        ("truncate", "x-0", "--to", "1.5"),
        ("append", "x-0", "--topic-id", "wrong"),
        ("append", "x-0", "--leader-epoch", str(2**31)),
        ("append", "x-0", "--set", "segment.index.bytes=5"),
        ("apply-retention", "x-0", "--now", "soon"),
        ("apply-retention", "x-0", "--set", "colour=red"),
    ],
    ids=str,
)
def test_wrong_usage_is_exit_code_2_and_creates_nothing(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    paths = [tmp_path / a if a == "x-0" else a for a in arguments]
    code, out, error = outputs(*paths, given=b"one\n")
    assert code == 2, error
    assert out == ""
    assert not (tmp_path / "x-0").exists()


@pytest.mark.parametrize("arguments", [(), ("--format", "lines")], ids=["detected", "given"])
def test_append_refuses_a_log_that_has_a_writer_before_the_first_line(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path), start("append", path, *arguments) as process:
        try:
            # standard input stays open
            assert process.wait(60) == 1
        finally:
            process.kill()
        assert b"locked" in (process.stderr or io.BytesIO()).read()


def test_append_recognises_output_of_cat(tmp_path: Path) -> None:
    source = corpus.partition("01-small").path
    lines = ok("cat", source).encode()
    code, out, error = outputs("append", tmp_path / "copy-0", given=lines)
    assert (code, out) == (0, f"{tmp_path / 'copy-0'}: appended 370 records, offsets 0 to 369\n")
    assert "--format jsonl" in error
    assert fields(tmp_path / "copy-0") == fields(source)
    code, out, error = outputs("append", tmp_path / "texts-0", "--format", "lines", given=lines)
    assert (code, error) == (0, "")
    assert b"".join((r.value or b"") + b"\n" for r in cw.Log(tmp_path / "texts-0").records()) == lines


@pytest.mark.parametrize(
    ("line", "value"),
    [('{"value": "v"}', b"v"), ('{"key": "k", "value": null}', None), ('{"value": {"base64": "/w=="}}', b"\xff")],
)
def test_append_requires_a_format_for_ambiguous_json(tmp_path: Path, line: str, value: bytes | None) -> None:
    """The line may be a record or a value: nothing is appended without an explicit format."""
    code, out, error = outputs("append", tmp_path / "notes-0", given=line.encode())
    assert (code, out) == (2, "")
    assert "--format jsonl" in error
    assert "--format lines" in error
    assert not (tmp_path / "notes-0").exists()
    for given, wanted in (("lines", line.encode()), ("jsonl", value)):
        ok("append", tmp_path / f"{given}-0", "--format", given, given=line.encode())
        assert [r.value for r in cw.Log(tmp_path / f"{given}-0").records()] == [wanted]


RECORD_COLUMNS = ["offset", "timestamp", "timestamp_type", "key", "value", "headers"]
OTHER_COLUMNS = [
    *["topic", "partition", "leader_epoch", "producer_id", "producer_epoch", "sequence", "is_transactional"],
    *["is_control", "codec", "magic", "batch_base_offset", "position", "segment_base_offset", "key_size", "value_size"],
]


def refused(path: Path, given: bytes) -> str:
    code, out, error = outputs("append", path, given=given)
    assert (code, out) == (2, "")
    assert "--format lines" in error
    assert not path.exists()
    return error


@pytest.mark.parametrize("column", RECORD_COLUMNS + OTHER_COLUMNS)
def test_append_refuses_columns_of_cat(tmp_path: Path, column: str) -> None:
    source = corpus.partition("01-small").path
    refused(tmp_path / "copy-0", ok("cat", source, "--columns", column, "--limit", "2").encode())
    if column in OTHER_COLUMNS:
        lines = ok("cat", source, "--columns", f"offset,key,value,{column}", "--limit", "2").encode()
        assert column in refused(tmp_path / "copy-0", lines)


def test_append_refuses_rows_about_damage(tmp_path: Path) -> None:
    damaged = corpus.GOLDEN / "damaged" / "flip-record" / "tickets-0"
    _, lines, _ = outputs("cat", damaged, "--on-damage", "report")
    assert "error" in refused(tmp_path / "copy-0", lines.encode())


def test_append_refuses_an_object_with_an_invalid_value(tmp_path: Path) -> None:
    assert "value: expected text" in refused(tmp_path / "copy-0", b'{"value": 5}')


def test_the_columns_of_cat_are_those_of_a_scan() -> None:
    with pytest.raises(cw.ConfigError) as raised:
        cw.Log(corpus.partition("01-small").path).scan(columns=["nothing"])
    assert [name for name in RECORD_COLUMNS + OTHER_COLUMNS if name not in str(raised.value.expected)] == []
    text = " ".join(ok("cat", "--help").replace("│", " ").split())
    assert " ".join(RECORD_COLUMNS) in text
    assert " ".join(OTHER_COLUMNS) in text


@pytest.mark.parametrize(
    "line", ['{"id": 5}', '{"value": "v", "id": 5}', "{}", "[1]", "5", '"text"', "{", "", "text", "\xff"]
)
def test_append_appends_every_other_line_as_a_value(tmp_path: Path, line: str) -> None:
    given = line.encode("latin-1") + b"\n"
    code, _, error = outputs("append", tmp_path / "notes-0", given=given)
    assert (code, error) == (0, "")
    assert [r.value for r in cw.Log(tmp_path / "notes-0").records()] == [given[:-1]]


def test_help_names_the_commands_that_write() -> None:
    text = ok("--help")
    for command in ("append", "truncate", "apply-retention"):
        assert command in text
        assert "cordwood " + command in ok(command, "--help")
