"""Which records `cordwood cat` writes: its filters, the last records, and several partitions."""

from __future__ import annotations

import io
import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import corpus
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from batches import Rec, batch, write_big_partition, write_partition
from core.test_damaged import BROKEN, Damage
from scripts import Command

import cordwood as cw
from cli.test_words import on_a_terminal
from cordwood._core import _scan_logs

PLAIN = corpus.partition("01-plain").path
DATA = corpus.GOLDEN / "16-data-dir"
CASES = ("01-plain", "07-edge-values", "11-transactions", "12-compacted", "08-late-lz4", "17-v1-gzip", "15-empty")

FILTERS: list[dict[str, Any]] = [
    {},
    {"key": b"k15"},
    {"key": b""},
    {"key_prefix": b"k1"},
    {"key_prefix": b""},
    {"grep": r"(?i)FJORD.*grove"},
    {"grep": r"^\{"},
    {"grep": r"\d{6}", "key_prefix": b"k"},
    {"grep": ""},
    {"key": b"absent"},
    {"key": [b"k15", b"absent", b"k3"]},
    {"key": []},
    {"key_prefix": ["k1", b"k2"], "key": (b"k15", b"k29", b"k3")},
    {"grep": [r"(?i)FJORD.*grove", r"\d{6}"]},
    {"grep": [r"jetty", r"(?x) fjord  # a comment"]},
]


def naive(records: list[corpus.Expected], given: dict[str, Any]) -> list[int]:
    """The offsets of the records that match, in order."""

    def wanted(name: str) -> list[bytes]:
        value = given[name]
        values = value if isinstance(value, list | tuple) else [value]
        return [one.encode() if isinstance(one, str) else one for one in values]

    def matches(record: corpus.Expected) -> bool:
        key, value = record.key, record.value
        return (
            ("key" not in given or key in wanted("key"))
            and (
                "key_prefix" not in given
                or (key is not None and any(key.startswith(prefix) for prefix in wanted("key_prefix")))
            )
            and (
                "grep" not in given
                or (value is not None and any(re.search(pattern, value) is not None for pattern in wanted("grep")))
            )
        )

    return [record.offset for record in records if matches(record)]


def offsets_of(scan: cw.Scan) -> tuple[list[int], list[int]]:
    """The offsets of the rows as text and as Arrow."""
    text = b"".join(block for block, _ in scan._lines("jsonl"))  # noqa: SLF001  (it is what is tested)
    return [json.loads(line)["offset"] for line in text.splitlines()], scan.to_arrow()["offset"].to_pylist()


@pytest.mark.parametrize("given", FILTERS, ids=repr)
@pytest.mark.parametrize("case", CASES)
def test_filters_limits_and_last_records_are_those_of_a_naive_twin(case: str, given: dict[str, Any]) -> None:
    part = corpus.partition(case)
    log = cw.Log(part.path, **part.overrides)
    wanted = naive(corpus.visible(part), given)
    count = len(wanted)
    for last in (None, 0, 1, 2, count - 1, count, count + 1, 10**12):
        if last is not None and last < 0:
            continue
        chosen = wanted if last is None else wanted[max(0, count - last) :]
        for limit in (None, 3):
            scan = _scan_logs([log], last=last, limit=limit, columns=["offset"], **given)
            assert offsets_of(scan) == (chosen[:limit], chosen[:limit]), (last, limit)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("case", CASES)
def test_last_records_of_a_range(case: str, isolation: Any) -> None:
    part = corpus.partition(case)
    log = cw.Log(part.path, **part.overrides)
    random = Random(5)
    start, end = log.log_start_offset, log.log_end_offset
    times = [record.timestamp for record in corpus.visible(part) if record.timestamp >= 0] or [0]
    for _ in range(4):
        low, high = sorted(random.randint(start, end) for _ in range(2))
        first, until = sorted(random.choice(times) for _ in range(2))
        for ranges in ({"start_offset": low, "end_offset": high}, {"start_time": first, "end_time": until}):
            whole = log.scan(columns=["offset"], isolation_level=isolation, **ranges)  # type: ignore[arg-type]
            wanted = whole.to_arrow()["offset"].to_pylist()
            for last in (1, 300):
                scan = _scan_logs([log], last=last, columns=["offset"], isolation_level=isolation, **ranges)
                assert offsets_of(scan) == (wanted[-last:], wanted[-last:])


@pytest.mark.parametrize("damage", BROKEN, ids=str)
def test_last_records_of_damaged_logs(damage: Damage) -> None:
    log = cw.Log(damage.path)
    wanted = log.scan(columns=["offset"], on_damage="skip").to_arrow()["offset"].to_pylist()
    for last in (1, 10, len(wanted), len(wanted) + 1):
        scan = _scan_logs([log], last=last, columns=["offset"], on_damage="skip")
        assert offsets_of(scan) == (wanted[-last:], wanted[-last:])


def read_by_system_calls() -> int:
    return int(re.findall(r"rchar: (\d+)", Path("/proc/self/io").read_text())[0])


def test_the_last_records_are_read_from_the_end(tmp_path: Path) -> None:
    path = tmp_path / "big-0"
    path.mkdir()
    with cw.LogWriter(path, flush="none") as writer:
        for start in range(0, 40_000, 20):
            writer.append_many([cw.Record(value=b"%d " % number + b"x" * 900) for number in range(start, start + 20)])
    for count, limit in ((5, 1 << 20), (2000, 16 << 20)):
        log = cw.Log(path, io="pread")
        assert log.size > 34 << 20
        before = read_by_system_calls()
        scan = _scan_logs([log], last=count, columns=["offset"])
        assert offsets_of(scan)[0] == list(range(40_000 - count, 40_000))
        assert read_by_system_calls() - before < limit


def test_last_records_do_not_depend_on_the_index(copied: Any) -> None:
    path = copied(PLAIN)
    wanted = [record.offset for record in cw.Log(path).records()][-7:]
    for index in path.glob("*.index"):
        index.write_bytes(bytes(reversed(index.read_bytes())))
    assert offsets_of(_scan_logs([cw.Log(path)], last=7))[0] == wanted
    for index in path.glob("*.index"):
        index.unlink()
    assert offsets_of(_scan_logs([cw.Log(path)], last=7))[0] == wanted


def test_filtered_records_of_open_transactions_are_not_named(command: Command) -> None:
    path = corpus.partition("11-transactions").path
    assert "--isolation read_committed" in command("cat", path)[2]
    for form in ("jsonl", "arrow"):
        scan = _scan_logs([cw.Log(path)], key=b"absent")
        assert offsets_of(scan) == ([], []), form
        assert scan.first_uncommitted is None


def test_options_are_those_of_the_scan(command: Command) -> None:
    code, out, _ = command("cat", PLAIN, "--key", "k15", "--columns", "offset,key", "--limit", "2")
    assert code == 0
    assert [json.loads(line)["key"] for line in out.splitlines()] == ["k15", "k15"]
    code, out, _ = command("cat", PLAIN, "--key-prefix", "k1", "--grep", "jetty", "--last", "3", "--columns", "offset")
    wanted = naive(corpus.visible(corpus.partition("01-plain")), {"key_prefix": b"k1", "grep": "jetty"})
    assert [json.loads(line)["offset"] for line in out.splitlines()] == wanted[-3:]


def test_keys_that_are_not_utf8(command: Command, tmp_path: Path) -> None:
    path = write_partition(tmp_path / "bytes-0", [(0, [batch(0, [Rec(key=b"\xff\x01"), Rec(key=b"\xfe")])])])
    assert command("cat", path, "--key", "\udcff\x01", "--columns", "offset")[1] == '{"offset": 0}\n'
    assert command("cat", path, "--key-prefix", "\udcfe", "--columns", "offset")[1] == '{"offset": 1}\n'


def rows(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_rows_of_a_data_directory_begin_with_topic_and_partition(command: Command, tmp_path: Path) -> None:
    code, out, _ = command("cat", DATA)
    assert code == 0
    table = cw.LogDir(DATA).scan(columns=["topic", "partition", "offset"]).to_arrow()
    found = rows(out)
    assert list(found[0])[:3] == ["topic", "partition", "offset"]
    assert [{name: row[name] for name in table.schema.names} for row in found] == table.to_pylist()
    code, out, _ = command("cat", DATA, "--format", "csv")
    assert out.startswith('"topic","partition","offset"')
    assert out.count('"topic","partition"') == 1
    assert command("cat", DATA, "-o", tmp_path / "all.parquet")[0] == 0
    written = pyarrow.parquet.read_table(tmp_path / "all.parquet")
    assert written.schema.names[:3] == ["topic", "partition", "offset"]
    assert written["offset"].to_pylist() == table["offset"].to_pylist()
    assert command("cat", DATA, "--grep", "a", "-o", tmp_path / "some.arrow")[0] == 0
    with pa.ipc.open_file(tmp_path / "some.arrow") as file:
        assert file.read_all().num_rows == len(rows(command("cat", DATA, "--grep", "a")[1]))


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--topic", "cities"], [("cities", 0), ("cities", 1)]),
        (["--topic", "c*s", "--partition", "1"], [("cities", 1)]),
        (
            ["--topic", "riv*", "--topic", "cities", "--partition", "0"],
            [("cities", 0), ("rivers.compact", 0)],
        ),
        (["--partition", "1", "--partition", "7"], [("cities", 1)]),
    ],
)
def test_topics_and_partitions_are_selected(
    command: Command, arguments: list[str], wanted: list[tuple[str, int]]
) -> None:
    code, out, _ = command("cat", DATA, *arguments, "--last", "1")
    assert code == 0
    assert [(row["topic"], row["partition"]) for row in rows(out)] == wanted


def test_the_last_records_of_an_empty_log_are_none_that_matches(command: Command, tmp_path: Path) -> None:
    cw.LogWriter(tmp_path / "empty-0").close()
    code, out, error = command("cat", tmp_path / "empty-0", "--last", "5")
    assert (code, out, "no record matches" in error) == (1, "", True)
    # without a selection, and with one of no record
    for words in ((), ("--last", "0")):
        assert command("cat", tmp_path / "empty-0", *words)[:2] == (0, "")


def test_a_command_of_whole_partitions_takes_no_segment_files(command: Command) -> None:
    for name, takes in (("cat", True), ("producers", False)):
        assert (".log" in command(name, "--help")[1].partition("Options")[0]) == takes
    code, _, error = command("producers", next(PLAIN.glob("*.log")))
    assert (code, "not .log files" in error) == (2, True)


def test_several_paths_are_read_in_their_order_and_once(command: Command) -> None:
    paths = [DATA / "cities-1", DATA / "cities-0", f"{DATA}/cities-1/"]
    code, out, _ = command("cat", *paths, "--last", "1", "--columns", "topic,partition")
    assert (code, rows(out)) == (0, [{"topic": "cities", "partition": 1}, {"topic": "cities", "partition": 0}])
    assert next(iter(rows(command("cat", DATA / "cities-0", "--limit", "1")[1])[0])) == "offset"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--topic", "citie"), 1, "did you mean cities?"),
        (("--topic", "cities", "--topic", "none*"), 1, "--topic: no topic matches 'none*'; there are __cluster"),
        (("--partition", "9"), 1, "no partition with the number 9"),
        (("--grep", "a("), 2, "--grep: expected a regular expression"),
        (("--tz", "Mars/Base"), 2, "--tz: expected the name of a time zone"),
        (("--tz", "../../etc/passwd"), 2, "--tz: expected the name of a time zone"),
        (("--last", "-1"), 2, "--last"),
        (("--raw", "--columns", "key"), 2, "--raw writes values alone"),
        (("--raw", "--format", "csv"), 2, "--raw writes values alone"),
        (("--raw", "-o", "x.parquet"), 2, "--raw writes values alone, and x.parquet has the suffix of parquet"),
        (("--raw", "--on-damage", "report"), 2, "--raw has no column for damage"),
        (("-f", "--format", "parquet"), 2, "--follow writes jsonl, csv and --raw, not parquet"),
        (("-f", "-o", "out.jsonl"), 2, "--follow writes to standard output or to a pipe"),
        (("-f", "--until", "now"), 2, "--follow has no end"),
        (("--since", "2024-05-01T10:00"), 2, "a time with a time zone: add Z for UTC"),
    ],
)
def test_wrong_usage(command: Command, arguments: tuple[str, ...], code: int, said: str) -> None:
    found, out, error = command("cat", DATA, *arguments)
    assert (found, out) == (code, "")
    assert said in error


ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Africa/Monrovia", "UTC")


@pytest.mark.parametrize("name", ZONES)
def test_times_in_csv_are_those_of_zoneinfo(command: Command, tmp_path: Path, name: str) -> None:
    random = Random(3)
    times = [0, 1_700_000_000_123, 253_402_200_000_000, *(random.randrange(4_000_000_000_000) for _ in range(500))]
    records = [Rec(timestamp=time) for time in times]
    path = write_partition(tmp_path / "times-0", [(0, [batch(0, records, base_timestamp=0)])])
    out = command("cat", path, "--columns", "timestamp", "--format", "csv", "--tz", name)[1]
    epoch = datetime.fromisoformat("1970-01-01T00:00:00+00:00")

    def shown(time: int) -> str:
        local = (epoch + timedelta(milliseconds=time)).astimezone(ZoneInfo(name))
        return local.isoformat(" ", "milliseconds")

    assert out.splitlines()[1:] == [shown(time) for time in times]
    assert command("cat", path, "--columns", "timestamp", "--tz", name)[1].startswith('{"timestamp": 0}\n')


def test_times_without_a_zone_are_in_that_of_the_option(command: Command) -> None:
    def first(*arguments: str) -> Any:
        return rows(command("cat", PLAIN, *arguments, "--limit", "1")[1])[0]["offset"]

    wanted = first("--since", "2023-11-14T22:13:21Z")
    assert wanted > 0
    assert first("--since", "2023-11-14 23:13:21", "--tz", "Europe/Berlin") == wanted
    assert first("--since", "2023-11-14T22:13:21Z", "--tz", "Asia/Kathmandu") == wanted
    until = command("cat", PLAIN, "--until", "2023-11-15", "--tz", "Etc/GMT+12", "--columns", "offset")[1]
    assert len(until.splitlines()) == 1500


def test_raw_values_are_written_as_they_are(command: Command, tmp_path: Path) -> None:
    values = [b"one", None, b"", b"two\nlines", b"\xff\x00\x1b[2J", "é".encode()]
    path = write_partition(tmp_path / "raw-0", [(0, [batch(0, [Rec(value=value) for value in values])])])
    target = tmp_path / "out"
    assert command("cat", path, "--raw", "-o", target)[0] == 0
    assert target.read_bytes() == b"".join((value or b"") + b"\n" for value in values)
    assert command("cat", path, "--raw", "--grep", "(?-u)\\xff|one", "--limit", "1")[1] == "one\n"


def test_raw_values_on_a_terminal_have_no_control_characters(tmp_path: Path) -> None:
    values = [b'say "hi"', b"\x1b[2J\xc2\x9b", b"\xff"]
    path = write_partition(tmp_path / "raw-0", [(0, [batch(0, [Rec(value=value) for value in values])])])
    assert on_a_terminal("cat", path, "--raw") == 'say "hi"\n\\x1b[2J\\x9b\nbase64:/w==\n'


def test_a_search_without_a_match_reports_where_it_is(tmp_path: Path) -> None:
    """So that the progress is shown, and Ctrl-C is answered."""
    write_big_partition(tmp_path / "big-0", 50 << 20)
    blocks = list(_scan_logs([tmp_path / "big-0"], grep="absent")._lines("jsonl"))  # noqa: SLF001
    assert blocks == [(b"", 0)] * len(blocks)
    assert len(blocks) >= 3


def test_two_directories_of_a_partition_are_named(command: Command, tmp_path: Path) -> None:
    names = ["data/a-0", "data/a-0.5f1e0f5c8d6b4a0f9d1b2c3d4e5f6071-future", "other/a-0"]
    paths = [write_partition(tmp_path / name, [(0, [batch(0, [Rec()])])]) for name in names]
    folders = f"{tmp_path / 'data'} and in {tmp_path / 'other'}"
    assert f"a-0 is in {folders}: both are read" in command("count", paths[0], paths[2])[2]
    assert f"a-0 is in {paths[0]} and in {paths[1]}: both are read" in command("count", *paths[:2])[2]


def test_the_scan_of_several_logs_is_not_pickled() -> None:
    import pickle

    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(_scan_logs([cw.Log(PLAIN)]))
    assert "1 logs" in repr(_scan_logs([cw.Log(PLAIN)]))
    assert io.BytesIO(b"".join(text for text, _ in _scan_logs([PLAIN], limit=1)._lines("jsonl"))).read()  # noqa: SLF001
