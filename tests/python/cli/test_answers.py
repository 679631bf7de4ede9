"""Results of `find`, `ls` and other commands in special cases."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import corpus
import pytest
from scripts import Command

import cordwood as cw


@pytest.mark.parametrize("part", [p for p in corpus.partitions() if p.case == "17-v0-none"], ids=str)
def test_a_log_without_times_has_no_largest_time(command: Command, part: corpus.Partition, tmp_path: Path) -> None:
    """The file time of a copy is not the time of a record."""
    path = tmp_path / part.name
    shutil.copytree(part.path, path)
    assert {r.timestamp for r in corpus.records(part)} == {-1}
    _, out, _ = command("ls", path)
    assert not re.search(r"\d{4}-\d\d-\d\dT", out)
    document = json.loads(command("ls", path, "--json")[1])
    assert {segment["largest_timestamp"] for segment in document["segments"]} == {None}
    assert {segment.largest_record_timestamp for segment in cw.Log(path).segments} == {-1}
    assert min(segment.largest_timestamp for segment in cw.Log(path).segments) > 0


def test_retention_by_the_time_of_a_file_is_marked(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "notes-0"
    config = cw.LogConfig(segment_bytes=150)
    with cw.LogWriter(path, config=config) as writer:
        for _ in range(5):
            writer.append(b"x" * 50, timestamp=-1)
    for file in path.glob("*.log"):
        os.utime(file, (1_000_000_000, 1_000_000_000))
    code, out, _ = command("apply-retention", path, "--set", "retention.ms=1000")
    assert code == 0
    assert "2001-09-09T01:46:40.000Z (the file's)" in out


@pytest.mark.parametrize("yes", [[], ["--yes"]])
def test_apply_retention_names_the_settings_that_decide(command: Command, tmp_path: Path, yes: list[str]) -> None:
    path = Path(shutil.copytree(corpus.partition("01-plain").path, tmp_path / "orders-0"))
    for policy, decides in [
        ("compact", "cleanup.policy=compact, which deletes only segments below the log start offset"),
        ("", "cleanup.policy=none, which deletes only segments below the log start offset"),
        ("delete", "retention.ms=-1, retention.bytes=-1"),
        ("compact,delete", "retention.ms=-1, retention.bytes=-1"),
    ]:
        limits = ("--set", "retention.ms=-1") if "delete" in policy else ()
        code, out, error = command("apply-retention", path, "--set", f"cleanup.policy={policy}", *limits, *yes)
        assert (code, error) == (0, "")
        deleted, source = out.splitlines()
        assert deleted == f"{path}: no segment to delete with {decides}"
        unstated = "retention.bytes" if limits else "retention.ms, retention.bytes"
        assert source.startswith(f"settings: --set; {unstated}: Kafka's defaults, not this topic's settings")


def test_compact_says_that_nobody_stated_that_the_topic_is_compacted(command: Command, tmp_path: Path) -> None:
    path = Path(shutil.copytree(corpus.partition("12-compacted").path, tmp_path / "profiles-0"))
    unstated = "cleanup.policy=compact by this command, although nobody stated that the topic is compacted"
    code, out, _ = command("compact", path)
    assert code == 0
    assert "settings: Kafka's defaults, not this topic's settings" in out
    assert unstated in out
    assert unstated in json.loads(command("compact", path, "--json")[1])["source"]
    code, out, _ = command("compact", path, "--set", "cleanup.policy=compact")
    assert (code, unstated in out) == (0, False)


@pytest.mark.parametrize("case", ["12-compacted", "12-compacted-codecs", "12-compacted-empty", "11-transactions"])
def test_a_missing_offset_is_reported_with_the_next_record(command: Command, case: str) -> None:
    part = corpus.partition(case)
    held = sorted({r.offset for r in corpus.records(part) if r.offset >= part.log_start})
    log = cw.Log(part.path)
    end = log.log_end_offset
    missing = sorted(set(range(part.log_start, end)) - set(held))
    if case.startswith("12"):
        assert missing
    for offset in [*missing[:: max(1, len(missing) // 40)], *held[:: len(held) // 10]]:
        following = next((other for other in held if other >= offset), None)
        code, out, error = command("find", part.path, "--offset", offset)
        if following is None:
            assert (code, out) == (1, "")
            assert f"no record at or after offset {offset}" in error
            continue
        assert code == 0
        told = f"offset {offset} is missing; the next record is at offset {following}"
        assert (told in out) is (following != offset)
        assert re.search(rf"(?m)^offset +{following} *$", out)
        document = json.loads(command("find", part.path, "--offset", offset, "--json")[1])
        assert document["offset"] == following
        assert document.get("missing") == (None if following == offset else offset)
        batch = next(b for b in corpus.batches(part) if b["baseOffset"] <= following <= b["lastOffset"])
        assert (document["batch_base_offset"], document["position"]) == (batch["baseOffset"], batch["position"])


def test_ls_shows_a_partition_that_was_just_created(command: Command, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(corpus.GOLDEN / "16-data-dir", data)
    (data / "cities-2").mkdir()
    code, out, error = command("ls", data)
    assert (code, error) == (0, "")
    assert re.search(r"(?m)^cities-2 +0 B +0 B +0 +none +unchecked +no segment yet", out)
    entry = next(e for e in json.loads(command("ls", data, "--json")[1])["partitions"] if e["name"] == "cities-2")
    assert (entry["size"], entry["segments"], entry["files"], entry["modified"]) == (0, 0, 0, None)
    assert "log_end_offset" not in entry
    assert command("ls", data / "cities-2")[0] == 1
    for file in (data / "cities-0").glob("*.log"):
        file.unlink()
    code, out, error = command("ls", data)
    assert code == 1
    assert "1 of " in error
    assert "cities-0" in error
    assert "expected a segment" in out


PLAIN = corpus.partition("01-plain").path
NUMBERS = [str(2**63 - 1), str(2**63), "9999999999999999999", str(2**70), "9" * 5000]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number[:20] + "…" * (len(number) > 20))
@pytest.mark.parametrize(
    "arguments",
    [
        ("cat", PLAIN, "--limit"),
        ("cat", PLAIN, "--format", "csv", "--limit"),
        ("cat", PLAIN, "--start-offset"),
        ("cat", PLAIN, "--end-offset"),
        ("cat", PLAIN, "--since"),
        ("cat", PLAIN, "--until"),
        ("find", PLAIN, "--offset"),
        ("find", PLAIN, "--time"),
        ("truncate", PLAIN, "--to"),
        ("apply-retention", PLAIN, "--now"),
        ("apply-retention", PLAIN, "--set"),
        ("trace", PLAIN / f"{0:020d}.index"),
        ("trace", PLAIN / f"{0:020d}.timeindex"),
        ("append", "{tmp}/new-0", "--leader-epoch"),
    ],
    ids=lambda arguments: " ".join(map(str, (arguments[0], *arguments[2:]))),
)
def test_a_number_that_is_too_large_is_a_usage_error_or_no_limit(
    command: Command, tmp_path: Path, arguments: tuple[object, ...], number: str
) -> None:
    given = [str(argument).replace("{tmp}", str(tmp_path)) for argument in arguments]
    value = f"retention.ms={number}" if given[-1] == "--set" else number
    code, out, error = command(*given, value)
    if "--limit" in given and len(number) < 1000:
        assert (code, error) == (0, "")
        assert out == command(*given[:-1])[1]
        return
    for text in (error, out):
        assert not re.search(r"sys\.|islice|Python|integer string|OverflowError|fault of", text)
    if len(number) >= 1000 or int(number) >= 2**63:
        assert (code, out) == (2, ""), error
        assert error.startswith("cordwood: ")


@pytest.mark.parametrize("names", ["", ",", " ", "offset,", ",offset", "offset,,key"])
@pytest.mark.parametrize("output_format", ["jsonl", "csv"])
def test_an_empty_column_name_is_a_usage_error(command: Command, names: str, output_format: str) -> None:
    code, out, error = command("cat", PLAIN, "--format", output_format, "--columns", names)
    assert (code, out) == (2, "")
    assert error == f"cordwood: --columns: expected column names separated by commas, found {names!r}\n"


@pytest.mark.parametrize("digits", [20, 5000])
def test_a_time_too_long_ago_is_a_usage_error(command: Command, digits: int) -> None:
    code, out, error = command("cat", PLAIN, f"--since=-{'9' * digits}w")
    assert (code, out) == (2, "")
    assert "expected a time in one of the forms 2024-05-01T10:00Z, " in error


def test_a_time_in_files_is_that_in_their_log_also_of_a_marker(command: Command) -> None:
    path = corpus.partition("11-transactions").path
    log = cw.Log(path)
    everything = list(log.records(include_control=True))
    markers = {record.offset for record in everything} - {record.offset for record in log.records()}
    found = {}
    for timestamp in {record.timestamp for record in everything if record.offset in markers}:
        code, out, _ = command("find", *sorted(path.glob("*.log")), "--time", f"{timestamp}ms", "--json")
        assert code == 0
        wanted = log.offset_for_time(f"{timestamp}ms")
        assert wanted is not None
        found[timestamp] = json.loads(out)["offset"]
        assert found[timestamp] == wanted.offset
    assert markers & set(found.values())
