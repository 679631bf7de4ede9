"""`cordwood append`, `truncate` and `apply-retention`."""

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

import cordwood as cw

pytest.importorskip("typer")

T = 1_700_000_000_000


def start(*arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "cordwood.cli", *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=commands.environment())


def cordwood(*arguments: object, given: bytes = b"") -> tuple[int, str, str]:
    done = commands.cordwood(*arguments, given=given)
    assert b"Traceback" not in done.stderr
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def ok(*arguments: object, given: bytes = b"") -> str:
    code, out, error = cordwood(*arguments, given=given)
    assert code == 0, error
    return out


def fields(path: Path) -> list[Any]:
    return [(r.timestamp, r.key, r.value, r.headers) for r in cw.Log(path).records()]


def files(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


@pytest.mark.parametrize("options", [(), ("--format", "jsonl"), ("--key-separator", ":")])
def test_an_empty_input_opens_and_changes_no_log(tmp_path: Path, options: tuple[str, ...]) -> None:
    # an opening would rebuild its indexes, which have another interval than the default
    path = Path(shutil.copytree(corpus.GOLDEN / "01-plain" / "orders-0", tmp_path / "orders-0"))
    before = files(path)
    code, out, error = cordwood("append", path, *options)
    assert (code, out) == (0, f"{path}: nothing to append\n")
    assert "nothing was opened or changed" in error
    assert files(path) == before


def test_an_append_says_which_files_its_opening_changed(tmp_path: Path) -> None:
    path = Path(shutil.copytree(corpus.GOLDEN / "01-plain" / "orders-0", tmp_path / "orders-0"))
    indexes = {p.name for p in path.iterdir() if p.suffix in {".index", ".timeindex"}}
    code, _, error = cordwood("append", path, given=b"one\n")
    assert code == 0
    said = {line.split("changed ")[1].split(":")[0] for line in error.splitlines() if "opening the log changed" in line}
    assert said == indexes
    assert "opening the log changed" not in cordwood("append", path, given=b"two\n")[2]


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
    code, out, error = cordwood("append", path, "--key-separator", ":", given=b"b:kept\nnothing\nc:never\n")
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
    code, out, error = cordwood("append", path, "--format", "jsonl", given=given.encode())
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
    _, lines, _ = cordwood("cat", source)
    ok("append", target, "--set", f"message.timestamp.after.max.ms={2**63 - 1}", given=lines.encode())
    assert [r.timestamp for r in cw.Log(target).records()] == stored


def test_a_timestamp_may_be_a_text_and_a_number_without_an_offset_has_a_plausible_unit(tmp_path: Path) -> None:
    path = tmp_path / "notes-0"
    texts = ['{"value": "a", "timestamp": "2024-05-01T10:00Z"}', '{"value": "b", "timestamp": "1714557600s"}']
    ok("append", path, "--format", "jsonl", given="\n".join(texts).encode())
    assert [r.timestamp for r in cw.Log(path).records()] == [1_714_557_600_000] * 2
    for given, named in (("1714557600", "a time with a unit"), ('"soon"', "expected a time in one of the forms")):
        line = f'{{"value": "c", "timestamp": {given}}}'
        code, _, error = cordwood("append", path, "--format", "jsonl", given=line.encode())
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
    code, out, error = cordwood("append", path, *limit, given="\n".join(lines).encode())
    assert (code, out) == (1, "")
    assert "line 77 is not a record" in error
    assert "max.message.bytes" in error
    assert "offsets 0 to 75" in error
    assert [r.value for r in cw.Log(path).records()] == [line.encode() for line in lines[:76]]


def test_a_line_without_a_key_for_a_compacted_log_is_named(tmp_path: Path) -> None:
    path = tmp_path / "notes-0"
    lines = b'{"value": "v", "key": "k"}\n{"value": "v"}\n'
    code, out, error = cordwood("append", path, "--format", "jsonl", "--set", "cleanup.policy=compact", given=lines)
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
    code, out, error = cordwood(*paths, given=b"one\n")
    assert code == 2, error
    assert out == ""
    assert not (tmp_path / "x-0").exists()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path) as writer:
        for number in range(3):
            writer.append_many([cw.Record(b"x" * 100, timestamp=T + 1000 * number)] * 10)
            writer.append_many([cw.Record(b"x" * 100, timestamp=T + 1000 * number)] * 10)
            writer.roll()
    return path


def test_truncate_without_yes_prints_the_plan_and_writes_nothing(log: Path) -> None:
    before = files(log)
    text = ok("truncate", log, "--to", 25)
    assert "would remove" in text
    assert "offset 20 to 60" in text
    assert "--yes" in text
    document = json.loads(ok("truncate", log, "--to", 25, "--json"))
    assert (document["first_offset"], document["segments"], document["dry_run"]) == (20, [40, 60], True)
    sizes = {s.base_offset: s.size for s in cw.Log(log).segments}
    assert document["bytes"] == sizes[20] + sizes[40]
    assert json.loads(ok("truncate", log, "--to", 30, "--json"))["bytes"] == sizes[20] // 2 + sizes[40]
    assert "nothing to truncate" in ok("truncate", log, "--to", 60)
    assert files(log) == before
    for missing in (("truncate", log.with_name("no-0"), "--to", 5), ("apply-retention", log.with_name("no-0"))):
        for more in ((), ("--yes",)):
            assert cordwood(*missing, *more)[0] == 2
    assert not log.with_name("no-0").exists()


def test_truncate_with_yes_truncates(log: Path) -> None:
    text = ok("truncate", log, "--to", 25, "--yes")
    assert "removed" in text
    found = cw.Log(log)
    # the batch that contains 25 is removed as a whole
    assert found.log_end_offset == 20
    assert "the log ends at 20" in text
    assert [r.offset for r in found.records()] == list(range(20))


def test_truncate_below_the_log_start_leaves_an_empty_log(log: Path) -> None:
    with cw.LogWriter(log) as writer:
        writer.delete_before(25)
    document = json.loads(ok("truncate", log, "--to", 22, "--json"))
    assert (document["first_offset"], document["segments"]) == (25, [20, 40, 60])
    document = json.loads(ok("truncate", log, "--to", 22, "--json", "--yes"))
    assert (document["log_end_offset"], document["truncated"]) == (22, True)
    found = cw.Log(log)
    assert (found.log_start_offset, found.log_end_offset, list(found.records())) == (22, 22, [])


def test_apply_retention_prints_the_plan_and_with_yes_applies_it(log: Path) -> None:
    settings = ("--set", "retention.ms=1000", "--now", str(T + 2500))
    before = files(log)
    text = ok("apply-retention", log, *settings)
    assert "would be deleted" in text
    assert "starts at 40" in text
    document = json.loads(ok("apply-retention", log, *settings, "--json"))
    assert (document["segments"], document["log_start_offset"], document["dry_run"]) == ([0, 20], 40, True)
    assert files(log) == before
    done = json.loads(ok("apply-retention", log, *settings, "--json", "--yes"))
    assert done == {**document, "dry_run": False}
    assert [s.base_offset for s in cw.Log(log).segments] == [40, 60]
    assert "no segment" in ok("apply-retention", log, *settings)


def test_apply_retention_reads_a_brokers_properties(log: Path) -> None:
    properties = log.with_name("server.properties")
    properties.write_text("log.retention.hours=1\nnode.id=1\nlog.retention.bytes=-1\n")
    arguments = ("apply-retention", log, "--properties", properties, "--now", str(T + 2500), "--json")
    assert json.loads(ok(*arguments))["segments"] == []
    assert json.loads(ok(*arguments, "--set", "retention.ms=1000"))["segments"] == [0, 20]


def test_a_log_that_has_a_writer_is_refused(log: Path) -> None:
    with cw.LogWriter(log):
        for command in (
            ("append", log),
            ("truncate", log, "--to", "5"),
            ("truncate", log, "--to", "5", "--yes"),
            ("apply-retention", log),
            ("apply-retention", log, "--yes"),
        ):
            code, out, error = cordwood(*command, given=b"x\n")
            assert (code, out) == (1, "")
            assert "locked" in error
    ok("truncate", log, "--to", "5")
    ok("apply-retention", log)


@pytest.mark.parametrize("arguments", [(), ("--format", "lines")], ids=["detected", "given"])
def test_append_refuses_a_log_that_has_a_writer_before_the_first_line(log: Path, arguments: tuple[str, ...]) -> None:
    with cw.LogWriter(log), start("append", log, *arguments) as process:
        try:
            # standard input stays open
            assert process.wait(60) == 1
        finally:
            process.kill()
        assert b"locked" in (process.stderr or io.BytesIO()).read()


@pytest.mark.parametrize("command", [("truncate", "--to", "5"), ("apply-retention",)], ids=lambda command: command[0])
def test_a_dry_run_refuses_what_the_real_one_refuses(tmp_path: Path, command: tuple[str, ...]) -> None:
    source = corpus.partition("01-plain")
    path = tmp_path / source.name
    shutil.copytree(source.path, path)
    first = min(path.glob("*.log"))
    first.write_bytes(bytes([*(data := first.read_bytes())[:70], data[70] ^ 1, *data[71:]]))
    before = files(path)
    found = cordwood(command[0], path, *command[1:])
    assert files(path) == before
    assert found == cordwood(command[0], path, *command[1:], "--yes")
    code, out, error = found
    assert (code, out) == (1, "")
    assert "damaged at position 0" in error


def test_a_log_with_producers_is_recovered_and_truncated(tmp_path: Path) -> None:
    source = corpus.partition("10-idempotent")
    path = tmp_path / source.name
    shutil.copytree(source.path, path)
    last = max(path.glob("*.log"))
    last.write_bytes(last.read_bytes()[:-1])
    code, out, _ = cordwood("recover", path)
    assert code == 0
    assert last.name in out
    assert "after recovery the log starts at offset 0 and ends at offset 885" in " ".join(out.split())
    assert cordwood("recover", path, "--yes")[0] == 0
    # the base offset of a batch
    assert cordwood("truncate", path, "--to", "499", "--yes")[0] == 0
    log = cw.Log(path)
    assert log.log_end_offset == 499
    assert cordwood("verify", path)[0] == 0


def test_recover_says_which_small_files_it_writes_again(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path) as writer:
        writer.append(b"x")
    (path / ".cordwood.durable").write_bytes(b"x")
    before = files(path)
    code, out, _ = cordwood("recover", path)
    assert code == 0
    assert "recovery would change these files" in out
    assert ".cordwood.durable" in out
    assert "add --yes" in out
    assert files(path) == before
    document = json.loads(cordwood("recover", path, "--json")[1])
    assert (document["is_clean"], document["rewritten_files"]) == (True, [str(path / ".cordwood.durable")])
    assert cordwood("recover", path, "--yes")[0] == 0
    assert files(path) != before
    assert "nothing to recover" in cordwood("recover", path)[1]


def test_append_recognises_output_of_cat(tmp_path: Path) -> None:
    source = corpus.partition("01-small").path
    lines = ok("cat", source).encode()
    code, out, error = cordwood("append", tmp_path / "copy-0", given=lines)
    assert (code, out) == (0, f"{tmp_path / 'copy-0'}: appended 370 records, offsets 0 to 369\n")
    assert "--format jsonl" in error
    assert fields(tmp_path / "copy-0") == fields(source)
    code, out, error = cordwood("append", tmp_path / "texts-0", "--format", "lines", given=lines)
    assert (code, error) == (0, "")
    assert b"".join((r.value or b"") + b"\n" for r in cw.Log(tmp_path / "texts-0").records()) == lines


@pytest.mark.parametrize(
    ("line", "value"),
    [('{"value": "v"}', b"v"), ('{"key": "k", "value": null}', None), ('{"value": {"base64": "/w=="}}', b"\xff")],
)
def test_append_requires_a_format_for_ambiguous_json(tmp_path: Path, line: str, value: bytes | None) -> None:
    """The line may be a record or a value: nothing is appended without an explicit format."""
    code, out, error = cordwood("append", tmp_path / "notes-0", given=line.encode())
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
    code, out, error = cordwood("append", path, given=given)
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
    _, lines, _ = cordwood("cat", damaged, "--on-damage", "report")
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
    code, _, error = cordwood("append", tmp_path / "notes-0", given=given)
    assert (code, error) == (0, "")
    assert [r.value for r in cw.Log(tmp_path / "notes-0").records()] == [given[:-1]]


def test_help_names_the_commands_that_write() -> None:
    text = ok("--help")
    for command in ("append", "truncate", "apply-retention"):
        assert command in text
        assert "cordwood " + command in ok(command, "--help")
